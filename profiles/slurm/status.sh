#!/usr/bin/env bash
# What became of a job: status.sh NUMBER; prints running, success or failed.
set -euo pipefail
state=$(sacct --jobs "$1" --allocations --noheader --parsable2 --format State 2>/dev/null || true)
[ -n "$state" ] || state=$(squeue --jobs "$1" --noheader --format %T 2>/dev/null || true)
case $state in
COMPLETED*) echo success ;;
"" | PENDING* | RUNNING* | CONFIGURING* | COMPLETING* | REQUEUED* | RESIZING* | SUSPENDED*) echo running ;; # "": not in the books yet
*) echo failed ;; # FAILED, TIMEOUT, OUT_OF_MEMORY, CANCELLED, NODE_FAIL, PREEMPTED …
esac
