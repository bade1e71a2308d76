"""Connect clusters with the policy that resizes them (Koala).

The policy gets a cluster's load as progress of its master, and decides how many nodes the cluster keeps. A decision is
kept until a plan has used it. It is lost with the process, and the policy decides again.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from boathouse.scheduling import adjuster
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.pod_events import Publisher
from boathouse.services.mrcluster.planning.observation import Target
from boathouse_policies import framework, koala, model

NOT_READY: Final = "NotReady"
LEAVING: Final = "Leaving"
AT_MAXIMUM: Final = "AtMaximum"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A cluster as the policies know it, with how many tasks of each class are not placed; it grows by `worker`."""

    job: model.Job
    classes: tuple[model.TaskClass, ...]
    worker: model.ClassId
    tasks: Mapping[model.ClassId, int]
    constants: koala.Config


@dataclasses.dataclass(slots=True)
class _Entry:
    """A cluster: what its policy was told last, where its master then was, and a decision that no plan has used.

    The load is None while the cluster cannot be resized.
    """

    submission: Submission
    load: koala.Cluster | None = None
    node: model.NodeName = model.NodeName("")  # noqa: RUF009 - a text
    target: Target | None = None


class Scaling:
    """Informs the policies about all clusters of this process, and keeps their decisions."""

    def __init__(
        self,
        profile: framework.Profile,
        observers: Sequence[framework.Observer],
        now: Callable[[], float],
        mark: Callable[[ObjectUid], None],
    ) -> None:
        self._koala, self._publisher, self._mark = koala.of(profile), Publisher(observers, now), mark
        self._entries: dict[ObjectUid, _Entry] = {}

    def submit(self, uid: ObjectUid, submission: Submission) -> None:
        """Publish a cluster if it is new or has changed."""
        entry, job = self._entries.get(uid), submission.job
        if entry is not None and entry.submission == submission:
            return
        self._entries.setdefault(uid, _Entry(submission)).submission = submission
        if self._koala is not None:
            self._koala.terms[job.id] = koala.Terms(config=submission.constants, worker=submission.worker)
        self._publisher.submitted(job, submission.classes, submission.tasks)

    def report(self, uid: ObjectUid, load: koala.Cluster | None, *, master: model.TaskId, node: str | None) -> None:
        """Publish the load of a cluster, once for each report of its agent; None: it cannot be resized now."""
        entry = self._entries.get(uid)
        if entry is None:
            return
        former, entry.load = entry.load, load if node else None
        if entry.load is not None:
            entry.node = model.NodeName(node or "")
            self._publish_load(entry, master, entry.load)
            return
        entry.target = None
        if former is not None:
            # it takes part in no offer, and gives nothing back: else idle nodes would be set apart for it
            kept, nodes = former.transient_nodes, former.nodes
            at_rest = dataclasses.replace(former, most_nodes=nodes, least_transient_nodes=kept)
            self._publish_load(entry, master, at_rest)

    def _publish_load(self, entry: _Entry, master: model.TaskId, load: koala.Cluster) -> None:
        progress = model.Progress(
            now_s=self._publisher.now(),
            task=master,
            task_class=entry.submission.classes[0].id,
            job=entry.submission.job.id,
            node=entry.node,
            fraction=0.0,
            phase="cluster",
            counters=load.counters(),
        )
        self._publisher.publish(progress)

    def take(self, decision: model.Scale) -> str:
        """Keep a decision for the next plan of the cluster; return why not, or an empty text."""
        uid = ObjectUid(decision.job)
        entry = self._entries.get(uid)
        if entry is None:
            return adjuster.NO_CLUSTER
        if entry.load is None:
            return NOT_READY
        change = decision.workers - entry.load.nodes
        if change < 0 and entry.load.leaving_nodes >= entry.submission.constants.shrink_by:
            return LEAVING
        if change > 0 and not entry.load.growth:
            return AT_MAXIMUM
        offer = self._koala.explain(decision.job) if self._koala else ""
        reason = f"{decision.reason}; {offer}" if offer and change > 0 else decision.reason
        entry.target = Target(nodes=decision.workers, stores=decision.stores, reason=reason, offer=change)
        self._mark(uid)
        return ""

    def target(self, uid: ObjectUid) -> Target | None:
        """Return the decision about a cluster that no plan has used."""
        entry = self._entries.get(uid)
        return entry.target if entry else None

    def use(self, uid: ObjectUid, target: Target | None) -> None:
        """Drop a decision that a written plan has used; a later one is kept."""
        entry = self._entries.get(uid)
        if entry is not None and entry.target is target:
            entry.target = None

    def end(self, uid: ObjectUid, *, succeeded: bool) -> None:
        """Publish the end of a cluster, if it was published before."""
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._publisher.ended(entry.submission.job.id, succeeded=succeeded)
