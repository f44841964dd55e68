# tests/check_lib.sh - sourced by the check_*.sh scripts: they speak TAP, as the test programs do.
n_checks=0
n_failed=0

# skip "WHAT" WHY: not run, and says so.
skip() {
    n_checks=$((n_checks + 1))
    echo "ok $n_checks - $1 # SKIP $2"
}

# check "WHAT" COMMAND ARGUMENTS...: passes if the command succeeds; else shows what it said.
check() {
    local what=$1 said
    shift
    n_checks=$((n_checks + 1))
    if said=$("$@" 2>&1); then
        echo "ok $n_checks - $what"
        return
    fi
    n_failed=$((n_failed + 1))
    echo "not ok $n_checks - $what"
    sed 's/^/#   /' <<<"$said"
}

# none COMMAND ARGUMENTS...: prints what the command prints, and fails if that is anything.
none() {
    local said
    said=$("$@") || true
    echo "$said"
    [[ -z $said ]]
}

finish() {
    echo "1..$n_checks"
    exit $((n_failed > 0))
}
