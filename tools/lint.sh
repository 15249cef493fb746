#!/usr/bin/env bash
# Format, clippy and docs, warnings as errors. Writes nothing; `make fix` mends what can be mended.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo fmt --all --check
tools/with-rocksdb.sh cargo clippy --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" tools/with-rocksdb.sh cargo doc --locked --workspace --no-deps
