#!/usr/bin/env bash
# tests/check_examples.sh BUILD_FOLDER - the examples as a user builds them: CMake projects of their own or one
# call of the compiler, run on the emulator.
set -uo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/check_lib.sh
tegula=$build/bin/tegula_made # the command that keeps what LLVM made
emulator=$build/lib/libtegula-emu.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache

make_project() {
    local source=$1 folder=$2
    shift 2
    cmake -S "$source" -B "$folder" -DCMAKE_BUILD_TYPE=Release "$@" && cmake --build "$folder"
}

embed() { # NAME COMPILE_OPTIONS...
    local name=$1
    shift
    check "embed, $name: compile" "$tegula" compile mlstm-sig --arch sm_80 "$@" -o "$work/$name"
    check "embed, $name: build" make_project examples/embed "$work/$name/build" "-DTEGULA_GENERATED=$work/$name"
    check "embed, $name: run" "$work/$name/build/embed" "$emulator"
}

needed_by() {
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^lib(c|m|dl)\.so'
}

schedule() {
    local mine=$work/mine/mine.so data=tests/data/mlstmsig_a.safetensors
    check "schedule: build" make_project examples/schedule "$work/mine" "-Dtegula_DIR=$build"
    check "schedule: check" "$tegula" check --device emu --load "$mine" mine "$data"
    check "schedule: run" "$tegula" run --device emu --load "$mine" mine --in "$data" --out "$work/h.safetensors"
    check "schedule: explain" "$tegula" explain --load "$mine" mine
}

variant() {
    local mine=$work/variant.so
    check "variant: build" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC "-I$build/include" examples/variant/mine.c \
        variants/scalar_oracle.c -lm -o "$mine"
    check "variant: check" "$tegula" check --device emu --load "$mine" paced-retention --grad \
        --shape B=2,NH=2,T=200,dqk=32,dhv=64
    check "variant: groups, packed" "$tegula" check --device emu --load "$mine" paced-retention --grad \
        --shape B=3,NH=4,T=90,dqk=24,dhv=40 --group 2 --packed
    check "variant: decode step" "$tegula" check --device emu --load "$mine" paced-retention --tokens 1 \
        --shape B=3,NH=2,T=1,dqk=24,dhv=40
    check "variant: explain" "$tegula" explain --load "$mine" paced-retention
    sed '/define VARIANT_TITLE/d' examples/variant/mine.c >"$work/untitled.c"
    check "variant: what is not defined is said" refuses "define VARIANT, VARIANT_NAME and VARIANT_TITLE first" \
        "${CC:-cc}" -std=c11 -fsyntax-only "-I$build/include" "$work/untitled.c"
    sed '/TG_MAP_TO(RATE/d' examples/variant/mine.c >"$work/rateless.c"
    check "variant: with a mistake, build" "${CC:-cc}" -std=c11 -shared -fPIC "-I$build/include" "$work/rateless.c" \
        variants/scalar_oracle.c -lm -o "$work/rateless.so"
    check "variant: a mistake of both directions is told once" told_once "rate is read, but no statement writes it" \
        "$tegula" explain --load "$work/rateless.so" paced-retention
}

decays() {
    local mine=$work/ula.so
    check "decays: build" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC "-I$build/include" examples/variant/ula.c -o "$mine"
    check "decays: check" "$tegula" check --device emu --load "$mine" ula --grad --shape B=1,NH=2,T=150,dqk=32,dhv=40
    check "decays: groups, packed" "$tegula" check --device emu --load "$mine" ula --grad \
        --shape B=3,NH=4,T=90,dqk=24,dhv=40 --group 2 --packed
    check "decays: decode step" "$tegula" check --device emu --load "$mine" ula --tokens 1 --shape B=3,NH=2,T=1,dqk=24,dhv=40
    sed '/RIGHT/d' examples/variant/ula.c >"$work/left.c"
    check "decays: of rows alone" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC "-I$build/include" "$work/left.c" -o "$work/left.so"
    check "decays: of rows alone, check" "$tegula" check --device emu --load "$work/left.so" ula --grad \
        --shape B=1,NH=2,T=150,dqk=32,dhv=40
}

algorithm() {
    local mine=$work/algorithm.so
    check "algorithm: build" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC "-I$build/include" examples/algorithm/mine.c -lm -o "$mine"
    check "algorithm: check" "$tegula" check --device emu --load "$mine" my-hgrn2 --shape B=2,NH=2,T=200,dqk=64,dhv=64
    check "algorithm: packed" "$tegula" check --device emu --load "$mine" my-hgrn2 --shape B=3,NH=2,T=90,dqk=40,dhv=72 --packed
    check "algorithm: decode step" "$tegula" check --device emu --load "$mine" my-hgrn2 --tokens 1 \
        --shape B=3,NH=2,T=1,dqk=24,dhv=40
}

epilogue() {
    local mine=$work/normed.so shape=B=2,NH=2,T=200,dqk=64,dhv=128
    check "epilogue: build" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC "-I$build/include" examples/algorithm/normed.c -o "$mine"
    check "epilogue: in the kernel" "$tegula" check --device emu --load "$mine" normed-gla --shape $shape --schedule fused
    check "epilogue: in one of its own" "$tegula" check --device emu --load "$mine" normed-gla --shape $shape --schedule apart
    check "epilogue: groups, packed" "$tegula" check --device emu --load "$mine" normed-gla \
        --shape B=3,NH=4,T=90,dqk=24,dhv=40 --group 2 --packed
    check "epilogue: too wide for the kernel" "$tegula" check --device emu --load "$mine" normed-gla \
        --shape B=1,NH=2,T=70,dqk=32,dhv=264
    check "epilogue: says so" refuses "TG0530 schedule fused" "$tegula" explain --load "$mine" normed-gla --dqk 32 --dhv 264
}

# The command prints the text, and may fail.
refuses() {
    local said
    said=$("${@:2}" 2>&1)
    grep -F "$1" <<<"$said" >/dev/null
}

told_once() {
    local said
    said=$("${@:2}" 2>&1)
    [[ $(grep -cF "$1" <<<"$said") == 1 ]] || { echo "$said"; return 1; }
}

# Where there is no room, what was there stays: the file that could not be written, and nothing half.
whole_or_not() {
    local folder=$work/whole before path said kib
    "$tegula" compile gla --ptxas none --arch sm_80 --dqk 64 --dhv 64 -o "$folder" >/dev/null && before=$(cd "$folder" && cksum ./*) || return
    for kib in 2 200; do # in the first file; in a later one
        said=$( (ulimit -f $kib && "$tegula" compile gla --ptxas none --arch sm_80 --dqk 64 --dhv 128 -o "$folder") 2>&1) && return 1
        path=$(sed -nE 's/^error: (.*): cannot be written: File too large$/\1/p' <<<"$said")
        [[ $path == "$folder/gla."* ]] || { echo "$said"; return 1; }
        grep -qxF "$(cd "$folder" && cksum "./${path##*/}")" <<<"$before" || { echo "$path is another"; return 1; }
    done
    [[ $(ls "$folder") == "$(awk '{ sub("./", "", $3); print $3 }' <<<"$before")" ]] || { ls "$folder"; return 1; }
}

# A quote in the name of a file is none in the PTX.
quoted() {
    { echo '#line 1 "quo\"te.c"' && cat examples/algorithm/mine.c; } >"$work/quoted.c"
    "${CC:-cc}" -std=c11 -shared -fPIC "-I$build/include" "$work/quoted.c" -lm -o "$work/quoted.so" &&
        "$build/bin/tegula" compile --load "$work/quoted.so" my-hgrn2 --arch sm_80 --dqk 64 --dhv 64 -o "$work/quoted" &&
        grep -qF '"quo_te.c"' "$work"/quoted/*.H.ptx
}

# Files as PyTorch has them, [B, T, NH, d]: what comes of them is what comes of the others, turned.
turned_files() {
    local data=tests/data/mlstmsig_b.safetensors tensors=(in.q in.k in.v in.f in.i) turn=tests/cli/turn.py
    python3 $turn $data "$work/turned" "${tensors[@]}" &&
        "$tegula" run mlstm-sig --device emu --in "$work/turned" --layout bthd --out "$work/turned_h" &&
        python3 $turn "$work/turned" "$work/plain" "${tensors[@]}" &&
        "$tegula" run mlstm-sig --device emu --in "$work/plain" --out "$work/plain_h" &&
        python3 $turn "$work/plain_h" "$work/expected" out.h out.S && python3 $turn "$work/turned_h" "$work/twice" out.h out.S &&
        python3 $turn "$work/twice" "$work/found" out.h out.S && cmp "$work/expected" "$work/found" &&
        ! cmp -s "$work/expected" "$work/twice"
}

embed bf16 --dtype bf16 --dqk 64 --dhv 128
embed set --shape B=2,NH=2,T=150,dqk=64,dhv=64 --shape B=1,NH=4,T=65536,dqk=64,dhv=64 --schedule tfla --schedule "tfla chunk=512"
embed f16 --dtype f16 --dqk 40 --dhv 72
embed f32 --dtype f32 --dqk 32 --dhv 32
check "embed needs the C library only" none needed_by "$work/bf16/build/embed"
schedule
decays
variant
algorithm
epilogue
check "algorithm: a quote in the name of its file" quoted
check "compile: a file is whole or as it was" whole_or_not
if command -v python3 >/dev/null; then
    check "run: files whose tokens go before heads" turned_files
else
    skip "run: files whose tokens go before heads" "there is no python3"
fi
check "compile: a ptxas that is not there is told once" told_once "/nowhere could not be started" \
    "$tegula" compile gla --ptxas /nowhere --arch sm_80 --dqk 64 --dhv 64 -o "$work/nowhere"
finish
