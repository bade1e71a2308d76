"""Bounded tables of programs, in which nobody's programs displace everybody else's."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection

V = TypeVar("V")


class Programs(dict[str, V]):
    """Values by program, `NAMESPACE/...`, in the order of their last use, of which a limited number is kept.

    Args:
        kept: Maximum number of programs.
        of_group: Maximum number of a namespace's programs; None for no other limit than `kept`.
    """

    def __init__(self, kept: int, of_group: int | None = None) -> None:
        super().__init__()
        self._kept, self._of_group = kept, of_group

    def put(self, key: str, value: V) -> None:
        """Store a value as the last used. What it displaces is the oldest of the namespace with the most programs."""
        is_new = self.pop(key, None) is None
        self[key] = value
        if is_new and self._of_group is not None:
            own = [each for each in self if group_of(each) == group_of(key)]
            if len(own) > self._of_group:
                del self[own[0]]
        if len(self) > self._kept:
            del self[crowded_out(self)]

    def use(self, key: str) -> V | None:
        """Return a value, which is then the last used; None if there is none."""
        value = self.pop(key, None)
        if value is not None:
            self[key] = value
        return value


def crowded_out(keys: Collection[str]) -> str:
    """Return the key to drop: the oldest of the group that has the most keys, among equal groups the oldest of all.

    Args:
        keys: `GROUP/...`, the oldest first; a key without a slash is a group of its own.
    """
    sizes = collections.Counter(map(group_of, keys))
    return max(keys, key=lambda key: sizes[group_of(key)])  # the first one of several


def group_of(key: str) -> str:
    """Return the group of a key: what is before its first slash."""
    return key.partition("/")[0]
