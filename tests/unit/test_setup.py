"""Lock, pyproject and environment.yml in step; setup says what is wrong and repairs what a kill left."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCK = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
PINS = [Requirement(line) for line in LOCK]
VERSIONS = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in PINS}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED = [Requirement(text) for text in PROJECT["dependencies"]] + [
    Requirement(text) for extra in PROJECT["optional-dependencies"].values() for text in extra
]


def test_every_line_of_the_lock_is_one_exact_pin():
    assert [str(pin) for pin in PINS if [part.operator for part in pin.specifier] != ["=="]] == []
    assert len(VERSIONS) == len(PINS), "a package is pinned twice"


@pytest.mark.parametrize("requirement", WANTED, ids=lambda requirement: requirement.name)
def test_the_lock_satisfies_pyproject(requirement):
    pinned = VERSIONS.get(canonicalize_name(requirement.name))
    assert pinned is not None, f"{requirement.name} is in pyproject.toml and not in requirements.lock"
    assert requirement.specifier.contains(pinned, prereleases=True)


def test_nothing_in_the_lock_is_without_a_reason():
    """Whatever the lock pins is wanted by pyproject or by something else that is installed."""
    from importlib.metadata import distributions

    reasons = {canonicalize_name(requirement.name) for requirement in WANTED}
    for distribution in distributions():
        for text in distribution.requires or ():
            reasons.add(canonicalize_name(Requirement(text).name))
    assert sorted(set(VERSIONS) - reasons) == []


def test_what_is_installed_is_what_is_locked():
    from importlib.metadata import PackageNotFoundError, version

    wrong = {}
    for pin in PINS:
        try:
            found = version(pin.name).partition("+")[0]  # 2.14.1+cpu is the same release
        except PackageNotFoundError:
            found = "missing"
        if found != VERSIONS[canonicalize_name(pin.name)] and (found != "missing" or pin.marker is None):
            wrong[pin.name] = found
    assert wrong == {}


def test_torch_and_its_cuda_packages():
    cuda = [pin for pin in PINS if re.match(r"nvidia-|cuda-|triton", pin.name)]
    assert {str(pin.marker) for pin in cuda} == {
        'platform_system == "Linux" and platform_machine == "x86_64"'
    }, "other platforms have no CUDA packages"
    assert VERSIONS["torchvision"].split(".")[1] == str(int(VERSIONS["torch"].split(".")[1]) + 15)


def test_no_address_of_a_registry_is_written_down():
    for name in (
        "requirements.lock",
        "environment.yml",
        "Makefile",
        "profiles/local/setup.sh",
        "pyproject.toml",
    ):
        text = (ROOT / name).read_text()
        assert not re.search(r"https?://|--(extra-)?index-url (?!\"\$TORCH_INDEX\")|find-links", text), name


def test_environment_yml_installs_the_same_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    [pip] = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip == ["--requirement requirements.lock", "--editable ."]
    [python] = [entry for entry in environment["dependencies"] if str(entry).startswith("python=")]
    assert PROJECT["requires-python"] == f">={python.removeprefix('python=')}"


@pytest.fixture
def checkout(tmp_path):
    """Return a folder with what setup needs and a made-up lock: a test installs nothing."""
    for name in ("pyproject.toml", "profiles/local/setup.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "requirements.lock").write_text("# nothing\nnone==1\n")
    return tmp_path


def fake(folder, name, script):
    """Put a program of that name into ``folder/bin``."""
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def setup(checkout, **variables):
    environment = {**os.environ, "PATH": f"{checkout}/bin:{os.environ['PATH']}", **variables}
    command = ["bash", "profiles/local/setup.sh"]
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)


def test_too_old_a_python_is_said(checkout):
    fake(checkout, "old", 'case "$*" in *version_info*) exit 1;; *) echo "Python 3.8.1";; esac')
    fake(checkout, "python3", 'echo "Python 3.8.1"')
    done = setup(checkout, PYTHON="old")
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed; python3 here is Python 3.8.1" in done.stderr


@pytest.mark.parametrize(("torch", "need"), [("", 10), ("cpu", 4)])
def test_too_small_a_disk_is_said(checkout, torch, need):
    fake(checkout, "df", 'printf "h\\nfs 9 9 2500000 9 /\\n"')
    done = setup(checkout, TORCH=torch, TORCH_INDEX="x")
    assert done.returncode == 1
    assert f"{need} GB of free disk are needed here for the packages; there are 2 GB" in done.stderr


def test_cpu_route_asks_for_an_index(checkout):
    assert "TORCH=cpu needs TORCH_INDEX=" in setup(checkout, TORCH="cpu").stderr
    assert "TORCH must be cpu or be left out; got 'gpu'" in setup(checkout, TORCH="gpu").stderr


PYTHON_THAT_RECORDS = """
case "$*" in
*version_info*) exit 0 ;;
*"-m venv"*) echo venv >>"$PWD/calls"; mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
*"pip install"*) echo "pip $*" >>"$PWD/calls"; [ ! -e fail ] || exit 1 ;;
esac
"""


def calls(checkout):
    file = checkout / "calls"
    done = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return [line.split()[0] for line in done]


def test_setup_is_skipped_repaired_and_renewed(checkout):
    fake(checkout, "python-fake", PYTHON_THAT_RECORDS)
    (checkout / "fail").touch()
    assert setup(checkout, PYTHON="python-fake").returncode == 1, "a failed install must not pass for done"
    assert calls(checkout) == ["venv", "pip"]
    (checkout / "fail").unlink()
    assert setup(checkout, PYTHON="python-fake").returncode == 0
    assert calls(checkout) == ["venv", "pip", "pip"], "what was left half made is made anew"
    assert setup(checkout, PYTHON="python-fake").returncode == 0
    assert calls(checkout) == [], "nothing changed"
    (checkout / "requirements.lock").write_text("# nothing\nnone==2\n")
    assert setup(checkout, PYTHON="python-fake").returncode == 0
    assert calls(checkout) == ["pip", "pip"], "a changed lock is installed into the same environment"


def test_the_cpu_choice_stays_until_another_is_made(checkout):
    fake(checkout, "python-fake", PYTHON_THAT_RECORDS)
    lock = "torch==1\ntorchvision==1\nnvidia-a-cu13==1\ncuda-b==1\ntriton==1\nother==1\n"
    (checkout / "requirements.lock").write_text(lock)
    assert setup(checkout, PYTHON="python-fake", TORCH="cpu", TORCH_INDEX="index").returncode == 0
    assert (checkout / ".venv/torch.txt").read_text() == "torch==1\ntorchvision==1\n"
    assert (checkout / ".venv/others.txt").read_text() == "other==1\n"
    calls(checkout)
    assert setup(checkout, PYTHON="python-fake").returncode == 0
    assert calls(checkout) == []
