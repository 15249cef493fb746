# The project's commands. Each works on a bare Debian machine with Rust, make and a C compiler, and never asks anything.
# `tools/with-rocksdb.sh` runs a command with the prebuilt RocksDB library in its environment. Every cargo command
# selects the whole workspace, so that all of them agree on features and nothing is compiled twice.

target := $(or $(CARGO_TARGET_DIR),target)
run := tools/with-rocksdb.sh
# `make sim SEED=7`, `make demo DATA=…`, `make model ARGS=…`
DATA ?= examples/data/fashion-mnist-10k

.PHONY: help demo test lint fix sim model bench bench-build bench-throughput bench-failover bench-idle audit setup

help:
	@echo 'make demo    train on three nodes while their leader is killed, and check that every clock counts once'
	@echo 'make test    everything CI runs, with minutes per step'
	@echo 'make lint    format, clippy, docs; writes nothing'
	@echo 'make fix     formats and applies what clippy can mend'
	@echo 'make sim     simulator: more seeds than CI runs; SEED=n replays one, see sim-tests/README.md'
	@echo 'make model   model check with larger bounds than CI has'
	@echo 'make bench   measurements, built as users would build; or only bench-throughput, bench-failover, bench-idle'
	@echo 'make audit   known vulnerabilities among the dependencies; needs cargo-deny and the network'
	@echo 'make setup   only what the others need first: system packages and the RocksDB library'

setup:
	@tools/setup.sh

demo: setup
	$(run) cargo build --locked --workspace --bin petuum
	$(target)/debug/petuum demo --data $(DATA)

test:
	@tools/test.sh

lint: setup
	@tools/lint.sh

fix: setup
	cargo fmt --all
	$(run) cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
	cargo fmt --all

# One of SEED=n, SEEDS=a..b (MINUTES=m, RECORD=file), META=n, MUTANTS=1, MUTANT=name, NAMED=1, NAME=name, FAULTS=1, FAILPOINTS=1; else 200 seeds.
sim_action = $(if $(SEED),run --seed $(SEED),$(if $(META),meta --seed $(META),$(if $(MUTANT),mutants --name $(MUTANT),$(if \
	$(MUTANTS),mutants,$(if $(NAME),named --name $(NAME),$(if $(NAMED),named,$(if $(FAULTS),list-faults,$(if $(FAILPOINTS),list-failpoints,sweep --seeds $(or $(SEEDS),1..201) \
	$(if $(MINUTES),--minutes $(MINUTES)) $(if $(RECORD),--record $(RECORD))))))))))

sim: setup
	$(run) cargo build --locked --workspace --bin sim-tests
	$(target)/debug/sim-tests $(sim_action) $(ARGS)

model: setup
	$(run) cargo build --locked --workspace --bin sim-tests
	$(target)/debug/sim-tests model $(ARGS)

bench: bench-throughput bench-failover bench-idle

bench-build: setup
	$(run) cargo build --locked --release -p petuum-cli -p petuum-benches

# Beside etcd, whose client is built apart from the product, by its own lock file.
bench-throughput: bench-build
	@command -v etcd >/dev/null && command -v protoc >/dev/null || \
		{ echo 'needs etcd and protoc; as root: apt-get install etcd-server protobuf-compiler' >&2; exit 1; }
	cargo build --locked --release --manifest-path benches/etcd-load/Cargo.toml --target-dir $(target)
	$(target)/release/throughput $(target)/release/petuum $(target)/release/etcd-load

bench-failover bench-idle: bench-build
	$(target)/release/$(@:bench-%=%) $(target)/release/petuum

audit:
	cargo deny --locked --workspace check
