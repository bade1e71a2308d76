"""The state of a cycle: what is free as it places tasks, and the pending classes as it sees them."""

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.eligibility import Eligibility
from boathouse_policies.framework.judges import CycleCounts, Judge
from boathouse_policies.framework.layout import ALL, Where
from boathouse_policies.framework.queue import Closeness, LeastSizes, Pick, Picker, QueuedClass, Reservations
from boathouse_policies.framework.shapes import Shape
from boathouse_policies.framework.view import ClusterView, Step, combined

_NO_RESERVATIONS = Reservations({}, {})
_RECOMPUTED_AT_ONCE = 8  # measured: with an eighth of nodes changed, slices over all cost as little as picking some


class Sizes(Protocol):
    """What of a profile a pending class depends on."""

    @property
    def sizer(self) -> LeastSizes:
        """How small its tasks may be made."""

    @property
    def sees_hosts(self) -> bool:
        """Whether virtual machines on the host of the input are closer than others of its rack."""


class Assignment(NamedTuple):
    """A task, its node and its size: what a decision is made of."""

    pending: "PendingClass"
    pick: Pick
    node: int
    resources: model.Resources
    amounts: Sequence[int]


class PendingClass:
    """A class whose turn may come in this cycle."""

    __slots__ = (
        "_closeness",
        "_picker",
        "_sees_hosts",
        "ideal",
        "is_rigid",
        "job",
        "least",
        "left",
        "moved",
        "place",
        "queued",
        "shape",
        "state",
        "task_class",
        "verdict",
    )

    verdict: model.Verdict  # why its tasks stay pending, once the cycle says so

    def __init__(self, queued: QueuedClass, profile: Sizes, state: "CycleState", place: int = -1) -> None:
        self.queued, self.job, self.task_class = queued, queued.job, queued.task_class
        # `place`: its place among the sorted classes.
        # `left`: its tasks that are still pending in this cycle.
        self.state, self.place, self.left = state, place, queued.pool.count
        # Nodes that are further from the input of what is left than they were when they were ranked.
        self.moved: list[int] = []
        self._sees_hosts = profile.sees_hosts
        self._picker: Picker | None = None
        self._closeness: Closeness | None = None
        sizing = queued.sizing(profile.sizer, state.view.axis)
        # `ideal`: the class' own size, one task.
        self.shape, self.ideal, self.is_rigid = sizing.shape, sizing.ideal, sizing.is_rigid
        self.least = sizing.shape.least

    @property
    def picker(self) -> Picker:
        """Its tasks."""
        if self._picker is None:
            layout = self.state.view.layout
            self._picker = Picker(self.queued.pool, layout.topology if self._sees_hosts else layout.hostless)
        return self._picker

    @property
    def levels(self) -> model.IntVector:
        """How far the nearest input of what is left is from each node, a `model.Distance`, shape [N]."""
        if self._closeness is None:
            self._closeness = self.queued.closeness(self.state.view.layout, sees_hosts=self._sees_hosts)
            for task in self.picker.taken():
                self._closeness.take(task)
        return self._closeness.levels

    def take_closest(self, node: int) -> Pick | None:
        """Take its task whose input is closest to a node: other nodes may be further away from what is left."""
        picker = self._picker or self.picker
        if (pick := picker.closest(self.state.view.layout.nodes[node])) is not None:
            picker.take(pick)
            self.left -= 1
            if self._closeness is not None:
                self.moved += self._closeness.take(pick.task)
        return pick

    def give_back(self, pick: Pick) -> None:
        """Take back the placement of a task."""
        self.picker.give_back(pick)
        self.left += 1
        if self._closeness is not None:
            self._closeness = None  # what it was told of is not so
            self.moved += range(len(self.state.offered))

    @property
    def eligibility(self) -> Eligibility:
        """The nodes that its constraints allow."""
        return self.shape.eligibility(self.state.view)


class CycleState:
    """What is free as the cycle places tasks. Columns computed from it are brought up to date with `to_recompute`."""

    def __init__(self, view: ClusterView, reservations: Reservations = _NO_RESERVATIONS) -> None:
        self.view = view
        self._free: model.IntMatrix | None = None
        # What is free on nodes that somebody asked for, and on all that changed.
        self._by_node: dict[int, list[int]] = {}
        self._offered: model.BoolVector | None = None
        self.withdrawn: set[int] = set()  # places of nodes on offer that take no more tasks in this cycle
        # `exhausted`: whether nodes were on offer and none of them takes anything more.
        # `changes`: how often a node changed so far.
        self.changes, self.exhausted = 0, False
        self._changed: list[int] = []
        # `reserved`: the class for which a node is reserved, by place.
        self._reservations, self.reserved = reservations, reservations.by_place(view.layout)
        self.released: set[int] = set()  # places of nodes that were reserved and are not any more
        self.offers = len(view.layout if view.offered is None else view.offered)
        # How many more nodes may be reserved for the class whose turn it is; None for any number.
        self.most_reserved: int | None = None
        # What `_jobs` and `_classes` do not count yet. Without pending classes: they refer to the state.
        self._uncounted: list[tuple[Step, model.JobId, model.ClassId, Sequence[int]]] = []
        self._jobs: dict[model.JobId, model.Amounts] = {}
        self._classes: dict[model.ClassId, int] = {}
        self.ports: dict[int, tuple[model.HostPort, ...]] = {}  # that this cycle took
        self._placed_on: dict[int, int] = {}
        self._room = dict[Shape, tuple[int, model.BoolVector]]()
        self.pod_counts: CycleCounts | None = None  # of the pods that it placed, if any constraint depends on pods

    # Reading

    @property
    def free(self) -> model.IntMatrix:
        """Shape [R, N]; below zero where a node is over-committed. Made at first use: few nodes need no columns."""
        if self._free is None:
            self._free = free = self.view.free()
            for node, room in self._by_node.items():
                free[:, node] = room
        return self._free

    def free_on(self, node: int) -> list[int]:
        """Return what is free on a node, by row: read-only, and updated as tasks are placed."""
        if (room := self._by_node.get(node)) is None:
            room = self.view.free_on(node) if self._free is None else self._free[:, node].tolist()
            self._by_node[node] = room
        return room

    def job_usage(self, job: model.JobId) -> model.Amounts:
        """Return a job's usage, tasks of this cycle included, by row."""
        if self._uncounted:
            self._count()
        return self._jobs.get(job) or self.view.job_usage(job)

    def placed(self, task_class: model.ClassId) -> int:
        """Return tasks of a class that are placed, those of this cycle included."""
        if self._uncounted:
            self._count()
        return self._classes.get(task_class, 0) + self.view.by_class.get(task_class, 0)

    def changed_since(self, count: int) -> list[int]:
        """Return places of nodes, with repetitions, that changed since there were `count` changes."""
        return self._changed[count:]

    def to_recompute(self, count: int) -> Where | None:
        """Return the columns to recompute; None for none, and everything where that is as cheap as some of it."""
        changed = self._changed[count:]
        if len(changed) <= 1:
            return slice(changed[0], changed[0] + 1) if changed else None
        return ALL if len(changed) > len(self.offered) // _RECOMPUTED_AT_ONCE else np.array(changed, np.intp)

    def room(self, pending: PendingClass) -> model.BoolVector:
        """Return which nodes have room for the least size of a class, shape [N]; read-only, shared by its shape."""
        shape = pending.shape
        known = self._room.get(shape)
        where = ALL if known is None else self.to_recompute(known[0])
        enough = np.empty(len(self.offered), np.bool_) if known is None else known[1]
        if where is not None:
            enough[where] = np.logical_and.reduce(self.free[:, where][shape.rows] >= shape.need)
            self._room[shape] = self.changes, enough
        return enough

    @property
    def jobs(self) -> Mapping[model.JobId, model.Amounts]:
        """What the jobs hold that got tasks in this cycle."""
        self._count()
        return self._jobs

    @property
    def all_reserved(self) -> bool:
        """Whether every node on offer is reserved."""
        if self.offers > len(self.reserved) or not self.offers:
            return False
        return self.offers == len(self.view.layout) or all(map(self.reserved.__contains__, self.offered_places()))

    def owners(self) -> set[model.ClassId]:
        """Return the classes for which nodes on offer are reserved, and the others to which those are open."""
        nodes = self.reserved if self.offers == len(self.view.layout) else self.offered_places()
        owners = {self.reserved[node] for node in nodes if node in self.reserved}
        return owners.union(*map(self.open_to, owners))

    def open_to(self, owner: model.ClassId) -> Collection[model.ClassId]:
        """Return the classes that may use the nodes that are reserved for a class."""
        return self._reservations.open_to(owner)

    @property
    def offered(self) -> model.BoolVector:
        """Nodes that may still take tasks in this cycle, shape [N]: made at first use, as `free`."""
        if self._offered is None:
            self._offered = np.zeros(len(self.view.layout), np.bool_)
            self._offered[self.offered_places()] = True
        return self._offered

    def is_offered(self, node: int) -> bool:
        """Return whether a node may still take tasks in this cycle."""
        return node not in self.withdrawn and (self.view.offered is None or node in self.view.offered)

    def offered_places(self) -> Sequence[int]:
        """Return the nodes on offer, ascending."""
        places = range(len(self.view.layout)) if self.view.offered is None else self.view.offered
        return [node for node in places if node not in self.withdrawn] if self.withdrawn else places

    def reservable(self, pending: PendingClass) -> model.BoolVector:
        """Return where a node may be reserved for a class, shape [N]: read-only."""
        mask, passing = pending.eligibility.mask, self.beside_pods(pending)
        return mask if passing is None else mask & passing

    def judge(self, pending: PendingClass) -> Judge | None:
        """Return what judges nodes by the pods that are there now; None if a class does not depend on other pods."""
        return None if self.pod_counts is None else self.pod_counts.judge(pending.queued)

    def beside_pods(self, pending: PendingClass) -> model.BoolVector | None:
        """Return where a class may go beside the pods that are there now, shape [N], read-only; None for everywhere."""
        judge = None if self.pod_counts is None else self.pod_counts.judge(pending.queued)
        return None if judge is None else judge.mask()

    # Writing

    def count_pods(self) -> None:
        """Count the pods that the cycle places from now on, if a constraint depends on them."""
        if self.view.tallies.is_needed:
            self.pod_counts = CycleCounts(self.view)

    def place(self, assignment: Assignment) -> None:
        """Take the room of a task."""
        pending, _, node, _, amounts = assignment
        self._change(node, operator.sub, amounts)
        self._uncounted.append((operator.add, pending.job.id, pending.task_class.id, amounts))
        if ports := pending.task_class.constraints.host_ports:
            self.ports[node] = self.ports.get(node, ()) + ports
        if self.pod_counts is not None:
            self.pod_counts.place(pending.queued, node, +1)
        if self.view.max_per_node is not None:
            self._placed_on[node] = count = self._placed_on.get(node, 0) + 1
            if count >= self.view.max_per_node:
                self.withdraw(node)

    def undo(self, assignment: Assignment) -> None:
        """Give the room of a task back that was placed in this cycle."""
        pending, _, node, _, amounts = assignment
        self._change(node, operator.add, amounts)
        self._uncounted.append((operator.sub, pending.job.id, pending.task_class.id, amounts))
        for port in pending.task_class.constraints.host_ports:
            left = list(self.ports[node])
            left.remove(port)
            self.ports[node] = tuple(left)
        if self.pod_counts is not None:
            self.pod_counts.place(pending.queued, node, -1)
        if self.view.max_per_node is not None:
            self._placed_on[node] -= 1
            if node in self.withdrawn:
                self.withdrawn.discard(node)
                self._offered = None
                self.offers += 1
                self.exhausted = False

    def reserved_since_s(self, node: int, owner: model.ClassId) -> float | None:
        """Return since when a node has been reserved for a class; None if it was not when the cycle began."""
        return self._reservations.since_s(self.view.layout.names[node], owner)

    def keep(self, node: int, amounts: Sequence[int]) -> None:
        """Take room for what is not placed, or a second attempt, for the rest of the cycle."""
        self._change(node, operator.sub, amounts)

    def reserve(self, node: int, task_class: model.ClassId) -> None:
        """Reserve a node for a class for the rest of the cycle."""
        self.reserved[node] = task_class
        self.released.discard(node)
        self.touch(node)

    def release(self, node: int) -> None:
        """Release a reserved node, for the cycles to come too."""
        del self.reserved[node]
        self.released.add(node)
        self.touch(node)

    def withdraw(self, node: int) -> None:
        """Offer the node to nobody for the rest of the cycle."""
        if self.is_offered(node):
            self.withdrawn.add(node)
            if self._offered is not None:
                self._offered[node] = False
            self.offers -= 1
            self.exhausted = not self.offers
            self.touch(node)

    def touch(self, *nodes: int) -> None:
        """Say that masks and scores of nodes may be different now: for policies in which nodes affect each other."""
        self._changed += nodes
        self.changes += len(nodes)

    def _change(self, node: int, step: Step, amounts: Sequence[int]) -> None:
        room = self._by_node.get(node) or self.free_on(node)
        room[:] = map(step, room, amounts)
        if self._free is not None:
            self._free[:, node] = room
        self._changed.append(node)
        self.changes += 1

    def _count(self) -> None:
        """Count what jobs and classes got in this cycle: late, for many profiles never read it."""
        jobs, classes, view = self._jobs, self._classes, self.view
        for step, job, class_id, amounts in self._uncounted:
            held = jobs.get(job) or view.job_usage(job)
            jobs[job] = tuple(map(step, held, amounts)) if len(held) == len(amounts) else combined(step, held, amounts)
            classes[class_id] = step(classes.get(class_id, 0), 1)
        self._uncounted.clear()
