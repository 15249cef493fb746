#!/usr/bin/env bash
# `make test`, and what CI runs: every step in turn, timed against a written budget (minutes, cold, on 2 cores). The
# first step that fails ends the run; the table of minutes is printed either way.
#
#     tools/test.sh [STEP…]      only these steps
#
# Cargo is always given the whole workspace and told which targets to run, never a few packages: features are unified
# over the packages named, and another set would compile half of the dependencies again.
#
# shellcheck disable=SC2317 # steps are called by name
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
cargo() { tools/with-rocksdb.sh cargo "$@"; }

step_setup() { tools/setup.sh; }

step_build() { cargo build --locked --workspace --all-targets; }

step_lint() { tools/lint.sh; }

# Unit tests in the sources, integration tests but those of the steps below, and the examples in the docs.
step_unit() {
    local tests=() file name
    for file in {crates/*,sim-tests,examples,benches}/tests/{*.rs,*/main.rs}; do
        name=${file##*/tests/}
        name=${name%/main.rs}
        name=${name%.rs}
        case $name in
            processes | starvation | project | '*') ;;
            *) tests+=(--test "$name") ;;
        esac
    done
    cargo test --locked --workspace --lib --bins "${tests[@]}"
    cargo test --locked --workspace --doc
}

# The model check and the seeds that CI runs.
# Traces and the model check take up to seven minutes; so many minutes are for seeds, of which sixty are run in any case.
step_simulator() { "${CARGO_TARGET_DIR:-target}/debug/sim-tests" ci --minutes 6; }

# The real binary: processes killed, started again and paused; then alone, a machine that has no time for them.
step_processes() { cargo test --locked --workspace --test processes --test starvation; }

# Two runs of training on three nodes, one of them through kills, which must end with equal counters and replicas.
step_demo() { "${CARGO_TARGET_DIR:-target}/debug/petuum" demo --data examples/data/fashion-mnist-10k; }

# The project's own shape, then checkers that a machine may lack.
step_rest() {
    cargo test --locked --workspace --test project
    if command -v cargo-deny >/dev/null; then
        # Advisories need a database from the network and change without us: `make audit`.
        cargo deny --locked --workspace check bans licenses sources
    else
        echo "skipped: cargo-deny is not installed (cargo install cargo-deny)"
    fi
    if command -v shellcheck >/dev/null; then
        shellcheck tools/*.sh examples/data/*.sh .ci/run
    else
        echo "skipped: shellcheck is not installed (apt-get install shellcheck)"
    fi
}

# Building RocksDB once is setup's; with it a cold build has 40 minutes.
declare -A budget=([setup]=16 [build]=24 [lint]=6 [unit]=6 [simulator]=14 [processes]=10 [demo]=3 [rest]=6)
steps=(setup build lint unit simulator processes demo rest)
[ $# -gt 0 ] && steps=("$@")

# Tenths of a minute, rounded, as minutes.
minutes() { local tenths=$((($1 + 3) / 6)); echo "$((tenths / 10)).$((tenths % 10))"; }

table=$(printf '%-10s %8s %8s' step minutes budget)
status=0
for step in "${steps[@]}"; do
    if [ -z "${budget[$step]:-}" ]; then
        echo "no step '$step'; there are: ${!budget[*]}" >&2
        exit 2
    fi
    echo "=== $step (budget ${budget[$step]} minutes)"
    started=$SECONDS
    (set -e; "step_$step")
    status=$?
    took=$((SECONDS - started))
    note=""
    [ $took -gt $((budget[$step] * 60)) ] && note="  over its budget"
    [ $status -ne 0 ] && note="  FAILED"
    table+=$(printf '\n%-10s %8s %8s%s' "$step" "$(minutes $took)" "${budget[$step]}" "$note")
    [ $status -ne 0 ] && break
done

echo
echo "$table"
printf '%-10s %8s\n' total "$(minutes $SECONDS)"
[ $status -eq 0 ] || echo "step $step failed"
exit $status
