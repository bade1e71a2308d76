"""What a mapper reads of a record, by the job's input format.

TextInputFormat gives the line. NLineInputFormat gives the line after its position in the file, as Hadoop Streaming
does, and KeyValueTextInputFormat the text before and after the first separator. `ignore_key` decides otherwise: a
mapper then gets the value alone, or (False) with TextInputFormat the position too.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from boathouse_task import lines
from boathouse_task.formats import LF_ONLY, InputFormat, InputFormatType

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ANY_END = re.compile(rb"\r\n?|\n")

Ending = Callable[[bytes, int, bool], int]
"""Returns the position after the first end of a record at or after a position; 0 if the bytes do not show one. The last
argument tells whether the file ends with the bytes."""


def ending(form: InputFormat) -> Ending:
    """Return the function that finds the ends of a format's records."""
    if not form.record_delimiter:
        return _after_line
    delimiter = _delimiter(form)

    def after_delimiter(data: bytes, start: int, _is_last: bool) -> int:
        found = data.find(delimiter, start)
        return found + len(delimiter) if found >= 0 else 0

    return after_delimiter


def _after_line(data: bytes, start: int, is_last: bool) -> int:
    newline = data.find(b"\n", start)
    found = data.find(b"\r", start, newline) if newline >= 0 else data.find(b"\r", start)
    if found < 0:
        return newline + 1
    if found + 1 < len(data):
        return found + 1 + data.startswith(b"\n", found + 1)
    return found + 1 if is_last else 0  # a LF may follow


def _delimiter(form: InputFormat) -> bytes:
    return b"\n" if form.record_delimiter == LF_ONLY else form.record_delimiter.encode()


def undecided_bytes(form: InputFormat) -> int:
    """Return how many of the last bytes without an end of a record may be the start of one."""
    return len(_delimiter(form)) - 1 if form.record_delimiter else len(b"\r\n") - 1


def as_lines(
    chunks: Iterable[bytes], form: InputFormat, offset_bytes: int, longest_bytes: int, what: str
) -> Iterator[bytes]:
    """Yield what a mapper reads of the records in chunks of a file, as lines; the last may lack its newline.

    Args:
        chunks: the file's bytes from `offset_bytes` on, where a record begins.
        form: the job's input format.
        offset_bytes: position of the first byte.
        longest_bytes: maximum length of a record with its position. Other records are not gathered, nor checked.
        what: the file, for the message.

    Raises:
        TaskError: RecordTooLong.
    """
    if shows_position(form):
        return _numbered(chunks, form, offset_bytes, longest_bytes, what)
    if form.record_delimiter == LF_ONLY:
        return iter(chunks)
    marked = _without_mark(chunks) if offset_bytes == 0 else chunks
    if form.record_delimiter:
        return lines.delimited(marked, form.record_delimiter.encode())
    return lines.ended_by_newlines(marked)


def shows_position(form: InputFormat) -> bool:
    """Return whether the mapper reads the position of each record."""
    match form.type:
        case InputFormatType.KEY_VALUE:
            return False
        case InputFormatType.N_LINE:
            return not form.ignore_key
        case InputFormatType.TEXT:
            return form.ignore_key is False


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes without a byte order mark at their start."""
    source = iter(chunks)
    start = b""
    for chunk in source:
        start += chunk
        if len(start) >= len(BYTE_ORDER_MARK):
            break
    start = start.removeprefix(BYTE_ORDER_MARK)
    if start:
        yield start
    yield from source


def _numbered(
    chunks: Iterable[bytes], form: InputFormat, offset_bytes: int, longest_bytes: int, what: str
) -> Iterator[bytes]:
    """Yield each record after its position and the separator of the mapper's input."""
    separator = form.field_separator.encode()
    for found in _records(chunks, form, offset_bytes, longest_bytes, what):
        rows = [b"%d%b%b\n" % (start, separator, record) for start, record, _ in found]
        if found[0][0] == 0 and form.record_delimiter != LF_ONLY and found[0][1].startswith(BYTE_ORDER_MARK):
            _, record, end = found[0]
            text = record.removeprefix(BYTE_ORDER_MARK)
            is_record = text or end > len(record)
            rows[:1] = [b"0%b%b\n" % (separator, text)] if is_record else []
        yield b"".join(rows)


def record_ends(chunks: Iterable[bytes], form: InputFormat, longest_bytes: int, what: str) -> Iterator[int]:
    """Yield the position after each record of a file.

    Args:
        chunks: the file's bytes.
        form: the job's input format.
        longest_bytes: maximum length of a record.
        what: the file, for the message.

    Raises:
        TaskError: RecordTooLong.
    """
    for found in _records(chunks, form, 0, longest_bytes, what):
        yield from (end for _, _, end in found)


def _records(
    chunks: Iterable[bytes], form: InputFormat, offset_bytes: int, longest_bytes: int, what: str
) -> Iterator[list[tuple[int, bytes, int]]]:
    """Yield the records in lists: position, content without its end, and position after it."""
    delimiter = _delimiter(form)
    end = re.compile(re.escape(delimiter)) if delimiter else _ANY_END
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        whole = len(data) - data.endswith(b"\r") if not delimiter else len(data)  # a LF may follow
        found, start = [], 0
        for match in end.finditer(data, 0, whole):
            found.append((offset_bytes + start, data[start : match.start()], offset_bytes + match.end()))
            start = match.end()
        rest, offset_bytes = data[start:], offset_bytes + start
        if len(rest) > longest_bytes + len(delimiter or b"\r"):
            raise lines.too_long(longest_bytes, f"{what}, at byte {offset_bytes}")
        if found:
            yield found
    if rest:
        yield [(offset_bytes, rest if delimiter else rest.removesuffix(b"\r"), offset_bytes + len(rest))]


def mapped(chunks: Iterable[bytes], form: InputFormat) -> Iterator[bytes]:
    """Yield lines as the mapper reads them: with KeyValueTextInputFormat, key, separator and value."""
    if form.type is not InputFormatType.KEY_VALUE:
        yield from chunks
        return
    key_end, separator = form.key_value_separator.encode(), form.field_separator.encode()
    for block in lines.blocks(chunks):
        rows = block[:-1].split(b"\n")
        if form.ignore_key:
            rows = [row.partition(key_end)[2] for row in rows]
        else:
            rows = [row.replace(key_end, separator, 1) if key_end in row else row + separator for row in rows]
        rows.append(b"")
        yield b"\n".join(rows)
