#!/usr/bin/env bash
# tests/check_packages.sh FOLDER - Debian packages (./dev package): what they are called, hold, need and show. That they
# are enough to build with, tests/check_install.sh says.
set -uo pipefail
folder=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

package() { # NAME: its file
    echo "$folder/$1"_*.deb
}

unpack() {
    local name
    for name in libtegula-rt1 libtegula1 tegula libtegula-dev; do
        dpkg -x "$(package $name)" "$work/$name" || return
    done
}

# Files that are in two packages: dpkg would refuse the second.
shared_files() {
    (cd "$work" && find . -mindepth 2 ! -type d | cut -d/ -f3- | sort | uniq -d)
}

# needs_but PACKAGE PATTERN: what it depends on that does not match.
needs_but() {
    dpkg-deb -f "$(package "$1")" Depends | sed 's/, /\n/g' | grep -vE "^($2)( |\$)"
}

needs() { # PACKAGE WHAT...
    local what
    for what in "${@:2}"; do
        [[ ", $(dpkg-deb -f "$(package "$1")" Depends)," == *", $what "* ]] || { echo "does not need $what"; return 1; }
    done
}

library() { # PACKAGE NAME: its path
    find "$work/$1/usr/lib" -name "$2" -type f
}

exports_but() { # FILE PATTERN
    nm -D --defined-only "$1" | awk '$(NF - 1) != "A" {print $NF}' | sed 's/@.*//' | grep -vE "^($2)"
}

libraries_but() { # FILE PATTERN: what it is linked with that does not match
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE "^($2)[.]so"
}

soname() { # FILE NAME
    readelf -d "$1" | grep -qF "Library soname: [$2]"
}

c='libc|libm|libdl|libpthread|ld-linux-[a-z0-9_-]*'
# What runs with the runtime alone: a root with no other package.
runtime_alone() {
    local folder
    folder=$(dirname "$(library libtegula-rt1 'libtegula-rt.so.*')") &&
        printf '%s\n' '#include <tegula/runtime/runtime.h>' 'int main(int n, char **arguments)' \
            '{ tg_driver *driver; int count = 0; (void)n;' \
            'return tg_driver_open(arguments[1], &driver, 0) || tg_device_count(driver, &count, 0) || !count; }' >"$work/one.c" &&
        cc "$work/one.c" -I"$work/libtegula-dev/usr/include" "$folder"/libtegula-rt.so.1 -o "$work/one" &&
        LD_LIBRARY_PATH=$folder "$work/one" "$(library tegula 'libtegula-emu.so.*')"
}

check "unpack" unpack
check "no file is in two packages" none shared_files
check "the runtime needs the C library only" none needs_but libtegula-rt1 libc6
check "the compiler needs the C library and the runtime only" none needs_but libtegula1 'libc6|libtegula-rt1'
check "the compiler needs them" needs libtegula1 libc6 libtegula-rt1
check "the command needs the C library only" none needs_but tegula libc6
check "the command needs it" needs tegula libc6
check "what programs are built with needs the others only" none needs_but libtegula-dev 'libtegula-rt1|libtegula1|tegula'
check "what programs are built with needs them" needs libtegula-dev libtegula-rt1 libtegula1 tegula
for pair in libtegula-rt1:libtegula-rt libtegula1:libtegula libtegula1:libtegula-jit libtegula1:libtegula-tuning tegula:libtegula-emu; do
    name=${pair#*:}
    file=$(library "${pair%:*}" "$name.so.*")
    check "$name has a soname" soname "$file" "$name.so.1"
    check "$name shows nothing of LLVM or of others" none exports_but "$file" 'tg_|tgemu_|cu[A-Z]'
    check "$name is linked with the C library only" none libraries_but "$file" "$c|libtegula|libtegula-rt|libtegula-tuning"
done
check "the command is linked with the C library only" none libraries_but "$work/tegula/usr/bin/tegula" "$c"
check "a program runs with the runtime alone" runtime_alone
check "the command runs alone" env -i HOME="$work" "$work/tegula/usr/bin/tegula" check --device emu tests/data/mlstmsig_x.safetensors
finish
