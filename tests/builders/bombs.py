"""Data that is small and would be large when it is decompressed or expanded."""

from __future__ import annotations

import zlib

GZIP = 31
ZLIB = 15


def bomb(mebibytes: int, wbits: int = GZIP) -> bytes:
    """Return a stream that holds so many MiB of zeros; it is not complete, which no reader finds before its limit."""
    compressor = zlib.compressobj(9, wbits=wbits)
    block = bytes(1 << 20)
    first, other = (compressor.compress(block) + compressor.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return first + (mebibytes - 1) * other


def yaml_bomb(levels: int = 20, width: int = 10) -> str:
    """Return 1 KB of YAML that stands for width to the power of levels values."""
    aliases = [", ".join([f"*a{level}"] * width) for level in range(levels)]
    return "\n".join(
        ["a0: &a0 x", *(f"a{level + 1}: &a{level + 1} [{references}]" for level, references in enumerate(aliases))]
    )
