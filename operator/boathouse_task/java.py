"""What Java makes of bytes and texts, where Hadoop Streaming shows it."""

import re
import unicodedata

from boathouse_task.contract import MAX_AMOUNT, MIN_AMOUNT

_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Half of a surrogate pair in three bytes, or the first two of them."""
_BLANKS = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(r"([+-]?)(\d+)")
_MOST_DIGITS = 19
_LAST_OF_16_BITS = "\uffff"


def decoded(data: bytes) -> str:
    """Return the text of bytes as Hadoop's Text does: U+FFFD stands for what is no UTF-8.

    Java replaces a surrogate as a whole, Python each of its bytes.
    """
    if data.isascii():
        return data.decode("ascii")
    return _SURROGATE.sub(b"\xff", data).decode("utf-8", "replace")


def utf8(data: bytes) -> bytes:
    """Return bytes as Hadoop writes them again after it has read them as a text."""
    return data if data.isascii() else decoded(data).encode()


def trimmed(text: str) -> str:
    """Return the text without spaces and control characters at its ends (String.trim)."""
    return text.strip(_BLANKS)


def split(text: str, separator: str) -> list[str]:
    """Return the parts of a text without empty ones at the end (String.split)."""
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def parsed_long(text: str) -> int | None:
    """Return the integer of 64 bits that a text is, in digits of any script; None for other texts (Long.parseLong).

    Java looks at units of 16 bits, so digits beyond these are none.
    """
    found = _INTEGER.fullmatch(text)
    if found is None or max(text) > _LAST_OF_16_BITS:
        return None
    digits = "".join(str(unicodedata.decimal(digit)) for digit in found[2]).lstrip("0")
    if len(digits) > _MOST_DIGITS:
        return None
    number = int(found[1] + (digits or "0"))
    return number if MIN_AMOUNT <= number <= MAX_AMOUNT else None
