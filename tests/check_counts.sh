#!/usr/bin/env bash
# check_counts.sh [--update] TEST_PROGRAM... - how many tests there are of each group, the first word of their names (or
# two, of what is compiled by default),
# beside the numbers in counts.txt. Fewer fail: who takes tests out writes the file anew, and its change shows in the commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

count_groups() {
    local program
    for program; do
        "$program" --list | awk -v program="${program##*/}" '
            /^#/ { next }
            { group = $1 == "default" ? $1 "-" $2 : $1; sub(/[^A-Za-z0-9]*$/, "", group); n[group]++ }
            END { for (group in n) print program, group, n[group] }'
    done | sort
}

if [[ ${1:-} == --update ]]; then
    count_groups "${@:2}" >counts.txt
    exit
fi
count_groups "$@" | awk '
    NR == FNR { expected[$1 " " $2] = $3; next }
    {
        group = $1 " " $2
        found[group] = $3
        total += $3
        print "# " group ": " $3 (group in expected ? "" : ", not in counts.txt")
    }
    END {
        for (group in expected)
            if (found[group] + 0 < expected[group]) {
                print "not ok - " group ": " found[group] + 0 " tests, of " expected[group] " (check_counts.sh --update writes counts.txt)"
                failed++
            }
        if (!failed)
            print "ok - " total " tests, none lost"
        exit failed > 0
    }' counts.txt -
