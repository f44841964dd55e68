#!/usr/bin/env bash
# tests/check_symbols.sh BUILD_FOLDER - what the libraries need and show.
set -uo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
lib=$build/lib

needed() {
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# needed_but FILE PATTERN: the libraries it needs that do not match.
needed_but() {
    needed "$1" | grep -vE "^($2)\.so"
}

# exports_but FILE PATTERN: the symbols it shows that do not match; the names of versions (A) are none.
exports_but() {
    nm -D --defined-only "$1" | awk '$(NF - 1) != "A" {print $NF}' | sed 's/@.*//' | grep -vE "^($2)"
}

needs_cuda() {
    needed "$1" | grep -i cuda
}

# relative_paths FILE: entries of its search path that depend on the current folder; an empty one is that folder itself.
relative_paths() {
    local paths entry
    paths=$(readelf -d "$1" | sed -nE 's/.*\((RUNPATH|RPATH)\).*\[(.*)\]/\2/p')
    [[ -z $paths ]] && return
    while read -r -d : entry; do
        [[ $entry == /* || $entry == "\$ORIGIN"* ]] || echo "'$entry' in '$paths'"
    done <<<"$paths:"
}

# Where these sources lay, in what messages say. Debug information has it by right.
source_paths() {
    readelf -S "$1" | grep -q debug_info || grep -aoF "$PWD/variants" "$1" | sort -u
}

for file in "$build/bin/tegula" "$lib/libtegula.so" "$lib/libtegula-rt.so" "$lib/libtegula-jit.so" "$lib/libtegula-tuning.so" "$lib/libtegula-torch.so" "$lib/libtegula-emu.so"; do
    check "$(basename "$file") looks for libraries in fixed folders only" none relative_paths "$file"
    check "$(basename "$file") does not know where its sources lay" none source_paths "$file"
done
check "libtegula-rt needs neither LLVM nor libcuda" none needed_but "$lib/libtegula-rt.so" 'libc|libm|libdl|libxxhash'
check "libtegula-rt shows tg_* only" none exports_but "$lib/libtegula-rt.so" tg_
check "libtegula does not need libcuda" none needs_cuda "$lib/libtegula.so"
check "libtegula shows tg_* only" none exports_but "$lib/libtegula.so" tg_
check "libtegula-jit needs our libraries" none needed_but "$lib/libtegula-jit.so" 'libc|libtegula|libtegula-rt|libtegula-tuning|libpthread'
check "libtegula-jit shows tg_jit_* only" none exports_but "$lib/libtegula-jit.so" tg_jit_
check "libtegula-torch needs neither PyTorch nor libcuda" none needed_but "$lib/libtegula-torch.so" 'libc|libdl|libtegula-rt|libpthread|ld-linux-[a-z0-9_-]*'
check "libtegula-torch shows tg_torch_* only" none exports_but "$lib/libtegula-torch.so" tg_torch_
check "libtegula-tuning needs libtegula and libtegula-rt" none needed_but "$lib/libtegula-tuning.so" 'libc|libm|libtegula|libtegula-rt|libpthread'
check "libtegula-tuning shows tg_* only" none exports_but "$lib/libtegula-tuning.so" tg_
check "libtegula-emu needs the C library only" none needed_but "$lib/libtegula-emu.so" 'libc|libm|libpthread|ld-linux-[a-z0-9_-]*'
check "libtegula-emu shows cu* and tgemu_* only" none exports_but "$lib/libtegula-emu.so" 'cu[A-Z]|tgemu_'
check "the command does not need libcuda" none needs_cuda "$build/bin/tegula"
# Variables of the C library that a program uses become its own.
check "the command shows tg_* only" none exports_but "$build/bin/tegula" 'tg_|opt(arg|err|ind)$|std(in|out|err)$|_IO_stdin_used$|(__)?environ$'
finish
