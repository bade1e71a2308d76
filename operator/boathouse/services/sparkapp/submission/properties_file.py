"""Write properties as a file that `java.util.Properties` reads. Pure."""

import re
from collections.abc import Mapping
from typing import Final

_FORBIDDEN: Final = re.compile(r"[\x00\r\n]")
_SPECIAL: Final = re.compile(r"[\\:=#!\t\f]")
_ESCAPED: Final = {"\t": "\\t", "\f": "\\f"}
_MAX_ASCII: Final = "\x7e"


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a file with these properties, sorted by key.

    Raises:
        ValueError: A key or a value has a line end or a NUL, which no property of Spark needs.
    """
    return "".join(f"{_key(key)}={_value(properties[key])}\n" for key in sorted(properties))


def _key(key: str) -> str:
    return _escaped(key).replace(" ", "\\ ")


def _value(value: str) -> str:
    text = _escaped(value)
    return f"\\{text}" if text.startswith(" ") else text


def _escaped(text: str) -> str:
    if _FORBIDDEN.search(text):
        raise ValueError(f"{text[:64]!r} has a line end or a NUL: remove it")
    marked = _SPECIAL.sub(lambda match: _ESCAPED.get(match[0], f"\\{match[0]}"), text)
    return "".join(each if " " <= each <= _MAX_ASCII else _unicode(each) for each in marked)


def _unicode(character: str) -> str:
    """Java's characters have 16 bits: others are written as two."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
