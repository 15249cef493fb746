#!/usr/bin/env bash
# Brings what a build needs beyond Rust and make: a C++ compiler and libclang (Debian packages) and the RocksDB library
# (built once). Says what it installs; without root it prints the command and exits 1. Never asks anything.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
say() { echo "setup: $*" >&2; }

if ! command -v cargo >/dev/null; then
    say "cargo is not on the PATH. Petuum needs Rust $(sed -n 's/^channel = "\(.*\)"/\1/p' "$here/../rust-toolchain.toml")" \
        "(rustup brings it: https://rustup.rs), then run this again."
    exit 1
fi

# bindgen loads libclang at build time; the clang program itself is not needed, nor do libclang-cpp (LLVM's own) and
# libclang_rt (a compiler's run time) help, which come with other packages.
have_libclang() {
    local directory
    for directory in "${LIBCLANG_PATH:-}" /usr/lib/llvm-*/lib /usr/lib/*-linux-gnu /usr/lib64 /usr/lib /usr/local/lib; do
        [ -n "$directory" ] || continue
        compgen -G "$directory/libclang.so*" >/dev/null && return 0
        compgen -G "$directory/libclang-[0-9]*.so*" >/dev/null && return 0
    done
    return 1
}

packages=()
command -v "${CC:-cc}" >/dev/null || packages+=(gcc libc6-dev)
command -v "${CXX:-g++}" >/dev/null || packages+=(g++)
have_libclang || packages+=(libclang-dev)

if [ ${#packages[@]} -gt 0 ]; then
    install="apt-get install --yes --no-install-recommends ${packages[*]}"
    if ! command -v apt-get >/dev/null; then
        say "missing: ${packages[*]} (Debian's names). Install them with this system's package manager."
        exit 1
    elif [ "$(id -u)" = 0 ]; then
        sudo=()
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo=(sudo -n)
    else
        say "missing: ${packages[*]}. As root, run:"
        say "    apt-get update && $install"
        exit 1
    fi
    say "installing Debian packages: ${packages[*]}"
    # Word splitting is meant: the same words that a user without root is told.
    # shellcheck disable=SC2086
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "apt-get update -qq && $install -qq" >&2 </dev/null
fi

"$here/rocksdb-lib.sh" >/dev/null
