#!/usr/bin/env bash
# tests/check_usage.sh BUILD_FOLDER - a test program that gets an option which it does not take runs nothing, and says in one
# line what it takes; so does ./dev where it cannot build.
set -uo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh

refuses() { # PROGRAM
    local said code=0
    said=$(timeout 20 "$1" --nonsense 2>&1 </dev/null) || code=$?
    ((code == 2)) && [[ $(wc -l <<<"$said") == 1 && $said == *usage* ]] || { echo "exit code $code: ${said:0:200}"; return 1; }
}

# The command and the example of those who embed have tests of their own.
for program in "$build"/bin/*; do
    case ${program##*/} in
    tegula | tegula_made | embed) ;;
    *) check "${program##*/} --nonsense" refuses "$program" ;;
    esac
done

# A tree that was copied with its build folder.
copied() {
    local work said
    work=$(mktemp -d)
    mkdir "$work/build" && cp dev "$work" && echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >"$work/build/CMakeCache.txt"
    said=$("$work/dev" build 2>&1)
    rm -r "$work"
    [[ $said == "dev: build/ was made elsewhere"* && $(wc -l <<<"$said") == 1 ]] || { echo "$said"; return 1; }
}

check "dev build in a copied tree" copied
finish
