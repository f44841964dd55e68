#!/usr/bin/env bash
# tests/check_wheel.sh WHEEL - the wheel (./dev wheel): what it holds and needs, and that it is enough in an empty environment
# with NumPy, which comes from the package index.
set -uo pipefail
wheel=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache
unset PYTHONPATH TEGULA_LIBRARY

is_for_every_python() {
    [[ ${wheel##*/} == tegula-*-py3-none-linux_*.whl ]]
}

install_wheel() {
    python3 -m venv "$work/venv" && "$work/venv/bin/pip" install -q --disable-pip-version-check numpy "$wheel"
}

run_example() {
    (cd "$work" && venv/bin/python "$OLDPWD/examples/python/first.py")
}

libraries_but() { # FILE PATTERN: what it is linked with that does not match
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE "^($2)[.]so"
}

exports_but() { # FILE PATTERN
    nm -D --defined-only "$1" | awk '$(NF - 1) != "A" {print $NF}' | sed 's/@.*//' | grep -vE "^($2)"
}

check "the wheel is for every Python" is_for_every_python
check "it installs into an empty environment" install_wheel
installed=$(echo "$work"/venv/lib/python3*/site-packages/tegula)
for name in libtegula libtegula-rt libtegula-tuning libtegula-jit libtegula-torch libtegula-emu; do
    file=$installed/lib/$name.so.1
    check "$name is there once" test -f "$file" -a ! -e "$installed/lib/$name.so"
    check "$name is linked with the C library only" none libraries_but "$file" \
        'libc|libm|libdl|libpthread|ld-linux-[a-z0-9_-]*|libtegula|libtegula-rt|libtegula-tuning'
    check "$name shows nothing of LLVM or of others" none exports_but "$file" 'tg_|tgemu_|cu[A-Z]'
done
check "the licences of what is inside are there" grep -q LLVM "$installed/lib/copyright"
check "examples/train/train.py and examples/train/plot.py are Python; tests/python/test_train.py runs the first, where PyTorch is" \
    "$work/venv/bin/python" -m py_compile examples/train/train.py examples/train/plot.py
check "the example of README.md computes the recurrence" run_example
finish
