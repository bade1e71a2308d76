"""Bytes cut into blocks of whole lines. Lines end with a newline only; a carriage return belongs to its line."""

from collections.abc import Iterable, Iterator

from boathouse_task.contract import Reason
from boathouse_task.errors import TaskError

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
        block = b"".join(pieces)
        pieces, gathered = [chunk[cut:]], len(chunk) - cut  # a long line's pieces go before its block is worked on
        yield block
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


def limited(chunks: Iterable[bytes], longest_bytes: int, what: str) -> Iterator[bytes]:
    """The same chunks, as long as no line is longer.

    Args:
        chunks: bytes cut anywhere.
        longest_bytes: what a line may have without its newline.
        what: for the message: whose line.

    Raises:
        TaskError: RecordTooLong.
    """
    begun = passed = 0
    for chunk in chunks:
        end = chunk.find(b"\n")
        longest = begun + (len(chunk) if end < 0 else end)
        if end >= 0 and len(chunk) > longest_bytes:
            longest = max(longest, *map(len, chunk[end + 1 :].split(b"\n")))
        if longest > longest_bytes:
            raise too_long(longest_bytes, f"{what}, around byte {passed + len(chunk)} of it")
        begun = longest if end < 0 else len(chunk) - chunk.rindex(b"\n") - 1
        passed += len(chunk)
        yield chunk


def too_long(longest_bytes: int, what: str) -> TaskError:
    """The failure of a task that meets a line it may not hold in memory."""
    message = (
        f"a record of {what} is longer than spec.maxRecordBytes ({longest_bytes}): is it text with lines? If so, raise"
        " maxRecordBytes, and resources.requests.memory to about eight times of it"
    )
    return TaskError(Reason.RECORD_TOO_LONG, message, user_error=True)
