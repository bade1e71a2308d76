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
from boathouse_sim import probing, results
from boathouse_sim.clock import Clock, Priority
from boathouse_sim.errors import Errors, Truth
from boathouse_sim.workload import PenaltyModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_sim.workload import Cluster, JobSpec, Phase, Workload

QUEUE = model.QueueName("default")
NO_LIMIT = 1 << 40  # YARN does not count containers
MB = 1 << 20
_STAGES = {
    "map": model.Stage.MAP,
    "reduce": model.Stage.REDUCE,
    "executor": model.Stage.EXECUTOR,
    "uber": model.Stage.UBER,
    "probe": model.Stage.PROBE,
    "driver": model.Stage.DRIVER,
}


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
        master: The class of its master's container, if it has one of its own.
        container: That container, once placed.
        probe: Its probing job, if the policy asked for one.
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
    master: model.TaskClass | None = None
    container: Running | None = None
    probe: JobRun | None = None


@dataclasses.dataclass(slots=True, eq=False)
class Running:
    """A task that was placed; its phase is -1 for a master's container."""

    id: model.TaskId
    run: JobRun
    phase: int
    node: model.NodeName
    given_mb: int
    task_class: model.ClassId
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
        self._needs_probe = probing.asked_by(profile)
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
        runs = sorted((run for run in self.runs.values() if run.job.probe_of is None), key=lambda run: run.job.id)
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
        run = self._admit(spec, model.JobId(spec.id.zfill(self._digits)))
        if spec.probe is not None and self._needs_probe is not None and self._needs_probe(run.job.id):
            run.probe = self._admit(probing.job(spec), model.JobId(f"{run.job.id}-probe"), probe_of=run.job.id)

    def _admit(self, spec: JobSpec, job_id: model.JobId, probe_of: model.JobId | None = None) -> JobRun:
        now_s = self.clock.now_s
        job = model.Job(id=job_id, queue=QUEUE, submitted_s=now_s, name=spec.id, kind=spec.program, probe_of=probe_of)
        told = spec.stated or self._needs_probe is None
        run = JobRun(
            spec=spec,
            truth=self._truth.of_job(spec.phases, self.workload.cluster.node_mem_mb),
            job=job,
            classes=tuple(self._class(job, i, phase, told=told) for i, phase in enumerate(spec.phases)),
            left=sum(phase.tasks for phase in spec.phases),
            submitted_ms=self.clock.now_ms,
            master=None if spec.master is None else self._class(job, len(spec.phases), spec.master, told=False),
        )
        self.runs[job.id] = run
        if self.profile.observers:
            counts = {one.id: phase.tasks for one, phase in zip(run.classes, spec.phases, strict=True)}
            masters = () if run.master is None else (run.master,)
            counts |= {one.id: 1 for one in masters}
            self.tell(model.Submitted(now_s=now_s, job=job, classes=(*masters, *run.classes), tasks=counts))
        self._arrived(run)
        return run

    def _class(self, job: model.Job, step: int, phase: Phase, *, told: bool) -> model.TaskClass:
        resources = model.Resources(cpu_milli=phase.cores * 1000, memory_bytes=phase.mem_ideal_mb * MB)
        return model.TaskClass(
            id=model.ClassId(f"{job.id}/{step}/{phase.kind}"),
            job=job.id,
            resources=resources,
            stage=_STAGES.get(phase.kind, model.Stage.OTHER),
            step=step,
            estimates=estimates(phase, self.workload.cluster) if told else probing.InputOnly(phase.input_bytes),
        )

    def submit_master(self, run: JobRun) -> None:
        """The job's master waits from now on."""
        assert run.master is not None
        self.submit(run, run.master, [model.Task(id=model.TaskId(f"{run.master.id}-0"), task_class=run.master.id)])

    def drop_probe(self, run: JobRun) -> None:
        """A job is over: nobody asks any more what its probing job would find, if that has not begun."""
        probe = run.probe
        if probe is None or not probe.unplaced:
            return
        self.waiting -= probe.unplaced
        probe.unplaced = 0
        self.room.withdraw(probe.job.id)
        self.tell(model.Ended(now_s=self.clock.now_s, job=probe.job.id, succeeded=False))

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
        phase = -1 if decision.task_class is run.master else run.phase
        given_mb = decision.resources.memory_bytes // MB
        task = Running(decision.task.id, run, phase, decision.node, given_mb, decision.task_class.id)
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
        if task.run.job.probe_of is None:
            tally.tasks += 1
        else:
            tally.probes += 1
            tally.probe_mb_ms += task.given_mb * run_ms
        tally.elastic += task.given_mb < task.run.spec.phases[task.phase].mem_ideal_mb
        tally.mb_ms += task.given_mb * run_ms
        tally.core_ms += phase.cores * run_ms
        self.clock.at(now_ms + run_ms, Priority.END, Call(ended, task))
        if self.profile.observers:
            job = task.run.job.id
            self.tell(
                model.Started(now_s=self.clock.now_s, task=task.id, task_class=task.task_class, job=job, node=task.node)
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
                    task_class=task.task_class,
                    job=task.run.job.id,
                    node=task.node,
                    duration_s=(self.clock.now_ms - task.started_ms) / 1000,
                    counters=dict(task.run.spec.phases[task.phase].counters) if task.phase >= 0 else {},
                )
            )

    def end_job(self, run: JobRun) -> None:
        """All of the job has ended: those that waited for it are submitted."""
        run.ended_ms = self.clock.now_ms
        self.ended_jobs += run.job.probe_of is None
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
