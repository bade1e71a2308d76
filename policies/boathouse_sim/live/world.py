"""A world in which run times depend on what happens: the operator's ledger and queue, and tasks that progress."""

import collections
import dataclasses
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from typing_extensions import override

from boathouse_policies import framework, model
from boathouse_sim import topology, work
from boathouse_sim.base_world import MB, BaseWorld, Call, StuckError, size
from boathouse_sim.clock import Priority
from boathouse_sim.conditions import PLAIN, RunTimes
from boathouse_sim.live import knowledge, sizes
from boathouse_sim.live.course import Course, LiveRun, Pod
from boathouse_sim.live.rates import Activity, Gate, Rates
from boathouse_sim.live.shared import SharedRates
from boathouse_sim.workload import Errors, Workload


class LiveWorld(BaseWorld[work.Submission, LiveRun]):
    """One simulation, from the first submission to the last end. `course_of` makes the course of a job that comes.

    `errors`: of containers only the duration strays. `seed` is of all that is drawn: blocks, luck, outages.
    """

    def __init__(
        self,
        workload: Workload,
        profile: framework.Profile,
        course_of: "Callable[[LiveWorld, LiveRun], Course]",
        *,
        errors: Errors | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(workload, profile, (*workload.jobs, *workload.apps))
        self._course_of = course_of
        self.conditions = workload.conditions or PLAIN
        self.seed = seed
        self.errors = errors or Errors()
        self.machines = {machine.name: machine for machine in workload.cluster.each()}
        self.rates = self._rates()
        self.knowledge = knowledge.Knowledge(self.conditions, workload.cluster, seed)
        self.pods: dict[model.TaskId, Pod] = {}  # what runs or is about to
        self.sizes = sizes.Sizes(self, self.pods, self.rates, self.conditions)
        self.records: list[knowledge.TaskRecord] = []  # of attempts that are over, where the conditions ask for them
        self.attempts: dict[model.TaskId, int] = {}
        # When a pod that is placed now starts
        self.start_ms: Callable[[Pod], int] = lambda _pod: self.clock.now_ms + self.conditions.launch_ms
        self._losses: collections.Counter[model.TaskId] = collections.Counter()
        self._places = {node.name: node for node in self.nodes}
        self._stores = [node for node in self.nodes if self.machines[node.name].stores]

    def _rates(self) -> Rates:
        here = self.conditions
        if here.contention is None:
            return Rates(self.clock)
        known = {host.name: host for host in self.workload.cluster.hosts}
        # A host without machines is what all share: a link between them.
        names = dict.fromkeys([*(machine.server or machine.name for machine in self.machines.values()), *known])
        hosts = [known.get(name) or self.machines[name].host for name in names]
        return SharedRates(self.clock, hosts, here.contention, here.pools)

    @override
    def _arrive(self, spec: work.Submission) -> None:
        run = LiveRun(spec=spec, job=self.new_job(spec), submitted_ms=self.clock.now_ms)
        self.runs[run.job.id] = run
        run.course = self._course_of(self, run)
        self.notify_submitted(run.job, run.course.classes())
        run.course.begin()

    def task_class(
        self,
        run: LiveRun,
        kind: str,
        stage: model.Stage,
        container: work.Container,
        tasks: int,
        *,
        step: int = 0,
        gang_min: int = 0,
        known: bool = True,
    ) -> model.TaskClass:
        """Make a class of equal tasks."""
        task_class = model.TaskClass(
            id=model.ClassId(f"{run.job.id}/{step}/{kind}"),
            job=run.job.id,
            resources=size(container.cores, container.mem_mb),
            stage=stage,
            step=step,
            gang_min=gang_min,
            estimates=model.UNKNOWN,
        )
        if not known:
            return task_class
        return dataclasses.replace(task_class, estimates=self.knowledge.estimates(run, task_class, container, tasks))

    @override
    def end_job(self, run: LiveRun) -> None:
        self.knowledge.forget(run)
        super().end_job(run)

    def file(self, run: LiveRun, count: int, replicas: int) -> list[tuple[model.NodeName, ...]]:
        """Return the nodes of the blocks of a job's input: equal for equal seeds, whatever policy runs."""
        if not replicas:
            return [()] * count
        random = np.random.default_rng([self.seed, zlib.crc32(run.spec.id.encode())])
        return topology.Stores(self._stores, random).file(count, replicas)

    def wait(self, run: LiveRun, *offers: tuple[model.TaskClass, Sequence[model.Task]]) -> None:
        """Set all pending tasks of a job, running ones included: replaces what was set before."""
        tasks = [task for _, those in offers for task in those]
        self.room.submit(run.job, [task_class for task_class, _ in offers], tasks, placed=self.ledger)
        self.renewed = True

    def distance(self, node: model.NodeName, locations: Sequence[model.NodeName]) -> model.Distance | None:
        """Return how far a block is from a node; None for no block."""
        if not locations:
            return None
        here = self._places[node]
        return min(topology.distance(here, self._places[location]) for location in locations)

    def source(self, node: model.NodeName, locations: Sequence[model.NodeName], reader: str) -> str:
        """Return the host on whose disks a task reads its block, where their load counts; empty for its own."""
        distance = self.distance(node, locations) if self.conditions.reads_load_sources else None
        if distance is None or distance <= model.Distance.SERVER:
            return ""
        here = self._places[node]
        # Of equally near replicas any, as in HDFS: the same for equal readers of a seed
        near = [location for location in locations if topology.distance(here, self._places[location]) is distance]
        chosen = self.machines[near[zlib.crc32(f"{self.seed}/{reader}".encode()) % len(near)]]
        return chosen.server or chosen.name

    def speculate(self, decision: model.Speculate) -> None:
        """Start a second attempt of a task that runs and has none; nothing happens to what has ended since."""
        first = self.pods.get(decision.task.id)
        if first is None or first.rival is not None or first.is_second or not first.run.course.speculative:
            self.notify_refused(decision, "TaskEnded" if first is None else "NotSpeculative")
            return
        if refusal := self.kept_refusal(decision.node, self.axis.amounts(decision.resources)):
            self.notify_refused(decision, refusal)
            return
        self.tally.speculative += 1
        distance = self.distance(decision.node, first.task.locations)
        create = model.Create(
            task=dataclasses.replace(first.task, id=decision.attempt, pod_uid=None),
            task_class=first.task_class,
            job=first.run.job,
            node=decision.node,
            resources=decision.resources,
            distance=model.Distance.ANYWHERE if distance is None else distance,
        )
        self.place(create, first)

    def place(self, decision: model.Placement, rival: Pod | None = None) -> None:
        """Carry a decision out: the task is on its way."""
        self.ledger.assume(decision)
        run, task = self.runs[decision.job.id], decision.task
        pod = Pod(
            run=run,
            task=task,
            task_class=decision.task_class,
            container=run.course.container(decision.task_class),
            node=decision.node,
            machine=self.machines[decision.node],
            resources=decision.resources,
            asked=decision.resources,
            distance=self.distance(decision.node, task.locations),  # a policy may not know which nodes share a host
            placed_ms=self.clock.now_ms,
            source=self.source(decision.node, task.locations, task.id),
        )
        self.pods[task.id] = pod
        self.sizes.take(pod)
        if rival is not None:
            pod.is_second, pod.rival, rival.rival = True, rival, pod
        elif pod.distance is not None:
            self.tally.at(pod.distance)
        self.notify_placed(pod, decision, None if rival is None else rival.task.id)
        run.course.placed(pod)
        if (start_ms := self.start_ms(pod)) > self.clock.now_ms:
            self.clock.at(start_ms, Priority.ARRIVAL, Call(self._start, pod))
        else:
            self._start(pod)

    def _start(self, pod: Pod) -> None:
        if self.pods.get(pod.id) is not pod:
            return  # lost on the way
        pod.started_ms = self.clock.now_ms
        given_mb, ideal_mb = pod.resources.memory_bytes // MB, pod.container.mem_mb
        attempt = self.attempts.get(pod.id, 0)
        pod.luck = sizes.variation(self.seed, pod.id, attempt, self.conditions.jitter, self.errors.duration)
        pod.penalty = pod.container.penalty.run_time_ms(_FINE, given_mb, ideal_mb) / _FINE if ideal_mb else 1.0
        is_new = attempt == 0 and not pod.is_second
        self.tally.tasks += is_new
        self.tally.elastic += is_new and given_mb < ideal_mb
        if self.profile.observers:
            self.notify(model.Started(**self.about(pod)))
        pod.run.course.started(pod)

    def perform(self, pod: Pod, done: Callable[[Pod], None], gate: Gate | None = None) -> None:
        """Do the rest of a container's segments, one after the other."""
        segments = pod.container.segments
        while pod.segment < len(segments) and not segments[pod.segment].work_ms and (gate is None or pod.segment):
            pod.segment += 1
        if pod.segment == len(segments):
            self.clock.at(self.clock.now_ms, Priority.END, Call(self._done, pod, done))
            return

        def ended() -> None:
            pod.segment += 1
            self.perform(pod, done, gate)

        waits_for = None if pod.segment else gate
        self.do(pod, segments[pod.segment], ended, gate=waits_for, distance=pod.distance, source=pod.source)

    def _done(self, pod: Pod, done: Callable[[Pod], None]) -> None:
        if self.pods.get(pod.id) is pod:
            done(pod)

    def do(
        self,
        pod: Pod,
        segment: work.Segment,
        ended: Callable[[], None],
        *,
        gate: Gate | None = None,
        distance: model.Distance | None = None,
        source: str = "",
        luck: float | None = None,
    ) -> Activity:
        """Work in a pod from now on, with input at a distance (None: at hand) on the disks of the host `source`.

        A `gate` keeps it from ending. Chance makes it longer by `luck`, if not by the pod's own.
        """
        luck = pod.luck if luck is None else luck
        stretch, load, far = sizes.demands(segment, pod, distance, source, luck, self.conditions)
        activity = Activity(
            pod.machine.server or pod.machine.name,
            sizes.work_ms(segment),
            stretch,
            load,
            lambda: self._ended(pod, activity, segment, ended),
            pool=segment.pool,
            far=far,
            gate=gate,
            segment=segment,
            distance=distance,
            luck=luck,
            paused=pod.suspended,
        )
        pod.activities.append(activity)
        self.rates.start(activity)
        return activity

    def _ended(self, pod: Pod, activity: Activity, segment: work.Segment, ended: Callable[[], None]) -> None:
        pod.activities.remove(activity)
        pod.computed_core_ms += segment.cpu_ms * segment.cores
        self.tally.busy_core_ms += segment.cpu_ms * segment.cores
        ended()

    def finish(self, pod: Pod) -> None:
        """End a task successfully, and end its other attempt."""
        if (rival := pod.rival) is not None:  # its work is lost, and counts for nothing
            self.tally.busy_core_ms -= rival.computed_core_ms
            self._give_up(rival, "another attempt ended first")
            rival.run.course.superseded(rival)
        remote = pod.distance is not None and pod.distance > model.Distance.SERVER
        ran_ms = self._leave(pod, lost=False)
        worked_ms = max(1, ran_ms - pod.waited_ms) if self.conditions.run_times is RunTimes.LEARNED else ran_ms
        if self.profile.observers:
            # Where spills load no disk, the papers' studies count all of a penalty's time as bytes at a disk's rate.
            at_disk_rate_mb = sizes.spill_ms(pod) / 1000 * topology.DISK_MB_PER_S
            spilled_mb = sizes.spilled_mb(pod) if self.conditions.spills_load_disks else at_disk_rate_mb
            counters = work.counters(pod.container.segments, spilled_mb=spilled_mb, remote=remote)
            self.notify(model.Finished(**self.about(pod), duration_s=worked_ms / 1000, counters=counters))
        for run in self.knowledge.learn(pod, worked_ms):
            run.course.renew(self.knowledge.renewed)
            self.notify_submitted(run.job, run.course.classes(), run.course.left())

    def lose(self, pod: Pod, reason: str) -> None:
        """End a task before its end, as its job prescribes; raise StuckError if that happens too often to it."""
        self.tally.lost += 1
        self._losses[pod.id] += 1
        if self._losses[pod.id] == _MOST_LOST:
            raise StuckError(f"the task {pod.id} was lost {_MOST_LOST} times and never ended, the last time: {reason}")
        self.attempts[pod.id] = self.attempts.get(pod.id, 0) + (pod.started_ms >= 0)
        self._give_up(pod, reason)
        pod.run.course.lost(pod)

    def _give_up(self, pod: Pod, reason: str) -> None:
        for activity in pod.activities:
            self.rates.stop(activity)
        pod.activities.clear()
        if pod.rival is not None:
            pod.rival.rival = None
            pod.rival = None
        self._leave(pod, lost=True)
        if self.profile.observers:
            self.notify(model.Failed(**self.about(pod), reason=reason))

    def _leave(self, pod: Pod, *, lost: bool) -> int:
        """Free its room; return how long it ran, in milliseconds."""
        now_ms = self.clock.now_ms
        pod.stop_counting_suspension(now_ms)
        del self.pods[pod.id]
        self.sizes.leave(pod, lost=lost)
        if pod.started_ms < 0:
            return 0
        ran_ms = now_ms - pod.started_ms
        self.tally.mb_ms += pod.resources.memory_bytes // MB * ran_ms
        self.tally.core_ms += pod.asked.cpu_milli * (ran_ms - pod.suspended_ms) // 1000
        if self.conditions.records:
            self.records.append(knowledge.of_pod(pod, self.conditions.reading, now_ms=now_ms, lost=lost))
        return ran_ms

    def record_inner(self, pod: Pod, activity: Activity, index: int, began_ms: int) -> None:
        """Keep a record of a task inside an executor."""
        if self.conditions.records:
            record = knowledge.of_pod(pod, self.conditions.reading, now_ms=self.clock.now_ms, lost=False)
            self.records.append(knowledge.of_inner(record, activity, index, began_ms))


_MOST_LOST = 1000
_FINE = 1_000_000  # a run time in which a penalty's rounding is not seen
