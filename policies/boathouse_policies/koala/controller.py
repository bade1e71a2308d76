"""Koala's two levels in the cycle: the provider offers and reclaims, each cluster's policy answers (Koala, IV.C).

Clusters are the jobs whose master reports (`cluster.read`). Each is offered its part of the idle nodes every T
seconds of its policy. Jobs that wait for nodes and are no such cluster ("new job submissions") come first: idle nodes
are kept for them, and where those do not suffice clusters are asked to give transient nodes back.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.questions import Controller, Observer
from boathouse_policies.koala import provider
from boathouse_policies.koala.cluster import Change, Cluster, Kind, read
from boathouse_policies.koala.config import Config, Policy
from boathouse_policies.koala.growers import Grower, grower

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from boathouse_policies.framework import ClusterView, SchedulingQueue

ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclasses.dataclass(slots=True)
class _Member:
    """A cluster.

    Attributes:
        cluster: What its master reported, and what was decided since.
        grower: Its policy.
        offer_s: When it is offered nodes next.
        reclaim_s: When it may be asked for nodes again.
    """

    cluster: Cluster
    grower: Grower
    offer_s: float
    reclaim_s: float = 0.0


class Koala(Controller, Observer):
    """A controller, and the observer that feeds it.

    It dumps nothing: masters report again, and offers begin a new period.

    Args:
        config: The constants.

    Attributes:
        report_every_s: How often masters should report.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._jobs: dict[model.JobId, model.Submitted] = {}
        self._members: dict[model.JobId, _Member] = {}
        self.report_every_s = config.report_every_s

    # Observer

    def observe(self, event: model.Event) -> None:
        """Learn which jobs there are, and what masters report."""
        match event:
            case model.Submitted():
                self._jobs[event.job.id] = event
            case model.Ended():
                self._jobs.pop(event.job, None)
                self._members.pop(event.job, None)
            case model.Progress() if event.job in self._jobs and (cluster := read(event.job, event.counters)):
                self._report(cluster, event.now_s)
            case _:
                pass

    def _report(self, cluster: Cluster, now_s: float) -> None:
        if cluster.name not in self._members:
            kind = self._jobs[cluster.name].job.kind
            policy = grower(Policy(kind) if kind in tuple(Policy) else self._config.policy, self._config)
            self._members[cluster.name] = _Member(cluster, policy, now_s + policy.every_s)
        self._members[cluster.name].cluster = cluster

    # Controller

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Decide what growth and shrinking is due."""
        members = [self._members[name] for name in self._jobs if name in self._members]
        if not members:
            return ()
        workers = [task_class for member in members for task_class in self._jobs[member.cluster.name].classes]
        sizes = [view.axis.vector(task_class.resources) for task_class in workers]
        worker: model.IntVector = np.max(sizes, axis=0)  # the largest of all clusters
        needed = self._needed(queue, worker, view)
        due = [member for member in members if view.now_s >= member.offer_s]
        if not due and not needed:
            return ()
        idle = _idle(worker, view)
        short = needed - idle.total()
        return [*self._offer(due, members, idle, view, needed), *self._reclaim(members, short, view.now_s)]

    def _needed(self, queue: SchedulingQueue, worker: model.IntVector, view: ClusterView) -> int:
        """Return how many nodes submissions wait for, in workers of the largest kind."""
        total = np.zeros(worker.shape)  # not whole numbers: many tasks of the largest size would overflow
        for queued in [queued for name in self._jobs if name not in self._members for queued in queue.classes_of(name)]:
            total += float(queued.pool.count) * view.axis.vector(queued.task_class.resources)
        total[model.PODS] = 0.0
        return int(np.ceil(total[worker > 0] / worker[worker > 0]).max(initial=0))

    def _offer(
        self,
        due: Sequence[_Member],
        members: Sequence[_Member],
        idle: collections.Counter[str],
        view: ClusterView,
        needed: int,
    ) -> Iterator[model.Decision]:
        """Offer their parts of the idle nodes to the clusters that are due; submissions come first."""
        if not due:
            return
        for _ in range(min(needed, idle.total())):
            idle[min(idle, key=lambda site: (-idle[site], site))] -= 1
        sites = {member.cluster: self._sites(member, view) for member in members}
        parts = provider.split(idle, sites, self._config.partition)
        for member in due:
            cluster, policy = member.cluster, member.grower
            member.offer_s = view.now_s + policy.every_s
            nodes = min(policy.most, sum(parts[cluster.name].values()))
            yield from _carried_out(member, policy.unasked(cluster) or policy.offered(cluster, nodes))

    def _sites(self, member: _Member, view: ClusterView) -> frozenset[str]:
        """Return the sites that the constraints of a cluster's workers allow, if it ever takes nodes."""
        if not member.grower.most:
            return frozenset()
        classes = self._jobs[member.cluster.name].classes
        masks = [view.eligibilities.of(task_class.constraints, view.layout).mask for task_class in classes]
        return frozenset(_site(view.nodes[i]) for i in np.flatnonzero(np.logical_or.reduce(masks)).tolist())

    def _reclaim(self, members: Sequence[_Member], short: int, now_s: float) -> Iterator[model.Decision]:
        """Ask clusters for the nodes that submissions are short of."""
        for name, nodes in provider.reclaims(short, [member.cluster for member in members]).items():
            member = self._members[name]
            if now_s >= member.reclaim_s:
                member.reclaim_s = now_s + self._config.reclaim_every_s
                yield from _carried_out(member, member.grower.reclaimed(member.cluster, nodes))


def _carried_out(member: _Member, change: Change | None) -> Iterator[model.Decision]:
    """Yield an answer as a decision; the state follows at once, for the master reports later."""
    if change is None:
        return
    cluster, nodes = member.cluster, change.nodes
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


def _idle(worker: model.IntVector, view: ClusterView) -> collections.Counter[str]:
    """Return the nodes with room for a worker, by site."""
    rows = worker > 0
    fits: model.BoolVector = np.logical_and.reduce(view.free()[rows] >= worker[rows, np.newaxis])
    if view.offered is not None:
        fits &= np.isin(np.arange(len(fits)), view.offered)
    return collections.Counter(_site(view.nodes[i]) for i in np.flatnonzero(fits).tolist())


def _site(node: model.Node) -> str:
    return node.labels.get(ZONE_LABEL, "")
