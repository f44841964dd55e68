#!/usr/bin/env bash
# tests/check_docs.sh BUILD_FOLDER - every block of README.md and docs/ holds:
#   indented, from "$ tegula ..." on   the command prints each line below it, in that order
#   indented, else                     shell commands, which succeed
#   ```c                               a program that compiles, as C11 and as C++17, against what the page has made before
#   ```c after <!-- from FILE -->      lines that stand in that file, one below the other
#   ```cmake, ```python after <!-- from FILE -->  ... too
#   ```python                          compiles, where there is a python3
#   any after <!-- not run: WHY -->    is reported as skipped
# Relative links lead somewhere. Commands run in a folder that looks like the repository; its build/ is empty but for the programs, libraries and what installs them.
set -uo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache TEGULA_DEVICE=emu

# Writes the text of each block to N and its kind, its line and what a comment says of it to N.is; prints how many there are.
split() {
    awk -v work="$2" '
        function begin(kind) { file = work "/" ++n; is = kind; printf "" > file; print kind "\t" NR "\t" note > (file ".is"); note = "" }
        fenced && /^```/ { fenced = 0; file = ""; next }
        /^```/ { begin(substr($0, 4)); fenced = 1; next }
        fenced { print > file; next }
        /^<!-- .* -->$/ { note = substr($0, 6, length($0) - 9); next }
        /^    / && !file { begin($2 == "tegula" && $1 == "$" ? "shown" : "shell") }
        /^    / { print substr($0, 5) > file; next }
        { file = ""; if ($0 != "") note = "" }
        END { print n + 0 }' "$1"
}

shows() {
    local command arguments
    read -r command <"$1"
    read -ra arguments <<<"${command#\$ tegula}"
    [[ ${arguments[0]} != explain ]] || grep -q spilled "$1" || arguments+=(--ptxas none) # which takes its time
    tegula "${arguments[@]}" 2>/dev/null | awk -v file="$1" '
        function plain(line) { sub(/^ +/, "", line); return line }
        BEGIN { getline line < file; while ((getline line < file) > 0) if (plain(line) != "...") wanted[n++] = plain(line) }
        at < n && index($0, wanted[at]) { at++ }
        END { if (at < n) { print "not in the output, or not there: " wanted[at]; exit 1 } exit n == 0 }'
}

stands_in() { # LINES FILE: all in it, in one piece, but for indentation and comments at the end
    [[ -r $2 ]] && awk -v file="$1" '
        function plain(line) { gsub(/^ +| +$/, "", line); return line }
        BEGIN { while ((getline line < file) > 0) wanted[n++] = plain(line) }
        { at = plain($0) == wanted[at] ? at + 1 : plain($0) == wanted[0] }
        at == n { found = 1; exit }
        END { if (!found) print "the file has no such lines, one below the other"; exit !found || !n }' "$2"
}

compiles() {
    local includes=(-I.) folder
    for folder in build/*/; do
        includes+=("-I$folder")
    done
    "${CC:-cc}" -std=c11 -Wall -Wextra -Werror "${includes[@]}" -x c -c "$1" -o "$work/block.o" &&
        "${CXX:-c++}" -std=c++17 -Wall -Wextra -Wno-missing-field-initializers -Werror "${includes[@]}" -x c++ -fsyntax-only "$1"
}

# Relative links of the page that lead nowhere.
dead_links() {
    local target
    grep -oE '\]\([^)#:]+' "$1" | cut -c3- | sort -u | while read -r target; do
        [[ $target == http* || -e $(dirname "$1")/$target ]] || echo "$target"
    done
}

has_python() {
    command -v python3 >/dev/null
}

block() { # PAGE FILE
    local kind note line text what
    IFS=$'\t' read -r kind line note <"$2.is" || true
    text=$(grep -m 1 . "$2")
    what="$1:$line: ${text:0:100}"
    case $kind:$note in
    *:"not run: "*) skip "$what" "${note#not run: }" ;;
    shown:) check "$what" shows "$2" ;;
    shell:) check "$what" bash -euo pipefail "$2" ;;
    c:"from "* | cmake:"from "* | python:"from "*) check "$what" stands_in "$2" "${note#from }" ;;
    c:) check "$what" compiles "$2" ;;
    python:) if has_python; then check "$what" python3 -m py_compile "$2"; else skip "$what" "there is no python3"; fi ;;
    *) check "$what: no kind of block that this script knows: $kind, $note" false ;;
    esac
}

page() {
    local name=$1 blocks=$work/blocks copy=$work/copy count entry i
    rm -rf "$blocks" "$copy"
    mkdir -p "$blocks" "$copy/build"
    count=$(split "$name" "$blocks")
    total=$((total + count))
    for entry in *; do
        [[ $entry == build* ]] || ln -s "$PWD/$entry" "$copy/$entry"
    done
    ln -s "$build"/{lib,bin,include,cmake_install.cmake} "$build"/tegula-*.cmake "$copy/build"
    pushd "$copy" >/dev/null || exit 1
    for ((i = 1; i <= count; i++)); do
        block "$name" "$blocks/$i"
    done
    popd >/dev/null || exit 1
}

mkdir "$work/bin"
ln -s "$build/bin/tegula_made" "$work/bin/tegula" # the command that keeps what LLVM made
PATH=$work/bin:$build/bin:$PATH
total=0
for name in README.md docs/*.md; do
    check "$name has no dead links" none dead_links "$name"
    page "$name"
done
check "CONTRIBUTING.md has no dead links" none dead_links CONTRIBUTING.md
check "there are blocks" test "$total" -gt 40
finish
