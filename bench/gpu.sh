#!/usr/bin/env bash
# bench/gpu.sh - everything that is to be known from a GPU, in one run:
#
#     bench/gpu.sh [--commit ID] [--out FOLDER] [PART...]
#
#   test    ./dev gpu-test, a part of it under compute-sanitizer
#   quick   ./dev gpu-test --quick
#   tune    tegula tune at B 8, T 8192 and at B 1, T 65536
#   wisdom  tegula tune, 4 s each, of the table of tegula bench and of the delta rule and decays of channels, forward and
#           backward: h200.txt, for wisdom/ (about 300 s)
#   bench   tegula bench at the four standard shapes, by default and with what tune found
#   kept    mlstm-sig and mlstm-exp at B 1, T 65536 with the states of segments handed to the backward
#   roofline  each kernel beside its floor, mlstm-sig and mlstm-exp, both directions, three shapes; roofline-VARIANT.svg, or the gnuplot script
#   schedules  those of few heads, of wide values and of the normaliser beside what they are to replace
#   choice  sixty drawn shapes: what is taken by default beside the best that tune finds in four seconds (about six minutes; SEEDS=1-30: fewer; 101-160: decays of channels, the delta rule; 201-260: any number of heads)
#   delta   the delta rule and decays of channels, each kernel beside its floor, both directions; and decode steps
#   widths  the delta rule, GLA and normalised linear attention at widths that one thread block does not hold, beside mma.sync
#   few     few heads and short sequences: one to eight heads of 1024 to 16384 tokens by the schedules that are for them
#   paper   figures 5 and 6 of the TFLA paper; fig5.svg and fig6.svg, or their gnuplot scripts
#   family  tegula bench's table: every variant, forward and with the backward, and decode steps
#   golden  tegula check, with gradients, of every golden file in tests/data and, where it is, in peers/all
#   time    from process start to the first result, caches cold
#   peers   bench/peers.py: the same shapes by mlstm_kernels, forward and with the backward
#   allpeers  every peer of bench/peers.py at its own shapes: about five minutes more
#   gradients  error of our gradients and of the peer's on a golden file
#   demo    ./dev demo
#
# Default: all but quick, wisdom, kept, roofline, schedules, choice, delta, widths, few, paper, golden, allpeers and demo. FOLDER (default $OUT, else bench/results) receives results.json, a
# line of JSON for each measurement, with GPU, driver, commit and command; and each part's log. A table comes last.
# ID is for a machine without the .git folder.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

commit=$(git describe --always --dirty 2>/dev/null)
out=${OUT:-bench/results}
parts=()
while (($#)); do
    case $1 in
    --commit) commit=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    test | quick | tune | wisdom | bench | kept | roofline | schedules | choice | delta | widths | few | paper | family | golden | time | peers | allpeers | gradients | demo) parts+=("$1"); shift ;;
    *) echo "bench/gpu.sh: unknown part '$1'" >&2; exit 2 ;;
    esac
done
((${#parts[@]})) || parts=(test tune bench family time peers gradients)

mkdir -p "$out"
results=$out/results.json
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$scratch # wisdom of this run only
shapes=(B=8,NH=16,T=8192,dqk=128,dhv=256 B=1,NH=16,T=65536,dqk=128,dhv=256)
real=tests/data/mlstmsig_real.safetensors
failures=0

query() {
    nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1
}

gpu=$(query name)
driver=$(query driver_version)

# measure PART COMMAND...: a line of JSON from the command becomes one of results.json.
measure() {
    local part=$1 log=$out/$1.log command
    shift
    command=${*//\"/\'}
    command=${command//$scratch/\$scratch} command=${command//$out/\$OUT} # folders of that machine are nobody's business
    echo "$ $*" | tee -a "$log"
    "$@" 2>>"$log" >"$scratch/lines" || failed "$*"
    sed -n "s|^{|{\"part\":\"$part\",\"machine\":\"$gpu, driver $driver\",\"commit\":\"${commit:-unknown}\",\"date\":\"$(date -u +%FT%TZ)\",\"command\":\"$command\",|p" \
        "$scratch/lines" >>"$results"
    grep -v '^{' "$scratch/lines" >>"$log"
}

failed() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

run_test() {
    ./dev gpu-test 2>&1 | tee "$out/test.log" || failed ./dev gpu-test
}

run_quick() {
    ./dev gpu-test --quick 2>&1 | tee "$out/test.log" || failed ./dev gpu-test --quick
}

run_tune() {
    local shape
    for shape in "${shapes[@]}"; do
        measure tune ./dev tegula tune mlstm-sig --device 0 --shape "$shape" --budget-seconds 20 --json
    done
}

# What goes into the repository's wisdom/. Decode steps are not tuned.
run_wisdom() {
    local file=$out/h200.txt seconds=4 line variant shape direction n
    cat >"$file" <<END
tegula-wisdom 1
# The fastest schedules known, built into the command; \`tegula tune\` and its own file go before them.
# $gpu, driver $driver, commit ${commit:-unknown}, $(date -u +%F): medians of 30 calls by
#     tegula tune VARIANT --device 0 --shape SHAPE --budget-seconds $seconds
# To be made anew by: bench/gpu.sh wisdom
END
    for line in "mlstm-sig 8,16,8192,128,256" "mlstm-sig 1,16,65536,128,256" "mlstm-sig 8,8,8192,256,512" \
        "mlstm-exp 8,16,8192,128,256" "mlstm-exp 1,16,65536,128,256" "mlstm-exp 8,8,8192,256,512" \
        "mlstm-sig-norm 8,16,8192,128,256" "mlstm-sig-norm 1,16,65536,128,256" "mlstm-sig-norm 8,8,8192,256,512" \
        "simple-gla 8,16,8192,128,256" "retention 8,32,8192,128,128" "lightning 8,32,8192,128,128" "linear 8,32,8192,128,128" \
        "mamba2 8,64,8192,128,64 --group 64" "mamba2 8,16,8192,128,256" \
        "gated-delta 1,32,8192,128,128 --group 2" "gated-delta 1,32,32768,128,128 --group 2" \
        "gated-delta 4,32,8192,128,128 --group 2" "gated-delta 8,32,4096,128,128 --group 2" \
        "gated-delta 1,8,32768,128,128 --group 4" "delta-net 8,32,8192,128,128" \
        "kda 8,32,8192,128,128" "kda-safe 8,32,8192,128,128" "kda-safe 1,32,65536,128,128" \
        "kda-safe 1,12,2048,128,128" "kda-safe 1,96,8192,128,128" "gla 8,16,8192,128,256"; do
        read -r variant shape line <<<"$line"
        IFS=, read -r -a n <<<"$shape"
        for direction in "" -backward; do
            # shellcheck disable=SC2086 # words
            measure wisdom ./dev tegula tune $variant$direction --device 0 $line --budget-seconds $seconds --json \
                --shape "B=${n[0]},NH=${n[1]},T=${n[2]},dqk=${n[3]},dhv=${n[4]}" --wisdom "$file"
        done
    done
    rm -f "$file.lock"
}

run_bench() {
    measure bench ./dev tegula bench mlstm-sig --device 0 --flush --no-wisdom --json
    measure bench-tuned ./dev tegula bench mlstm-sig --device 0 --flush --json
    measure bench-backward ./dev tegula bench mlstm-sig-backward --device 0 --flush --no-wisdom --json
}

run_roofline() {
    local variant
    for variant in mlstm-sig mlstm-exp; do
        measure roofline ./dev tegula bench $variant --device 0 --roofline --flush --no-wisdom --json \
            --svg "$out/roofline-$variant.svg"
        measure roofline ./dev tegula bench $variant --device 0 --roofline --flush --no-wisdom --json \
            --shape B=1,NH=16,T=65536,dqk=128,dhv=256 --shape B=8,NH=8,T=8192,dqk=256,dhv=512
    done
}

run_kept() {
    local variant
    for variant in mlstm-sig mlstm-exp; do
        measure kept ./dev tegula bench $variant --device 0 --keep-states --shape "${shapes[1]}" --flush --no-wisdom --json
    done
}

run_schedules() {
    local line variant shape schedule
    for line in "mlstm-sig B=1,NH=16,T=65536,dqk=128,dhv=256 tfla walk segments segments-short tfla-wgmma" \
        "mlstm-sig B=8,NH=16,T=8192,dqk=128,dhv=256 tfla walk tfla-wgmma" \
        "mlstm-sig B=1,NH=4,T=65536,dqk=128,dhv=256 tfla segments segments-short" \
        "mlstm-exp B=8,NH=16,T=8192,dqk=128,dhv=256 walk walk-n" \
        "mlstm-exp B=1,NH=16,T=65536,dqk=128,dhv=256 tfla segments" \
        "mlstm-sig-backward B=8,NH=8,T=8192,dqk=256,dhv=512 tfla walk-parts walk-cluster walk-cluster-cast walk-cluster-cast4" \
        "mlstm-exp-backward B=8,NH=8,T=8192,dqk=256,dhv=512 tfla walk-parts walk-cluster walk-cluster-cast walk-cluster-cast4" \
        "mlstm-sig B=8,NH=8,T=8192,dqk=256,dhv=512 walk-wide walk-wide-cast walk-wide-cast4" \
        "mlstm-exp B=8,NH=8,T=8192,dqk=256,dhv=512 walk-wide walk-n-wide walk-n-wide-cast"; do
        read -r variant shape schedule <<<"$line"
        for schedule in $schedule; do
            measure schedules ./dev tegula bench $variant --device 0 --schedule "$schedule" --shape "$shape" --flush --json
            [[ $variant == *-backward || $schedule == walk*-wide* ]] && continue
            measure schedules ./dev tegula bench $variant-backward --device 0 --schedule "$schedule" --shape "$shape" --flush --json
        done
    done
}

run_choice() {
    measure choice python3 bench/choice.py --device 0 --seeds "${SEEDS:-1-60}"
}

# measure_lines PART LINE...: each line once without a time, six at once, so that no kernel is compiled while another is timed.
measure_lines() {
    local part=$1 line
    local -a fixed=(--device 0 --flush --no-wisdom --json)
    shift
    printf '%s\n' "${@/%/ ${fixed[*]} --runs 1}" | xargs -P 6 -L 1 ./dev tegula bench >/dev/null 2>&1
    # shellcheck disable=SC2086 # words
    for line; do measure "$part" ./dev tegula bench $line "${fixed[@]}"; done
}

run_delta() {
    local -a lines=()
    local line variant shape rest T n
    for line in "kda 8,32,8192" "kda 8,32,8192 --keep-states" "gla 8,16,8192,128,256" "kda-safe 8,32,8192" "kda-safe 1,32,65536" \
        "gated-delta 1,32,8192 --group 2" "gated-delta 1,32,32768 --group 2" "gated-delta 8,32,4096 --group 2" \
        "gated-delta 1,32,8192 --group 2 --keep-states" "gated-delta 1,32,32768 --group 2 --keep-states" \
        "gated-delta 8,32,4096 --group 2 --keep-states" "gated-delta 4,32,8192 --group 2" "gated-delta 1,8,32768 --group 4" \
        "gated-delta 8,32,8192" "delta-net 8,32,8192" "kda-safe 1,12,2048" "kda-safe 1,96,8192" "rwkv6 8,32,8192" \
        "hgrn2 8,16,8192,128,256" "kda 1,8,32768" "gla 1,4,32768,128,256"; do
        read -r variant shape rest <<<"$line"
        IFS=, read -r -a n <<<"$shape,128,128"
        lines+=("$variant --grad $rest --roofline --shape B=${n[0]},NH=${n[1]},T=${n[2]},dqk=${n[3]},dhv=${n[4]}")
    done
    for variant in gated-delta kda; do
        for T in 1 8; do
            line="$variant --tokens $T --pool"
            for n in 1 64 512; do line+=" --shape B=$n,NH=32,T=$T,dqk=128,dhv=128"; done
            lines+=("$line")
        done
    done
    measure_lines delta "${lines[@]}"
}

# By default, with kept tensors where that is another schedule, and by mma.sync.
run_widths() {
    local -a lines=()
    local line variant shape portable rest n heads
    for line in "gated-delta 256,256 portable-wide" "gated-delta 256,512 portable-wide" "gated-delta 128,256 portable --keep-states" \
        "gla 192,384 tfla" "gla 256,512 tfla" "nla 128,128 tfla" "nla 128,256 tfla" "nla 256,512 tfla" "delta-net 256,256 portable-wide" \
        "gated-delta 512,512 portable-shared" "gated-delta 384,128 portable-shared" "kda 384,256 portable-shared" \
        "gla 512,512 tfla" "nla 512,512 tfla"; do
        read -r variant shape portable rest <<<"$line"
        IFS=, read -r -a n <<<"$shape"
        heads=B=8,NH=16
        ((n[0] <= 256)) || heads=B=4,NH=8
        shape="--shape $heads,T=8192,dqk=${n[0]},dhv=${n[1]}"
        lines+=("$variant --grad $shape --roofline" "$variant-backward $shape --schedule $portable")
        [[ ! $rest ]] || lines+=("$variant --grad $shape $rest")
    done
    measure_lines widths "${lines[@]}"
}

run_few() {
    local shape schedules=(tfla tfla-wgmma tfla-wgmma-narrow segments-short segments-shorter)
    for shape in B=1,NH=1,T=2048 B=1,NH=4,T=4096 B=1,NH=16,T=2048 B=1,NH=16,T=8192 B=2,NH=4,T=16384 B=1,NH=4,T=65536; do
        measure few ./dev tegula bench mlstm-sig --device 0 "${schedules[@]/#/--schedule=}" --shape "$shape,dqk=128,dhv=256" --flush --json
        measure few ./dev tegula bench mlstm-sig-backward --device 0 "${schedules[@]/#/--schedule=}" --shape "$shape,dqk=128,dhv=256" --flush --json
    done
}

run_paper() {
    local figure
    for figure in fig5 fig6; do
        measure paper ./dev tegula bench mlstm-sig --device 0 --paper $figure --flush --no-wisdom --json \
            --svg "$out/$figure.svg"
    done
}

run_family() {
    measure family ./dev tegula bench --device 0 --flush --no-wisdom --json
}

run_golden() {
    local file
    for file in tests/data/*.safetensors peers/all/*.safetensors; do
        [[ -e $file ]] || continue
        measure golden ./dev tegula check --device 0 --json "$file"
    done
}

# A cache of its own, and the driver's off: everything is compiled.
run_time() {
    XDG_CACHE_HOME=$scratch/cold CUDA_CACHE_DISABLE=1 measure time \
        ./dev tegula run mlstm-sig --device 0 --in $real --out "$scratch/h.safetensors" --time --json
}

run_peers() {
    local shape standard=()
    for shape in B=8,NH=16,T=8192 B=1,NH=16,T=65536 B=32,NH=16,T=2048 B=128,NH=16,T=512; do
        standard+=(--shape "$shape,dqk=128,dhv=256")
    done
    measure peers python3 bench/peers.py --peer mlstm-sig --direction forward "${standard[@]}" --chunk 128 --chunk 256
    measure peers-backward python3 bench/peers.py --peer mlstm-sig --direction forward+backward "${standard[@]}" --chunk 128
}

run_allpeers() {
    measure allpeers python3 bench/peers.py --tune-ms 40
}

run_gradients() {
    local file
    for file in peers/golden/*.safetensors; do
        measure gradients ./dev tegula check --device 0 --json "$file"
    done
    measure gradients-peer timeout 120 python3 bench/peers.py --backward --chunk 64 --chunk 128 --compare peers/golden
}

run_demo() {
    ./dev demo 2>&1 | tee "$out/demo.log" || failed ./dev demo
}

: >"$results"
for part in "${parts[@]}"; do
    begin=$SECONDS
    echo "== $part"
    run_"$part"
    echo "== $part took $((SECONDS - begin)) s"
done
python3 bench/plot.py "$results" --table
((failures == 0))
