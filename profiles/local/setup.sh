#!/usr/bin/env bash
# `make setup`: .venv with exactly requirements.lock and this package; nothing to do when neither changed.
# TORCH=cpu TORCH_INDEX=<address>: torch and torchvision of the pinned versions from an index with CPU wheels, no CUDA.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

venv=.venv
stamp=$venv/.complete
say() { printf '%s\n' "$*" >&2; }
stop() { say "make setup: $*"; exit 1; }

# Two setups at once in one folder: the second waits, then finds the work done.
exec 9<.
if command -v flock >/dev/null; then flock 9; fi

# A choice once made stays until another is made.
torch=${TORCH:-$(sed -n 's/^torch //p' "$stamp" 2>/dev/null || true)}
torch=${torch:-default}
wanted=$(printf 'torch %s\n%s\n%s\n' "$torch" "$PWD" "$(cksum requirements.lock pyproject.toml)")
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && "$venv/bin/python" -c '' 2>/dev/null; then exit 0; fi

case $torch in
default) need=10 ;;
cpu) need=4; [ -n "${TORCH_INDEX:-}" ] || stop "TORCH=cpu needs TORCH_INDEX=<address of a package index that offers CPU wheels of torch>." ;;
*) stop "TORCH must be cpu or be left out; got '$torch'." ;;
esac

python=
for candidate in ${PYTHON:-python3 python3.11 python3.12 python3.13 python3.14 python}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || stop "Python 3.11 or newer is needed; python3 here is $(python3 --version 2>&1 || true)." \
    "Install a newer one, or name it: make setup PYTHON=/path/to/python3.11"

free=$(df -Pk . | awk 'NR == 2 {print int($4 / 1000000)}')
there=$( (du -sk "$venv" 2>/dev/null || echo 0) | awk '{print int($1 / 1000000)}')
[ $((free + there)) -ge "$need" ] || stop "$need GB of free disk are needed here for the packages; there are $free GB." \
    "Free some, or use the smaller CPU-only route: make setup TORCH=cpu TORCH_INDEX=<address> (4 GB)."

if [ -e "$stamp" ] && "$venv/bin/python" -c '' 2>/dev/null; then
    rm "$stamp" # the lock changed: bring the environment in step with it
else # none, or one that a killed setup left half made
    "$python" -m venv --clear "$venv" || stop "this Python cannot make virtual environments;" \
        "on Debian and Ubuntu: apt-get install python3-venv"
fi
count=$(grep -c '==' requirements.lock)
say "Installing $count packages into $venv: a few minutes, about $([ "$torch" = cpu ] && echo 2 || echo 7) GB …"
install() { "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --no-input --no-deps "$@"; }
if [ "$torch" = cpu ]; then
    grep -E '^torch(vision)?==' requirements.lock >"$venv/torch.txt"
    grep -Ev '^(torch|torchvision|triton|cuda-[a-z]+|nvidia-[a-z0-9-]+)==' requirements.lock >"$venv/others.txt"
    install --index-url "$TORCH_INDEX" -r "$venv/torch.txt"
    install -r "$venv/others.txt"
else
    install -r requirements.lock
    "$venv/bin/python" -m pip check --quiet 2>/dev/null || "$venv/bin/python" -m pip check
fi
install -e .
printf '%s\n' "$wanted" >"$stamp"
