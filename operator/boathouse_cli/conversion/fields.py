"""The fields of a manifest that are not converted yet: what is left has no counterpart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRUE_BY_DEFAULT: Final = ("automountServiceAccountToken", "enableServiceLinks", "terminationGracePeriodSeconds")
"""Fields of pods in which false or 0 says something."""


class Fields:
    """A mapping whose keys are taken one by one.

    Args:
        given: What a manifest has here; anything but a mapping has no fields.
        path: Of the mapping, such as `spec.driver`.
    """

    def __init__(self, given: object, path: str) -> None:
        self._left = dict(_mapping(given))
        self._path = path

    def path(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self._path}.{key}" if self._path else key

    def names(self) -> list[str]:
        """Return the names of the fields that are not taken."""
        return list(self._left)

    def take(self, key: str) -> Any:
        """Return a field, which is then converted; None if it is absent."""
        return self._left.pop(key, None)

    def text(self, key: str) -> str | None:
        """Return a field as text: YAML may have made a number or a boolean of it."""
        value = self.take(key)
        return None if value is None else _text(value)

    def texts(self, key: str) -> dict[str, str]:
        """Return a field that is a mapping of texts."""
        return {name: _text(value) for name, value in self._mapping(key).items() if value is not None}

    def items(self, key: str) -> list[Any]:
        """Return a field that is a list; another value is not taken."""
        return self.take(key) if isinstance(self._left.get(key), list) else []

    def mappings(self, key: str) -> list[Mapping[str, Any]]:
        """Return a field that is a list of mappings; other items are not taken."""
        items = self.items(key)
        if others := [each for each in items if not isinstance(each, dict) and each is not None]:
            self._left[key] = others
        return [_mapping(each) for each in items if isinstance(each, dict)]

    def inner(self, key: str) -> Fields:
        """Return a field that is a mapping, to be taken in turn; another value is not taken."""
        return Fields(self._mapping(key), self.path(key))

    def left(self) -> Iterator[tuple[str, str]]:
        """Return key and path of what was not taken and says something."""
        for key, value in self._left.items():
            if value or (value is not None and key in _TRUE_BY_DEFAULT):
                yield key, self.path(key)

    def _mapping(self, key: str) -> dict[str, Any]:
        return _mapping(self.take(key)) if isinstance(self._left.get(key), dict) else {}


def _mapping(value: object) -> dict[str, Any]:
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
