#!/usr/bin/env bash
# tests/check_install.sh BUILD_FOLDER - installs into a folder; a program builds and runs against it.
set -uo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib XDG_CACHE_HOME=$prefix/cache

write_programs() {
    cat >"$prefix/compiler.c" <<'C' &&
#include <compiler/compiler.h>
#include <variants/variants.h>
int main(void)
{
    const tg_variant *variant = tg_variant_find("mlstm-sig");
    const tg_shape_class shape = {.io = TG_BF16, .dqk = 64, .dhv = 64};
    tg_program *program;
    const tg_target *target = tg_target_find("sm_80");
    tg_schedule schedule;
    tg_status status = tg_schedule_default(variant, target, &shape, NULL, &schedule, NULL);
    if (status == TG_OK)
        status = tg_compile(variant, &schedule, target, &shape, NULL, &program, NULL);
    if (status == TG_OK)
        tg_program_free(program);
    return status == TG_OK ? 0 : 1;
}
C
    cat >"$prefix/from_cpp.cpp" <<'C' &&
#include <compiler/compiler.h>
#include <runtime/runtime.h>
#include <variants/variants.h>
int main()
{
    const tg_variant *variant = tg_variant_find("mlstm-exp");
    return variant && variant == &tg_mlstm_exp && tg_target_find("sm_80") ? 0 : 1;
}
C
    cat >"$prefix/runtime.c" <<'C'
#include <runtime/runtime.h>
int main(int argc, char **argv)
{
    tg_driver *driver;
    int n = 0;
    if (argc != 2 || tg_driver_open(argv[1], &driver, NULL) != TG_OK)
        return 1;
    tg_status status = tg_device_count(driver, &n, NULL);
    tg_driver_close(driver);
    return status == TG_OK && n > 0 ? 0 : 1;
}
C
}

build_program() { # SOURCE PACKAGE
    local flags
    flags=$(pkg-config --cflags --libs "$2") || return
    # shellcheck disable=SC2086 # words
    cc -std=c11 -Wall -Wextra -pedantic -Werror "$prefix/$1.c" $flags -o "$prefix/$1"
}

build_cpp() {
    local flags
    flags=$(pkg-config --cflags --libs tegula) || return
    # shellcheck disable=SC2086 # words
    "${CXX:-c++}" -std=c++14 -Wall -Wextra -pedantic -Werror "$prefix/from_cpp.cpp" $flags -o "$prefix/from_cpp"
}

check "install" cmake --install "$build" --prefix "$prefix"
check "the installed command runs on the installed emulator" \
    "$prefix/bin/tegula" check --device emu tests/data/mlstmsig_x.safetensors
check "write the programs" write_programs
check "libtegula: a program builds" build_program compiler tegula
check "libtegula: it runs" "$prefix/compiler"
check "libtegula: a C++ program builds" build_cpp
check "libtegula: it runs" "$prefix/from_cpp"
check "libtegula-rt: a program builds" build_program runtime tegula-rt
check "libtegula-rt: it runs" "$prefix/runtime" "$prefix/lib/libtegula-emu.so"
finish
