#!/usr/bin/env bash
# Runs a command with the prebuilt RocksDB library in its environment; without it, cargo would compile RocksDB itself,
# once for every set of features and flags, about 15 minutes each.
#
#     tools/with-rocksdb.sh cargo test -p petuum-storage
set -euo pipefail

# Three steps, because `export X=$(…)` would hide a failure.
ROCKSDB_LIB_DIR=$("$(dirname "${BASH_SOURCE[0]}")/rocksdb-lib.sh")
ROCKSDB_STATIC=1
export ROCKSDB_LIB_DIR ROCKSDB_STATIC
exec "$@"
