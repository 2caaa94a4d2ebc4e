#!/usr/bin/env bash
# Submit one page: submit.sh RULE GPUS MEGABYTES MINUTES CORES JOBSCRIPT; prints the job's number.
set -euo pipefail
rule=$1 gpus=$2 memory=$3 minutes=$4 cores=$5 script=$6
logs=data/derived/executed/slurm
mkdir -p "$logs"
wanted=(--parsable --job-name "$rule" --cpus-per-task "$cores" --mem "${memory}M" --time "$minutes" --output "$logs/%x-%j.log")
[ "$gpus" -eq 0 ] || wanted+=(--gpus "$gpus")
said=$(sbatch "${wanted[@]}" "$script")
printf '%s\n' "${said%%;*}" # with several clusters: number;cluster
