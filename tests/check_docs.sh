#!/usr/bin/env bash
# tests/check_docs.sh BUILD_FOLDER - what docs/ shows is what the command prints: every line under a "$ tegula" line, in
# that order, but for its indentation.
set -uo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache

# Writes each block's command to N.command and its lines to N.lines.
split() {
    awk -v work="$work" '
        /^    \$ tegula / { n++; file = work "/" n; print substr($0, 14) > (file ".command"); next }
        /^    / && file { sub(/^ +/, ""); print > (file ".lines"); next }
        { file = "" }
        END { print n + 0 }' "$1"
}

shows() { # COMMAND_FILE LINES_FILE
    local arguments
    read -ra arguments <"$1"
    "$build/bin/tegula" "${arguments[@]}" 2>/dev/null | awk -v lines="$2" '
        BEGIN { while ((getline line < lines) > 0) wanted[n++] = line }
        at < n && index($0, wanted[at]) { at++ }
        END { if (at < n) { print "not in the output, or not there: " wanted[at]; exit 1 } exit n == 0 }'
}

for page in docs/*.md; do
    count=$(split "$page")
    check "$page has blocks" test "$count" -gt 0
    for ((i = 1; i <= count; i++)); do
        check "$page, block $i: $(head -c 100 "$work/$i.command")" shows "$work/$i.command" "$work/$i.lines"
    done
done
finish
