"""A shell in virtual time: the operator's ledger, waiting room and cycle, with nodes and jobs that are only numbers.

Two shells drive it: `boathouse_sim.instant`, where a task starts when it fits, and `boathouse_sim.heartbeat`, by YARN's
rules.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import framework, model
from boathouse_policies.yarn_me import penalty
from boathouse_sim import results
from boathouse_sim.clock import Clock, Priority
from boathouse_sim.errors import Errors, Truth
from boathouse_sim.workload import PenaltyModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_sim.workload import Cluster, JobSpec, Phase, Workload

QUEUE = model.QueueName("default")
NO_LIMIT = 1 << 40  # YARN does not count containers
MB = 1 << 20
_STAGES = {"map": model.Stage.MAP, "reduce": model.Stage.REDUCE, "executor": model.Stage.EXECUTOR}


class StuckError(RuntimeError):
    """Tasks wait and nothing will ever happen: a fault of the policy, with its last reasons."""


@dataclasses.dataclass(slots=True, eq=False)
class JobRun:
    """A job on its way.

    Attributes:
        spec: What it is.
        truth: Its phases as they really are.
        job: As policies know it.
        classes: One for each phase.
        phase: The last phase that was submitted; -1 before the first.
        unplaced: Tasks of that phase that wait.
        left: Tasks of all phases that did not end.
    """

    spec: JobSpec
    truth: tuple[Phase, ...]
    job: model.Job
    classes: tuple[model.TaskClass, ...]
    left: int
    submitted_ms: int
    phase: int = -1
    unplaced: int = 0
    ended_ms: int = -1


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """A task that was placed."""

    id: model.TaskId
    run: JobRun
    phase: int
    node: model.NodeName
    given_mb: int
    started_ms: int = -1


class World:
    """One simulation, from the first submission to the last end.

    Args:
        workload: The cluster and the jobs.
        profile: The policies.
        arrived: Called when a job comes.
        errors: How the truth strays from the estimates.
        seed: Of what is drawn for them.
    """

    def __init__(
        self,
        workload: Workload,
        profile: framework.Profile,
        arrived: Callable[[JobRun], None],
        *,
        errors: Errors | None = None,
        seed: int = 0,
    ) -> None:
        workload.check()
        self._arrived = arrived
        self.workload = workload
        self.profile = profile
        self.clock = Clock()
        self.axis = model.Axis()
        self.ledger = framework.Ledger(self.axis)
        self.room = framework.WaitingRoom(self.axis, [model.Queue.of(QUEUE)])
        self.tally = results.Tally()
        self.cycles = 0
        self.waiting = 0  # tasks in the room
        self.ended_jobs = 0
        self.runs: dict[model.JobId, JobRun] = {}
        self.nodes = _nodes(workload.cluster)
        for node in self.nodes:
            self.ledger.set_node(node)
        self._truth = Truth(errors or Errors(), np.random.default_rng(seed))
        self._followers: dict[str, list[JobSpec]] = {}
        self._digits = max(len(job.id) for job in workload.jobs)
        for spec in workload.jobs:
            if spec.after is not None:
                self._followers.setdefault(spec.after, []).append(spec)
            else:
                self.clock.at(spec.submit_ms or 0, Priority.ARRIVAL, Call(self._arrive, spec))

    def finished(self) -> results.Outcome:
        """What was seen, when nothing is left to happen.

        Raises:
            StuckError: Tasks wait all the same.
        """
        if self.ended_jobs < len(self.workload.jobs):
            reasons = {str(one): verdict.code.value for one, verdict in list(self.room.parked().items())[:3]}
            raise StuckError(f"{len(self.room)} tasks wait and nothing will ever happen; why the first wait: {reasons}")
        return self._outcome()

    def _outcome(self) -> results.Outcome:
        runs = sorted(self.runs.values(), key=lambda run: run.job.id)
        first = min(run.submitted_ms for run in runs)
        return results.summarise(
            [run.ended_ms - run.submitted_ms for run in runs],
            makespan_ms=max(run.ended_ms for run in runs) - first,
            tally=self.tally,
            cluster=self.workload.cluster,
            events=self.clock.events + self.cycles,
        )

    # Jobs

    def _arrive(self, spec: JobSpec) -> None:
        job = model.Job(
            id=model.JobId(spec.id.zfill(self._digits)), queue=QUEUE, submitted_s=self.clock.now_s, name=spec.id
        )
        run = JobRun(
            spec=spec,
            truth=self._truth.of_job(spec.phases, self.workload.cluster.node_mem_mb),
            job=job,
            classes=tuple(self._class(job, i, phase) for i, phase in enumerate(spec.phases)),
            left=sum(phase.tasks for phase in spec.phases),
            submitted_ms=self.clock.now_ms,
        )
        self.runs[job.id] = run
        if self.profile.observers:
            counts = {one.id: phase.tasks for one, phase in zip(run.classes, spec.phases, strict=True)}
            self.tell(model.Submitted(now_s=self.clock.now_s, job=job, classes=run.classes, tasks=counts))
        self._arrived(run)

    def _class(self, job: model.Job, step: int, phase: Phase) -> model.TaskClass:
        resources = model.Resources(cpu_milli=phase.cores * 1000, memory_bytes=phase.mem_ideal_mb * MB)
        return model.TaskClass(
            id=model.ClassId(f"{job.id}/{step}/{phase.kind}"),
            job=job.id,
            resources=resources,
            stage=_STAGES.get(phase.kind, model.Stage.OTHER),
            step=step,
            estimates=estimates(phase, self.workload.cluster),
        )

    def submit_next_phase(self, run: JobRun) -> None:
        """The tasks of the next phase wait from now on."""
        run.phase += 1
        one, phase = run.classes[run.phase], run.spec.phases[run.phase]
        run.unplaced = phase.tasks
        tasks = [model.Task(id=model.TaskId(f"{one.id}-{i}"), task_class=one.id, index=i) for i in range(phase.tasks)]
        self.submit(run, one, tasks)

    def submit(self, run: JobRun, one: model.TaskClass, tasks: Sequence[model.Task]) -> None:
        """Tasks of a job wait from now on."""
        self.waiting += len(tasks)
        self.room.submit(run.job, [one], tasks)

    def place(self, decision: model.Placement) -> Running:
        """Carry a decision out: deduct it, and submit the next phase when this one is placed whole."""
        self.ledger.assume(decision)
        self.waiting -= 1
        run = self.runs[decision.job.id]
        task = Running(decision.task.id, run, run.phase, decision.node, decision.resources.memory_bytes // MB)
        if self.profile.observers:
            self.tell(
                model.Placed(
                    now_s=self.clock.now_s,
                    task=decision.task.id,
                    task_class=decision.task_class.id,
                    job=decision.job.id,
                    node=decision.node,
                    resources=decision.resources,
                    distance=decision.distance,
                )
            )
        return task

    def placed_whole(self, run: JobRun) -> bool:
        """A task of the job's phase was placed: when it was the last, the next phase starts; whether it did."""
        run.unplaced -= 1
        if run.unplaced or run.phase + 1 == len(run.classes):
            return False
        self.submit_next_phase(run)
        return True

    def start(self, task: Running, ended: Callable[[Running], None]) -> None:
        """The task runs from now on; `ended` is called at its end."""
        now_ms = task.started_ms = self.clock.now_ms
        phase = task.run.truth[task.phase]
        run_ms = self._truth.run_time_ms(phase, task.given_mb)
        tally = self.tally
        tally.tasks += 1
        tally.elastic += task.given_mb < task.run.spec.phases[task.phase].mem_ideal_mb
        tally.mb_ms += task.given_mb * run_ms
        tally.core_ms += phase.cores * run_ms
        self.clock.at(now_ms + run_ms, Priority.END, Call(ended, task))
        if self.profile.observers:
            one = task.run.classes[task.phase].id
            self.tell(
                model.Started(now_s=self.clock.now_s, task=task.id, task_class=one, job=task.run.job.id, node=task.node)
            )

    def give_back(self, task: Running) -> None:
        """The task is gone: its room is free, and whoever it helps is looked at again."""
        freed = self.ledger.gone(task.id)
        if freed is not None:
            self.room.capacity_freed(freed, self.ledger.free(freed.node))
        if self.profile.observers:
            self.tell(
                model.Finished(
                    now_s=self.clock.now_s,
                    task=task.id,
                    task_class=task.run.classes[task.phase].id,
                    job=task.run.job.id,
                    node=task.node,
                    duration_s=(self.clock.now_ms - task.started_ms) / 1000,
                    counters={},
                )
            )

    def end_job(self, run: JobRun) -> None:
        """All of the job has ended: those that waited for it are submitted."""
        run.ended_ms = self.clock.now_ms
        self.ended_jobs += 1
        self.room.withdraw(run.job.id)
        if self.profile.observers:
            self.tell(model.Ended(now_s=self.clock.now_s, job=run.job.id, succeeded=True))
        for spec in self._followers.get(run.spec.id, ()):
            self.clock.at(self.clock.now_ms, Priority.ARRIVAL, Call(self._arrive, spec))

    def tell(self, event: model.Event) -> None:
        """Tell whatever learns."""
        for observer in self.profile.observers:
            observer.observe(event)


class Call:
    """A method and its argument, for the heap."""

    __slots__ = ("_argument", "_method")

    def __init__(self, method: Callable[..., None], argument: object) -> None:
        self._method = method
        self._argument = argument

    def __call__(self) -> None:
        """Do it."""
        self._method(self._argument)


def _nodes(cluster: Cluster) -> Sequence[model.Node]:
    digits = len(str(cluster.nodes - 1))
    room = model.Resources(cpu_milli=cluster.node_cores * 1000, memory_bytes=cluster.node_mem_mb * MB)
    return [
        model.Node(
            name=model.NodeName(f"n{i:0{digits}}"), allocatable=room, max_pods=NO_LIMIT, rack=f"r{i % cluster.racks}"
        )
        for i in range(cluster.nodes)
    ]


def estimates(phase: Phase, cluster: Cluster) -> penalty.Elastic:
    """What policies are told of a phase's tasks: the paper's models with the workload's parameters."""
    ideal, ideal_s, factor = phase.mem_ideal_mb * MB, phase.duration_ms / 1000, phase.penalty.factor
    run_time: penalty.RunTime
    if phase.penalty.model is PenaltyModel.STEP:
        run_time = penalty.Mapper(ideal_s=ideal_s, ideal_bytes=ideal, undersized_s=ideal_s * factor, output_bytes=ideal)
    else:
        shuffled = ideal * penalty.BUFFER_SHARE
        slower_s = ideal_s * (factor - 1)
        run_time = penalty.Reducer(
            ideal_s=ideal_s,
            input_bytes=shuffled,
            disk_bytes_per_s=shuffled / slower_s if slower_s > 0 else np.inf,
        )
    return penalty.Elastic(
        run_time,
        ideal_bytes=ideal,
        step_bytes=cluster.mem_granularity_mb * MB,
        least_share=cluster.min_mem_fraction,
    )
