"""Koala's two levels in the cycle: the provider offers and reclaims, each cluster's policy answers (Koala, IV.B, IV.C).

The provider decides who is offered idle nodes, and who is asked to give some back. Equipartition is named in the paper
and not defined; as in the readings: Equipartition-All splits the idle nodes of all sites equally over the clusters,
Equipartition-PerSite those of each site. What does not divide goes to those with the fewest nodes beyond their first
ones, then by name: the scheduler "tries to achieve fairness between multiple MR clusters". Reclaims take from those
with the most transient nodes, one at a time, for the same reason.

Ours: clusters have weights, so that "equally", "fewest" and "most" are by weight. If fewer nodes are idle than the sum
of the weights, the cluster that has grown least by weight receives up to its weight in nodes first. Not every idle node
has room for the worker of every cluster, so idle nodes come in pools by who may use them.

Clusters are the jobs whose master reports (`cluster.read`). Each is offered its part of the idle nodes every T
seconds of its policy. Jobs that wait for nodes and are no such cluster ("new job submissions") come first: idle nodes
are kept for them, and where those do not suffice clusters are asked to give transient nodes back. Jobs for which nodes
would change nothing do not count, such as those at the limit of their queue.

A "node" of a cluster is a pod: a node of Kubernetes with room for several is as many idle ones.
"""

import collections
import dataclasses
import heapq
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework import ClusterView, QueuedClass, SchedulingQueue
from boathouse_policies.framework.questions import Controller, Observer
from boathouse_policies.koala.cluster import Change, Cluster, Grower, Kind, grower, read
from boathouse_policies.koala.config import Config, Partition, Policy


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Idle nodes of one site that the same clusters may use."""

    site: str
    nodes: int
    users: frozenset[model.JobId]


def without(idle: Collection[Pool], needed: int) -> list[Pool]:
    """Return what is left of the pools once nodes are kept for submissions: of the largest pool first, one by one."""
    if needed >= sum(pool.nodes for pool in idle):
        return [dataclasses.replace(pool, nodes=0) for pool in idle]
    left = [(-pool.nodes, pool.site, sorted(pool.users), pool) for pool in idle]
    heapq.heapify(left)
    for _ in range(needed):
        nodes, site, users, pool = left[0]
        heapq.heapreplace(left, (nodes + 1, site, users, pool))
    return [dataclasses.replace(pool, nodes=-nodes) for nodes, _, _, pool in left]


def split(
    idle: Collection[Pool], clusters: Collection[Cluster], partition: Partition
) -> dict[model.JobId, dict[str, int]]:
    """Return each cluster's nodes by site, as many as it may take, of all idle ones or (per site) of each site's."""
    known = {cluster.name: cluster for cluster in clusters}
    parts: dict[model.JobId, dict[str, int]] = {name: {} for name in known}
    dealt: collections.Counter[tuple[str, model.JobId]] = collections.Counter()
    room = {name: cluster.growth for name, cluster in known.items()}

    def turn(among: str, name: model.JobId) -> tuple[int, float, model.JobId]:
        """Return a place in the line: by rounds, each of as many nodes as the weight says, and then by what it has."""
        cluster, given = known[name], dealt[among, name]
        return given // cluster.weight, (cluster.nodes - cluster.first_core_nodes + given) / cluster.weight, name

    # Pools that fewest may use first: with the others the rest can still be evened out.
    for pool in sorted(idle, key=lambda pool: (len(pool.users), pool.site, sorted(pool.users))):
        among = pool.site if partition is Partition.PER_SITE else ""
        line = [turn(among, name) for name in pool.users if room[name]]
        heapq.heapify(line)
        for _ in range(pool.nodes if line else 0):
            _, _, name = line[0]
            parts[name][pool.site] = parts[name].get(pool.site, 0) + 1
            dealt[among, name] += 1
            room[name] -= 1
            if room[name]:
                heapq.heapreplace(line, turn(among, name))
            else:
                heapq.heappop(line)
            if not line:
                break
    return parts


def reclaims(needed: int, clusters: Sequence[Cluster]) -> dict[model.JobId, int]:
    """Return how many nodes each cluster is asked for: what submissions need, less what leaves already."""
    weights = {cluster.name: cluster.weight for cluster in clusters}
    left = {cluster.name: cluster.transient_nodes for cluster in clusters}
    least = {cluster.name: cluster.transient_nodes - cluster.spare_nodes for cluster in clusters}
    needed -= sum(cluster.leaving_nodes for cluster in clusters)
    for _ in range(min(needed, sum(cluster.spare_nodes for cluster in clusters))):
        givers = [name for name in left if left[name] > least[name]]
        left[min(givers, key=lambda name: (-left[name] / weights[name], name))] -= 1
    asked = {cluster.name: cluster.transient_nodes - left[cluster.name] for cluster in clusters}
    return {name: count for name, count in asked.items() if count}


ZONE_LABEL = "topology.kubernetes.io/zone"
_NODES_DO_NOT_HELP = frozenset(
    {model.Code.NEVER_FITS, model.Code.QUEUE_LIMIT, model.Code.UNKNOWN_QUEUE, model.Code.QUEUE_NOT_ALLOWED}
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a cluster has of its own, where it differs from the provider's."""

    config: Config
    worker: model.ClassId | None = None  # the class of the nodes that it grows by; None for all of its classes


@dataclasses.dataclass(slots=True)
class _Member:
    cluster: Cluster  # what its master reported, and what was decided since
    grower: Grower
    offer_s: float  # when it is offered nodes next
    reclaim_s: float = 0.0  # when it may be asked for nodes again
    asked: int = 0  # nodes that it took since its last report
    offer: str = ""  # the last offer to it, in words

    @property
    def can_grow(self) -> bool:
        return bool(self.grower.most and self.cluster.growth)


class Koala(Controller, Observer):
    """Dumps nothing: masters report again, and offers begin a new period."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._jobs: dict[model.JobId, model.Submitted] = {}
        self._members: dict[model.JobId, _Member] = {}
        self.report_every_s = config.report_every_s  # how often masters should report
        # What clusters have of their own; the shell sets them before it submits the cluster
        self.terms: dict[model.JobId, Terms] = {}

    def observe(self, event: model.Event) -> None:
        """Learn which jobs there are, and what masters report."""
        match event:
            case model.Submitted():
                self._jobs[event.job.id] = event
                if event.job.id in self._members:
                    self._members[event.job.id].grower = self._grower(event.job)
            case model.Ended():
                for known in (self._jobs, self._members, self.terms):
                    known.pop(event.job, None)
            case model.Progress() if event.job in self._jobs and (cluster := read(event.job, event.counters)):
                self._report(cluster, event.now_s)
            case _:
                pass

    def _report(self, cluster: Cluster, now_s: float) -> None:
        member = self._members.get(cluster.name)
        if member is None:
            policy = self._grower(self._jobs[cluster.name].job)
            self._members[cluster.name] = member = _Member(cluster, policy, now_s + policy.every_s)
        member.cluster, member.asked = cluster, 0

    def _grower(self, job: model.Job) -> Grower:
        own = self.terms.get(job.id)
        config = own.config if own else self._config
        return grower(Policy(job.kind) if job.kind in tuple(Policy) else config.policy, config)

    def explain(self, job: model.JobId) -> str:
        """Return the last offer to a cluster in words; empty before the first."""
        member = self._members.get(job)
        return member.offer if member else ""

    def is_idle(self) -> bool:
        """Return whether there is no cluster: offers and reclaims come with time."""
        return not self._members

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Decide what growth and shrinking is due."""
        if not self._members:
            return ()
        members = [self._members[name] for name in self._jobs if name in self._members]
        due = [member for member in members if view.now_s >= member.offer_s]
        if not due and not any(one.cluster.spare_nodes and view.now_s >= one.reclaim_s for one in members):
            return ()  # nothing can be decided, so that most cycles look at neither queue nor nodes
        sizes = [view.axis.vector(worker.resources) for member in members for worker in self._workers(member)]
        needed = self._needed(queue, np.max(sizes, axis=0), view)  # in the largest workers
        if not due and not needed:
            return ()
        idle = self._idle(members, self._free(members, queue, view), view)
        short = needed - sum(pool.nodes for pool in idle)
        left = without(idle, needed)  # submissions come first
        return [*self._offer(due, members, left, view.now_s), *self._reclaim(members, short, view.now_s)]

    def _workers(self, member: _Member) -> Sequence[model.TaskClass]:
        name = member.cluster.name
        own, classes = self.terms.get(name), self._jobs[name].classes
        return [task_class for task_class in classes if own and task_class.id == own.worker] or classes

    def _needed(self, queue: SchedulingQueue, worker: model.IntVector, view: ClusterView) -> int:
        """Return how many nodes submissions wait for, in workers."""
        total = np.zeros(worker.shape)  # not whole numbers: many tasks of the largest size would overflow
        for queued in [queued for name in self._jobs if name not in self._members for queued in queue.classes_of(name)]:
            if _nodes_help(queued):
                total += float(queued.pool.count) * view.axis.vector(queued.task_class.resources)
        total[model.PODS] = 0.0
        return int(np.ceil(total[worker > 0] / worker[worker > 0]).max(initial=0))

    def _free(self, members: Sequence[_Member], queue: SchedulingQueue, view: ClusterView) -> model.IntMatrix:
        """Return what is free beside the workers that clusters took and that have no node yet."""
        free = view.free()
        for member in members:
            waiting = queue.classes_of(member.cluster.name)
            unqueued = member.asked - sum(queued.pool.count for queued in waiting)  # decided, and not submitted yet
            placeable = [(queued.task_class, queued.pool.count) for queued in waiting if _nodes_help(queued)]
            for worker, count in (*placeable, (self._workers(member)[0], unqueued)):
                rooms = _rooms(worker, free, view)
                taken = np.clip(count - (np.cumsum(rooms) - rooms), 0, rooms)
                free = free - np.outer(view.axis.vector(worker.resources), taken)
        return free

    def _idle(self, members: Sequence[_Member], free: model.IntMatrix, view: ClusterView) -> list[Pool]:
        """Return the nodes with room for a worker of some cluster: a node counts once for each worker that fits."""
        rooms: model.IntMatrix = np.array(
            [np.max([_rooms(worker, free, view) for worker in self._workers(member)], axis=0) for member in members]
        )
        fits = np.ascontiguousarray((rooms > 0).T)
        least = np.where(rooms > 0, rooms, np.iinfo(rooms.dtype).max).min(axis=0)
        users: dict[bytes, frozenset[model.JobId]] = {}
        idle: collections.Counter[tuple[str, frozenset[model.JobId]]] = collections.Counter()
        for i in np.flatnonzero(fits.any(axis=1)).tolist():
            who = fits[i].tobytes()
            if who not in users:
                pairs = zip(members, fits[i], strict=True)
                users[who] = frozenset(member.cluster.name for member, fit in pairs if fit and member.can_grow)
            idle[view.nodes[i].labels.get(ZONE_LABEL, ""), users[who]] += int(least[i])
        return [Pool(site=site, nodes=nodes, users=who) for (site, who), nodes in idle.items()]

    def _offer(
        self, due: Sequence[_Member], members: Sequence[_Member], idle: Sequence[Pool], now_s: float
    ) -> Iterator[model.Decision]:
        if not due:
            return
        growing = [member.cluster for member in members if member.can_grow]
        parts = split(idle, growing, self._config.partition)
        among = f"of {sum(pool.nodes for pool in idle)} idle nodes"
        weights = sum(cluster.weight for cluster in growing)
        for member in due:
            cluster, policy = member.cluster, member.grower
            member.offer_s = now_s + policy.every_s
            part = sum(parts.get(cluster.name, {}).values())
            member.offer = f"{part} {among}, weight {cluster.weight} of {weights}" if member.can_grow else ""
            answer = policy.unrequested(cluster) or policy.offered(cluster, min(policy.most, part))
            yield from _carried_out(member, answer)

    def _reclaim(self, members: Sequence[_Member], short: int, now_s: float) -> Iterator[model.Decision]:
        for name, nodes in reclaims(short, [member.cluster for member in members]).items():
            member = self._members[name]
            if now_s >= member.reclaim_s:
                member.reclaim_s = now_s + self._config.reclaim_every_s
                yield from _carried_out(member, member.grower.reclaimed(member.cluster, nodes))


def _carried_out(member: _Member, change: Change | None) -> Iterator[model.Decision]:
    """Yield an answer as a decision; the state follows at once, for the master reports later."""
    if change is None:
        return
    cluster, nodes = member.cluster, change.nodes
    member.asked += max(nodes, 0)
    if nodes > 0:
        member.cluster = dataclasses.replace(cluster, pending_nodes=cluster.pending_nodes + nodes)
    else:
        member.cluster = dataclasses.replace(
            cluster,
            transient_nodes=cluster.transient_nodes + nodes,
            leaving_nodes=cluster.leaving_nodes - nodes,
            slots=cluster.slots + nodes * cluster.node_slots,
        )
    stores = change.kind is Kind.CORE
    yield model.Scale(job=cluster.name, workers=member.cluster.nodes, stores=stores, reason=change.reason)


def _nodes_help(queued: QueuedClass) -> bool:
    return queued.verdict is None or queued.verdict.code not in _NODES_DO_NOT_HELP


def _rooms(worker: model.TaskClass, free: model.IntMatrix, view: ClusterView) -> model.IntVector:
    """Return how many workers fit on each node; one at most where a worker takes a port of its node."""
    size = view.axis.vector(worker.resources)
    rows = size > 0
    rooms: model.IntVector = (free[rows] // size[rows, np.newaxis]).min(axis=0).clip(min=0)
    rooms[~view.eligibilities.of(worker.constraints, view.layout).mask] = 0
    if view.offered is not None:
        rooms[~np.isin(np.arange(len(rooms)), view.offered)] = 0
    if ports := worker.constraints.host_ports:
        np.minimum(rooms, 1, out=rooms)
        for name, taken in view.host_ports.items():
            if name in view.layout.index and any(port.conflicts(used) for port in ports for used in taken):
                rooms[view.layout.index[name]] = 0
    return rooms
