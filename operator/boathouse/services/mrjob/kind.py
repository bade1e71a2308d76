"""Implement the kind MRJob: observe a job, plan, and carry out the effects that only MRJobs have."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from boathouse import fair
from boathouse.resources import names, quantity
from boathouse.resources.mrjob import steps as mrjob_steps
from boathouse.scheduling import scheduler
from boathouse.scheduling.pods import ownership
from boathouse.services import hadoop
from boathouse.services.frame import controllers, pod_index, protocols, related_objects, status_codec, status_writer
from boathouse.services.frame.kind import PENDING_REQUEUE_S, Body, KindDefinition, Refusal
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.frame.writes import ObjectEvents, Writes
from boathouse.services.mrjob import conditions, hdfs, job_state, pod_builder, probes, second_attempts, submission
from boathouse.services.mrjob.attempt_pods import task_pod
from boathouse.services.mrjob.hadoop.hadoop_jobs import HadoopJobs
from boathouse.services.mrjob.hadoop.observation import HadoopObservation
from boathouse.services.mrjob.memory import RUNNING_REQUEUE_S, JobMemory, Submitted, attempts
from boathouse.services.mrjob.model import MRJOBS, Job, JobUid, from_resource
from boathouse.services.mrjob.planning import cleanup, planner, predictions, steps
from boathouse.services.mrjob.planning.observation import Desired, Observation
from boathouse.services.mrjob.policy_events import PolicyEvents
from boathouse.services.mrjob.settle import Limits
from boathouse.services.mrjob.split_plans import Plans
from boathouse.services.mrjob.task_metrics import TaskMetrics
from boathouse.services.mrjob.task_orders import TaskOrders
from boathouse_policies import fspy, model as policy, run_times
from boathouse_policies.ikayak import suspension
from boathouse_policies.profiles import guard

RETRIES_DISTANCE_S: Final = 1.0
"""The interval at which a job takes its share of retries, for all attempts that became pending meanwhile."""
_PLAN_LOST: Final = Problem(
    reason=names.Reason.PLAN_LOST,
    message="the ConfigMaps with the job's split plan were deleted or changed: recreate the job",
)

MRJOB: Final = KindDefinition(
    resource=MRJOBS,
    noun="job",
    phases=("Pending", "Suspended", "Setup", "Map", "Reduce", "Commit", "Succeeded", "Failed"),
    terminal_phases=frozenset(job_state.TERMINAL),
    urgent_fields=("plan",),
    annotations=frozenset({names.ANNOTATION_SUSPEND_UNTIL}),
    phase_events={"Setup": "SetupStarted", "Map": "MapsStarted", "Reduce": "ReducesStarted", "Commit": "CommitStarted"},
)


class MRJobKind:
    """Implements `protocols.Kind` for MRJobs."""

    definition: ClassVar[KindDefinition] = MRJOB
    status_format: ClassVar[status_writer.StatusFormat[job_state.JobState]] = job_state
    refuse = staticmethod(planner.refuse)

    def __init__(self, leader: controllers.LeaderServices, later: pod_index.Later) -> None:
        self._context, self._settings, self._clusters = leader.controllers.context, leader.settings, leader.clusters
        self._scheduler, self._bundles, self._signals = leader.scheduling.scheduler, leader.bundles, leader.signals
        api, monotonic, mark = self._context.api, self._context.monotonic, leader.controllers.mark
        limits, task, profile = leader.settings.tenant_limits, leader.settings.task, leader.profile
        self.learner, now = run_times.Learner(), scheduler.steady_clock()
        self.policy_events = PolicyEvents(profile.observers, self.learner, now, leader.clusters)
        self.pods = pod_index.PodIndex(task_pod, lambda uid: mark(JobUid(uid.removesuffix(ownership.PROBE))), later)
        self.seconds = second_attempts.SecondAttempts(self.pods, mark, monotonic)
        self.plans = Plans(api, limit_bytes=limits.max_plan_mebibytes * 2**20)
        self.orders = TaskOrders(self.policy_events.report)
        burst = limits.retries_per_second * fair.BURST_S
        self.retries = fair.Buckets(rate_per_s=limits.retries_per_second, burst=burst, clock=monotonic)
        self._metrics = TaskMetrics(leader.metrics.registry)
        self._lends_cpu, self._guard = suspension.is_in(profile), guard.guard_of(profile)
        self._pod_settings = pod_builder.PodSettings(
            progress_url=f"https://{leader.settings.progress_service}.{leader.settings.namespace}.svc",
            scratch_bytes=quantity.units(task.scratch_size),
            image_pull_secrets=tuple(task.image_pull_secrets),
            not_ready_toleration_s=task.not_ready_toleration_seconds,
            cluster=leader.cluster_id,
        )
        self._events = ObjectEvents(MRJOB, self._context.events)
        self._related_objects = related_objects.RelatedObjects(api, monotonic)
        self.hadoop = HadoopJobs(leader, self._pod_settings, self._related_objects, later)
        self._probes = None
        if isinstance(profile.order, fspy.SizeBased):
            self._probes = probes.Probes(
                sizes=profile.order,
                settings=leader.settings.prediction,
                pods=self.pods,
                plans=self.plans,
                events=self.policy_events,
                placing=self._scheduler,
                related_objects=self._related_objects,
                pod_settings=self._pod_settings,
                clusters=self._clusters,
            )

    def parse(self, body: Body) -> Job | Refusal:
        """Return the job, or why it is refused."""
        return from_resource(body, self._settings)

    def life(self, job: Job) -> protocols.Life:
        """Return the job's creation time, TTL and finalizer."""
        return protocols.Life(
            created_s=job.created_s,
            ttl_s=job.spec.ttl_seconds_after_finished,
            wants_finalizer=job.spec.clean_up == "OnDelete" or bool(job.cluster),
        )

    def load(self, status: Mapping[str, Any], job: Job | None) -> job_state.JobState:
        """Return the state that a status describes."""
        if job is None:
            reduces = status_codec.value(lambda: int(status["reduces"]["total"]), 0)
            return job_state.from_status(status, max(0, min(reduces, mrjob_steps.MAX_REDUCES)))
        step = status_codec.value(lambda: int(status.get("currentStep") or 0), 0)
        step = max(0, min(step, len(job.steps) - 1))
        return dataclasses.replace(job_state.from_status(status, reduces=job.steps[step].reduces), step=step)

    def remember(self, uid: JobUid, state: job_state.JobState, written: Mapping[str, Any]) -> JobMemory:
        """Return the memory of a job whose status was read."""
        return JobMemory(uid, state, written)

    def note(self, job: Job, state: job_state.JobState) -> str:
        """Return the text of the event about the phase."""
        ending = state.condition(names.ConditionType.FAILED) if state.phase == "Failed" else None
        return (ending.message if ending else job_state.progress(state)) or f"in queue {job.queue}"

    def restored(self, uid: JobUid) -> None:
        """Read the plan's ConfigMaps again."""
        self.plans.forget_stored(uid)

    def forget(self, uid: JobUid, namespace: str) -> None:
        """Drop all data about a deleted job, and withdraw its pending tasks."""
        self.policy_events.ended(uid, succeeded=False)
        self._scheduler.withdraw(policy.JobId(uid))
        self.plans.forget(uid)
        self.seconds.forget(uid)
        if self._probes is not None:
            self._probes.forget(uid)
        self.orders.forget(uid)
        self._bundles.forget(namespace)
        self.hadoop.forget(uid)

    async def observe(self, job: Job, memory: JobMemory) -> Observation | HadoopObservation:
        """Collect the input of the planner."""
        if job.cluster:
            return await self.hadoop.observe(job, memory)
        state, now_s, related = memory.state, self._context.now, self._related_objects
        pods, over = (
            steps.existing(self.pods.of(job.uid), state, job),
            state.finished or job.deleting_since_s is not None,
        )
        stored, posted = None, self.plans.posted(job.uid)
        if not over:
            digests = {state.plan.digest} if state.plan else steps.owned_digests(pods, state.step)
            stored = await self.plans.stored(job, state.step, digests, accepted=state.plan is not None)
        if state.plan is not None and not over and stored is None:
            state = cleanup.begin(job, conditions.finished(state, _PLAN_LOST, now_s()), now_s())
        return Observation(
            job=job,
            state=state,
            pods=pods,
            now_s=now_s(),
            limits=Limits.of(self._settings.task),
            stored=stored.status_entry if stored else None,
            posted=posted.status_entry if posted else None,
            missing=await submission.missing_files(job, related) if state.plan is None and not (pods or over) else (),
            namespace_terminating=job.deleting_since_s is not None and await related.is_terminating(job.namespace),
            diagnosis=self._scheduler.diagnosis(policy.JobId(job.uid)),
            failed_s=memory.failed_s,
            seconds=self.seconds.pending(job.uid),
            size=self._probes.view(job, state) if self._probes else None,
            lends_cpu=self._lends_cpu,
            may_suspend=self._settings.actuators.suspend,
        )

    def plan(
        self, observation: Observation | HadoopObservation, memory: JobMemory
    ) -> protocols.Desired[job_state.JobState]:
        """Return the desired state of a job, with effects in the frame's order."""
        if isinstance(observation, HadoopObservation):
            desired = self.hadoop.plan(observation, memory)
        else:
            desired = self._plan(observation, memory)
        publish = partial(self._publish, observation.job, memory.state, desired.state)
        return dataclasses.replace(desired, before_status=[*desired.before_status, publish])

    def _plan(self, observation: Observation, memory: JobMemory) -> protocols.Desired[job_state.JobState]:
        job, now_s, desired = observation.job, observation.now_s, planner.plan(observation)
        memory.note_failures(desired.settlement.failures, now_s)
        state = steps.with_progress(desired.state, job, observation.pods, self.orders.reports(job.uid))
        state = predictions.predicted(state, job, observation.size, desired.settlement.used_byte_s, now_s)
        state = conditions.with_measurements(state, self._signals.problem, now_s)
        has_off = self._guard is not None and now_s < self._guard.until_s  # parts of the profile that did harm
        off = self._guard.off(submission.scheduler_job(job), now_s) if self._guard is not None and has_off else ()
        desired = dataclasses.replace(desired, state=conditions.with_parts_off(state, off, now_s))
        state = desired.state
        is_over = state.finished or job.deleting_since_s is not None
        is_at_rest = state.phase == "Suspended" and state.plan is None and not is_over
        is_at_rest = is_at_rest and not observation.pods and not memory.failed_s
        then = self._wind_up if is_at_rest or is_over else self._go_on
        return protocols.Desired(
            before_status=[partial(self._prepare, job, memory.state, desired)],
            state=state,
            after_status=[partial(self._send, observation, state)],
            delete=[*((pod.name, pod.uid) for pod in desired.delete), *probes.surplus(self.pods, job, state)],
            after=[
                partial(then, memory, desired, observation),
                *([partial(self._probes.carry_on, job, state, memory.probe)] if self._probes else ()),
            ],
            recheck_at_s=desired.recheck_at_s,
            holds_deletion=desired.cleaning,
            is_at_rest=is_at_rest,
        )

    async def _prepare(self, job: Job, before: job_state.JobState, desired: Desired, writes: Writes) -> float | None:
        if desired.write_plan:
            await self.plans.write(job, desired.state.step, writes.check_lead)
        self._metrics.attempts(desired.settlement)
        self._metrics.prediction(before.prediction, desired.state.prediction)
        return 0.0 if desired.write_plan else None

    async def _publish(self, job: Job, before: job_state.JobState, state: job_state.JobState, _writes: Writes) -> None:
        if why := conditions.cleanup_failure(before, state):
            self._events.not_cleaned_up(job.key, job.uid, why)
        if event := conditions.suspension_event(before, state):
            self._events.publish(job.key, job.uid, *event, action="Scheduling", is_warning=False)
        if event := conditions.parts_off_event(before, state):
            self._events.publish(job.key, job.uid, *event, action="Scheduling")

    async def _send(self, observation: Observation, state: job_state.JobState, _writes: Writes) -> float | None:
        """Update the orders for the tasks, and drop the reports of tasks that ended."""
        job, live = observation.job, {pod.name for pod in observation.pods if pod.state.is_live}
        self.orders.update(job.uid, job.namespace, state, live)
        self._clusters.use(job.uid, () if state.finished else hdfs.used(job, self._clusters))
        if state.finished:
            return None
        self.seconds.update(job, state)
        return hadoop.UNKNOWN_REQUEUE_S if hdfs.unknown(job, self._clusters) else None

    async def _wind_up(
        self, memory: JobMemory, desired: Desired, observation: Observation, writes: Writes
    ) -> float | None:
        """Withdraw a job that is over or at rest, or submit its cleanup task. Returns when to requeue."""
        uid = observation.job.uid
        self.policy_events.ended(uid, succeeded=desired.state.phase == "Succeeded", pods=observation.pods)
        self.plans.forget(uid)
        if desired.cleaning:  # for a limited time
            return 0.0 if await self._submit(memory, desired, observation, (), writes) else PENDING_REQUEUE_S
        self._scheduler.withdraw(policy.JobId(uid))
        self.seconds.forget(uid)
        return None

    async def _go_on(
        self, memory: JobMemory, desired: Desired, observation: Observation, writes: Writes
    ) -> float | None:
        """Submit the pending attempts within the namespace's rate of retries. Returns when to requeue."""
        namespace, waiting = observation.job.namespace, desired.waiting
        classes = self._classes(desired.state, observation)
        admitted, memory.granted = submission.admit(self.retries, namespace, waiting, memory.granted)
        if await self._submit(memory, dataclasses.replace(desired, waiting=admitted), observation, classes, writes):
            return 0.0
        again = [max(RETRIES_DISTANCE_S, self.retries.wait_s(namespace))] if len(admitted) < len(waiting) else []
        if admitted:
            again.append(PENDING_REQUEUE_S)
        elif any(pod.state is PodLife.RUNNING for pod in observation.pods):
            again.append(RUNNING_REQUEUE_S)
        return min(again, default=None)

    def _classes(self, state: job_state.JobState, observation: Observation) -> Sequence[policy.TaskClass]:
        """Inform the profile's observers. Returns the step's classes with the learner's estimates."""
        job = observation.job
        plan = self.plans.plan(job.uid, state.step) if state.plan else None
        classes = submission.step_classes(job, state.step, steps.stages(state, job), plan, self.learner)
        if less := self.policy_events.update(job, state, observation.pods, classes, plan):
            self._metrics.elastic(pod.task_type for pod in less)
            had, wanted = map(quantity.format_bytes, (less[0].memory_bytes, less[0].ideal_memory_bytes))
            which = f"{less[0].task_name} and {len(less) - 1} more" if len(less) > 1 else less[0].task_name
            note = f"{which} started with less memory ({had} instead of {wanted}): no node had more free memory"
            self._events.publish(job.key, job.uid, "MemoryShrunk", note, action="Scheduling", is_warning=False)
        return classes

    async def _submit(
        self,
        memory: JobMemory,
        desired: Desired,
        observation: Observation,
        classes: Sequence[policy.TaskClass],
        writes: Writes,
    ) -> bool:
        """Submit the pending attempts if they changed. Returns True to reconcile at once: pods ended unobserved."""
        job, waiting = observation.job, desired.waiting
        live = [pod for pod in observation.pods if pod.state.is_live]
        if waiting or live:  # running tasks must trust a new leader's certificate too
            await self._bundles.ensure(job.namespace)
        submitted = Submitted(
            job=job,
            classes=tuple(classes),
            waiting=frozenset(waiting),
            unplaced=frozenset(pod.uid for pod in live if pod.node is None),
            at_s=self._context.monotonic(),
        )
        if memory.submitted is not None and memory.submitted.covers(submitted, observation.pods):
            memory.submitted = dataclasses.replace(submitted, at_s=memory.submitted.at_s)
            return False
        for name in hdfs.unknown(job, self._clusters):
            if await self._related_objects.uid(hadoop.MRCLUSTERS, job.namespace, name) is not None:
                return False  # a new leader has not reconciled this cluster: tasks would fail
        needs_plan = desired.state.plan and not desired.cleaning
        plan = self.plans.plan(job.uid, desired.state.step) if needs_plan else None
        priority = await self._related_objects.priority(job.priority_class)
        avoided = self.seconds.avoided(job.uid, waiting)
        factory = submission.Factory(
            pod_builder.PodBuilder(
                job=job,
                settings=self._pod_settings,
                splits=plan.splits if plan else (),
                hdfs=hdfs.addresses(job, self._clusters),
            ),
            waiting,
            second_attempts.Control(job.uid, self.orders, self.seconds),
            avoided,
        )
        with writes.attempt("submit"):
            over = self._scheduler.submit(
                submission.scheduler_job(job, priority),
                submission.classes_in_use(job, [*waiting, *live], classes, avoided),
                factory.tasks(plan, partial(self._clusters.node_of, job.namespace)),
                factory,
                suspend_until_s=conditions.suspended_until_s(job, self._context.now()),
            )
        existing = attempts(self.pods.of(job.uid)) if over else ()
        lost = (factory.attempts[task] for task in over)
        unseen = [attempt for attempt in lost if (attempt.task, attempt.number) not in existing]
        memory.submitted = None if unseen else submitted
        memory.state = planner.noticed(memory.state, unseen) if unseen else memory.state
        return bool(unseen)
