#!/usr/bin/env bash
# parts.sh TEST_PROGRAM [ARGUMENT...] - the tests in as many parts as there are processors (at most 8), all at once;
# prints one part after the other.
n=$(nproc)
((n <= 8)) || n=8
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
parts=()
for ((k = 1; k <= n; k++)); do
    "$@" --part $k/$n >"$logs/$k" 2>&1 &
    parts+=($!)
done
code=0
for ((k = 1; k <= n; k++)); do
    wait "${parts[k - 1]}" || code=$?
    cat "$logs/$k"
done
exit $code
