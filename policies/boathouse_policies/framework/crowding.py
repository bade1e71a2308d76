"""Which entry of a bounded table of programs goes, so that nobody's programs displace everybody else's."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


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
