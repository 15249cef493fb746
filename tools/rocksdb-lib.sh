#!/usr/bin/env bash
# Prints the directory that holds librocksdb.a, building the library first if the user's cache does not have it.
#
# The key names everything the bytes depend on: bindings' version, features, C++ compiler, CPU and flags. The library
# is built into a temporary folder and renamed, so that an interrupted build leaves nothing half made.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/petuum
version=$(sed -n 's/^librocksdb-sys = .*"=\([0-9.]*\)".*/\1/p' "$here/rocksdb/Cargo.toml")
compiler=$(${CXX:-g++} -dumpfullversion -dumpversion)
flags=""
[ "$(uname -m)" = x86_64 ] && flags="-C target-feature=+sse4.2,+pclmulqdq"
key="rocksdb-sys-$version-lz4-$(uname -m)-sse42-gxx$compiler-v1"
home="$cache/$key"

if [ ! -e "$home/librocksdb.a" ]; then
    echo "building RocksDB once (about 15 minutes on two cores); it is kept in $home" >&2
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    (
        # The build must not see a library that an outer build points to, nor the product's own flags.
        unset ROCKSDB_LIB_DIR ROCKSDB_STATIC CARGO_BUILD_RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
        cd "$here/rocksdb"
        RUSTFLAGS="$flags" CXXFLAGS="${CXXFLAGS:-} -g0" CARGO_TARGET_DIR="$work/target" \
            cargo build --release --locked >&2
    )
    library=$(find "$work/target" -name librocksdb.a | head -n 1)
    [ -n "$library" ] || { echo "RocksDB was built, but no librocksdb.a was found under $work" >&2; exit 1; }
    mkdir -p "$work/out"
    cp "$library" "$work/out/librocksdb.a"
    strip --strip-debug "$work/out/librocksdb.a"
    mv -T "$work/out" "$home" 2>/dev/null || [ -e "$home/librocksdb.a" ]
fi
echo "$home"
