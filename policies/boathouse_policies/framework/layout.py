"""The nodes as columns."""

from __future__ import annotations

import functools
import itertools
import operator
import weakref
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.framework.topology import Groups, Topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from boathouse_policies import model


class Layout:
    """The nodes at one moment, sorted by name: a node's place in it is its index in every column. Immutable.

    Sorting makes "the first of equals" mean "the first by name", whatever order events came in.

    Attributes:
        nodes: The nodes, length N.
        names: Their names.
        index: Place by name.
        versions: For each node the ledger's count when it last changed, shape [N].
        allocatable: Shape [R, N].
    """

    def __init__(self, nodes: Iterable[model.Node], versions: Mapping[model.NodeName, int], axis: model.Axis) -> None:
        self.nodes = tuple(sorted(nodes, key=lambda node: node.name))
        self.names = tuple(node.name for node in self.nodes)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.versions = np.array([versions[name] for name in self.names], np.int64)
        vectors = [axis.capacity(node.allocatable, pods=node.max_pods) for node in self.nodes]
        self.allocatable = np.zeros((len(axis), len(vectors)), np.int64)
        for i, vector in enumerate(vectors):
            self.allocatable[: len(vector), i] = vector
        self.allocatable.flags.writeable = False
        self._known: dict[bytes, tuple[model.BoolVector, bool]] = {}
        self._origins: tuple[weakref.ref[Layout], Sequence[int]] | None = None

    def __len__(self) -> int:
        return len(self.nodes)

    @functools.cached_property
    def totals(self) -> model.IntVector:
        """The whole cluster, shape [R]."""
        totals: model.IntVector = self.allocatable.sum(axis=1)
        return totals

    @functools.cached_property
    def inverse_totals(self) -> model.FloatVector:
        """1 / totals, 0 where there is none, shape [R]: what turns usage into shares."""
        return _inverse(self.totals)

    @functools.cached_property
    def inverse_allocatable(self) -> npt.NDArray[np.float64]:
        """1 / allocatable, 0 where there is none, shape [R, N]."""
        return _inverse(self.allocatable)

    def dominant_share(self, amounts: Sequence[int]) -> float:
        """The largest share of the whole cluster that an amount is, over all resources (Ghodsi et al., DRF, 4.1)."""
        share: float = max(map(operator.mul, amounts, self._inverse_totals_listed))
        return share

    @functools.cached_property
    def _inverse_totals_listed(self) -> Sequence[float]:
        """Plain numbers: for one vector, quicker than a column operation."""
        listed: list[float] = self.inverse_totals.tolist()
        return listed

    @functools.cached_property
    def allocatable_by_node(self) -> Sequence[list[int]]:
        """`allocatable` as plain numbers, node by node."""
        listed: list[list[int]] = self.allocatable.T.tolist()
        return listed

    @functools.cached_property
    def inverse_by_node(self) -> Sequence[Sequence[float]]:
        """`inverse_allocatable` as plain numbers, node by node."""
        listed: list[list[float]] = self.inverse_allocatable.T.tolist()
        return listed

    @functools.cached_property
    def everywhere(self) -> model.BoolVector:
        """True for each node, shape [N], read-only."""
        everywhere = np.ones(len(self), np.bool_)
        everywhere.flags.writeable = False
        return everywhere

    @functools.cached_property
    def servers(self) -> Groups:
        """The nodes on each physical host."""
        return Groups((node.server for node in self.nodes), self.names)

    @functools.cached_property
    def racks(self) -> Groups:
        """The nodes in each rack."""
        return Groups((node.rack for node in self.nodes), self.names)

    @functools.cached_property
    def apart(self) -> Groups:
        """Each node for itself: hosts for who does not know of them."""
        return Groups((None for _ in self.nodes), self.names)

    @functools.cached_property
    def topology(self) -> Topology:
        """Server and rack of each node."""
        return Topology(
            server={node.name: node.server for node in self.nodes if node.server is not None},
            rack={node.name: node.rack for node in self.nodes if node.rack is not None},
        )

    @functools.cached_property
    def hostless(self) -> Topology:
        """The rack of each node alone."""
        return Topology(server={}, rack=self.topology.rack)

    def free(self, place: int, held: Sequence[int]) -> list[int]:
        """What is free on a node of which so much is held, by row."""
        has = self.allocatable_by_node[place]
        return list(map(operator.sub, has, held if len(held) == len(has) else itertools.chain(held, _NOTHING)))

    def origins(self, before: Layout) -> Sequence[int]:
        """The place of each node in an earlier layout, -1 where it was not there or was different: a memo of the last.

        Nodes are frozen values: the very same object cannot have become unlike itself.
        """
        known = self._origins
        if known is None or known[0]() is not before:
            then, old = before.index, before.nodes
            places = (then.get(node.name, -1) for node in self.nodes)
            found = [i if i >= 0 and old[i] is node else -1 for i, node in zip(places, self.nodes, strict=True)]
            known = self._origins = (weakref.ref(before), found)
        return known[1]

    def could_hold(self, need: model.IntVector) -> bool:
        """Whether some node, empty, would have the resources."""
        return self._large_enough(need)[1]

    def large_enough(self, need: model.IntVector) -> model.BoolVector:
        """Which nodes, empty, would have the resources, shape [N], read-only; remembered for each size."""
        return self._large_enough(need)[0]

    def _large_enough(self, need: model.IntVector) -> tuple[model.BoolVector, bool]:
        key = need.tobytes()
        known = self._known.get(key)
        if known is None:
            rows = need.nonzero()[0]
            # A resource that came after this layout was made is one that no node has.
            has = np.zeros((len(need), len(self)), np.int64)
            has[: len(self.allocatable)] = self.allocatable[: len(need)]
            enough: model.BoolVector = np.logical_and.reduce(has[rows] >= need[rows, None])
            known = self._known[key] = enough, bool(enough.any())
        return known


def _inverse(amounts: model.IntVector) -> npt.NDArray[np.float64]:
    return np.divide(1.0, amounts, out=np.zeros(amounts.shape), where=amounts > 0)


_NOTHING = itertools.repeat(0)
