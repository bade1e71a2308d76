"""The course of a dynamic Hadoop cluster: its nodes come and go as a policy says, its jobs run on them.

It takes jobs once its first nodes are up. A node that was given back takes no more tasks, and leaves when those it runs
and the jobs that still read map output from it have ended (YARN's graceful decommissioning). A node that is lost is
asked for again: its tasks and the map output on it are made again; blocks that were on it have other replicas.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from boathouse_lab.koala.jobs import HadoopJob, JobRecord, SizeRecord
from boathouse_lab.koala.tracker import JobBook, Tracker
from boathouse_lab.koala.work import Attempt, Work
from boathouse_policies import koala, model
from boathouse_policies.koala import Kind
from boathouse_sim import topology
from boathouse_sim.live.course import Course, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_lab.koala.jobs import HadoopSpec
    from boathouse_sim.live.course import LiveRun, Pod
    from boathouse_sim.live.world import LiveWorld
    from boathouse_sim.work import Container


@dataclasses.dataclass(slots=True, eq=False)
class _Worker:
    """A node that is up."""

    pod: Pod
    kind: Kind
    maps: list[Attempt] = dataclasses.field(default_factory=list)
    reduces: list[Attempt] = dataclasses.field(default_factory=list)
    leaves: bool = False

    @property
    def tasks(self) -> int:
        return len(self.maps) + len(self.reduces)


class HadoopCourse(Course):
    """See the module's docstring.

    Attributes:
        records: Jobs that are over, in order of their end.
        sizes: How large the cluster was, since its first nodes were up.
        ready_ms: When it took jobs; -1 before.
        work: What its tasks do.
        nodes: All that it ever had.
    """

    def __init__(self, spec: HadoopSpec, world: LiveWorld, run: LiveRun) -> None:
        self._spec, self._world, self._run = spec, world, run
        self._class = world.task_class(run, "worker", model.Stage.OTHER, spec.node, spec.tasks, known=False)
        self._kinds = {i: Kind.CORE if i < spec.core else Kind.TRANSIENT for i in range(spec.tasks)}
        self._made = spec.tasks
        self._pods: dict[model.TaskId, Pod] = {}
        self._up: dict[model.TaskId, _Worker] = {}
        self._tracker = Tracker()
        self.work = Work(world, spec, self._datanodes)
        self._luck: dict[str, list[float]] = {}
        self._over = False
        self.records: list[JobRecord] = []
        self.sizes: list[SizeRecord] = []
        self.ready_ms = -1
        self.nodes: set[str] = set()

    @override
    def classes(self) -> Sequence[tuple[model.TaskClass, int]]:
        return [(self._class, self._spec.tasks)]

    @override
    def container(self, task_class: model.TaskClass) -> Container:
        return self._spec.node

    @override
    def begin(self) -> None:
        self._offer()

    # Nodes

    def _offer(self) -> None:
        one = self._class
        tasks = [model.Task(id=model.TaskId(f"{one.id}-{i}"), task_class=one.id, index=i) for i in sorted(self._kinds)]
        self._world.wait(self._run, (one, tasks))

    def _datanodes(self) -> Sequence[Pod]:
        return [one.pod for one in self._up.values() if one.kind is Kind.CORE]

    @override
    def placed(self, pod: Pod) -> None:
        self._pods[pod.id] = pod
        self.nodes.add(pod.node)

    @override
    def started(self, pod: Pod) -> None:
        self._world.clock.after(self._spec.boot_ms, self._is_up, pod)

    def _is_up(self, pod: Pod) -> None:
        if self._pods.get(pod.id) is not pod:
            return  # lost before, or no longer wanted
        self._up[pod.id] = _Worker(pod, self._kinds[pod.task.index])
        self._measure()
        if self.ready_ms < 0 and len(self._up) == self._spec.tasks:
            self._ready()
        self._assign_all()

    def _ready(self) -> None:
        self.ready_ms = self._world.clock.now_ms
        for job in self._spec.jobs:
            self._world.clock.after(job.submit_ms, self._come, job)

    def _measure(self) -> None:
        kinds = [one.kind for one in self._up.values()]
        core, transient = kinds.count(Kind.CORE), kinds.count(Kind.TRANSIENT)
        self.sizes.append(SizeRecord(at_ms=self._world.clock.now_ms, core=core, transient=transient))

    @override
    def scale(self, decision: model.Scale) -> None:
        staying = len(self._kinds) - sum(one.leaves for one in self._up.values())
        if decision.workers > staying:
            kind = Kind.CORE if decision.stores else Kind.TRANSIENT
            for _ in range(decision.workers - staying):
                self._ask_for(kind)
            self._offer()
        elif decision.workers < staying:
            self._give_back(staying - decision.workers)

    def _ask_for(self, kind: Kind) -> None:
        self._kinds[self._made] = kind
        self._made += 1

    def _give_back(self, count: int) -> None:
        """Let transient nodes leave, those with the fewest tasks first, then by name (the paper does not say)."""
        staying = [worker for worker in self._up.values() if worker.kind is Kind.TRANSIENT and not worker.leaves]
        for worker in sorted(staying, key=lambda worker: (worker.tasks, worker.pod.id))[:count]:
            worker.leaves = True
            self._leave_if_free(worker)

    def _leave_if_free(self, worker: _Worker) -> None:
        pod = worker.pod
        if not worker.leaves or worker.tasks or self._up.get(pod.id) is not worker:
            return
        if any(job.needs(pod.id) for job in self._tracker.jobs.values()):
            return
        self._remove(pod)
        self._world.finish(pod)
        self._offer()

    def _remove(self, pod: Pod) -> _Worker | None:
        del self._kinds[pod.task.index]
        del self._pods[pod.id]
        worker = self._up.pop(pod.id, None)
        if worker is not None:
            self._measure()
        return worker

    @override
    def lost(self, pod: Pod) -> None:
        if self._over:
            return
        kind = self._kinds[pod.task.index]
        worker = self._remove(pod)
        if worker is None or not worker.leaves:
            self._ask_for(kind)
        self._offer()
        if worker is not None:
            self._do_again(worker)
            self._assign_all()

    def _do_again(self, worker: _Worker) -> None:
        for attempt in [*worker.maps, *worker.reduces]:
            self.work.cancel(attempt)
            again = {"maps": [attempt.index]} if attempt.is_map else {"reduces": [attempt.index]}
            attempt.job.past_copy.discard(attempt.index)
            attempt.job.again(**again)
        for job in self._tracker.jobs.values():
            gone = job.lost_outputs(worker.pod.id)
            self.work.mend_copies(self._reducing(job))  # what was copied so far
            for index in gone:
                job.forget(index, self._world.clock.now_ms)
            self.work.mend_copies(self._reducing(job))
        for other in tuple(self._up.values()):
            for attempt in [*other.maps, *other.reduces]:
                self.work.without(attempt, worker.pod)

    def _reducing(self, job: JobBook) -> list[Attempt]:
        return [attempt for one in self._up.values() for attempt in one.reduces if attempt.job is job]

    # Jobs

    def _come(self, job: HadoopJob) -> None:
        held = self._blocks(job)
        self._luck[job.id] = self._draw(job)
        self._tracker.jobs[job.id] = JobBook(job, held, self._spec.slow_start, self._world.clock.now_ms)
        self._assign_all()

    def _blocks(self, job: HadoopJob) -> list[tuple[model.TaskId, ...]]:
        """Place blocks on the first core nodes: equal for equal seeds, whatever policy runs."""
        nodes = [
            model.Node(name=model.NodeName(f"{self._class.id}-{i}"), allocatable=model.Resources())
            for i in range(self._spec.core)
        ]
        found = topology.Stores(nodes, self._random(job, 0)).file(job.maps, self._spec.replicas)
        return [tuple(model.TaskId(name) for name in held) for held in found]

    def _random(self, job: HadoopJob, stream: int) -> np.random.Generator:
        name = f"{self._spec.id}/{job.id}".encode()
        return np.random.default_rng([self._world.seed, zlib.crc32(name), stream])

    def _draw(self, job: HadoopJob) -> list[float]:
        """Draw the random variation of each task, maps first."""
        count, jitter = job.maps + job.reduces, self._spec.jitter
        if not jitter:
            return [1.0] * count
        sigma = math.sqrt(math.log1p(jitter**2))
        drawn: list[float] = self._random(job, 1).lognormal(-sigma * sigma / 2, sigma, count).tolist()
        return drawn

    # Tasks

    def _assign_all(self) -> None:
        """Round after round, as heartbeats come: a map and a reducer for each node with a free slot."""
        workers = sorted(self._up.values(), key=lambda one: one.pod.task.index)
        while workers and self._tracker.waiting:
            workers = [one for one in workers if self._assign(one)]

    def _assign(self, worker: _Worker) -> bool:
        """Assign at most one map and one reducer; return whether there was one."""
        if worker.leaves or not self._datanodes():
            return False
        found = False
        if len(worker.maps) < self._spec.map_slots and (task := self._tracker.next_map(worker.pod.id)) is not None:
            found = True
            self._run_task(worker, *task, is_map=True)
        if len(worker.reduces) < self._spec.reduce_slots and (task := self._tracker.next_reduce()) is not None:
            found = True
            self._run_task(worker, *task, is_map=False)
        return found

    def _run_task(self, worker: _Worker, job: JobBook, index: int, *, is_map: bool) -> None:
        luck = self._luck[job.spec.id][index + (0 if is_map else job.spec.maps)]
        stores = worker.kind is Kind.CORE
        done = self._mapped if is_map else self._reduced
        attempt = Attempt(job, index, is_map, worker.pod, stores, luck, done)
        (worker.maps if is_map else worker.reduces).append(attempt)
        self.work.start(attempt, self._sources(job, index) if is_map else ())

    def _sources(self, job: JobBook, index: int) -> Sequence[Pod]:
        """Return nodes with a block; where all were lost at once, it was loaded again, anywhere."""
        return [self._up[one].pod for one in job.blocks[index] if one in self._up] or self._datanodes()

    def _mapped(self, attempt: Attempt) -> None:
        job, worker = attempt.job, self._up[attempt.pod.id]
        worker.maps.remove(attempt)
        before = job.waiting_reduces
        if job.mapped(attempt.index, attempt.pod.id, self._world.clock.now_ms):
            self.work.mend_copies(self._reducing(job))
        if job.waiting_reduces and not before:
            self._assign_all()
        self._assign(worker)
        self._leave_if_free(worker)

    def _reduced(self, attempt: Attempt) -> None:
        job, worker = attempt.job, self._up[attempt.pod.id]
        worker.reduces.remove(attempt)
        job.reduced.add(attempt.index)
        if job.over:
            self._end_of(job)
        self._assign(worker)
        self._leave_if_free(worker)

    def _end_of(self, job: JobBook) -> None:
        del self._tracker.jobs[job.spec.id]
        self.records.append(
            JobRecord(
                id=job.spec.id,
                program=job.spec.program.name,
                submitted_ms=job.submitted_ms,
                mapped_ms=job.mapped_ms,
                ended_ms=self._world.clock.now_ms,
                local_maps=job.local_maps,
                maps=job.spec.maps,
            )
        )
        for worker in tuple(self._up.values()):
            self._leave_if_free(worker)
        if self._workload_over:
            self._world.clock.after(self._spec.linger_ms, self._end)

    @property
    def _workload_over(self) -> bool:
        return len(self.records) == len(self._spec.jobs)

    def _end(self) -> None:
        self._over = True
        for pod in sorted(self._pods.values(), key=lambda pod: pod.task.index):
            self._world.finish(pod)
        self._pods.clear()
        self._up.clear()
        self._world.end_job(self._run)

    # The master, on the first node that is up

    def state(self) -> koala.Cluster:
        """Return the state that the policy observes."""
        staying = [one for one in self._up.values() if not one.leaves]
        leaving = len(self._up) - len(staying)
        kinds = [one.kind for one in staying]
        return koala.Cluster(
            name=self._run.job.id,
            running_tasks=sum(one.tasks for one in staying),
            runnable_tasks=self._tracker.waiting,
            slots=len(staying) * self._spec.node_slots,
            node_slots=self._spec.node_slots,
            core_nodes=kinds.count(Kind.CORE),
            transient_nodes=kinds.count(Kind.TRANSIENT),
            first_core_nodes=self._spec.core,
            pending_nodes=len(self._kinds) - len(staying) - leaving,
            leaving_nodes=leaving,
            workload_ended=self._workload_over,
        )

    @override
    def report(self, pod: Pod) -> Report | None:
        if self.ready_ms < 0 or pod.task.index != min((one.pod.task.index for one in self._up.values()), default=-1):
            return None
        share = len(self.records) / len(self._spec.jobs)
        return Report(fraction=share, phase="cluster", counters=self.state().counters())
