"""Mask the values of secrets in a task's message and in the tail of its standard error."""

import re
from collections.abc import Iterable, Mapping

MASK = "***"
_TELLING = re.compile(r"secret|token|passw|credential|private|(api|access|auth|account)[-_.]?key", re.IGNORECASE)
"""Pattern of the names of variables with secrets, whatever their source."""
_SHORTEST = 4
"""Minimum length of a masked value; shorter values would mask ordinary words."""


def secrets(variables: Mapping[str, str], named: Iterable[str]) -> tuple[str, ...]:
    """Return the values to mask, the longest first.

    Args:
        variables: The task's environment.
        named: Variables that come from Secrets.
    """
    names = {*named, *(name for name in variables if _TELLING.search(name) and not name.startswith("BOATHOUSE_"))}
    values = {variables.get(name, "").strip() for name in names}
    return tuple(sorted((each for each in values if len(each) >= _SHORTEST), key=len, reverse=True))


def mask(text: str, values: Iterable[str]) -> str:
    """Return the text with the values masked."""
    for value in values:
        text = text.replace(value, MASK)
    return text
