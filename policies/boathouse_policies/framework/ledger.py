"""What the cluster's nodes hold, and what is assumed of requests on their way.

A pod's life in the ledger:

      waiting ──assume──> assumed ──observe(bound)──> confirmed ──gone──> gone
         ^                   │                            ^
         └──────forget───────┘                            │
         └──────────────observe(bound), never assumed─────┘

* Assume before the request is sent; confirm when the watch shows it; forget only on a known failure, never by a timer.
* `observe` of a pod without a node does not undo an assumption: the watch may be behind.
* `forget` of what is not assumed changes nothing: a failure may be noticed twice, or after the watch showed success.
* `gone` ends every state: the pod is in a terminal phase or deleted. Until then it counts, also while it is deleting.
* Pods are kept by their own key, not under their node: a node that flaps comes back with what runs on it.
* What a pod holds of a node that does not exist is charged to no job and no queue, until the node is there.
* A node that vanishes takes the assumptions on it with it (`remove_node` names them): they cannot come true.
* A resize on its way counts the larger amount of each resource.

All pods of all schedulers are counted. One writer: the shell, between two awaits.
"""

import collections
import dataclasses
import enum
import operator
import weakref
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.affinity import Resident, Tallies
from boathouse_policies.framework.eligibility import Eligibilities
from boathouse_policies.framework.layout import Layout
from boathouse_policies.framework.view import ClusterView, NodeTotals, Share, Step, add_to, combined
from boathouse_policies.model.values import value


class State(enum.Enum):
    """Where a pod is. What waits, or is gone, is not in the ledger."""

    ASSUMED = "assumed"
    CONFIRMED = "confirmed"


_NO_NAMESPACE = model.NamespaceName("")


@value(frozen=True, slots=True, kw_only=True)
class Account:
    """What one pod takes: by Kubernetes' request formula, the larger of spec, allocated and actuated during a resize.

    `is_long_running` says that nobody expects it to end: it is no task of a job of ours, or one that restarts.
    """

    id: model.TaskId
    node: model.NodeName | None
    resources: model.Resources
    uid: model.PodUid | None = None  # not known yet of an assumed Create
    job: model.JobId | None = None
    queue: model.QueueName | None = None
    namespace: model.NamespaceName = _NO_NAMESPACE
    task_class: model.ClassId | None = None
    host_ports: tuple[model.HostPort, ...] = ()
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    anti_affinity: tuple[model.PodTerm, ...] = ()
    is_ending: bool = False
    is_long_running: bool = False

    @property
    def resident(self) -> Resident:
        """What pod affinity sees of it."""
        return Resident(
            namespace=self.namespace, labels=self.labels, anti_affinity=self.anti_affinity, is_ending=self.is_ending
        )


class Freed(NamedTuple):
    """Where room came free: pending tasks may start there. The node may not exist any more."""

    node: model.NodeName
    queue: model.QueueName | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Differences between ledger and LIST; falsy where there are none. Seen twice, it is a fault."""

    missing_pods: tuple[model.TaskId, ...] = ()
    ghost_pods: tuple[model.TaskId, ...] = ()
    different_pods: tuple[model.TaskId, ...] = ()
    missing_nodes: tuple[model.NodeName, ...] = ()
    ghost_nodes: tuple[model.NodeName, ...] = ()
    different_nodes: tuple[model.NodeName, ...] = ()

    def __bool__(self) -> bool:
        return self != _NO_DRIFT


@dataclasses.dataclass(slots=True, eq=False)
class _Entry:
    """A pod in the ledger: what was assumed of it, until it is observed."""

    node: model.NodeName
    amounts: model.Amounts
    job: model.JobId | None
    share: Share | None
    counted: model.ClassId | None  # None where no class needs that, for it does not start with others
    host_ports: tuple[model.HostPort, ...]
    placement: model.Placement | None = None
    pod: Account | None = None
    resizing: model.Resources | None = None
    is_long_running: bool = False

    @property
    def state(self) -> State:
        return State.ASSUMED if self.pod is None else State.CONFIRMED

    @property
    def account(self) -> Account:
        """The pod. That of an assumption is made on request: most assumptions are over before."""
        if self.pod is not None:
            return self.pod
        assert self.placement is not None
        task, job = self.placement.task, self.placement.job
        return Account(
            id=task.id,
            node=self.node,
            resources=self.placement.resources,
            uid=task.pod_uid,
            job=job.id,
            queue=job.queue,
            namespace=job.namespace,
            task_class=task.task_class,
            host_ports=self.host_ports,
        )

    @property
    def resident(self) -> Resident:
        if self.pod is not None:
            return self.pod.resident
        assert self.placement is not None
        task, task_class = self.placement.task, self.placement.task_class
        return Resident(
            namespace=self.placement.job.namespace,
            labels=task_class.labels if task.labels is None else task.labels,
            anti_affinity=task_class.constraints.pod_anti_affinity,
        )

    @property
    def size(self) -> model.Resources:
        """What is charged for it: the larger amounts while a resize is in flight."""
        resources = self.account.resources
        return resources if self.resizing is None else resources.most(self.resizing)


class Ledger:
    """The single account of what nodes hold (see the module's docstring). The scheduling queue shares its axis."""

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._nodes: dict[model.NodeName, model.Node] = {}
        self._layout, self._layout_stale, self._renamed = Layout((), axis), False, axis.renamed
        self._entries: dict[model.TaskId, _Entry] = {}
        self._away: dict[model.NodeName, set[model.TaskId]] = {}  # pods on nodes that do not exist
        self._by_node = NodeTotals(self._layout, {})
        self._long_running: dict[model.NodeName, model.Amounts] = {}
        self._by_job: dict[model.JobId, model.Amounts] = {}
        self._by_share: dict[Share, model.Amounts] = {}
        self._by_class: collections.Counter[model.ClassId] = collections.Counter()
        self._ports: dict[model.NodeName, tuple[model.HostPort, ...]] = {}
        self._eligibilities, self.tallies = Eligibilities(), Tallies()
        self._touched: set[model.JobId] = set()
        self._view: weakref.ref[ClusterView] | None = None  # the snapshot that shares the sums
        self._snapshots = 0

    # Nodes

    def set_node(self, node: model.Node) -> bool:
        """Add a node or replace it; return whether anything changed: if so, wake the scheduling queue."""
        if self._nodes.get(node.name) == node:
            return False
        self._nodes[node.name] = node
        self._layout_stale = True
        for task in self._away.pop(node.name, ()):
            self._charge_owner(self._entries[task], self._entries[task].amounts, operator.add)
        return True

    def remove_node(self, name: model.NodeName) -> tuple[model.TaskId, ...]:
        """Forget a node, not its confirmed pods; return the tasks that were assumed on it, sorted: they wait again."""
        if name not in self._nodes:
            return ()
        here = {task: entry for task, entry in self._entries.items() if entry.node == name}
        assumed = tuple(sorted(task for task, entry in here.items() if entry.state is State.ASSUMED))
        for task in assumed:
            self._drop(task)
            del here[task]
        for entry in here.values():
            self._charge_owner(entry, entry.amounts, operator.sub)
        if here:
            self._away[name] = set(here)
        del self._nodes[name]
        self._layout_stale = True
        return assumed

    def queues_on(self, name: model.NodeName) -> set[model.QueueName]:
        """Return the queues that pods on a node are charged to."""
        return {entry.share[0] for entry in self._entries.values() if entry.node == name and entry.share is not None}

    # Pods

    def assume(self, placement: model.Placement) -> None:
        """Deduct what a cycle decided, before the request is sent; a ValueError if the task is placed already."""
        task, job, task_class = placement.task, placement.job, placement.task_class
        if task.id in self._entries:
            raise ValueError(f"{task.id} is {self._entries[task.id].state.value} already: one task was placed twice")
        amounts, counted = self._axis.amounts(placement.resources), task_class.id if task_class.gang_min else None
        ports, share = task_class.constraints.host_ports, (job.queue, job.namespace)
        self._enter(task.id, _Entry(placement.node, amounts, job.id, share, counted, ports, placement))

    def observe(self, pod: Account) -> Freed | None:
        """Take over what the watch shows of a pod that is not terminal; return the room that came free by it."""
        known = self._entries.get(pod.id)
        if pod.node is None:
            is_replaced = known is not None and known.pod is not None and known.pod.uid != pod.uid
            return self._drop(pod.id) if is_replaced else None
        if known is None:
            self._see(pod, pod.node)
            return None
        if known.state is State.CONFIRMED and known.account == pod and known.resizing is None:
            return None
        return self._replace(known, pod, pod.node)

    def gone(self, task: model.TaskId, uid: model.PodUid | None = None) -> Freed | None:
        """Remove a pod that is deleted or terminal; return the room that came free. Another UID changes nothing."""
        entry = self._entries.get(task)
        if entry is None or (uid is not None and entry.account.uid is not None and uid != entry.account.uid):
            return None
        return self._drop(task)

    def forget(self, task: model.TaskId) -> Freed | None:
        """Take an assumption back after a known failure, if the task is assumed; return the room that came free."""
        entry = self._entries.get(task)
        return self._drop(task) if entry is not None and entry.state is State.ASSUMED else None

    def assume_resize(self, task: model.TaskId, resources: model.Resources) -> None:
        """Count the larger amounts from now on, until the watch shows the size that was asked for."""
        if (entry := self._entries.get(task)) is not None:
            entry.resizing = resources
            self._recount(entry, entry.size)

    def forget_resize(self, task: model.TaskId) -> Freed | None:
        """Forget a resize that failed: count the size that the watch reported last."""
        if (entry := self._entries.get(task)) is None or entry.resizing is None:
            return None
        entry.resizing = None
        return self._recount(entry, entry.size)

    def __contains__(self, task: object) -> bool:
        return task in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def state(self, task: model.TaskId) -> State | None:
        """Return where a task is; None for what waits or is gone."""
        return None if (entry := self._entries.get(task)) is None else entry.state

    def account(self, task: model.TaskId) -> Account | None:
        """Return what is accounted for a task."""
        return None if (entry := self._entries.get(task)) is None else entry.account

    # Reading

    def free(self, node: model.NodeName) -> list[int] | None:
        """Return what is free on a node, by row; None for an unknown node. Read-only."""
        self._renew_layout()
        return self._by_node.free(node) if node in self._nodes else None

    def snapshot(
        self, now_s: float, *, offered: Iterable[model.NodeName] | None = None, max_per_node: int | None = None
    ) -> ClusterView:
        """Freeze what is known now, for a cycle that may use some nodes (None: all) and place so many tasks on each.

        Cheap: columns and vectors are made when somebody asks, of what changed.
        """
        self._renew_layout()
        self._snapshots += 1
        self._detach_view()
        index = self._layout.index
        view = ClusterView(
            now_s=now_s,
            axis=self._axis,
            layout=self._layout,
            by_node=self._by_node,
            by_job=self._by_job,
            by_share=self._by_share,
            by_class=self._by_class,
            host_ports=self._ports,
            touched=self._touched,
            eligibilities=self._eligibilities,
            tallies=self.tallies,
            long_running=self._long_running,
            offered=None if offered is None else sorted({index[name] for name in offered if name in index}),
            max_per_node=max_per_node,
            serial=self._snapshots,
        )
        self._touched, self._view = set(), weakref.ref(view)
        return view

    def _detach_view(self) -> None:
        """Let the last snapshot, if it is in use, go on with copies: the sums are about to change."""
        if self._view is not None and (view := self._view()) is not None:
            view.detach()
        self._view = None

    def compare(self, pods: Iterable[Account], nodes: Iterable[model.Node]) -> Drift:
        """Compare with a LIST at equal resourceVersion, without terminal pods; assumed tasks are set aside."""
        listed = {pod.id: pod for pod in pods if pod.node is not None}
        confirmed = {task: e for task, e in self._entries.items() if e.state is State.CONFIRMED}
        known = {node.name: node for node in nodes}
        return Drift(
            missing_pods=tuple(sorted(listed.keys() - self._entries.keys())),
            ghost_pods=tuple(sorted(confirmed.keys() - listed.keys())),
            different_pods=tuple(
                sorted(t for t, e in confirmed.items() if t in listed and _counts(e.account) != _counts(listed[t]))
            ),
            missing_nodes=tuple(sorted(known.keys() - self._nodes.keys())),
            ghost_nodes=tuple(sorted(self._nodes.keys() - known.keys())),
            different_nodes=tuple(sorted(n for n in known.keys() & self._nodes.keys() if known[n] != self._nodes[n])),
        )

    # Columns

    def _see(self, pod: Account, node: model.NodeName) -> None:
        amounts, share = self._axis.amounts(pod.resources), None if pod.queue is None else (pod.queue, pod.namespace)
        entry = _Entry(node, amounts, pod.job, share, pod.task_class, pod.host_ports, pod=pod)
        entry.is_long_running = pod.is_long_running
        self._enter(pod.id, entry)

    def _enter(self, task: model.TaskId, entry: _Entry) -> None:
        self._entries[task] = entry
        if entry.node not in self._nodes:
            self._away.setdefault(entry.node, set()).add(task)
        self._charge(entry, entry.amounts, operator.add)
        self.tallies.enter(task, entry.node, entry.resident)
        if entry.counted is not None or entry.host_ports:
            self._count(entry, +1)

    def _drop(self, task: model.TaskId) -> Freed:
        entry = self._entries.pop(task)
        if entry.node not in self._nodes:
            self._away[entry.node].discard(task)
            if not self._away[entry.node]:
                del self._away[entry.node]
        self._charge(entry, entry.amounts, operator.sub)
        self.tallies.leave(task)
        if entry.counted is not None or entry.host_ports:
            self._count(entry, -1)
        return Freed(entry.node, entry.share and entry.share[0])

    def _replace(self, entry: _Entry, pod: Account, node: model.NodeName) -> Freed | None:
        known = entry.account
        if known.uid is None or known.uid == pod.uid:
            # The job, the queue and the class are the ledger's where the pod's own labels do not name them.
            pod = dataclasses.replace(
                pod,
                job=pod.job if pod.job is not None else known.job,
                queue=pod.queue if pod.queue is not None else known.queue,
                task_class=pod.task_class if pod.task_class is not None else known.task_class,
            )
        if _charged(known) == _charged(pod):
            former, entry.pod = entry.resident, pod
            if entry.is_long_running is not pod.is_long_running:
                entry.is_long_running, step = pod.is_long_running, operator.add if pod.is_long_running else operator.sub
                add_to(self._long_running, entry.node, entry.amounts, step)
            if entry.resident != former:
                self.tallies.leave(pod.id)
                self.tallies.enter(pod.id, entry.node, entry.resident)
            if entry.resizing is not None and pod.resources.covers(entry.resizing):
                entry.resizing = None
            return self._recount(entry, entry.size)
        freed = self._drop(pod.id)
        self._see(pod, node)
        return freed

    def _recount(self, entry: _Entry, size: model.Resources) -> Freed | None:
        amounts = self._axis.amounts(size)
        difference = combined(operator.sub, amounts, entry.amounts)
        entry.amounts = amounts
        if not any(difference):
            return None
        self._charge(entry, difference, operator.add)
        return Freed(entry.node, entry.share and entry.share[0]) if min(difference) < 0 else None

    def _charge(self, entry: _Entry, amounts: model.Amounts, step: Step) -> None:
        if entry.node in self._nodes:
            self._charge_owner(entry, amounts, step)
        else:
            self._detach_view()
        self._by_node.stale.add(entry.node)
        if entry.is_long_running:
            add_to(self._long_running, entry.node, amounts, step)
        add_to(self._by_node.plain, entry.node, amounts, step)

    def _charge_owner(self, entry: _Entry, amounts: model.Amounts, step: Step) -> None:
        if self._view is not None:
            self._detach_view()
        job, share = entry.job, entry.share
        if job is not None:
            self._touched.add(job)
            add_to(self._by_job, job, amounts, step)
        if share is not None:
            add_to(self._by_share, share, amounts, step)

    def _count(self, entry: _Entry, step: int) -> None:
        if entry.counted is not None:
            self._by_class[entry.counted] += step
            if not self._by_class[entry.counted]:
                del self._by_class[entry.counted]
        if entry.host_ports:
            taken = list(self._ports.pop(entry.node, ()))
            change = taken.append if step > 0 else taken.remove
            for port in entry.host_ports:
                change(port)
            if taken:
                self._ports[entry.node] = tuple(sorted(taken))

    def _renew_layout(self) -> None:
        if not self._layout_stale and len(self._layout.allocatable) == self._axis.width:
            return
        for node in self._nodes.values():
            self._axis.capacity(node.allocatable, pods=node.max_pods)  # extended resources grow the axis first
        if self._axis.renamed != self._renamed:
            self._renamed = self._axis.renamed
            for entry in self._entries.values():
                self._recount(entry, entry.size)
        self._layout = Layout(self._nodes.values(), self._axis)
        self._layout_stale = False
        self._detach_view()
        self._by_node = NodeTotals(self._layout, self._by_node.plain)

    def recomputed(self) -> model.IntMatrix:
        """Return the requested columns, summed over all pods: a snapshot's columns must be equal."""
        columns = np.zeros((self._axis.width, len(self._layout)), object)
        for entry in self._entries.values():
            if (i := self._layout.index.get(entry.node)) is not None:
                columns[: len(entry.amounts), i] += np.array(entry.amounts, object)
        return np.minimum(columns, 2 * model.LARGEST).astype(np.int64)


def _charged(pod: Account) -> tuple[object, ...]:
    return pod.node, pod.host_ports, pod.job, pod.queue, pod.namespace, pod.task_class


def _counts(pod: Account) -> tuple[object, ...]:
    return pod.node, pod.uid, pod.resources, pod.host_ports, pod.resident


_NO_DRIFT = Drift()
