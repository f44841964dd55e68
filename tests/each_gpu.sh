#!/usr/bin/env bash
# each_gpu.sh K/N COMMAND [ARGUMENT...] - the K-th of N parts of a program's tests, shared out to all GPUs, a process each;
# prints what they print one after the other.
k=${1%/*} n=${1#*/}
shift
gpus=$(nvidia-smi -L | wc -l)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
processes=()
for ((gpu = 0; gpu < gpus; gpu++)); do
    CUDA_VISIBLE_DEVICES=$gpu "$@" --part $((k + gpu * n))/$((gpus * n)) >"$logs/$gpu" 2>&1 &
    processes+=($!)
done
code=0
for ((gpu = 0; gpu < gpus; gpu++)); do
    wait "${processes[gpu]}" || code=$?
    cat "$logs/$gpu"
done
exit $code
