"""Bytes cut into blocks of whole lines. Lines end with a newline only; a carriage return belongs to its line."""

from collections.abc import Iterable, Iterator

BLOCK_BYTES = 128 * 1024
"""Blocks are at least so large but for the last: per-block work must not be felt."""


def blocks(chunks: Iterable[bytes], least_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The same bytes in blocks that end with a newline; a last line without one gets it."""
    pieces: list[bytes] = []
    gathered = 0
    for chunk in chunks:
        pieces.append(chunk)
        gathered += len(chunk)
        if gathered < least_bytes or b"\n" not in chunk:
            continue
        cut = chunk.rindex(b"\n") + 1
        pieces[-1] = chunk[:cut]
        yield b"".join(pieces)
        pieces, gathered = [chunk[cut:]], len(chunk) - cut
    rest = b"".join(pieces)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def count(block: bytes) -> int:
    """How many lines a block of whole lines has."""
    return block.count(b"\n")


def with_final_newline(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, unchanged but for a missing newline at the end."""
    last = b"\n"
    for chunk in chunks:
        if chunk:
            last = chunk
            yield chunk
    if not last.endswith(b"\n"):
        yield b"\n"
