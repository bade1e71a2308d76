"""Koala's two levels in the cycle: the provider offers and reclaims, each cluster's policy answers (Koala, IV.C).

Clusters are the jobs whose master reports (`master.Counter`). Each is offered its part of the idle nodes every T
seconds of its policy. Jobs that wait for nodes and are no such cluster ("new job submissions") come first: idle nodes
are kept for them, and where those do not suffice clusters are asked to give transient nodes back.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.questions import Observer
from boathouse_policies.koala import master, provider
from boathouse_policies.koala.cluster import Grow, Kind, Shrink
from boathouse_policies.koala.config import Policy
from boathouse_policies.koala.growers import grower

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_policies.framework import ClusterView, SchedulingQueue
    from boathouse_policies.koala.cluster import Answer, Cluster
    from boathouse_policies.koala.config import Config
    from boathouse_policies.koala.growers import Grower

ZONE_LABEL = "topology.kubernetes.io/zone"


@dataclasses.dataclass(slots=True)
class _Member:
    """A job, and what is known of it as a cluster."""

    classes: tuple[model.TaskClass, ...]
    grower: Grower
    cluster: Cluster | None = None
    offer_s: float = math.inf
    reclaim_s: float = 0.0


class Koala(Observer):
    """A controller, and the observer that feeds it.

    It dumps nothing: masters report again, and offers begin a new period.

    Args:
        config: The constants.

    Attributes:
        report_every_s: How often masters should report.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._members: dict[model.JobId, _Member] = {}
        self.report_every_s = config.report_every_s

    # Observer

    def observe(self, event: model.Event) -> None:
        """Jobs come and go; masters report."""
        match event:
            case model.Submitted():
                known = self._members.get(event.job.id)
                if known is None:
                    self._members[event.job.id] = _Member(event.classes, self._grower(event.job))
                else:
                    known.classes = event.classes
            case model.Ended():
                self._members.pop(event.job, None)
            case model.Progress():
                self._reported(event)
            case _:
                pass

    def _grower(self, job: model.Job) -> Grower:
        named = job.kind in tuple(Policy)
        return grower(Policy(job.kind) if named else self._config.policy, self._config)

    def _reported(self, event: model.Progress) -> None:
        member, cluster = self._members.get(event.job), master.read(event.job, event.counters)
        if member is None or cluster is None:
            return
        if member.cluster is None:
            member.offer_s = event.now_s + member.grower.every_s
        member.cluster = cluster

    # Controller

    def advise(self, queue: SchedulingQueue, view: ClusterView) -> Sequence[model.Decision]:
        """Growth and shrinking that are due."""
        clusters = {name: one for name, one in self._members.items() if one.cluster is not None}
        if not clusters:
            return ()
        needed = self._needed(queue, view)
        offered_to = [name for name, one in clusters.items() if view.now_s >= one.offer_s]
        decisions = [*self._offer(offered_to, view, needed)]
        if needed:
            decisions += self._reclaim(clusters, view, needed)
        return decisions

    def _needed(self, queue: SchedulingQueue, view: ClusterView) -> int:
        """Nodes that submissions wait for, in workers of the largest kind."""
        worker = self._worker(view)
        total = np.zeros(worker.shape)  # not whole numbers: many tasks of the largest size would overflow
        for name, member in self._members.items():
            if member.cluster is None:
                for one in queue.classes_of(name):
                    total += float(one.pool.count) * view.axis.vector(one.task_class.resources, pods=0)
        return int(np.ceil(total[worker > 0] / worker[worker > 0]).max(initial=0))

    def _worker(self, view: ClusterView) -> model.IntVector:
        """The largest worker of all clusters, shape [R]."""
        sizes = [
            view.axis.vector(one.resources)
            for member in self._members.values()
            if member.cluster is not None
            for one in member.classes
        ]
        largest: model.IntVector = np.max(sizes, axis=0)
        return largest

    def _offer(self, names: Sequence[model.JobId], view: ClusterView, needed: int) -> Sequence[model.Decision]:
        if not names:
            return ()
        idle, claimants = self._idle(view), self._claimants(view)
        _reserve(idle, needed)
        parts = provider.split(idle, claimants, self._config.partition)
        decisions: list[model.Decision] = []
        for name in names:
            member = self._members[name]
            member.offer_s = view.now_s + member.grower.every_s
            assert member.cluster is not None
            answer: Answer = member.grower.unasked(member.cluster)
            if not isinstance(answer, Shrink):
                nodes = min(member.grower.most, sum(parts[name].values()))
                answer = member.grower.offered(member.cluster, nodes)
            decisions += self._carried_out(member, answer)
        return decisions

    def _reclaim(
        self, clusters: Mapping[model.JobId, _Member], view: ClusterView, needed: int
    ) -> Sequence[model.Decision]:
        short = needed - sum(self._idle(view).values())
        asked = provider.reclaims(short, [one.cluster for one in clusters.values() if one.cluster is not None])
        decisions: list[model.Decision] = []
        for name, nodes in asked.items():
            member = clusters[name]
            if member.cluster is not None and view.now_s >= member.reclaim_s:
                member.reclaim_s = view.now_s + self._config.reclaim_every_s
                decisions += self._carried_out(member, member.grower.reclaimed(member.cluster, nodes))
        return decisions

    def _carried_out(self, member: _Member, answer: Answer) -> Sequence[model.Decision]:
        """As a decision; the state follows at once, for the master reports later."""
        cluster = member.cluster
        assert cluster is not None
        if isinstance(answer, Grow):
            member.cluster = dataclasses.replace(cluster, pending=cluster.pending + answer.nodes)
            stores = answer.kind is Kind.CORE
            workers = cluster.nodes + answer.nodes
            return (model.Scale(job=cluster.name, workers=workers, stores=stores, reason=answer.reason),)
        if isinstance(answer, Shrink):
            member.cluster = dataclasses.replace(
                cluster,
                transient=cluster.transient - answer.nodes,
                leaving=cluster.leaving + answer.nodes,
                slots=cluster.slots - answer.nodes * cluster.node_slots,
            )
            return (model.Scale(job=cluster.name, workers=cluster.nodes - answer.nodes, reason=answer.reason),)
        return ()

    # Nodes

    def _idle(self, view: ClusterView) -> dict[str, int]:
        """Nodes with room for a worker, by site."""
        worker = self._worker(view)
        rows = worker > 0
        fits: model.BoolVector = np.logical_and.reduce(view.free()[rows] >= worker[rows, np.newaxis])
        if view.offered is not None:
            fits = fits & view.offered
        found: dict[str, int] = {}
        for node, fit in zip(view.nodes, fits.tolist(), strict=True):
            site = _site(node)
            found[site] = found.get(site, 0) + fit
        return found

    def _claimants(self, view: ClusterView) -> Sequence[provider.Claimant]:
        """All clusters with the sites that their constraints allow; none for those that take no offers."""
        return [
            provider.Claimant(
                cluster=member.cluster, sites=self._sites(member, view) if member.grower.most else frozenset()
            )
            for member in self._members.values()
            if member.cluster is not None
        ]

    @staticmethod
    def _sites(member: _Member, view: ClusterView) -> frozenset[str]:
        allowed = np.logical_or.reduce(
            [view.eligibilities.of(one.constraints, view.layout).mask for one in member.classes]
        )
        return frozenset(_site(view.nodes[i]) for i in np.flatnonzero(allowed).tolist())


def _site(node: model.Node) -> str:
    return node.labels.get(ZONE_LABEL, "")


def _reserve(idle: dict[str, int], needed: int) -> None:
    """Take nodes that submissions wait for out of what is offered, from the sites that have most."""
    for _ in range(min(needed, sum(idle.values()))):
        site = min(idle, key=lambda one: (-idle[one], one))
        idle[site] -= 1
