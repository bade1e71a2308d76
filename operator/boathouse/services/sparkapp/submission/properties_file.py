"""Write properties as a file that `java.util.Properties` reads. Pure."""

import re
from collections.abc import Mapping
from typing import Final

import javaproperties

_FORBIDDEN: Final = re.compile(r"[\x00\r\n]")


def render(properties: Mapping[str, str]) -> str:
    """Return the text of a file with these properties, sorted by key.

    Raises:
        ValueError: A key or a value has a line end or a NUL, which no property of Spark needs.
    """
    for text in (*properties, *properties.values()):
        if _FORBIDDEN.search(text):
            raise ValueError(f"{text[:64]!r} has a line end or a NUL: remove it")
    return javaproperties.dumps(properties, timestamp=False, sort_keys=True)
