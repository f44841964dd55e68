#!/usr/bin/env bash
# tests/check_interrupt.sh BUILD_FOLDER - Ctrl-C in `tegula tune`: what was found so far is shown and remembered. The emulator
# lies where the command looks for a GPU's driver.
set -uo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$build/lib/libtegula-emu.so" "$work/libcuda.so.1"
export LD_LIBRARY_PATH=$work XDG_CACHE_HOME=$work/cache
set -m # else jobs ignore SIGINT

# tune NAME: until it is at the second candidate; then Ctrl-C. Its exit status.
tune() {
    "$build/bin/tegula" tune linear --shape B=1,NH=1,T=40,dqk=16,dhv=16 --runs 1 --budget-seconds 300 \
        --wisdom "$work/$1.wisdom" >"$work/$1.out" 2>"$work/$1.err" &
    local job=$! tries
    for ((tries = 0; tries < 300; tries++)); do
        grep -qE '^candidate ([2-9]|[1-9][0-9]+):' "$work/$1.err" && break
        sleep 0.1
    done
    kill -INT $job
    wait $job
}

found() {
    grep -qE '^note: interrupted after [0-9]+ candidates: the best of these counts$' "$work/a.err" &&
        grep -q '^  remembered in ' "$work/a.out" && grep -q '^linear | Tegula emulator | 80 bf16 ' "$work/a.wisdom"
}

check "tune, interrupted, succeeds" tune a
check "it shows and remembers what was found" found
finish
