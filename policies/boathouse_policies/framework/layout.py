"""The nodes as columns, and where they are: hosts and racks, and which nodes share one."""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse_policies import model

Where: TypeAlias = slice | npt.NDArray[np.intp]
"""Some nodes, to select them from a column: everything (`ALL`), one (a slice of one), or an array of places."""

ALL = slice(None)

Place: TypeAlias = tuple[model.Distance, str]  # a node, a host or a rack, by its kind and its name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Where nodes are: compared by value, so that an index made for one is good for an equal other."""

    server: Mapping[model.NodeName, str]
    rack: Mapping[model.NodeName, str]
    _known: dict[model.NodeName, Sequence[Place]] = dataclasses.field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def places(self, name: model.NodeName) -> Sequence[Place]:
        """Return the node, its host and its rack, as far as it has them; memoized."""
        if name not in self._known:
            named = ((_NODE, name), (_SERVER, self.server.get(name)), (_RACK, self.rack.get(name)))
            self._known[name] = [(distance, place) for distance, place in named if place is not None]
        return self._known[name]


class Groups:
    """Group nodes by a name, such as that of their host, as columns. A node without a name forms its own group."""

    def __init__(self, keys: Iterable[str | None], names: Iterable[str]) -> None:
        found: dict[tuple[bool, str], int] = {}
        own = [(key is not None, name if key is None else key) for key, name in zip(keys, names, strict=True)]
        # The group of each node, shape [N]; `places` as plain numbers.
        self.of = np.array([found.setdefault(key, len(found)) for key in own], np.intp)
        self.names = tuple(name for _, name in found)
        self.places: list[int] = self.of.tolist()
        order = np.argsort(self.of, kind="stable")
        sizes = np.bincount(self.of, minlength=len(found))
        # The places of each group's nodes, ascending.
        self.members: list[npt.NDArray[np.intp]] = np.split(order, np.cumsum(sizes)[:-1]) if found else []
        # `members` to pick from a column: a slice, which is quick, of neighbours.
        self.spans: list[Where] = [_span(places) for places in self.members]

    def __len__(self) -> int:
        return len(self.names)


class Domains:
    """The nodes by the value of a label, as columns."""

    def __init__(self, values: Iterable[str | None]) -> None:
        found: dict[str, int] = {}
        numbers = [-1 if label_value is None else found.setdefault(label_value, len(found)) for label_value in values]
        # The domain of each node, their number for a node without the label, shape [N]; `places` as plain numbers.
        self.of = np.array(numbers, np.intp)
        self.exist: model.BoolVector = self.of >= 0  # which nodes have the label, shape [N]
        self.of[~self.exist] = len(found)
        self.places: list[int] = self.of.tolist()
        self._count = len(found)

    def __len__(self) -> int:
        return self._count

    def sums(self, column: model.IntVector) -> model.IntVector:
        """Return the sum of each domain, and 0 for the nodes without the label, shape [D + 1]."""
        sums = np.bincount(self.of, column, self._count + 1).astype(np.int64)
        sums[-1] = 0
        return sums


class Layout:
    """The nodes by name, whatever order events came in: a node's place is its index in every column. Immutable."""

    def __init__(self, nodes: Iterable[model.Node], axis: model.Axis) -> None:
        self.nodes = tuple(sorted(nodes, key=lambda node: node.name))
        self.names = tuple(node.name for node in self.nodes)
        self.index = {name: place for place, name in enumerate(self.names)}
        self.allocatable = np.zeros((axis.width, len(self.nodes)), np.int64)  # what each node has, shape [R, N]
        for place, node in enumerate(self.nodes):
            vector = axis.capacity(node.allocatable, pods=node.max_pods)
            self.allocatable[: len(vector), place] = vector
        self.allocatable.flags.writeable = False
        self.allocatable_by_node: Sequence[list[int]] = self.allocatable.T.tolist()  # `allocatable` as plain numbers
        self.totals: model.IntVector = self.allocatable.sum(axis=1)  # the whole cluster, shape [R]
        # 1 / totals, 0 where there is none, shape [R]: what turns usage into shares.
        self.inverse_totals = _inverse(self.totals)
        self._inverse_totals_listed: list[float] = self.inverse_totals.tolist()
        self._large_enough: dict[bytes, model.BoolVector] = {}
        self._domains: dict[str, Domains] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    @functools.cached_property
    def inverse_allocatable(self) -> npt.NDArray[np.float64]:
        """1 / allocatable, 0 where there is none, shape [R, N]."""
        return _inverse(self.allocatable)

    def dominant_share(self, amounts: Sequence[int]) -> float:
        """Return the largest share of the cluster that an amount is, over all resources (Ghodsi et al., DRF, 4.1)."""
        share: float = max(map(operator.mul, amounts, self._inverse_totals_listed))
        return share

    @functools.cached_property
    def inverse_by_node(self) -> Sequence[Sequence[float]]:
        """`inverse_allocatable` as plain numbers, node by node."""
        listed: list[list[float]] = self.inverse_allocatable.T.tolist()
        return listed

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
    def features(self) -> frozenset[str]:
        """The features that any node declares: of others it is not known which nodes have them."""
        return frozenset().union(*[node.features for node in self.nodes])

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

    @functools.cached_property
    def label_keys(self) -> frozenset[str]:
        """The labels that any node has."""
        return frozenset(key for node in self.nodes for key in node.labels)

    def domains(self, key: str) -> Domains:
        """Return the nodes by the value of a label: a memo, of the labels that nodes have, for pods may name any."""
        key = key if key in self.label_keys else ""
        if (known := self._domains.get(key)) is None:
            known = self._domains[key] = Domains(node.labels.get(key) for node in self.nodes)
        return known

    def free(self, place: int, held: Sequence[int]) -> list[int]:
        """Return what is free on a node with this usage, by row."""
        has = self.allocatable_by_node[place]
        return list(map(operator.sub, has, held if len(held) == len(has) else itertools.chain(held, _NOTHING)))

    def large_enough(self, need: model.IntVector) -> model.BoolVector:
        """Return which nodes, empty, would have the resources, shape [N], read-only; remembered for each size."""
        if (known := self._large_enough.get(need.tobytes())) is None:
            rows = need.nonzero()[0]
            known = np.logical_and.reduce(self.allocatable[rows] >= need[rows, None])
            self._large_enough[need.tobytes()] = known
        return known


def _span(places: npt.NDArray[np.intp]) -> Where:
    first, stop = int(places[0]), int(places[-1]) + 1
    return slice(first, stop) if stop - first == len(places) else places


def _inverse(amounts: model.IntVector) -> npt.NDArray[np.float64]:
    return np.divide(1.0, amounts, out=np.zeros(amounts.shape), where=amounts > 0)


_NOTHING = itertools.repeat(0)
_NODE, _SERVER, _RACK, _ = model.Distance
