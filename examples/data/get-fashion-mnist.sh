#!/usr/bin/env bash
# Prints the directory of the full Fashion-MNIST (60,000 training and 10,000 test images, 30 MB), bringing it from the
# Debian package dataset-fashion-mnist first if it is not there. Needs no root; every file is checked by SHA-256.
#
#     examples/data/get-fashion-mnist.sh [DIR]
#
# DIR is where the files are put, by default ~/.cache/petuum/fashion-mnist. If the package is installed, its own
# directory is used and nothing is downloaded.
set -euo pipefail

package=dataset-fashion-mnist
installed=/usr/share/datasets/fashion-mnist
target=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/petuum/fashion-mnist}
sums="\
b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7  train-images-idx3-ubyte.gz
0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056  train-labels-idx1-ubyte.gz
cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa  t10k-images-idx3-ubyte.gz
8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05  t10k-labels-idx1-ubyte.gz"

say() { echo "$@" >&2; }

# Whether the directory holds the four files, whole.
complete() { [ -d "$1" ] && (cd "$1" && sha256sum --check --status <<<"$sums" 2>/dev/null); }

for directory in "$installed" "$target"; do
    if complete "$directory"; then
        echo "$directory"
        exit 0
    fi
done

for tool in apt-get dpkg-deb; do
    if ! command -v "$tool" >/dev/null; then
        say "$tool is missing: this script brings the data as a Debian package."
        say "Elsewhere, put these four files into $target (they are checked) and run it again:"
        say "$sums"
        exit 1
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "downloading the Debian package $package (30 MB)"
if ! (cd "$work" && apt-get download -q "$package" >"$work/log" 2>&1); then
    cat "$work/log" >&2
    say "apt-get could not download $package. If its lists are old or empty: sudo apt-get update"
    exit 1
fi
dpkg-deb -x "$work/$package"_*.deb "$work/files"
if ! complete "$work/files$installed"; then
    say "the package's files are not those expected (SHA-256):"
    (cd "$work/files$installed" && sha256sum --check <<<"$sums" >&2) || true
    exit 1
fi
mkdir -p "$target"
cp "$work/files$installed"/*.gz "$target/"
echo "$target"
