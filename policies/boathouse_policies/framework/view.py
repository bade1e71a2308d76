"""What one cycle sees of the cluster."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.framework.accounts import Share
    from boathouse_policies.framework.eligibility import Eligibilities
    from boathouse_policies.framework.layout import Layout
    from boathouse_policies.framework.sums import Held


@dataclasses.dataclass(slots=True, kw_only=True, eq=False)  # not frozen: that costs more than all else of a snapshot
class ClusterView:
    """A snapshot of the ledger, made by `Ledger.snapshot`: nobody changes it.

    Attributes:
        now_s: The only time that a policy knows.
        axis: Which row is which resource.
        layout: The nodes and what they have.
        held: What nodes, jobs, queues and the namespaces in them hold.
        by_class: Placed tasks of each class that starts together with others.
        host_ports: Ports taken on a node.
        eligibilities: Static masks.
        offered: Nodes that this cycle may use, shape [N]; None for all.
        max_per_node: Most tasks that this cycle may place on one node; None for no bound.
        serial: Number of this snapshot.
    """

    now_s: float
    axis: model.Axis
    layout: Layout
    held: Held
    by_class: Mapping[model.ClassId, int]
    host_ports: Mapping[model.NodeName, tuple[model.HostPort, ...]]
    eligibilities: Eligibilities
    offered: model.BoolVector | None = None
    max_per_node: int | None = None
    serial: int = 0

    @property
    def nodes(self) -> tuple[model.Node, ...]:
        """The nodes, in the order of every column."""
        return self.layout.nodes

    @property
    def requested(self) -> model.IntMatrix:
        """What all pods of all schedulers take, assumed ones too, shape [R, N], read-only."""
        return self.held.requested()

    @property
    def by_job(self) -> Mapping[model.JobId, model.IntVector]:
        """What each job holds, shape [R] each."""
        return self.held.jobs.arrays()

    @property
    def by_queue(self) -> Mapping[model.QueueName, model.IntVector]:
        """What each queue's jobs hold, shape [R] each."""
        return self.held.queues()

    @property
    def by_share(self) -> Mapping[Share, model.IntVector]:
        """What each namespace's jobs hold of a queue, shape [R] each."""
        return self.held.shares.arrays()

    def free(self) -> model.IntMatrix:
        """Allocatable minus requested, shape [R, N]; below zero where a node is over-committed. A new array."""
        return self.layout.allocatable - self.requested

    def job_usage(self, job: model.JobId) -> model.IntVector:
        """What a job holds, shape [R]."""
        return self._padded(self.by_job.get(job))

    def held_by(self, job: model.JobId) -> model.Amounts:
        """The same as plain numbers, as far as there is something."""
        return self.held.jobs.plain.get(job, _NOTHING)

    def queue_usage(self, queue: model.QueueName) -> model.IntVector:
        """What a queue's jobs hold, shape [R]."""
        return self._padded(self.by_queue.get(queue))

    def queue_held(self, queue: model.QueueName) -> model.Amounts:
        """What a queue's jobs hold, as plain numbers, as far as there is something."""
        usage = self.by_queue.get(queue)
        return _NOTHING if usage is None else tuple(usage.tolist())

    def held_in(self, share: Share) -> model.Amounts:
        """What a namespace's jobs hold of a queue, as plain numbers, as far as there is something."""
        return self.held.shares.plain.get(share, _NOTHING)

    def _padded(self, vector: model.IntVector | None) -> model.IntVector:
        width = len(self.layout.allocatable)
        if vector is None:
            return np.zeros(width, np.int64)
        return vector if len(vector) == width else np.pad(vector, (0, width - len(vector)))


_NOTHING = (0,) * (model.PODS + 1)
