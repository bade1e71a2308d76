"""Carries out what the planner wants of one job.

The order is the planner's: plan ConfigMaps, status, deletions, scheduler. A status that changed in figures only is
written at most once a second; what must not happen before it is written (deletions) waits with it.
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Final

from boathouse import failpoints
from boathouse.cluster import boundary, catalogue, client, errors
from boathouse.cluster import events as event_writer
from boathouse.cluster.wire import ObjectMeta
from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.resources.mrjob import steps as mrjob_steps
from boathouse.services.frame import tolerant
from boathouse.services.frame.kind import Body, Refusal, is_deleted, namespace_of, revision
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.frame.related_objects import RelatedObjects
from boathouse.services.frame.status_writer import StatusMemory, StatusWriter, stripped
from boathouse.services.frame.writes import NotLeading, Writes
from boathouse.services.mrjob import files, metrics
from boathouse.services.mrjob.announcer import Announcer
from boathouse.services.mrjob.attempts import settle
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod, AttemptState
from boathouse.services.mrjob.definition import MRJOB
from boathouse.services.mrjob.job import model
from boathouse.services.mrjob.job.model import Job, JobUid
from boathouse.services.mrjob.kind import PodScheduler, TrustBundle
from boathouse.services.mrjob.placement import pod_builder, submission
from boathouse.services.mrjob.planning import cleanup, planner, steps
from boathouse.services.mrjob.planning.observation import Observation, Timeouts, Waiting
from boathouse.services.mrjob.planning.planner import Desired
from boathouse.services.mrjob.podindex import PodIndex
from boathouse.services.mrjob.policy_events import PolicyEvents
from boathouse.services.mrjob.progress.task_messages import TaskMessages
from boathouse.services.mrjob.shares import Shares
from boathouse.services.mrjob.splits.shards import StoredPlan
from boathouse.services.mrjob.splits.split_plans import Plans
from boathouse.services.mrjob.state import conditions, job_state, progress
from boathouse.services.mrjob.state.job_state import JobState
from boathouse.telemetry import logs
from boathouse_policies import model as policy
from boathouse_policies import run_times

_log = logs.get(__name__)

RETRIES_DISTANCE_S: Final = 1.0
"""How often a job asks for its share of retries: with each of them for all that came meanwhile."""
PENDING_REQUEUE_S: Final = 2.0
"""How often a job that waits is asked why."""
RUNNING_REQUEUE_S: Final = 10.0
"""How often the progress of tasks that run is taken into the status."""
RESUBMIT_S: Final = 60.0
"""How often the scheduler is told again what waits, though there is no news."""
RESYNC_S: Final = 300.0
CONFLICTS_AT_ONCE: Final = 1
"""So many conflicts in a row are looked at again at once: most are races with somebody else's one write."""
MAX_REQUEUE_S: Final = 3600.0
"""A look that is due later is asked for again, so that a changed clock or spec does not matter."""


@dataclasses.dataclass(slots=True)
class _Memory(StatusMemory[JobState]):
    """What this process knows of a job beyond its status; losing it costs nothing but work.

    Attributes:
        granted: Attempts that wait, and for which the namespace's share of retries was used.
        failed_s: When tasks failed lately.
    """

    submitted: "_Submitted | None" = None
    revision: int = 0
    granted: frozenset[settle.Attempt] = frozenset()
    failed_s: dict[str, float] = dataclasses.field(default_factory=dict)

    def note_failures(self, failures: Sequence[mrjob_status.TaskFailure], now_s: float) -> None:
        """Remember when tasks failed: a pod that is deleted takes the time of its end with it."""
        self.failed_s = {task: at_s for task, at_s in self.failed_s.items() if now_s - at_s < settle.MAX_BACKOFF_S}
        self.failed_s |= {failure.task: now_s for failure in failures}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Submitted:
    """What the scheduler was told of a job.

    Attributes:
        unplaced: UIDs of its pods without a node.
    """

    job: Job
    classes: tuple[policy.TaskClass, ...]
    waiting: frozenset[settle.Attempt]
    unplaced: frozenset[str]
    at_s: float

    def covers(self, now: "_Submitted", placed: Sequence[AttemptPod]) -> bool:
        """Whether there is no news: what waits no more is what was placed since, and that the scheduler knows."""
        if (self.job, self.classes, self.unplaced) != (now.job, now.classes, now.unplaced):
            return False
        age_s = now.at_s - self.at_s
        if (now.unplaced and age_s >= RUNNING_REQUEUE_S) or (now.waiting and age_s >= RESUBMIT_S):
            return False
        if now.waiting - self.waiting:
            return False
        known = {(pod.step, pod.task_type, pod.index, pod.attempt) for pod in placed if pod.node is not None}
        gone = self.waiting - now.waiting
        return all((each.step, each.task_type, each.index, each.number) in known for each in gone)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the reconciler works with.

    Attributes:
        learner: knows how long tasks take.
        feed: tells the profile's observers what happens.
        may_lead: whether this process is still the leader; asked before every write.
        now: epoch seconds.
        monotonic: seconds that only grow.
    """

    api: client.ApiClient
    jobs: ObjectStore
    pod_index: PodIndex
    plans: Plans
    scheduler: PodScheduler
    task_messages: TaskMessages
    bundle: TrustBundle
    events: event_writer.EventWriter
    metrics: metrics.JobMetrics
    config: OperatorConfig
    pod_settings: pod_builder.PodSettings
    may_lead: Callable[[], bool]
    learner: run_times.Learner = dataclasses.field(default_factory=run_times.Learner)
    policy_events: PolicyEvents = dataclasses.field(
        default_factory=lambda: PolicyEvents((), run_times.Learner(), time.time)
    )
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    aside: boundary.Boundary = dataclasses.field(default_factory=boundary.Boundary)


class Reconciler:
    """One look at a time at one job.

    Attributes:
        shares: What each namespace may cost.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._memories: dict[str, _Memory] = {}
        self._uids: dict[str, JobUid] = {}
        self._conflicts: dict[str, int] = {}
        self._writes = Writes(kind=MRJOB, api=parts.api, objects=parts.jobs, may_lead=parts.may_lead)
        self._announcer = Announcer(parts.events, parts.metrics)
        self.shares = Shares(parts.config.tenant_limits, parts.monotonic)
        self._status_writer: StatusWriter[JobState] = StatusWriter(
            job_state,
            self._writes,
            self.shares.statuses,
            on_refused=self._announcer.refused_status,
            clock=parts.monotonic,
        )
        self._related_objects = RelatedObjects(parts.api, parts.monotonic)

    async def reconcile(self, key: str) -> float | None:
        """Look at a job and do what it needs; returns when to look again, in seconds.

        Raises:
            errors.ClusterError: The API server could not be read or written; look again later.
            NotLeading: Another process leads (`writes`).
        """
        body = self._parts.jobs.get(key)
        memory = self._memories.get(key)
        if body is None or self._uids.get(key, body["metadata"]["uid"]) != body["metadata"]["uid"]:
            self._forget(key)
            memory = None
        if body is None or (is_deleted(body) and not MRJOB.has_finalizer(body)):
            self._forget(key)
            return None
        try:
            again_s = await self._reconcile_object(key, body, memory)
        except (errors.Conflict, errors.NotFound) as error:
            found = await self._read_again(key)
            if found is None:
                _log.info("the job is gone", job=key)
                self._forget(key)
                return None
            if isinstance(error, errors.NotFound) and found["metadata"]["uid"] == body["metadata"]["uid"]:
                raise  # it is something else that is not there
            conflicts = self._conflicts[key] = self._conflicts.get(key, 0) + 1
            if conflicts > CONFLICTS_AT_ONCE:
                raise  # not a race: somebody writes all the time, and is left alone for longer and longer
            return 0.0
        except (errors.Forbidden, errors.Invalid) as error:  # a quota, a policy: what people can correct
            self._announcer.refused_write(key, body["metadata"]["uid"], error)
            raise
        except (errors.ClusterError, NotLeading, TimeoutError, OSError):
            raise
        except Exception as error:
            await self._set_aside(key, body, error)
            raise
        self._conflicts.pop(key, None)
        return again_s

    async def _set_aside(self, key: str, body: Body, error: Exception) -> None:
        """Say in an event, a metric and a condition that this job cannot be processed; others go on."""
        namespace, _, name = key.partition("/")
        subject = ObjectMeta(name=name, namespace=namespace, uid=body["metadata"]["uid"])
        self._parts.aside.set_aside(catalogue.MRJOBS, subject, boundary.Reason.RECONCILING, error)
        if is_deleted(body):
            await self._release(key, boundary.describe(error))
            return
        message = f"the operator cannot process this job and retries: {boundary.describe(error)}"
        try:
            await self._refuse(key, body, Refusal(reason=names.Reason.SET_ASIDE, message=message))
        except Exception as second:  # noqa: BLE001 - the first is what is told
            _log.warning("the condition of a job that was set aside was not written", job=key, error=str(second))

    async def _reconcile_object(self, key: str, body: Body, memory: "_Memory | None") -> float | None:
        if not is_deleted(body) and not self._parts.jobs.admits(key):
            return await self._refuse(key, body, _too_many(key, *self._parts.jobs.limits), again_s=MAX_REQUEUE_S)
        if "spec" not in body:
            body = await self._whole(body)
        job = model.from_resource(body, self._parts.config)
        if isinstance(job, Refusal):
            if is_deleted(body):
                await self._release(key, job.message)
                return None
            return await self._refuse(key, body, job)
        if memory is not None and memory.revision > revision(body):
            self._parts.plans.forget_stored(memory.uid)  # etcd was restored from a backup, which may not hold it
            memory = None
        if memory is None:
            memory = self._memories[key] = _remember(body, job)
            self._uids[key] = memory.uid
        memory.revision = revision(body)
        return await self._reconcile_job(key, job, memory)

    async def _whole(self, body: Body) -> Body:
        """Read a resource whose spec is not kept.

        Raises:
            errors.Conflict: Another one has its name now.
        """
        began, metadata = self._parts.jobs.begin(), body["metadata"]
        found = await self._parts.api.get(MRJOB.resource, metadata["name"], metadata["namespace"])
        if found["metadata"]["uid"] != metadata["uid"]:
            raise errors.Conflict(409, "Conflict", "the job was replaced during the reconcile")
        self._parts.jobs.put(found, began)
        return found

    async def _reconcile_job(self, key: str, job: Job, memory: _Memory) -> float | None:
        await self._keep_finalizer(key, job)
        seen = await self._observe(job, memory)
        desired = planner.plan(seen)
        memory.note_failures(desired.failures, seen.now_s)
        if desired.write_plan:
            await self._parts.plans.write(job, desired.state.step, self._writes.check_lead)
        state = progress.with_progress(desired.state, job, seen.pods, self._parts.task_messages.reports(job.uid))
        desired = dataclasses.replace(desired, state=state)
        before, memory.state = memory.state, desired.state
        self._announcer.reconciled(key, job, before, desired)
        delay_s = await self._status_writer.write(key, memory)
        self._parts.task_messages.update(job.uid, job.namespace, desired.state)
        self._parts.task_messages.retain_reports(job.uid, {pod.name for pod in seen.pods if pod.state.is_live})
        if delay_s is None:
            await self._writes.delete(job.namespace, ((pod.name, pod.uid) for pod in desired.delete))
        if desired.state.finished or job.deleting_since_s is not None:
            self._parts.policy_events.ended(job.uid, succeeded=desired.state.phase == "Succeeded", pods=seen.pods)
            if desired.cleaning:
                return await self._clean_up(job, memory, desired, seen, delay_s)
            return await self._finish(key, job, desired, delay_s)
        classes = await self._report(job, desired, seen)
        admitted, memory.granted = self.shares.admit(job.namespace, desired.waiting, memory.granted)
        held_back = len(admitted) < len(desired.waiting)
        desired = dataclasses.replace(desired, waiting=admitted)
        unseen = await self._submit(job, memory, desired, seen, classes)
        again = [RESYNC_S] if delay_s is None else [delay_s]
        if held_back:
            again.append(max(RETRIES_DISTANCE_S, self.shares.retries.wait_s(job.namespace)))
        if desired.write_plan or unseen:
            again.append(0.0)
        if desired.recheck_at_s is not None:
            again.append(max(0.0, desired.recheck_at_s - self._parts.now()))
        if desired.waiting:
            again.append(PENDING_REQUEUE_S)
        elif any(pod.state is AttemptState.RUNNING for pod in seen.pods):
            again.append(RUNNING_REQUEUE_S)
        return min(again)

    async def _keep_finalizer(self, key: str, job: Job) -> None:
        """Have the finalizer before the first task leaves anything behind, if the job asks for it."""
        body = self._parts.jobs.get(key)
        wanted = job.life.clean_up == "OnDelete"
        if body is not None and job.deleting_since_s is None and wanted != MRJOB.has_finalizer(body):
            await self._writes.finalizer(body, present=wanted)

    async def _observe(self, job: Job, memory: _Memory) -> Observation:
        parts, known = self._parts, memory.state
        pods_seen = steps.existing(parts.pod_index.of(job.uid), known, job)
        over = known.finished or job.deleting_since_s is not None
        stored = None if over else await self._stored(job, known, pods_seen)
        posted = parts.plans.posted(job.uid)
        diagnosis = parts.scheduler.diagnosis(policy.JobId(job.uid))
        if known.plan is not None and not over and stored is None:
            known = cleanup.begin(job, _without_plan(known, parts.now()), parts.now())
        return Observation(
            job=job,
            state=known,
            pods=pods_seen,
            now_s=parts.now(),
            timeouts=Timeouts(
                start_s=parts.config.task.start_timeout_seconds,
                image_pull_s=parts.config.task.image_pull_timeout_seconds,
                missing_object_s=parts.config.task.missing_object_timeout_seconds,
                max_infrastructure_failures=parts.config.task.max_infrastructure_failures,
            ),
            stored=stored.seen if stored else None,
            posted=posted.seen if posted else None,
            missing=await files.missing(parts.api, job) if known.plan is None and not (pods_seen or over) else (),
            namespace_terminating=job.deleting_since_s is not None
            and await self._related_objects.is_terminating(job.namespace),
            diagnosis=Waiting(reason=diagnosis.reason, message=diagnosis.message) if diagnosis else None,
            failed_s=memory.failed_s,
        )

    async def _stored(self, job: Job, known: JobState, pods_seen: Sequence[AttemptPod]) -> StoredPlan | None:
        """The plan in ConfigMaps that the status names, or before that the one that setup vouches for."""
        digests = {known.plan.digest} if known.plan else steps.vouched(pods_seen, known.step)
        return await self._parts.plans.stored(job, known.step, digests, accepted=known.plan is not None)

    async def _report(self, job: Job, desired: Desired, seen: Observation) -> Sequence[policy.TaskClass]:
        """Let the profile's observers know; returns the step's classes with what was learnt of them."""
        state, parts = desired.state, self._parts
        kept = parts.plans.held(job.uid, state.step) if state.plan else None
        known = submission.step_classes(
            job, state.step, steps.stages(state, job), kept.plan if kept else None, parts.learner
        )
        less = parts.policy_events.update(job, state, seen.pods, known)
        if less:
            self._announcer.less_memory(job, less)
        return known

    async def _submit(
        self,
        job: Job,
        memory: _Memory,
        desired: Desired,
        seen: Observation,
        classes: Sequence[policy.TaskClass],
    ) -> bool:
        """Say what waits, if that is news; True when a look is due at pods that came and went unseen."""
        waiting = desired.waiting
        if waiting or any(pod.state.is_live for pod in seen.pods):  # tasks that run must trust a new leader too
            await self._parts.bundle.ensure(job.namespace)
        submitted = _Submitted(
            job=job,
            classes=tuple(classes),
            waiting=frozenset(waiting),
            unplaced=frozenset(pod.uid for pod in seen.pods if pod.state.is_live and pod.node is None),
            at_s=self._parts.monotonic(),
        )
        if memory.submitted is not None and memory.submitted.covers(submitted, seen.pods):
            memory.submitted = dataclasses.replace(submitted, at_s=memory.submitted.at_s)
            return False
        needs_plan = desired.state.plan and not desired.cleaning
        kept = self._parts.plans.held(job.uid, desired.state.step) if needs_plan else None
        plan = kept.plan if kept else None
        priority = await self._related_objects.priority(job.template.priority_class)
        self._writes.check_lead()
        failpoints.hit("before-mrjob.submit")
        builder = pod_builder.PodBuilder(job=job, settings=self._parts.pod_settings, splits=plan.splits if plan else ())
        over = self._parts.scheduler.submit(
            submission.scheduler_job(job, priority),
            submission.classes_in_use(job, waiting, classes),
            submission.planned(job, waiting, plan),
            submission.Factory(builder),
        )
        failpoints.hit("after-mrjob.submit")
        pod_names = (task.partition("/")[2] for task in over)
        unseen = [
            pod_builder.parse_attempt(name) for name in pod_names if self._parts.pod_index.find(job.uid, name) is None
        ]
        memory.submitted = None if unseen else submitted
        memory.state = planner.noticed(memory.state, unseen) if unseen else memory.state
        return bool(unseen)

    async def _refuse(self, key: str, body: Body, refusal: Refusal, *, again_s: float = RESYNC_S) -> float:
        """Say why the resource is no job; its cause may be mended elsewhere, so look again."""
        status, memory = body.get("status") or {}, self._memories.get(key)
        reduces = tolerant.value(lambda: int(status["reduces"]["total"]), 0)
        known = memory.state if memory else job_state.from_status(status, max(0, min(reduces, mrjob_steps.MAX_REDUCES)))
        refused = planner.refuse(known, refusal, body["metadata"].get("generation", 1), self._parts.now())
        if refused != known:
            if (wait_s := self.shares.statuses.take(key, is_urgent=False)) > 0:
                return wait_s
            refused, wire = await self._status_writer.patch(key, body["metadata"]["uid"], refused)
            if memory is not None:
                memory.state, memory.written = refused, wire
        self._parts.metrics.phase(key, refused)
        return again_s

    async def _clean_up(
        self, job: Job, memory: _Memory, desired: Desired, seen: Observation, delay_s: float | None
    ) -> float:
        """Let the cleanup task run, and look again: it is given up after a while."""
        self._parts.plans.forget(job.uid)
        unseen = await self._submit(job, memory, desired, seen, ())
        due_s = (desired.recheck_at_s or self._parts.now()) - self._parts.now()
        return min(
            PENDING_REQUEUE_S, max(0.0, due_s), 0.0 if unseen else PENDING_REQUEUE_S, delay_s or PENDING_REQUEUE_S
        )

    async def _release(self, key: str, why: str) -> None:
        """Let a deleted job go that cannot be cleaned up."""
        body = self._parts.jobs.get(key)
        if body is not None:
            self._announcer.not_cleaned_up(key, body["metadata"]["uid"], why)
            await self._writes.finalizer(body, present=False)
        self._forget(key)

    async def _finish(self, key: str, job: Job, desired: Desired, delay_s: float | None) -> float | None:
        self._parts.scheduler.withdraw(policy.JobId(job.uid))
        self._parts.plans.forget(job.uid)
        if delay_s is not None:
            return delay_s
        self._memories.pop(key, None)  # finished jobs are many, and their status is all that is needed
        if desired.delete:
            return PENDING_REQUEUE_S
        body = self._parts.jobs.get(key)
        if job.deleting_since_s is not None and body is not None:
            await self._writes.finalizer(body, present=False)
            self._forget(key)
            return None
        if job.life.ttl_s is None or desired.state.completion_s is None:
            return None
        left_s = desired.state.completion_s + job.life.ttl_s - self._parts.now()
        if left_s > 0:
            return min(left_s, MAX_REQUEUE_S)
        await self._writes.expire(job.namespace, job.name, job.uid)
        return None

    async def _read_again(self, key: str) -> Body | None:
        """Somebody else changed the resource: take theirs, and count anew from it; None when it is gone."""
        namespace, _, name = key.partition("/")
        known, began = self._parts.jobs.get(key), self._parts.jobs.begin()
        try:
            body = await self._parts.api.get(MRJOB.resource, name, namespace)
        except errors.NotFound:
            if known is not None:
                self._parts.jobs.gone(known)
            return None
        self._parts.jobs.put(body, began)
        memory = self._memories.get(key)
        if memory is not None and memory.uid == body["metadata"]["uid"]:
            del self._memories[key]  # what stands for a former job of the name is left to the next look, to withdraw
        _log.debug("read again after a conflict", job=key)
        return body

    def _forget(self, key: str) -> None:
        self._memories.pop(key, None)
        self._conflicts.pop(key, None)
        self.shares.statuses.forget(key)
        self._parts.metrics.forget(key)
        uid = self._uids.pop(key, None)
        if uid is not None:
            self._parts.policy_events.ended(uid, succeeded=False)
            self._parts.scheduler.withdraw(policy.JobId(uid))
            self._parts.plans.forget(uid)
            self._parts.task_messages.forget(uid)
            self._parts.bundle.forget(namespace_of(key))


def _remember(body: Body, job: Job) -> _Memory:
    status = body.get("status") or {}
    last = len(job.steps) - 1
    step = max(0, min(tolerant.value(lambda: int(status.get("currentStep") or 0), 0), last))
    known = job_state.from_status(status, reduces=job.steps[step].reduces)
    return _Memory(job.uid, dataclasses.replace(known, step=step), stripped(status))


def _too_many(key: str, limit: int, limit_bytes: int) -> Refusal:
    """The message names no number that changes while the job waits: each would be a write for each job that waits."""
    message = (
        f"of the unfinished MRJobs of namespace {namespace_of(key)} only the first {limit} by creation are "
        f"admitted, and only as many as have {limit_bytes >> 20} MiB together (chart values "
        "tenantLimits.maxUnfinishedJobs and maxJobMebibytes): this one is admitted when enough of them have ended; "
        "delete those that are not needed"
    )
    return Refusal(reason=names.Reason.TOO_MANY_JOBS, message=message)


def _without_plan(known: JobState, now_s: float) -> JobState:
    """Somebody deleted the accepted plan's ConfigMaps: the job cannot go on."""
    message = "the ConfigMaps with the job's split plan are gone, or they were changed: create the job again"
    return conditions.failed(known, settle.Verdict(reason=names.Reason.PLAN_LOST, message=message), now_s)
