#!/usr/bin/env bash
# tests/check_includes.sh - who may include whom (the layers of the design):
#   variants -> dsl -> program; interpreter -> dsl; lower -> compiler -> dsl; runtime -> program only; emulator nothing of
#   ours; tuning: the public headers of compiler, interpreter, variants, runtime; torch: those of runtime and program, and
#   nothing of PyTorch;
#   llvm-c/* only in lower/; CUDA declarations only in runtime/ and emulator/.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh

# wrong_includes FOLDER ALLOWED...: the includes of FOLDER that begin with none of ALLOWED. One without a folder name lies
# beside it; public headers write ../FOLDER, so that they need no search path where they are installed.
wrong_includes() {
    local folder=$1
    shift
    local allowed
    allowed=$(IFS='|'; echo "$*")
    grep -nE '^ *# *include *"[^"]*/' "$folder"/*.[ch] | grep -vE "\"([.][.]/)?($allowed)[^\"]*\""
}

# What users include, from folder to folder by other than a relative path.
unreachable_includes() {
    grep -nE '^ *# *include *"[a-z_]+/' variants/*.h variants/*.inc variants/scalar_oracle.c $(installed_headers)
}

installed_headers() {
    sed -n '/^foreach(header /,/)/p' cmake/install.cmake | grep -oE '[a-z_]+/[a-z_]+[.]h'
}

# Headers of libraries that belong to another folder.
wrong_libraries() {
    grep -nE '^ *# *include *[<"](llvm|clang)' $(sources_except lower)
    grep -nE '^ *# *include *[<"](cuda|nv[a-z]+)[^/]*\.h' $(sources_except runtime emulator)
}

sources_except() {
    local folder
    for folder in program dsl interpreter compiler lower variants runtime tuning jit torch emulator cli; do
        [[ " $* " == *" $folder "* ]] || ls "$folder"/*.[ch]
    done
}

# Types and functions of the Driver API. Generated C needs them too: a template (*.in), not a source.
cuda_names() {
    grep -nE '\bCU(device|deviceptr|context|stream|module|function|result|event|tensorMap)\b|\bcu[A-Z][A-Za-z]+ *\(' \
        $(sources_except runtime emulator)
}

# Codes that compiler/ and lower/, interpreter/, or tuning/, report but their codes.def lacks, and the other way round.
unlisted_codes() {
    diff <(cat compiler/*.[ch] lower/*.[ch] | grep -o 'TG05[0-9][0-9]' | sort -u) \
        <(grep -o '^CODE(TG05[0-9][0-9]' compiler/codes.def | cut -c6- | sort -u)
    diff <(cat interpreter/*.[ch] | grep -o 'TG06[0-9][0-9]' | sort -u) \
        <(grep -o '^CODE(TG06[0-9][0-9]' interpreter/codes.def | cut -c6- | sort -u)
    diff <(cat tuning/*.[ch] | grep -o 'TG09[0-9][0-9]' | sort -u) \
        <(grep -o '^CODE(TG09[0-9][0-9]' tuning/codes.def | cut -c6- | sort -u)
}

# Sections of a document that is not in this repository.
foreign_citations() {
    grep -rnE 'reference:? (section |hazard )?[0-9]|DESIGN|hazard [0-9]' --include='*.[ch]' --include='*.inc' \
        dsl compiler lower variants runtime program tuning interpreter jit cli emulator torch tests
}

check "program includes program" none wrong_includes program program/
check "interpreter includes dsl, program" none wrong_includes interpreter interpreter/ dsl/ program/
check "dsl includes program" none wrong_includes dsl dsl/ program/
check "compiler includes dsl, program" none wrong_includes compiler compiler/ dsl/ program/
check "lower includes compiler, dsl, program" none wrong_includes lower lower/ compiler/ dsl/ program/
check "variants includes dsl" none wrong_includes variants variants/ dsl/
check "runtime includes the program format only" none wrong_includes runtime runtime/ program/
check "emulator includes nothing of ours" none wrong_includes emulator emulator/
check "tuning includes public headers only" none wrong_includes tuning tuning/ \
    compiler/compiler.h dsl/tegula.h interpreter/interpreter.h program/program.h program/fail.h runtime/runtime.h variants/variants.h
check "jit includes public headers only" none wrong_includes jit jit/ compiler/compiler.h runtime/runtime.h tuning/tuning.h program/fail.h
check "torch includes public headers only" none wrong_includes torch torch/ runtime/runtime.h program/program.h program/fail.h
check "cli includes public headers only" none wrong_includes cli \
    compiler/compiler.h dsl/tegula.h interpreter/interpreter.h program/program.h runtime/runtime.h variants/variants.h \
    tuning/tuning.h tuning/numbers.h emulator/tegula_emu.h
check "installed headers include by relative paths" none unreachable_includes
check "LLVM only in lower, CUDA headers only in runtime and emulator" none wrong_libraries
check "CUDA names only in runtime and emulator" none cuda_names
check "codes.def lists the codes of compiler, interpreter and tuning" none unlisted_codes
check "sources cite what is there" none foreign_citations
finish
