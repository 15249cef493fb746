#!/usr/bin/env python3
"""Cuts the small data set that ships with the project out of the full Fashion-MNIST.

Takes the first COUNT examples of each of the four IDX files and writes them under the same names. What is written
depends on the input alone: no time stamp and no file name goes into the gzip header.

    tools/cut-fashion-mnist.py FULL_DIR examples/data/fashion-mnist-10k

examples/data/get-fashion-mnist.sh brings the full set and prints FULL_DIR. Needs Python 3 and nothing else; only
whoever cuts the data anew runs it.
"""

import gzip
import hashlib
import pathlib
import struct
import sys

COUNT = 5_000
FILES = [
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
]


def cut(data: bytes, count: int) -> bytes:
    """The IDX file's first `count` items: 0 0 type dimensions, the sizes as big-endian u32, then unsigned bytes."""
    zero, kind, dimensions = struct.unpack(">HBB", data[:4])
    if zero != 0 or kind != 8:
        sys.exit(f"not an IDX file of unsigned bytes: it starts with {data[:4].hex()}")
    end = 4 + 4 * dimensions
    items, *inner = struct.unpack(f">{dimensions}I", data[4:end])
    size = 1
    for length in inner:
        size *= length
    if len(data) != end + items * size:
        sys.exit(f"an IDX file of {len(data)} bytes; its header describes {end + items * size}")
    if items < count:
        sys.exit(f"an IDX file of {items} items; expected at least {count}")
    return data[:4] + struct.pack(f">{dimensions}I", count, *inner) + data[end : end + count * size]


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        small = cut(gzip.decompress((source / name).read_bytes()), COUNT)
        (target / name).write_bytes(gzip.compress(small, compresslevel=9, mtime=0))
        print(f"{hashlib.sha256(small).hexdigest()}  {name.removesuffix('.gz')}")


main()
