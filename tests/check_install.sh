#!/usr/bin/env bash
# tests/check_install.sh FOLDER - what a user has: installs the build in FOLDER into an empty folder, or unpacks the Debian
# packages in it, moves that, and builds each example there, from a copy that sees nothing of this repository, in C, in
# C++ and by CMake; they run on the emulator.
set -uo pipefail
folder=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/moved/usr examples=$work/examples data=$PWD/tests/data

lay_down() {
    local package
    if [[ -f $folder/cmake_install.cmake ]]; then
        cmake --install "$folder" --prefix "$work/first/usr" || return
    else
        for package in "$folder"/*.deb; do
            dpkg -x "$package" "$work/first" || return
        done
    fi
    mv "$work/first" "$work/moved" && cp -r examples "$examples"
}

# Where libraries are is a matter of the system: lib, lib/x86_64-linux-gnu.
use_prefix() {
    lib=$(dirname "$(find "$prefix" -name libtegula-rt.so)")
    emulator=$lib/libtegula-emu.so.1
    export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib XDG_CACHE_HOME=$work/cache CMAKE_PREFIX_PATH=$prefix
    export PATH=$prefix/bin:$PATH
}

# The folder of the build does not appear in what text says where things are.
build_paths() {
    grep -rlF "$folder" "$lib/cmake" "$lib/pkgconfig" "$prefix/include"
}

compile_c() { # OUTPUT PACKAGES SOURCE... [-- OPTION...]
    local output=$1 flags
    flags=$(pkg-config --cflags --libs $2) || return
    # shellcheck disable=SC2086 # words
    (cd "$work" && cc -std=c11 -Wall -Wextra -Werror "${@:3}" $flags -lm -o "$output")
}

make_project() { # SOURCE FOLDER OPTION...
    cmake -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Release "${@:3}" && cmake --build "$2"
}

# Every header alone, as C and as C++, with the installed folder only. oracle_head.h and oracle_rows.h are for scalar_oracle.c, which is C.
headers() {
    local header
    [[ -f $prefix/include/tegula/runtime/runtime.h ]] || return
    for header in $(cd "$prefix/include" && find tegula -name '*.h'); do
        echo "#include <$header>" >"$work/one.c"
        cc -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include" "$work/one.c" || return
        [[ $header == */oracle_*.h ]] ||
            c++ -std=c++14 -Wall -Wextra -pedantic -Werror -fsyntax-only -I"$prefix/include" -x c++ "$work/one.c" || return
    done
}

# Examples that neither this test builds nor that of the wheel.
forgotten_examples() {
    local file
    for file in $(cd examples && ls -d ./*/*.*); do
        grep -qF -e "examples/$(basename "$(dirname "$file")")\"" -e "${file#./}" tests/check_install.sh tests/check_wheel.sh ||
            echo "examples/${file#./}"
    done
}

plugin() { # NAME SOURCE [ORACLE]
    compile_c "$work/$1.so" tegula -shared -fPIC "$examples/$2" ${3:+"$prefix/include/tegula/variants/$3"} -Wl,--as-needed
}

checks() { # PLUGIN VARIANT SHAPE
    tegula check --device emu --load "$work/$1.so" "$2" --shape "$3"
}

by_hand() {
    tegula compile mlstm-sig --arch sm_80 --dqk 64 --dhv 64 -o "$work/generated" &&
        make_project "$examples/embed" "$work/embed" "-DTEGULA_GENERATED=$work/generated" &&
        "$work/embed/embed" "$emulator"
}

examples_build() {
    check "library, in C: builds" compile_c "$work/library" "tegula tegula-rt" "$examples/library/main.c"
    check "library, in C: runs" "$work/library" "$emulator"
    check "tuning, in C: builds" compile_c "$work/tuning" "tegula-tuning tegula tegula-rt" "$examples/tuning/main.c"
    check "tuning, in C: runs" "$work/tuning" "$emulator" "$work/wisdom.txt" 0.2
    check "tuning, in C: has written what it found" grep -q "^gla | Tegula emulator | 80 bf16 " "$work/wisdom.txt"
    check "engine, in C++, its kernels by tegula_embed: builds" make_project "$examples/engine" "$work/engine"
    check "engine, in C++, its kernels by tegula_embed: runs" "$work/engine/engine" "$emulator"
    check "embed, compiled by hand: builds and runs" by_hand
    check "schedule: builds" make_project "$examples/schedule" "$work/mine"
    check "schedule: is right" tegula check --device emu --load "$work/mine/mine.so" mine "$data/mlstmsig_a.safetensors"
    check "variant: builds" plugin variant variant/mine.c scalar_oracle.c
    check "variant: is right" checks variant paced-retention B=1,NH=2,T=100,dqk=32,dhv=32
    check "variant of decays: builds" plugin ula variant/ula.c
    check "variant of decays: is right" checks ula ula B=1,NH=2,T=100,dqk=32,dhv=32
    check "algorithm: builds" plugin algorithm algorithm/mine.c
    check "algorithm: is right" checks algorithm my-hgrn2 B=1,NH=2,T=100,dqk=32,dhv=32
    check "algorithm with an epilogue: builds" plugin normed algorithm/normed.c
    check "algorithm with an epilogue: is right" checks normed normed-gla B=1,NH=2,T=100,dqk=32,dhv=64
}

# ---- the manual page and completion: every command and option of the command, and nothing that it lacks ----

commands() {
    tegula help | sed -nE 's/^  ([a-z]+) .*/\1/p'
}

options() { # COMMAND
    tegula help "$1" | sed -nE 's/^  (--[a-z0-9-]+) .*/\1/p'
}

by_help() {
    local command
    for command in $(commands); do
        options "$command" | sed "s/^/$command /"
    done
}

by_manual() {
    man -l "$prefix/share/man/man1/tegula.1" | col -bx | awk '
        /^   tegula [a-z]+$/ { command = $2 }
        command && /^       --[a-z]/ { print command, $1 }'
}

roff_warnings() {
    man --warnings -l "$prefix/share/man/man1/tegula.1" 2>&1 >/dev/null
}

by_completion() {
    local command
    . "$prefix/share/bash-completion/completions/tegula"
    for command in $(commands); do
        COMP_WORDS=(tegula "$command" --) COMP_CWORD=2
        _tegula tegula -- "$command"
        printf "$command %s\n" "${COMPREPLY[@]}"
    done
}

completes() { # EXPECTED WORD...: the last is being typed
    . "$prefix/share/bash-completion/completions/tegula"
    COMP_WORDS=(tegula "${@:2}") COMP_CWORD=$(($# - 1))
    _tegula tegula "${@: -1}" "${COMP_WORDS[COMP_CWORD - 1]}"
    [[ ${COMPREPLY[*]} == "$1" ]] || { echo "expected '$1', found '${COMPREPLY[*]}'"; return 1; }
}

# As zsh calls it: the words of the line, and where the cursor is.
by_zsh() { # WORD...: the last is being typed
    zsh -f -c 'compadd() { shift; print -l -- "$@" }; _files() { echo FILES }
        words=(tegula "${@:2}"); CURRENT=$#words; source "$1"' zsh "$prefix/share/zsh/site-functions/_tegula" "$@"
}

all_by_zsh() {
    local command
    for command in $(commands); do
        by_zsh "$command" -- | sed "s/^/$command /"
    done
}

zsh_completes() { # EXPECTED WORD...
    local found
    found=$(by_zsh "${@:2}" | tr '\n' ' ')
    [[ $found == "$1 " ]] || { echo "expected '$1', found '$found'"; return 1; }
}

same_as_help() { # COMMAND
    diff <(by_help) <("$1") && [[ $(by_help | wc -l) -gt 50 ]]
}

help_elsewhere() {
    if command -v man >/dev/null && command -v col >/dev/null; then
        check "the manual page has every option of every command" same_as_help by_manual
        check "the manual page is right roff" none roff_warnings
    else
        skip "the manual page" "there is no man"
    fi
    check "completion has every option of every command" same_as_help by_completion
    check "completion of commands" completes "explain" ex
    check "completion of variants" completes "mamba2 mamba2-backward" compile mam
    check "completion of values" completes "plan llvm ptx" explain gla --stage ""
    check "completion of targets" completes "sm_80 sm_86 sm_89" explain gla --arch sm_8
    if command -v zsh >/dev/null; then
        check "completion in zsh has every option of every command" same_as_help all_by_zsh
        check "completion of values in zsh" zsh_completes "plan llvm ptx" explain gla --stage ""
        check "completion of files in zsh" zsh_completes FILES run --in ""
    else
        skip "completion in zsh" "there is no zsh"
    fi
}

# ---- tegula_embed: when it compiles again, and what it says of wrong arguments ----

write_project() {
    mkdir -p "$work/again" && cd "$work/again" && echo 'int main(void) { return 0; }' >main.c &&
        echo 'tegula-wisdom 1' >wisdom.txt && cp "$examples/schedule/mine.c" . && cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.20)
project(again ${LANGUAGES})
find_package(tegula 0.1 REQUIRED COMPONENTS rt ${COMPONENT})
add_library(mine MODULE mine.c)
target_link_libraries(mine PRIVATE tegula::headers)
add_library(nothing INTERFACE)
add_executable(again main.c)
if(SUB)
  add_subdirectory(sub)
endif()
tegula_embed(${WORDS})
if(TWICE)
  tegula_embed(${WORDS})
endif()
CMAKE
    mkdir sub && echo 'tegula_embed(${WORDS})' >sub/CMakeLists.txt
}

usual="TARGET;again;VARIANT;mine;ARCH;sm_80;DQK;32;DHV;32;WISDOM;wisdom.txt;PLUGIN;mine;OPTIONS;--ptxas;none"

configure() { # WORDS [OPTION...]
    cmake -S "$work/again" -B "$work/again/build" -DLANGUAGES=C "-DWORDS=$1" -USUB -UTWICE -UCOMPONENT "${@:2}" 2>&1
}

compiles() { # TIMES [WORDS]
    local log=$work/again.log times
    configure "${2:-$usual}" >"$log" && cmake --build "$work/again/build" >>"$log" 2>&1 || { cat "$log"; return 1; }
    times=$(grep -c "tegula: compiling" "$log")
    [[ $times == "$1" ]] || { echo "expected $1 compilations, found $times"; cat "$log"; return 1; }
}

says() { # MESSAGE WORDS [OPTION...]: that alone
    local said
    said=$(configure "${@:2}") && echo "accepted" && return 1
    said=$(tr -s ' \n' ' ' <<<"$said")
    [[ $said == *"tegula_embed: $1"* && $(grep -o "CMake Error" <<<"$said" | wc -l) == 1 ]] || { echo "$said"; return 1; }
}

# Every argument becomes what the command takes.
passes_on() {
    local words="gla;--name;g;--arch;sm_80,sm_86;--ptxas;none;--dtype;f32;--dqk;32;--dhv;64;--group;2;--tokens;4;--states;bf16,v-first"
    configure "TARGET;again;VARIANT;gla;NAME;g;ARCH;sm_80;sm_86;DTYPE;f32;DQK;32;DHV;64;GROUP;2;TOKENS;4;COUNT;PACKED;POOL;STATES;bf16;v-first;SHAPES;B=1;C=2;SCHEDULES;step a=1;walk;WISDOM;wisdom.txt;OPTIONS;--ptxas;none" >/dev/null &&
        diff <(echo "$words;--count;--packed;--pool;--shape;B=1;--shape;C=2;--schedule;step a=1;--schedule;walk;--wisdom;$work/again/wisdom.txt;") \
            "$work/again/build/tegula/again/g/arguments"
}

no_such_component() {
    local said
    said=$(configure "$usual" -DCOMPONENT=rtt) && echo "accepted" && return 1
    said=$(tr -s ' \n' ' ' <<<"$said")
    [[ $said == *"tegula has no component rtt: expected tegula, rt,"* ]] || { echo "$said"; return 1; }
}

refusals() {
    local most="TARGET;again;VARIANT;gla;ARCH;sm_80" whole="TARGET;again;VARIANT;gla;ARCH;sm_80;DQK;32;DHV;32"
    check "no target" says "TARGET is missing" "VARIANT;gla"
    check "no variant" says "VARIANT is missing" "TARGET;again"
    check "no architecture" says "ARCH is missing" "TARGET;again;VARIANT;gla"
    check "no widths" says "DQK and DHV, or SHAPES, are missing" "$most;DQK;32"
    check "an unknown word" says "unexpected argument CHUNKS: expected one of TARGET, VARIANT" "$whole;CHUNKS"
    check "no value" says "DHV needs a value" "$most;DQK;32;DHV"
    check "an unknown target" says "TARGET: there is no target agian" "${whole/again/agian}"
    check "a target without sources" says "TARGET nothing: expected an executable" "${whole/again/nothing}"
    check "a target of another folder" says "TARGET again: expected a target of this folder" "$whole" -DSUB=1
    check "a name that is none" says "NAME: expected a C identifier, found a-b" "$whole;NAME;a-b"
    check "a name twice" says "NAME: again has a program gla already" "$whole" -DTWICE=1
    check "no such wisdom" says "WISDOM: there is no file $work/again/none.txt" "$whole;WISDOM;none.txt"
    rm -r "$work/again/build"
    check "no C" says "the generated code is C: add C to the languages" "$whole" -DLANGUAGES=CXX
}

embed_function() {
    check "tegula_embed: a project" write_project
    check "tegula_embed compiles" compiles 1
    check "... not again where nothing is otherwise" compiles 0
    check "... again with other options" compiles 1 "$usual;--chunk;128"
    check "... and with the first" compiles 1
    touch "$work/again/wisdom.txt"
    check "... again with other wisdom" compiles 1
    touch "$work/again/mine.c"
    check "... again with another plugin" compiles 1
    touch "$prefix/bin/tegula"
    check "... again with another command" compiles 1
    check "... with all it is given" passes_on
    check "find_package says: an unknown component" no_such_component
    refusals
}

check "install, and move" lay_down
use_prefix
check "no path of the build folder in it" none build_paths
check "the moved command runs on the moved emulator" tegula check --device emu "$data/mlstmsig_x.safetensors"
check "every header alone, as C and as C++" headers
check "every example is built" none forgotten_examples
examples_build
help_elsewhere
embed_function
finish
