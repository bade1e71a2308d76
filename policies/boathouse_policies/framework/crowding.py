"""Which entry of a bounded table of programs goes, so that nobody's programs displace everybody else's."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def crowded_out(keys: Iterable[str]) -> str:
    """Return the key to drop: the oldest of the group that has the most keys, among equal groups the oldest of all.

    Args:
        keys: `GROUP/...`, the oldest first; a key without a slash is a group of its own.
    """
    every = list(keys)
    sizes = collections.Counter(group_of(key) for key in every)
    most = max(sizes.values())
    return next(key for key in every if sizes[group_of(key)] == most)


def group_of(key: str) -> str:
    """Return the group of a key: what is before its first slash."""
    return key.partition("/")[0]
