"""Keeps the values of secrets out of what is shown of a task: its message and the tail of its standard error."""

import re
from collections.abc import Iterable, Mapping

MASK = "***"
_TELLING = re.compile(r"secret|token|passw|credential|private|(api|access|auth|account)[-_.]?key", re.IGNORECASE)
"""Variables with such names hold secrets, wherever their values come from."""
_SHORTEST = 4
"""Shorter values would mask words that mean nothing."""


def secrets(variables: Mapping[str, str], named: Iterable[str]) -> tuple[str, ...]:
    """The values that must not be shown, the longest first.

    Args:
        variables: The task's environment.
        named: Variables that come from Secrets.
    """
    names = {*named, *(name for name in variables if _TELLING.search(name) and not name.startswith("BOATHOUSE_"))}
    values = {variables.get(name, "").strip() for name in names}
    return tuple(sorted((each for each in values if len(each) >= _SHORTEST), key=len, reverse=True))


def mask(text: str, values: Iterable[str]) -> str:
    """The text without the values."""
    for value in values:
        text = text.replace(value, MASK)
    return text
