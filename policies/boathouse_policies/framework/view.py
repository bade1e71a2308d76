"""What nodes, jobs, queues and the namespaces in them hold: the ledger's sums, and the snapshot that a cycle sees."""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.affinity import Tallies
from boathouse_policies.framework.eligibility import Eligibilities
from boathouse_policies.framework.layout import Layout

K = TypeVar("K")

Share: TypeAlias = tuple[model.QueueName, model.NamespaceName]  # what a namespace's jobs have of a queue

Step: TypeAlias = Callable[[int, int], int]  # `operator.add` or `operator.sub`


def combined(step: Step, a: Sequence[int], b: Sequence[int]) -> model.Amounts:
    """Return amounts row by row; the shorter ones have nothing of what they do not name."""
    if len(a) == len(b):
        return tuple(map(step, a, b))
    return tuple(itertools.starmap(step, itertools.zip_longest(a, b, fillvalue=0)))


def add_to(totals: dict[K, model.Amounts], key: K, amounts: model.Amounts, step: Step) -> None:
    """Add amounts to a key's total, or take them away. Totals of zero are left out."""
    known = totals.get(key, ())
    total = tuple(map(step, known, amounts)) if len(known) == len(amounts) else combined(step, known, amounts)
    if total[_PODS] or any(total):  # the first is the cheaper, and nearly always settles it
        totals[key] = total
    else:
        totals.pop(key, None)


class NodeTotals:
    """What all pods on each node take: plain numbers, for they change one at a time, and columns on request.

    `plain` has a tuple for each node, which is replaced when it changes; for nodes in `stale` the columns have another.
    """

    def __init__(self, layout: Layout, plain: dict[model.NodeName, model.Amounts]) -> None:
        self.plain, self._layout = plain, layout
        self._columns: model.IntMatrix = np.zeros_like(layout.allocatable)
        self._free: dict[model.NodeName, tuple[Sequence[int], list[int]]] = {}  # as long as the total is the same
        self.stale = set(plain)

    def free(self, node: model.NodeName) -> list[int]:
        """Return what is free on a node, by row: a memo, read-only."""
        held = self.plain.get(node, ())
        if (known := self._free.get(node)) is None or known[0] is not held:
            known = self._free[node] = held, self._layout.free(self._layout.index[node], held)
        return known[1]

    def columns(self) -> model.IntMatrix:
        """Return the totals, shape [R, N]. The array does not change: later totals are in new ones."""
        places = {name: self._layout.index[name] for name in self.stale if name in self._layout.index}
        self.stale.clear()
        if places:
            width = len(self._columns)
            totals = [_vector(self.plain.get(name, ()), width, 2 * model.LARGEST) for name in places]
            self._columns = self._columns.copy()
            self._columns[:, list(places.values())] = np.array(totals, np.int64).T
        self._columns.setflags(write=False)
        return self._columns


@dataclasses.dataclass(slots=True, kw_only=True, eq=False, weakref_slot=True)  # frozen would cost more than the rest
class ClusterView:
    """A snapshot of the ledger, made by `Ledger.snapshot`: only the ledger changes it, by `detach`."""

    now_s: float  # the only time that a policy knows
    axis: model.Axis
    layout: Layout
    by_node: NodeTotals
    # What each job holds, by row: as long as the axis was when the job began.
    by_job: Mapping[model.JobId, model.Amounts]
    by_share: Mapping[Share, model.Amounts]
    by_class: Mapping[model.ClassId, int]  # placed tasks of each class that starts together with others
    host_ports: Mapping[model.NodeName, tuple[model.HostPort, ...]]
    touched: Collection[model.JobId]  # jobs that hold something else than in the snapshot before
    eligibilities: Eligibilities
    tallies: Tallies  # pods that selectors count: the ledger's own, as is `long_running`, what takes room for long
    long_running: Mapping[model.NodeName, model.Amounts]
    offered: Sequence[int] | None = None  # places of the nodes that this cycle may use, ascending; None for all
    max_per_node: int | None = None
    serial: int = 0
    _requested: model.IntMatrix | None = None
    _by_queue: Mapping[model.QueueName, model.Amounts] | None = None

    def detach(self) -> None:
        """Go on with copies, for the ledger is about to change its sums."""
        self._requested = self.requested  # nodes are many: of them, an array is cheaper
        self.by_job, self.by_share = dict(self.by_job), dict(self.by_share)
        self.by_class, self.host_ports = dict(self.by_class), dict(self.host_ports)

    @property
    def nodes(self) -> tuple[model.Node, ...]:
        """The nodes, in the order of every column."""
        return self.layout.nodes

    @property
    def requested(self) -> model.IntMatrix:
        """What all pods of all schedulers take, assumed ones too, shape [R, N], read-only."""
        return self.by_node.columns() if self._requested is None else self._requested

    def free(self) -> model.IntMatrix:
        """Return allocatable minus requested, shape [R, N]; below zero where a node is over-committed. A new array."""
        return self.layout.allocatable - self.requested

    def free_on(self, place: int) -> list[int]:
        """Return what is free on a node, by row."""
        if self._requested is None:
            return self.by_node.free(self.layout.names[place]).copy()
        return self.layout.free(place, self._requested[:, place].tolist())

    def counted(self, constraints: model.Constraints, spread: model.Spread) -> model.BoolVector:
        """Return the nodes that a spread constraint of a pod counts, but for those without its key, shape [N]."""
        found: model.BoolVector = np.ones(len(self.layout), np.bool_)
        if spread.honors_affinity and (constraints.node_selector or constraints.affinity is not None):
            found &= self.selected(constraints)
        if spread.honors_taints:
            found &= self.eligibilities.tolerating(constraints.tolerations, self.layout)
        return found

    def selected(self, constraints: model.Constraints) -> model.BoolVector:
        """Return the nodes that node selector and node affinity allow, whatever their taints, shape [N], read-only."""
        wanted = model.Constraints(
            node_selector=constraints.node_selector, affinity=constraints.affinity, tolerations=_ANY_TAINT
        )
        return self.eligibilities.of(wanted, self.layout).mask

    @property
    def by_queue(self) -> Mapping[model.QueueName, model.Amounts]:
        """What each queue's jobs hold, by row. Added up at first use: most cycles have one queue without limits."""
        if self._by_queue is None:
            totals: dict[model.QueueName, model.Amounts] = {}
            for (queue, _), amounts in self.by_share.items():
                add_to(totals, queue, amounts, operator.add)
            self._by_queue = totals
        return self._by_queue

    def job_usage(self, job: model.JobId) -> model.Amounts:
        """Return what a job holds, by row."""
        return self.by_job.get(job, _NOTHING)

    def queue_usage(self, queue: model.QueueName) -> model.Amounts:
        """Return what a queue's jobs hold, by row."""
        return self.by_queue.get(queue, _NOTHING)

    def share_usage(self, share: Share) -> model.Amounts:
        """Return what a namespace's jobs hold of a queue, by row."""
        return self.by_share.get(share, _NOTHING)


def _vector(amounts: model.Amounts, width: int, most: int) -> list[int]:
    return [min(amount, most) for amount in amounts] + [0] * (width - len(amounts))


_PODS = model.PODS
_ANY_TAINT = (model.Toleration(operator=model.TolerationOperator.EXISTS),)
_NOTHING = (0,) * (model.PODS + 1)
