"""Carries a plan out: a queue of decisions, workers that write them, and the bookkeeping of what came of each."""

import asyncio
import collections
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, assert_never

from boathouse import fair
from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.scheduling import jobs, observed, outcomes, pod_conditions, writer
from boathouse.scheduling.pods import translate
from boathouse.scheduling.tenants import refusals
from boathouse.scheduling.volumes import book as volume_book
from boathouse.scheduling.volumes import writer as volume_writer
from boathouse.telemetry import logs, metrics
from boathouse_policies import framework, model

log = logs.get(__name__)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """Make the pod of a task that waits, without a node, so that others see what is missing."""

    task: model.Task
    task_class: model.TaskClass


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Parked:
    """A placement whose volumes are being bound, by others, who may take minutes: no worker waits for them."""

    work: model.Placement
    awaits: volume_writer.Awaits
    decided_at: float
    until_s: float


Work: TypeAlias = model.Create | model.Bind | Ahead
VOLUMES_BOUND_WITHIN_S = 600.0
"""As kube-scheduler's bindTimeoutSeconds."""
OUTDATED = "Outdated"
"""Why a decision is refused that others were faster than: its pod, node or job went or has changed."""
SLOW_START = 2
"""How many writes of a namespace may be in flight at first: more as they succeed."""
Refused = Callable[[model.Decision, str], None]
"""Told of a decision that will not be carried out, and why in a word."""
Trouble = Callable[[model.JobId, pod_conditions.PendingReason | None], None]
"""Told what the API server refused of a job, or None when a write of it went through."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the carrier works on; all of it is the scheduler's own."""

    axis: model.Axis
    ledger: framework.Ledger
    queue: framework.SchedulingQueue
    seen: observed.Observed
    jobs: jobs.Jobs
    writer: writer.Writer
    pod_conditions: pod_conditions.PodConditions
    volumes: volume_book.VolumeBook
    volume_writer: volume_writer.VolumeWriter
    counters: metrics.SchedulerMetrics
    clock: Callable[[], float]


class Carrier:
    """Writes decisions that are assumed already, several at a time, of several namespaces in turn.

    Attributes:
        unconfirmed: Placed tasks that no watch has shown yet, and since when.
        making_ahead: Tasks whose pod is being made without a node.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        workers: int,
        on_fenced: Callable[[str], None],
        on_trouble: Trouble,
        on_progress: Callable[[], None],
        on_unprovisioned: Callable[[model.ClassId, model.NodeName], object],
        on_refused: Refused,
    ) -> None:
        self.unconfirmed: dict[model.TaskId, float] = {}
        self.making_ahead: set[model.TaskId] = set()
        self._parts = parts
        self._on_fenced = on_fenced
        self._on_trouble = on_trouble
        self._on_progress = on_progress
        self._on_unprovisioned = on_unprovisioned
        self._on_refused = on_refused
        self._parked: dict[model.TaskId, _Parked] = {}
        self._queue: fair.FairQueue[tuple[Work, float]] = fair.FairQueue(workers, slow_start=SLOW_START)
        self._may_start = asyncio.Event()
        self._writing: list[model.TaskId] = []  # a task may be in it twice: when its pod or its node went meanwhile
        self._failures: collections.Counter[model.TaskId] = collections.Counter()

    def add(self, work: Work) -> None:
        """Queue a decision; a placement must have been assumed."""
        if isinstance(work, Ahead):
            self.making_ahead.add(work.task.id)
        self._parked.pop(work.task.id, None)
        self._enqueue(work, time.perf_counter())

    def _enqueue(self, work: Work, decided_at: float) -> None:
        self._queue.put(jobs.namespace_of(work.task.id), (work, decided_at))
        self._may_start.set()

    @property
    def backlog(self) -> int:
        """Decisions whose write has not begun."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is queued and no write is under way."""
        return not self._queue and not self._writing

    def is_writing(self, task: model.TaskId) -> bool:
        """Say whether a write for a task is under way."""
        return task in self._writing

    def in_flight(self) -> Iterator[model.TaskId]:
        """Yield the tasks whose pod is being written, or was written and not observed yet."""
        return itertools.chain(self._writing, self.making_ahead, self.unconfirmed)

    def forget(self, task: model.TaskId) -> None:
        """The watch showed the task's pod, or its end: it is confirmed."""
        self.unconfirmed.pop(task, None)
        self._parked.pop(task, None)
        self._parts.volumes.forget(task)

    @property
    def awaits_volumes(self) -> int:
        """Placements whose volumes are being bound."""
        return len(self._parked)

    def check_volumes(self) -> None:
        """Go on with the pods whose volumes are bound by now, and give up those whose cannot be."""
        now_s = self._parts.clock()
        for task, parked in list(self._parked.items()):
            promise = self._parts.volumes.promised(task)
            bound = promise is not None and self._parts.volume_writer.is_bound(promise)
            if promise is None or bound:
                del self._parked[task]
                self._enqueue(parked.work, parked.decided_at)
                continue
            failed = self._parts.volume_writer.failure(promise, parked.awaits.revisions)
            if failed is None and now_s >= parked.until_s:
                message = f"the volumes of {', '.join(promise.claims)} were not bound in {VOLUMES_BOUND_WITHIN_S:.0f} s"
                failed = outcomes.NotDone(reason=volume_writer.TIMED_OUT, message=message)
            if failed is not None:
                del self._parked[task]
                self._on_unprovisioned(parked.work.task_class.id, parked.work.node)
                self._settle(parked.work, failed, time.perf_counter() - parked.decided_at)
                self._on_progress()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._may_start.clear()
                while (taken := self._queue.take()) is not None:
                    namespace, (work, decided_at) = taken
                    self._writing.append(work.task.id)
                    group.create_task(self._work(namespace, work, decided_at))
                await self._may_start.wait()

    async def _work(self, namespace: str, work: Work, decided_at: float) -> None:
        succeeded = None
        try:
            try:
                outcome = await self._carry_out(work)
            finally:
                self._writing.remove(work.task.id)
            if isinstance(outcome, volume_writer.Awaits):
                self._park(work, outcome, decided_at)
            else:
                succeeded = _news(outcome)
                self._settle(work, outcome, time.perf_counter() - decided_at)
        finally:
            self._queue.done(namespace, succeeded=succeeded)
            self._may_start.set()
        self._on_progress()

    def _park(self, work: Work, awaits: volume_writer.Awaits, decided_at: float) -> None:
        assert not isinstance(work, Ahead)
        if not self._is_current(work):
            return  # what was decided since is under way, or parked in this one's place
        until_s = self._parts.clock() + VOLUMES_BOUND_WITHIN_S
        self._parked[work.task.id] = _Parked(work=work, awaits=awaits, decided_at=decided_at, until_s=until_s)
        self.check_volumes()  # they may have been bound while the last write was answered

    # Writing

    async def _carry_out(self, work: Work) -> outcomes.Outcome | volume_writer.Awaits:
        if isinstance(work, model.Bind):
            await self._parts.pod_conditions.write_deferred(work.task.pod_uid or "")
        if not self._makes_sense(work):
            return outcomes.Skipped()
        if not isinstance(work, Ahead) and work.task_class.constraints.claims:
            promise = self._parts.volumes.promised(work.task.id)
            if promise is None or promise.node != work.node:
                return outcomes.Skipped()
            if (so_far := await self._parts.volume_writer.prepare(promise)) is not None:
                return so_far
        match work:
            case model.Create():
                return await self._create(work.task.id, work.resources, work.node)
            case Ahead():
                return await self._create(work.task.id, work.task_class.resources, None)
            case model.Bind():
                return await self._bind(work)
            case _:
                assert_never(work)

    async def _create(
        self, task: model.TaskId, resources: model.Resources, node: model.NodeName | None
    ) -> outcomes.Outcome:
        manifest = self._build(task, resources, node)
        if isinstance(manifest, outcomes.NotDone):
            return manifest
        return await self._parts.writer.create(writer.Target(task=task, node=node), manifest)

    async def _bind(self, work: model.Bind) -> outcomes.Outcome:
        target = writer.Target(task=work.task.id, node=work.node, uid=work.task.pod_uid)
        entry = self._parts.jobs.entry_of(work.task.id)
        if work.resources != work.task_class.resources and entry is not None and entry.factory is not None:
            manifest = self._build(work.task.id, work.resources, None)
            if isinstance(manifest, outcomes.NotDone):
                return manifest
            sizes = {one["name"]: one["resources"] for one in manifest["spec"]["containers"]}
            resized = await self._parts.writer.resize(target, sizes)
            if not isinstance(resized, outcomes.Done | outcomes.Elsewhere):
                return resized
            return await self._parts.writer.bind(target, _sized(manifest))
        return await self._parts.writer.bind(target)

    def _build(
        self, task: model.TaskId, resources: model.Resources, node: model.NodeName | None
    ) -> dict[str, Any] | outcomes.NotDone:
        """Have the pod made, and see that it asks for no more than was decided."""
        entry = self._parts.jobs.entry_of(task)
        if entry is None or entry.factory is None:
            return outcomes.NotDone(reason="JobGone", message="the job of the task no longer exists")
        try:
            manifest = entry.factory.build(task, resources, node)
            asked = translate.manifest_resources(manifest)
        except Exception as error:  # one job's pods must not stop all others
            log.exception("a pod could not be built", pod=task, job=entry.job.name)
            return outcomes.NotDone(reason="PodInvalid", message=f"the pod could not be built: {error}", at_least_s=10)
        if not resources.covers(asked):
            log.error(
                "a pod requests more than the scheduler decided", pod=task, decided=str(resources), asked=str(asked)
            )
            message = f"the pod requests {asked}, but the scheduler decided {resources}"
            return outcomes.NotDone(reason="PodInvalid", message=message, at_least_s=10)
        return manifest

    def _makes_sense(self, work: Work) -> bool:
        """Look again just before the write: others may have taken the node, or the job may be gone."""
        parts, task = self._parts, work.task.id
        if parts.jobs.entry_of(task) is None or parts.jobs.hold_of(task) is not None:
            return False  # its job is gone, or its namespace was refused a pod since
        if isinstance(work, Ahead):
            return task not in parts.ledger and task not in parts.seen.waiting
        account = parts.ledger.account(task)
        if account is None or account.node != work.node or task in self.making_ahead:
            return False  # its node went, or it was decided anew, or its pod is just being made
        if parts.ledger.state(task) is not framework.State.ASSUMED:
            return False
        if isinstance(work, model.Bind):
            pod = parts.seen.waiting.get(task)
            if pod is None or pod.metadata.uid != work.task.pod_uid or not jobs.may_be_bound(pod):
                return False
        return self._still_fits(work)

    def _still_fits(self, work: model.Placement) -> bool:
        wanted = self._parts.axis.amounts(work.resources)
        free = self._parts.ledger.free(work.node)
        node = self._parts.seen.nodes.get(work.node)
        if free is None or node is None:
            return False
        return all(left >= 0 for left, amount in zip(free, wanted, strict=False) if amount)

    # Bookkeeping

    def _settle(self, work: Work, outcome: outcomes.Outcome, duration_s: float) -> None:
        task = work.task.id
        if isinstance(work, Ahead):
            self.making_ahead.discard(task)
            self._parts.jobs.mark_changed(task)  # a placement may have been given up in its favour
        match outcome:
            case outcomes.Done():
                self._done(work, outcome.pod, duration_s)
            case outcomes.NotDone():
                self._release(work, outcome.reason)
                self._again(work, outcome)
                self._parts.counters.attempt("error", duration_s)
            case outcomes.Elsewhere():
                self._release(work, "PodElsewhere")
                self._elsewhere(task, outcome.pod)
            case outcomes.Vanished():
                self._release(work, "PodGone")
                self._vanished(work)
            case outcomes.NameTaken():
                self._release(work, "NameTaken")
                self._again(work, _name_taken(outcome.pod))
            case outcomes.Skipped():
                self._release(work, OUTDATED)
                if task not in self.making_ahead:
                    self._parts.jobs.mark_changed(task)
            case outcomes.Fenced():
                self._on_fenced(outcome.message)
            case _:
                assert_never(outcome)

    def _done(self, work: Work, pod: wire.PodView | None, duration_s: float) -> None:
        parts, task = self._parts, work.task.id
        entry = parts.jobs.entry_of(task)
        if entry is not None:
            self._on_trouble(entry.job.id, None)
            parts.jobs.refused.succeeded(_subject(work, entry))
        if isinstance(work, Ahead):
            assert pod is not None
            parts.seen.answered(pod)
            return
        parts.queue.succeeded(task)
        if work.task_class.constraints.claims and self._is_current(work):
            parts.volumes.forget(task)
        parts.counters.attempt("scheduled", duration_s)
        parts.counters.pod_attempts.observe(self._failures.pop(task, 0) + 1)
        if (waited_s := parts.jobs.waited_s(task)) is not None:
            parts.counters.pod_sli_s.observe(waited_s)
        if parts.ledger.state(task) is framework.State.ASSUMED:
            self.unconfirmed[task] = parts.clock()
        parts.pod_conditions.scheduled(
            task, pod.metadata.uid if pod is not None else work.task.pod_uid or "", work.node
        )

    def _elsewhere(self, task: model.TaskId, pod: wire.PodView) -> None:
        if pod.spec.node_name:
            self.unconfirmed[task] = self._parts.clock()
        self._parts.seen.answered(pod)
        self._parts.jobs.mark_changed(task)

    def _vanished(self, work: Work) -> None:
        task = work.task.id
        waiting = self._parts.seen.waiting.get(task)
        if waiting is None or waiting.metadata.uid == work.task.pod_uid:  # else it is another's turn: a new pod's
            self._parts.seen.waiting.pop(task, None)
            self._parts.jobs.end(task, waited=True)

    def _is_current(self, work: Work) -> bool:
        """Say whether what is assumed is this decision: a task may be decided anew when its pod or its node went."""
        if isinstance(work, Ahead):
            return False
        account = self._parts.ledger.account(work.task.id)
        return account is None or (account.node, account.uid) == (work.node, work.task.pod_uid)

    def _release(self, work: Work, why: str) -> None:
        """Take back what was assumed, and say so, unless the pod runs on the node all the same."""
        task = work.task.id
        known = self._parts.ledger.account(task)
        is_there = self._parts.ledger.state(task) is framework.State.CONFIRMED
        if not isinstance(work, Ahead) and not (is_there and known is not None and known.node == work.node):
            self._on_refused(work, why)
        if not self._is_current(work):
            return
        freed = self._parts.ledger.forget(task)
        self._parts.volumes.forget(task)
        if task not in self._parts.ledger:
            self._parts.seen.mounts.remove(task)
        if freed is not None:
            self._parts.queue.capacity_freed(freed, self._parts.ledger.free(freed.node))

    def _again(self, work: Work, why: outcomes.NotDone) -> None:
        task, task_class = work.task.id, work.task_class.id
        entry = self._parts.jobs.entry_of(task)
        if entry is None or task in self._parts.ledger:
            return
        self._failures[task] += 1
        self._on_trouble(entry.job.id, pod_conditions.PendingReason(reason=why.reason, message=why.message))
        log.warning("a pod was not scheduled", pod=task, job=entry.job.name, reason=why.reason, error=why.message)
        if self._parts.jobs.refused.refused(_subject(work, entry), why):
            return  # the task is held back with others, and waits again with them
        now_s = self._parts.clock()
        if not self._parts.queue.back_off(task, task_class, now_s, at_least_s=why.at_least_s):
            self._parts.jobs.mark_changed(task)  # the job was submitted again while the write was in flight
            self._parts.jobs.sync()
            self._parts.queue.back_off(task, task_class, now_s, at_least_s=why.at_least_s)

    def stale(self, age_s: float) -> Iterator[model.TaskId]:
        """Yield tasks that were placed so long ago, and that no watch has shown."""
        limit_s = self._parts.clock() - age_s
        return (task for task, since_s in list(self.unconfirmed.items()) if since_s <= limit_s)


def _subject(work: Work, entry: jobs.Entry) -> refusals.Subject:
    return refusals.Subject(
        verb=refusals.Verb.BIND if isinstance(work, model.Bind) else refusals.Verb.CREATE,
        namespace=entry.namespace,
        job=entry.job.id,
        task_class=work.task_class.id,
        task=work.task.id,
    )


def _news(outcome: outcomes.Outcome) -> bool | None:
    """Return what an outcome says of the namespace's next writes: taken, refused, or nothing."""
    match outcome:
        case outcomes.Done():
            return True
        case outcomes.NotDone() | outcomes.NameTaken():
            return False
        case _:
            return None


def _sized(manifest: dict[str, Any]) -> dict[str, str]:
    """What the pod of this size says of it."""
    annotations: dict[str, str] = manifest["metadata"].get("annotations", {})
    said = (names.ANNOTATION_IDEAL_MEMORY, names.ANNOTATION_DECISION)
    return {key: annotations[key] for key in said if key in annotations}


def _name_taken(pod: wire.PodView) -> outcomes.NotDone:
    owner = pod.metadata.controller
    whose = f"{owner.kind} {owner.name}" if owner is not None else "nobody"
    message = f"a pod {pod.metadata.key} that belongs to {whose} has the task's name: delete it"
    return outcomes.NotDone(reason="NameTaken", message=message, at_least_s=outcomes.QUOTA_BACKOFF_S)
