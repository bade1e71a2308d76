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

from __future__ import annotations

import operator
import weakref
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import accounts, sums
from boathouse_policies.framework import layout as layouts
from boathouse_policies.framework.drift import Drift
from boathouse_policies.framework.eligibility import Eligibilities
from boathouse_policies.framework.view import ClusterView

if TYPE_CHECKING:
    from collections.abc import Iterable


class Ledger:
    """The single account of what nodes hold. See the module's docstring for the states.

    Args:
        axis: Shared with the scheduling queue.
    """

    def __init__(self, axis: model.Axis) -> None:
        self._axis = axis
        self._nodes: dict[model.NodeName, model.Node] = {}
        self._versions: dict[model.NodeName, int] = {}
        self._version = 0
        self._layout = layouts.Layout((), {}, axis)
        self._layout_stale = False
        self._renamed = axis.renamed
        self._entries: dict[model.TaskId, accounts.Entry] = {}
        self._away: dict[model.NodeName, set[model.TaskId]] = {}  # pods on nodes that do not exist
        self._on_node: sums.OfNodes = sums.Sums(sums.Columns(self._layout), {})
        self._by_job: sums.OfJobs = sums.Sums(sums.Vectors(), {})
        self._by_share: sums.OfShares = sums.Sums(sums.Vectors(), {})
        self._by_class = accounts.Shared[model.ClassId, int]()
        self._ports = accounts.Shared[model.NodeName, tuple[model.HostPort, ...]]()
        self._eligibilities = Eligibilities()
        self._touched: set[model.JobId] = set()
        self._shown: weakref.ref[sums.Held] | None = None  # what a snapshot shows of the sums as they are now
        self._snapshots = 0

    # Nodes

    def set_node(self, node: model.Node) -> bool:
        """Add a node or replace it.

        Returns:
            Whether anything changed: if so, wake the scheduling queue.
        """
        if self._nodes.get(node.name) == node:
            return False
        self._nodes[node.name] = node
        self._touch(node.name)
        for task in self._away.pop(node.name, ()):
            self._charge_owner(self._entries[task], self._entries[task].amounts, operator.add)
        return True

    def remove_node(self, name: model.NodeName) -> tuple[model.TaskId, ...]:
        """Forget a node; its confirmed pods stay in the account, for the node may come back.

        Returns:
            The tasks that were assumed on it, sorted: they wait again.
        """
        if name not in self._nodes:
            return ()
        here = [(task, entry.state) for task, entry in self._entries.items() if entry.node == name]
        assumed = tuple(sorted(task for task, state in here if state is accounts.State.ASSUMED))
        for task in assumed:
            self._drop(task)
        confirmed = {task for task, state in here if state is accounts.State.CONFIRMED}
        for task in confirmed:
            self._charge_owner(self._entries[task], self._entries[task].amounts, operator.sub)
        if confirmed:
            self._away[name] = confirmed
        del self._nodes[name]
        self._touch(name)
        return assumed

    def queues_on(self, name: model.NodeName) -> set[model.QueueName]:
        """The queues that pods on a node are charged to."""
        return {entry.queue for entry in self._entries.values() if entry.node == name and entry.queue is not None}

    def _touch(self, name: model.NodeName) -> None:
        self._version += 1
        self._versions[name] = self._version
        self._layout_stale = True

    # Pods

    def assume(self, placement: model.Placement) -> None:
        """Deduct what a cycle decided, before the request is sent.

        Raises:
            ValueError: The task is placed already: a fault of the caller.
        """
        task = placement.task
        if task.id in self._entries:
            raise ValueError(f"{task.id} is {self._entries[task.id].state.value} already: one task was placed twice")
        self._enter(task.id, accounts.assumed(placement, self._axis.amounts(placement.resources)))

    def observe(self, pod: accounts.Account) -> accounts.Freed | None:
        """Take over what the watch shows of a pod that is not terminal.

        Returns:
            The room that came free by it (a resize, or another pod of the same name).
        """
        known = self._entries.get(pod.id)
        if pod.node is None:
            replaced = known is not None and known.state is accounts.State.CONFIRMED and known.account.uid != pod.uid
            return self._drop(pod.id) if replaced else None
        if known is None:
            self._see(pod, pod.node)
            return None
        if known.state is accounts.State.CONFIRMED and known.account == pod and known.resizing is None:
            return None
        return self._replace(known, pod, pod.node)

    def gone(self, task: model.TaskId, uid: model.PodUid | None = None) -> accounts.Freed | None:
        """A pod is deleted or in a terminal phase.

        Args:
            task: Its key.
            uid: Its UID: the end of an earlier pod of the same name changes nothing.

        Returns:
            The room that came free.
        """
        entry = self._entries.get(task)
        if entry is None or (uid is not None and entry.account.uid is not None and uid != entry.account.uid):
            return None
        return self._drop(task)

    def forget(self, task: model.TaskId) -> accounts.Freed | None:
        """Take an assumption back after a known failure; nothing happens if the task is not assumed.

        Returns:
            The room that came free.
        """
        entry = self._entries.get(task)
        return self._drop(task) if entry is not None and entry.state is accounts.State.ASSUMED else None

    def assume_resize(self, task: model.TaskId, resources: model.Resources) -> None:
        """Count the larger amounts from now on, until the watch shows the size that was asked for."""
        entry = self._entries.get(task)
        if entry is not None:
            entry.resizing = resources
            self._recount(entry, entry.account.resources.most(resources))

    def forget_resize(self, task: model.TaskId) -> accounts.Freed | None:
        """A resize is known to have failed: count what the watch showed last."""
        entry = self._entries.get(task)
        if entry is None or entry.resizing is None:
            return None
        entry.resizing = None
        return self._recount(entry, entry.account.resources)

    def __contains__(self, task: object) -> bool:
        return task in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def state(self, task: model.TaskId) -> accounts.State | None:
        """Where a task is; None for what waits or is gone."""
        entry = self._entries.get(task)
        return None if entry is None else entry.state

    def account(self, task: model.TaskId) -> accounts.Account | None:
        """What is counted for a task."""
        entry = self._entries.get(task)
        return None if entry is None else entry.account

    # Reading

    def free(self, node: model.NodeName) -> list[int] | None:
        """What is free on a node, by row; None for an unknown node."""
        self._renew_layout()
        i = self._layout.index.get(node)
        return None if i is None else self._layout.free(i, self._on_node.plain.get(node, ()))

    def snapshot(
        self, now_s: float, *, offered: Iterable[model.NodeName] | None = None, max_per_node: int | None = None
    ) -> ClusterView:
        """Freeze what is known now. Cheap: columns and vectors are made when somebody asks, of what changed.

        Args:
            now_s: The shell's time.
            offered: Nodes that the cycle may use; None for all.
            max_per_node: Most tasks that the cycle may place on one node.
        """
        self._renew_layout()
        self._snapshots += 1
        return ClusterView(
            now_s=now_s,
            axis=self._axis,
            layout=self._layout,
            held=self._held(),
            by_class=self._by_class.freeze(),
            host_ports=self._ports.freeze(),
            eligibilities=self._eligibilities,
            offered=None if offered is None else self._mask(offered),
            max_per_node=max_per_node,
            serial=self._snapshots,
        )

    def _held(self) -> sums.Held:
        held = self._shown() if self._shown is not None else None
        if held is None:
            held = sums.Held(self._on_node, self._by_job, self._by_share, self._touched)
            self._touched = set()
            self._shown = weakref.ref(held)
        return held

    def _keep_shown(self) -> None:
        held = self._shown() if self._shown is not None else None
        if held is not None:  # somebody may still look at what was known until now
            held.reserve()
        self._shown = None

    def compare(self, pods: Iterable[accounts.Account], nodes: Iterable[model.Node]) -> Drift:
        """Compare with a LIST at equal resourceVersion (terminal pods left out); assumed tasks are set aside.

        Args:
            pods: All pods that are not terminal; those without a node are ignored.
            nodes: All nodes.
        """
        listed = {pod.id: pod for pod in pods if pod.node is not None}
        confirmed = {task: e for task, e in self._entries.items() if e.state is accounts.State.CONFIRMED}
        known = {node.name: node for node in nodes}
        return Drift(
            missing_pods=tuple(sorted(listed.keys() - self._entries.keys())),
            ghost_pods=tuple(sorted(confirmed.keys() - listed.keys())),
            different_pods=tuple(
                sorted(t for t, e in confirmed.items() if t in listed and accounts.unlike(e.account, listed[t]))
            ),
            missing_nodes=tuple(sorted(known.keys() - self._nodes.keys())),
            ghost_nodes=tuple(sorted(self._nodes.keys() - known.keys())),
            different_nodes=tuple(sorted(n for n in known.keys() & self._nodes.keys() if known[n] != self._nodes[n])),
        )

    def _mask(self, names: Iterable[model.NodeName]) -> model.BoolVector:
        mask = np.zeros(len(self._layout), np.bool_)
        for name in names:
            i = self._layout.index.get(name)
            if i is not None:
                mask[i] = True
        return mask

    # Columns

    def _see(self, pod: accounts.Account, node: model.NodeName) -> None:
        self._enter(pod.id, accounts.seen(pod, node, self._axis.amounts(pod.resources)))

    def _enter(self, task: model.TaskId, entry: accounts.Entry) -> None:
        self._entries[task] = entry
        if entry.node not in self._nodes:
            self._away.setdefault(entry.node, set()).add(task)
        self._charge(entry, entry.amounts, operator.add)
        if entry.counted is not None or entry.host_ports:
            self._count(entry, +1)

    def _drop(self, task: model.TaskId) -> accounts.Freed:
        entry = self._entries.pop(task)
        if entry.node not in self._nodes:
            self._away[entry.node].discard(task)
            if not self._away[entry.node]:
                del self._away[entry.node]
        self._charge(entry, entry.amounts, operator.sub)
        if entry.counted is not None or entry.host_ports:
            self._count(entry, -1)
        return accounts.Freed(entry.node, None if entry.share is None else entry.share[0])

    def _replace(self, entry: accounts.Entry, pod: accounts.Account, node: model.NodeName) -> accounts.Freed | None:
        if entry.account.uid is None or entry.account.uid == pod.uid:
            pod = accounts.keep_labels(pod, entry.account)
        same = entry.node == node and entry.account.host_ports == pod.host_ports
        if same and accounts.charged_to(entry.account) == accounts.charged_to(pod):
            entry.pod, entry.state = pod, accounts.State.CONFIRMED
            if entry.resizing is not None and pod.resources.covers(entry.resizing):
                entry.resizing = None
            return self._recount(entry, entry.size)
        freed = self._drop(pod.id)
        self._see(pod, node)
        return freed

    def _recount(self, entry: accounts.Entry, size: model.Resources) -> accounts.Freed | None:
        amounts = self._axis.amounts(size)
        difference = sums.combined(operator.sub, amounts, entry.amounts)
        entry.amounts = amounts
        if not any(difference):
            return None
        self._charge(entry, difference, operator.add)
        return accounts.Freed(node=entry.node, queue=entry.queue) if min(difference) < 0 else None

    def _charge(self, entry: accounts.Entry, amounts: model.Amounts, step: sums.Step) -> None:
        if self._shown is not None:
            self._keep_shown()
        node = entry.node
        self._on_node.add(node, amounts, step)
        if node in self._nodes:
            self._charge_owner(entry, amounts, step)

    def _charge_owner(self, entry: accounts.Entry, amounts: model.Amounts, step: sums.Step) -> None:
        if self._shown is not None:
            self._keep_shown()
        job, share = entry.job, entry.share
        if job is not None:
            self._touched.add(job)
            self._by_job.add(job, amounts, step)
        if share is not None:
            self._by_share.add(share, amounts, step)

    def _count(self, entry: accounts.Entry, step: int) -> None:
        if entry.counted is not None:
            counts = self._by_class.write()
            left = counts.get(entry.counted, 0) + step
            if left:
                counts[entry.counted] = left
            else:
                del counts[entry.counted]
        if entry.host_ports:
            ports = self._ports.write()
            taken = list(ports.pop(entry.node, ()))
            if step > 0:
                taken += entry.host_ports
            else:
                for port in entry.host_ports:
                    taken.remove(port)
            if taken:
                ports[entry.node] = tuple(sorted(taken))

    def _renew_layout(self) -> None:
        """Bring the layout up to date with nodes and axis."""
        if not self._layout_stale and len(self._layout.allocatable) == self._axis.width:
            return
        for node in self._nodes.values():
            self._axis.capacity(node.allocatable, pods=node.max_pods)  # extended resources grow the axis first
        if self._axis.renamed != self._renamed:
            self._renamed = self._axis.renamed
            for entry in self._entries.values():
                self._recount(entry, entry.size)
        self._layout = layouts.Layout(self._nodes.values(), self._versions, self._axis)
        self._layout_stale = False
        self._keep_shown()
        self._on_node = sums.Sums(sums.Columns(self._layout), self._on_node.plain)

    def recomputed(self) -> model.IntMatrix:
        """The requested columns, added up anew from every pod: what the kept ones must equal."""
        columns = np.zeros((len(self._axis), len(self._layout)), object)
        for entry in self._entries.values():
            i = self._layout.index.get(entry.node)
            if i is not None:
                columns[: len(entry.amounts), i] += np.array(entry.amounts, object)
        return np.minimum(columns, 2 * model.LARGEST).astype(np.int64)
