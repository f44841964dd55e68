#!/usr/bin/env bash
# each_gpu.sh K/N COMMAND [ARGUMENT...] - the K-th of N parts of a program's tests, in smaller parts, of which every GPU has one at a
# time; prints what they print one after the other. A part that ends by a segmentation fault is begun again, some times: so ends
# compute-sanitizer itself, at random; where the program does, it says so and returns something else.
part=${1%/*} of=${1#*/}
shift
small=$(((48 + of - 1) / of)) attempts=8
gpus=$(nvidia-smi -L | wc -l)
((gpus)) || { echo "not ok - nvidia-smi -L lists no GPU"; exit 1; }
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

run_part() { # GPU I COMMAND...
    local gpu=$1 i=$2 attempt code
    shift 2
    for ((attempt = 0; attempt < attempts; attempt++)); do
        CUDA_VISIBLE_DEVICES=$gpu "$@" --part $((part + i * of))/$((small * of)) >"$logs/$i" 2>&1
        code=$?
        ((code == 139)) || break
    done
    ((code)) && echo "not ok - part $((i + 1)) of $small: exit code $code" >>"$logs/$i"
}

run_gpu() { # GPU COMMAND...
    local i
    for ((i = $1; i < small; i += gpus)); do
        run_part "$1" $i "${@:2}"
    done
}

for ((gpu = 0; gpu < gpus; gpu++)); do
    run_gpu $gpu "$@" 2>/dev/null &
done
wait
code=0
for ((i = 0; i < small; i++)); do
    cat "$logs/$i" || code=1
done
! grep -q '^not ok' "$logs"/* && exit $code
