"""Where nodes are: hosts and racks, and which nodes share one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Where: TypeAlias = slice | npt.NDArray[np.intp]
"""Some nodes, to select them from a column: everything (`ALL`), one (a slice of one), or an array of places."""

ALL = slice(None)

Place: TypeAlias = tuple[model.Distance, str]
"""A node, a host or a rack, by its kind and its name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Where nodes are: compared by value, so that an index made for one is good for an equal other."""

    server: Mapping[model.NodeName, str]
    rack: Mapping[model.NodeName, str]
    _known: dict[model.NodeName, Sequence[Place]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def places(self, name: model.NodeName) -> Sequence[Place]:
        """The node, its host and its rack, as far as it has them: a memo."""
        known = self._known.get(name)
        if known is None:
            known = [(model.Distance.NODE, name)]
            if name in self.server:
                known.append((model.Distance.SERVER, self.server[name]))
            if name in self.rack:
                known.append((model.Distance.RACK, self.rack[name]))
            self._known[name] = known
        return known


class Groups:
    """Nodes that share something, as columns: a node that names nothing is a group of its own.

    Args:
        keys: What each node names, None for nothing, length N.
        names: The nodes' names, length N.

    Attributes:
        of: The group of each node, shape [N].
        places: The same as plain numbers.
        names: Of each group: what its nodes name, or the node's own name.
        members: The places of each group's nodes, ascending.
        spans: The same to pick them from a column: a slice, which is quick, where they are neighbours.
    """

    def __init__(self, keys: Iterable[str | None], names: Iterable[str]) -> None:
        found: dict[tuple[bool, str], int] = {}
        own = [(key is not None, name if key is None else key) for key, name in zip(keys, names, strict=True)]
        self.of = np.array([found.setdefault(key, len(found)) for key in own], np.intp)
        self.names = tuple(name for _, name in found)
        self.places: list[int] = self.of.tolist()
        order = np.argsort(self.of, kind="stable")
        sizes = np.bincount(self.of, minlength=len(found))
        self.members: list[npt.NDArray[np.intp]] = np.split(order, np.cumsum(sizes)[:-1]) if found else []
        self.spans: list[Where] = [_span(one) for one in self.members]

    def __len__(self) -> int:
        return len(self.names)


def _span(places: npt.NDArray[np.intp]) -> Where:
    first, stop = int(places[0]), int(places[-1]) + 1
    return slice(first, stop) if stop - first == len(places) else places
