"""The scheduler: one task that decides, workers that write.

    watches, services ──> ledger, jobs ──wake──> cycle (no await) ──assume──> carrier ──> API server ──> watches ...

A decision is assumed before it is sent, confirmed when the watch shows it, and taken back only on known failure.
"""

import asyncio
import collections
import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import assert_never

from boathouse.cluster import boundary, catalogue, client, store, wire
from boathouse.cluster import events as event_writer
from boathouse.scheduling import (
    carrier,
    diagnoses,
    isolation,
    jobs,
    observed,
    pending_pods,
    pod_conditions,
    reasons,
    rejections,
    writer,
)
from boathouse.scheduling import options as scheduler_options
from boathouse.scheduling.pods import ownership, translate
from boathouse.scheduling.tenants import refusals
from boathouse.scheduling.volumes import book as volume_book
from boathouse.scheduling.volumes import rules
from boathouse.scheduling.volumes import writer as volume_writer
from boathouse.telemetry import health, logs, metrics
from boathouse_policies import framework, model

log = logs.get(__name__)

CONDITIONS_EVERY_S = 0.5
BEHIND_S = 0.25
"""The least time between two cycles while more is decided than written: decisions had better be fresh, but a namespace
whose writes are many must not keep the others' tasks from being decided at all."""
Options = scheduler_options.Options


def steady_clock() -> Callable[[], float]:
    """Return a clock that shows the time of day when it starts, and from then on only grows, evenly."""
    offset_s = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset_s


class Scheduler:
    """What services and watches talk to. Every public method is synchronous and returns at once.

    Args:
        api: Speaks to the API server.
        leader: Asked before every write.
        events: Records events.
        metrics_: Metrics.
        profile: The policies.
        queues: The queues that exist.
        options: How to behave.
        queue_of: The queue of somebody else's pod.
        on_fatal: Called with the reason when the process must end: leadership lost, or the cache cannot be trusted.
        clock: Seconds since the epoch that only grow.
        storage: What is known of volumes, live; tell `on_storage` of changes.
        aside: Where objects go that cannot be represented.
    """

    def __init__(
        self,
        api: client.ApiClient,
        leader: writer.Leadership,
        events: event_writer.EventSink,
        metrics_: metrics.Metrics,
        *,
        profile: framework.Profile,
        queues: Sequence[model.Queue],
        on_fatal: Callable[[str], None],
        options: Options = Options(),  # noqa: B008 - frozen
        queue_of: ownership.QueueOf = ownership.default_queue,
        clock: Callable[[], float] | None = None,
        storage: rules.Storage | None = None,
        aside: boundary.Boundary | None = None,
    ) -> None:
        clock = steady_clock() if clock is None else clock
        self.options = options
        self.heartbeat = health.Heartbeat(limit_s=options.stall_s)
        self.exclusions = rejections.Exclusions(clock)
        self._clock = clock
        self._profile = profile
        self.counters = metrics_.scheduler
        self._axis = model.Axis()
        self.ledger = framework.Ledger(self._axis)
        self.queue = framework.SchedulingQueue(self._axis, queues)
        self._aside = aside or boundary.Boundary(events)
        self._queue_of = queue_of
        self.seen = observed.Observed(
            self.ledger,
            self,
            scheduler_name=options.scheduler_name,
            queue_of=self._charged_queue_of,
            aside=self._aside,
        )
        self.jobs = jobs.Jobs(
            self.queue,
            placed=self.ledger,
            pods=self.seen.waiting,
            clock=clock,
            queue_of=queue_of,
            on_failure=self._set_job_aside,
            limits=options.shape_limits,
            nodes=lambda: len(self.seen.nodes),
        )
        self.volumes = volume_book.VolumeBook(storage or rules.Storage.empty(), self.seen.mounts)
        self._claimants: set[model.TaskId] = set()
        self._claims_wait = False
        self.pod_conditions = pod_conditions.PodConditions(
            api, leader, events, self.counters, clock, writes_per_s=options.conditions_per_s, aside=self._aside
        )
        self.diagnoses = diagnoses.Diagnoses(self.jobs, self.seen.holders, clock)
        self._ahead = pending_pods.PendingPods(
            count=options.pending_ahead, delay_s=options.pending_ahead_delay_s, clock=clock
        )
        self.writer = writer.Writer(api, leader, self.counters)
        self._volume_writer = volume_writer.VolumeWriter(api, leader, self.volumes)
        self.carrier = carrier.Carrier(
            self._parts(),
            workers=options.workers,
            on_fenced=on_fatal,
            on_trouble=self._trouble,
            on_progress=self.wake,
            on_unprovisioned=self.exclusions.exclude,
            on_refused=self._report_refused,
        )
        self._wake = asyncio.Event()
        self._conditions_due_s = math.inf
        self._conditions_at_s = -math.inf
        self._decided_s = -math.inf

    def _charged_queue_of(self, pod: wire.PodView) -> model.QueueName | None:
        name = self._queue_of(pod)
        queue = self.queue.queues.get(name)
        # A task's class was judged with its job, and an admission plugin may have given the pod the cluster's default.
        priority_class = "" if ownership.is_task(pod) else pod.spec.priority_class_name
        return name if queue is None or queue.accepts(pod.metadata.namespace, priority_class) else None

    def _parts(self) -> carrier.Parts:
        return carrier.Parts(
            axis=self._axis,
            ledger=self.ledger,
            queue=self.queue,
            seen=self.seen,
            jobs=self.jobs,
            writer=self.writer,
            pod_conditions=self.pod_conditions,
            volumes=self.volumes,
            volume_writer=self._volume_writer,
            counters=self.counters,
            clock=self._clock,
        )

    # What services call

    def submit(
        self,
        job: model.Job,
        classes: Sequence[model.TaskClass],
        tasks: Sequence[model.Task],
        factory: jobs.PodFactory,
    ) -> list[model.TaskId]:
        """Say all that a job still has to do; replaces what was said before.

        Tasks that run are welcome among them and do not wait; a task whose pod was seen to end never waits again.

        Args:
            job: The job.
            classes: Its classes, in the order in which they are served.
            tasks: Its tasks that are not done.
            factory: Makes its pods.

        Returns:
            Those whose pods were seen to end or go: they do not wait, and need another task.

        Raises:
            ValueError: A task's class is not among the classes.
        """
        known = {one.id for one in classes}
        if strange := next((task for task in tasks if task.task_class not in known), None):
            raise ValueError(f"{strange.id} is of class {strange.task_class!r}, which was not submitted with {job.id}")
        self._claims_wait = self._claims_wait or any(one.constraints.claims for one in classes)
        self.wake()
        return self.jobs.submit(job, classes, tasks, factory)

    def withdraw(self, job_id: model.JobId) -> None:
        """Nothing of a job waits any more. Its pods stay: their owner deletes them."""
        entry = self.jobs.entry(job_id)
        if entry is not None:
            self.diagnoses.forget(job_id, entry.classes)
            self.jobs.withdraw(job_id)
            self.wake()

    def diagnosis(self, job_id: model.JobId) -> reasons.JobDiagnosis | None:
        """Return why a job waits; None if nothing of it does, as far as is known."""
        return self.diagnoses.of_job(job_id)

    def has_job(self, job_id: model.JobId) -> bool:
        """Return whether tasks of a job may still be placed."""
        return self.jobs.entry(job_id) is not None

    def in_flight(self) -> Iterator[model.TaskId]:
        """Yield the tasks whose pod is being written, or was written and not observed yet."""
        return self.carrier.in_flight()

    def expects(self, task_id: model.TaskId) -> bool:
        """Say whether a task's pod was decided or made, though the watch may not show it yet."""
        return (
            self.ledger.state(task_id) is framework.State.ASSUMED
            or task_id in self.carrier.making_ahead
            or task_id in self.carrier.unconfirmed
        )

    def held_back(self) -> dict[tuple[str, ...], float]:
        """Return how many namespaces and jobs are held back, by reason."""
        counts = collections.Counter(hold.reason for hold in self.jobs.refused.holds())
        return {(reason,): float(counts[reason]) for reason in refusals.REASONS}

    def _trouble(self, job_id: model.JobId, why: pod_conditions.PendingReason | None) -> None:
        self.diagnoses.api_refusal(job_id, why)

    def set_queues(self, queues: Sequence[model.Queue]) -> None:
        """Replace the queues."""
        self.queue.set_queues(queues)
        self.wake()

    def wake(self) -> None:
        """Something changed that a cycle may make use of."""
        self._wake.set()

    # What watches call

    def on_node(self, change: store.Change[wire.NodeView]) -> None:
        """Take in a change of a node."""
        self.seen.on_node(change)

    def on_pod(self, change: store.Change[wire.PodView]) -> None:
        """Take in a change of a pod that holds resources, or waits."""
        self.seen.on_pod(change)
        if isinstance(change, store.Deleted):
            self.jobs.refused.relieved(change.old.metadata.namespace)

    def on_ended(self, change: store.Change[wire.PodView]) -> None:
        """Take in a change of a task's pod that has ended: this watch also shows what the other one missed."""
        match change:
            case store.Added() | store.Modified():
                pod = change.new
                if pod.is_terminal and not isinstance(change, store.Modified):
                    if ownership.is_task(pod):
                        self._refused(pod)
                    self.seen.gone(pod)
            case store.Deleted():
                pass
            case _:
                assert_never(change)

    def on_namespace(self, name: str) -> None:
        """Take in that a namespace may have another default queue: pods that wait there may name it."""
        for pod in [one for one in self.seen.waiting.values() if one.metadata.namespace == name]:
            self.pod_waits(pod)

    def on_storage(self) -> None:
        """Take in a change of claims, volumes, or of what provisions them."""
        self.volumes.changed()
        if not self._claims_wait:
            return
        for task in sorted(self._claimants):
            pod = self.seen.waiting.get(task)
            if pod is None:
                self._claimants.discard(task)
            elif self.volumes.promised(task) is None:
                self._aside.run(catalogue.PODS, pod.metadata, boundary.Reason.HANDLING, self.pod_waits, pod)
        self.carrier.check_volumes()
        self.nodes_changed()

    def _refused(self, pod: wire.PodView) -> None:
        """A kubelet may have refused a pod: leave its node alone for a while, for pods of that kind."""
        reason = rejections.rejection(pod)
        if reason is None:
            return
        self.counters.rejection(reason)
        log.warning("a kubelet refused a pod", pod=pod.metadata.key, node=pod.spec.node_name, reason=reason)
        task_class = self.jobs.class_of(ownership.job_of(pod), ownership.task_id(pod))
        if task_class is not None:
            self.exclusions.exclude(task_class, model.NodeName(pod.spec.node_name))

    # observed.Listener

    def room_freed(self, freed: framework.Freed) -> None:
        """Wake whom the room may help."""
        self.queue.capacity_freed(freed, self.ledger.free(freed.node))
        self.wake()

    def nodes_changed(self) -> None:
        """Wake whom a node may help."""
        self.queue.nodes_changed()
        self.wake()

    def placements_lost(self, tasks: tuple[model.TaskId, ...]) -> None:
        """Let tasks wait again whose node is gone, unless a write is under way that will tell."""
        for task in tasks:
            entry = self.jobs.entry_of(task)
            self.carrier.forget(task)
            self.seen.mounts.remove(task)
            if entry is not None and not self.carrier.is_writing(task):
                self.jobs.mark_changed(task)
        self.wake()

    def pod_waits(self, pod: wire.PodView) -> None:
        """Take a pod without a node in: a task's made ahead, or somebody else's."""
        if self.options.namespaces and pod.metadata.namespace not in self.options.namespaces:
            return
        try:
            self._take_in(pod)
        except (ValueError, ArithmeticError) as error:
            self._aside.set_aside(catalogue.PODS, pod.metadata, boundary.Reason.TRANSLATION, error)
            self.jobs.end(ownership.task_id(pod), waited=True)
            self.pod_conditions.set_pending(pod, reasons.set_aside(error))
        self.wake()

    def _take_in(self, pod: wire.PodView) -> None:
        """Let a pod wait, or say why it does not.

        Raises:
            ValueError, ArithmeticError: It cannot be represented.
        """
        task = ownership.task_id(pod)
        if ownership.is_task(pod):
            self.jobs.mark_changed(task)
        elif not jobs.may_be_bound(pod):
            self.jobs.end(task, waited=True)
        elif pod.spec.too_many_constraints:
            self.jobs.end(task, waited=True)
            self.pod_conditions.set_pending(pod, reasons.of_too_many_constraints(pod.spec.too_many_constraints))
        elif (field := translate.unsupported(pod)) is not None:
            self.pod_conditions.set_pending(pod, reasons.unsupported(field))
        elif (why := self._problem_of_claims(pod)) is not None:
            self.jobs.end(task, waited=True)
            self.pod_conditions.set_pending(pod, why)
        elif (excess := self.jobs.add_foreign(pod)) is not None:
            self.pod_conditions.set_pending(pod, reasons.too_complex(excess))

    def _problem_of_claims(self, pod: wire.PodView) -> pod_conditions.PendingReason | None:
        if not translate.claims_of(pod):
            return None
        self._claims_wait = True  # from here on: the filter costs nothing to those without claims
        self._claimants.add(ownership.task_id(pod))
        return self.volumes.problem(pod)

    def pod_placed(self, pod: wire.PodView, *, known: bool) -> None:
        """Confirm a placement; one that we did not mean takes its task out of the scheduling queue."""
        task = ownership.task_id(pod)
        self.carrier.forget(task)
        if not known:
            self.pod_conditions.forget(pod.metadata.uid)
            self.jobs.mark_changed(task)

    def pod_gone(self, pod: wire.PodView) -> None:
        """A task is over."""
        task = ownership.task_id(pod)
        self.carrier.forget(task)
        self.pod_conditions.forget(pod.metadata.uid)
        self.jobs.end(task, waited=not pod.spec.node_name)
        self.wake()

    def lost(self, task: model.TaskId) -> None:
        """A pod that was placed is not there: it came and went unseen."""
        freed = self.ledger.gone(task)
        if freed is not None:
            self.room_freed(freed)
        self.seen.holders.remove(task)
        self.jobs.end(task, waited=False)
        self.wake()

    # The loop

    async def run(self) -> None:
        """Decide and write until cancelled. Begin after the watches are in sync and leadership has settled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.carrier.run())
            group.create_task(self.pod_conditions.run())
            group.create_task(self._decide_for_ever())

    async def _decide_for_ever(self) -> None:
        while True:
            self.heartbeat.beat()
            self.carrier.check_volumes()
            self._wake.clear()
            if self._clock() >= self._decides_from_s():
                self.cycle()
            await asyncio.sleep(self.options.coalesce_s)
            with contextlib.suppress(TimeoutError):  # not wait_for: that one can swallow a cancellation in Python 3.11
                async with asyncio.timeout(self._nap_s()):
                    await self._wake.wait()

    def _decides_from_s(self) -> float:
        return self._decided_s + (BEHIND_S if self.carrier.backlog > self.options.workers else 0.0)

    def _nap_s(self) -> float:
        now_s = self._clock()
        others_s = (one.next_s() for one in (self.exclusions, self._ahead, self.pod_conditions, self.jobs))
        timer_s = min(self.queue.next_wake_s(), self._conditions_due_s, *others_s)
        if self.carrier.backlog > self.options.workers:
            timer_s = self._decides_from_s()
        return max(0.0, min(self.options.idle_s, timer_s - now_s))

    def cycle(self) -> None:
        """Decide once, without awaiting anything: snapshot, run the cycle, assume, hand over."""
        self.jobs.sync()
        self.seen.heed_nominations(self.jobs.lowest_priority())
        if self.exclusions.expire():
            self.queue.nodes_changed()
        now_s = self._decided_s = self._clock()
        if self.queue.tick(now_s):
            began = time.perf_counter()
            plan = self._plan(now_s)
            self.queue.apply(plan, now_s)
            self._ahead.note(plan)
            for decision in plan.decisions:
                self._carry_out(decision)
            self.counters.cycle_s.observe(time.perf_counter() - began)
            self._conditions_due_s = min(self._conditions_due_s, max(now_s, self._conditions_at_s + CONDITIONS_EVERY_S))
        if now_s >= self._conditions_due_s:
            self._conditions_due_s, self._conditions_at_s = math.inf, now_s
            self._update_conditions()
        self.pod_conditions.flush()
        for work in list(self._ahead.due(self.queue, self.jobs, self.carrier.making_ahead)):
            self.carrier.add(work)

    def _plan(self, now_s: float) -> framework.Plan:
        """Run the cycle; when it raises, set the jobs aside because of which it does, and run it without them."""
        try:
            return self._explained_plan(now_s)
        except Exception:
            profile, view = self._profile_now(), self.ledger.snapshot(now_s)
            queues = list(self.queue.queues.values())
            found = isolation.culprits(self.jobs.entries(), queues, profile, self._axis, view)
            if not found:
                raise
            for job_id, error in found.items():
                entry = self.jobs.entry(job_id)
                assert entry is not None
                self._set_job_aside(entry, error)
        return self._explained_plan(now_s)

    def _explained_plan(self, now_s: float) -> framework.Plan:
        plan = framework.run_cycle(self.queue, self._profile_now(), self.ledger.snapshot(now_s))
        self.counters.unschedulable(self.diagnoses.update(plan))
        return plan

    def _set_job_aside(self, entry: jobs.Entry, error: Exception) -> None:
        why = reasons.set_aside(error)
        self.jobs.set_aside(entry.job.id)
        self.diagnoses.api_refusal(entry.job.id, why)
        if entry.factory is not None:
            namespace, _, name = entry.job.name.partition("/")
            subject = wire.ObjectMeta(namespace=namespace, name=name, uid=entry.job.id)
            self._aside.set_aside(catalogue.MRJOBS, subject, boundary.Reason.SCHEDULING, error)
        for task in entry.tasks:
            if (pod := self.seen.waiting.get(task)) is not None:
                self._aside.set_aside(catalogue.PODS, pod.metadata, boundary.Reason.SCHEDULING, error)
                self.pod_conditions.set_pending(pod, why)

    def _profile_now(self) -> framework.Profile:
        excluded: tuple[framework.Filter, ...] = (self.exclusions,) if len(self.exclusions) else ()
        more = (*excluded, self.volumes) if self._claims_wait else excluded
        return dataclasses.replace(self._profile, filters=(*self._profile.filters, *more)) if more else self._profile

    def _carry_out(self, decision: model.Decision) -> None:
        """Hand a decision over; when that raises, set its job aside."""
        try:
            self._hand_over(decision)
        except Exception as error:
            job = decision.job.id if isinstance(decision, model.Create | model.Bind) else None
            entry = None if job is None else self.jobs.entry(job)
            if entry is None:
                raise
            self._set_job_aside(entry, error)

    def _hand_over(self, decision: model.Decision) -> None:
        match decision:
            case model.Create() | model.Bind():
                if decision.task.id in self.ledger:  # the watch was faster than the book
                    self.jobs.mark_changed(decision.task.id)
                    self._report_refused(decision, carrier.OUTDATED)
                    return
                if not self._promise_volumes(decision):
                    self.jobs.mark_changed(decision.task.id)
                    self._report_refused(decision, "VolumeTaken")
                    return
                self.ledger.assume(decision)
                self.carrier.add(decision)
            case model.Reservation() | model.Wait():
                pass  # the scheduling queue remembers it
            case model.Resize() | model.Suspend() | model.Resume() | model.Scale() | model.Speculate():
                log.error("the profile advises what this release cannot carry out", decision=str(decision))
                self._report_refused(decision, "NotSupported")
            case _:
                assert_never(decision)

    def _report_refused(self, decision: model.Decision, reason: str) -> None:
        for observer in self._profile.observers:
            observer.observe(model.Refused(now_s=self._clock(), decision=decision, reason=reason))

    def _promise_volumes(self, decision: model.Placement) -> bool:
        claims = decision.task_class.constraints.claims
        return not claims or self.volumes.promise(decision.task.id, claims, self.seen.nodes[decision.node])

    def _update_conditions(self) -> None:
        """Tell the pods that wait why they do."""
        for task_id, pod in list(self.seen.waiting.items()):
            entry = self.jobs.entry_of(task_id)
            hold = self.jobs.hold_of(task_id)
            why = None if entry is None else self.diagnoses.of_class(entry.tasks[task_id].task_class)
            if hold is not None:
                why = pod_conditions.PendingReason(reason=hold.reason, message=hold.message)
            if why is not None and task_id not in self.ledger:
                self.pod_conditions.set_pending(pod, why)
