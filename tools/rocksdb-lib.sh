#!/usr/bin/env bash
# Prints the directory that holds librocksdb.a, building the library first if the user's cache does not have it.
#
# The key names everything the bytes depend on: bindings' version, features, C++ compiler, CPU and flags. The library
# is built into a temporary folder and renamed, so that an interrupted build leaves nothing half made; a lock keeps two
# callers from building it twice.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/petuum
version=$(sed -n 's/^librocksdb-sys = .*"=\([0-9.]*\)".*/\1/p' "$here/rocksdb/Cargo.toml")
if ! command -v "${CXX:-g++}" >/dev/null; then
    echo "no C++ compiler (${CXX:-g++}), which RocksDB needs; 'make setup' installs what is missing" >&2
    exit 1
fi
compiler=$(${CXX:-g++} -dumpfullversion -dumpversion)
flags=""
[ "$(uname -m)" = x86_64 ] && flags="-C target-feature=+sse4.2,+pclmulqdq"
key="rocksdb-sys-$version-lz4-$(uname -m)-sse42-gxx$compiler-v1"
home="$cache/$key"

# Runs under the lock, so folders of builds that were killed are nobody's.
build() {
    rm -rf "$cache"/build.*
    work=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    echo "building RocksDB $version once (about 15 minutes on two cores); it is kept in $home" >&2
    (
        # The build must not see a library that an outer build points to, nor the product's own flags. Descriptor 9 is
        # the lock: a compiler daemon that outlives the build must not hold it.
        exec 9>&-
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
    rm -rf "$home"
    mv -T "$work/out" "$home"
}

if [ ! -e "$home/librocksdb.a" ]; then
    mkdir -p "$cache"
    exec 9>"$cache/rocksdb.lock"
    if ! flock --nonblock 9; then
        echo "another process is building RocksDB (about 15 minutes); waiting for it" >&2
        flock 9
    fi
    [ -e "$home/librocksdb.a" ] || build
fi
echo "$home"
