"""Cut bytes into blocks of whole lines, which end with a newline (LF), and read texts in them as Java does.

What was read of a file or a command may end its lines otherwise: `ended_by_newlines` makes LF of CR and CRLF, as
Hadoop's LineReader takes them, `delimited` of another delimiter.

Where Hadoop Streaming shows what Java makes of bytes and texts, the functions `java_...` do the same.
"""

import re
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator

from boathouse_task.contract import MAX_AMOUNT, MIN_AMOUNT, Reason
from boathouse_task.errors import TaskError

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half of a surrogate pair in three bytes, or the first two of them."""
_BLANKS = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(r"([+-]?)(\d+)")
_MOST_DIGITS = 19
_LAST_OF_16_BITS = "\uffff"


def java_decoded(data: bytes) -> str:
    """Return the text of bytes as Hadoop's Text does: U+FFFD stands for what is no UTF-8.

    Java replaces a surrogate as a whole, Python each of its bytes.
    """
    if data.isascii():
        return data.decode("ascii")
    return _SURROGATE.sub(b"\xff", data).decode("utf-8", "replace")


def java_utf8(data: bytes) -> bytes:
    """Return bytes as Hadoop writes them again after it has read them as a text."""
    return data if data.isascii() else java_decoded(data).encode()


def java_trimmed(text: str) -> str:
    """Return the text without spaces and control characters at its ends (String.trim)."""
    return text.strip(_BLANKS)


def java_split(text: str, separator: str) -> list[str]:
    """Return the parts of a text around a character, without empty ones at the end (String.split)."""
    return text.rstrip(separator).split(separator) if text.strip(separator) else []


def java_long(text: str) -> int | None:
    """Return the integer of 64 bits that a text is, in digits of any script; None for other texts (Long.parseLong).

    Java looks at units of 16 bits, so digits beyond these are none.
    """
    match = _INTEGER.fullmatch(text)
    if match is None or max(text) > _LAST_OF_16_BITS:
        return None
    digits = "".join(str(unicodedata.decimal(digit)) for digit in match[2]).lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return None
    number = int(match[1] + (digits or "0"))
    return number if MIN_AMOUNT <= number <= MAX_AMOUNT else None


BLOCK_BYTES = 128 * 1024
"""Minimum size of all blocks but the last, so that work per block is negligible."""


def blocks(chunks: Iterable[bytes], least_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """Yield the same bytes in blocks that end with a newline; a last line without one gets it."""
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
        pieces, gathered = [chunk[cut:]], len(chunk) - cut  # free a long line's pieces before its block is processed
        yield block
    rest = b"".join(pieces)
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def changed(chunks: Iterable[bytes], change: Callable[[list[bytes]], list[bytes] | None]) -> Iterator[bytes]:
    """Yield lines in blocks, of which `change` gets lists without the newlines; it returns None to change nothing."""
    for block in blocks(chunks):
        rows = change(block[:-1].split(b"\n"))
        yield block if rows is None else b"\n".join([*rows, b""])


def ended_by_newlines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines with LF as their end, where CR, LF and CRLF end a line."""
    after_return = False
    for chunk in chunks:
        rest = chunk[1:] if after_return and chunk.startswith(b"\n") else chunk
        if not chunk:
            continue
        after_return = chunk.endswith(b"\r")
        if b"\r" in rest:
            rest = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if rest:
            yield rest


def delimited(chunks: Iterable[bytes], delimiter: bytes) -> Iterator[bytes]:
    """Yield the records with LF as their end, where only the delimiter ends a record. A record may contain newlines."""
    kept = len(delimiter) - 1
    rest, is_open = b"", False
    for chunk in chunks:
        *records, rest = (rest + chunk).split(delimiter)
        if records:
            yield b"\n".join([*records, b""])
            is_open = False
        if len(rest) > kept:
            yield rest[: len(rest) - kept]
            rest, is_open = rest[len(rest) - kept :], True
    if rest or is_open:
        yield rest + b"\n"


def count(block: bytes) -> int:
    """Return the number of lines in a block of whole lines."""
    return block.count(b"\n")


def with_final_newline(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same bytes, with a newline added at the end if it is missing."""
    last = b"\n"
    for chunk in chunks:
        if chunk:
            last = chunk
            yield chunk
    if not last.endswith(b"\n"):
        yield b"\n"


def whole(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes in whole lines, without a last line that lacks its newline."""
    pieces: list[bytes] = []
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, chunk[:cut]])
            pieces = []
        pieces.append(chunk[cut:])


def limited(chunks: Iterable[bytes], longest_bytes: int, what: str) -> Iterator[bytes]:
    """Yield the same chunks, which may be cut at any position; raise an error if a line is too long.

    The length is without the newline; `what` is the origin of the lines. Raises TaskError: RecordTooLong.
    """
    begun = passed = 0
    for chunk in chunks:
        end = chunk.find(b"\n")
        longest = begun + (len(chunk) if end < 0 else end)
        if end >= 0 and len(chunk) > longest_bytes:
            longest = max(longest, *map(len, chunk[end + 1 :].split(b"\n")))
        if longest > longest_bytes:
            if isinstance(chunks, Generator):
                chunks.close()  # ends the command that writes them now, not at garbage collection
            raise too_long(longest_bytes, f"{what}, around byte {passed + len(chunk)} of it")
        begun = longest if end < 0 else len(chunk) - chunk.rindex(b"\n") - 1
        passed += len(chunk)
        yield chunk


def too_long(longest_bytes: int, what: str) -> TaskError:
    """Return the error for a line that is too long."""
    return TaskError(
        Reason.RECORD_TOO_LONG,
        f"a record of {what} is longer than spec.maxRecordBytes ({longest_bytes}): check that it is text with lines, or"
        " raise maxRecordBytes, and resources.requests.memory to about eight times its value",
    )
