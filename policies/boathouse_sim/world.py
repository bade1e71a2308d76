"""A shell in virtual time: the operator's ledger, queue and cycle, with nodes and jobs that are only numbers.

Two shells of `boathouse_sim.simulation` drive it: `Instant`, where a task starts when it fits, and `Heartbeats`, by
YARN's rules.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from boathouse_policies import model
from boathouse_policies.yarn_me import penalty
from boathouse_sim import probing
from boathouse_sim.base_world import MB, BaseWorld
from boathouse_sim.clock import Priority
from boathouse_sim.workload import Errors, PenaltyModel, Truth

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boathouse_policies import framework
    from boathouse_sim.workload import Cluster, JobSpec, Phase, Workload

STAGES = {
    "map": model.Stage.MAP,
    "reduce": model.Stage.REDUCE,
    "executor": model.Stage.EXECUTOR,
    "uber": model.Stage.UBER,
    "probe": model.Stage.PROBE,
    "driver": model.Stage.DRIVER,
}


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
    index: int = 0


class World(BaseWorld["JobSpec", JobRun]):
    """One simulation, from the first submission to the last end.

    Args:
        workload: The cluster and the jobs.
        profile: The policies.
        arrived: Called when a job comes.
        ended: Called with the tasks that end at one time, in the order in which they were started.
        errors: How the truth strays from the estimates.
        seed: Of what is drawn for them.
    """

    def __init__(
        self,
        workload: Workload,
        profile: framework.Profile,
        arrived: Callable[[JobRun], None],
        ended: Callable[[Sequence[Running]], None],
        *,
        errors: Errors | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(workload, profile, workload.jobs, self._come)
        self._arrived = arrived
        self._ended = ended
        self.waiting = 0  # tasks in the room
        self._truth = Truth(errors or Errors(), np.random.default_rng(seed))
        self._needs_probe = probing.asked_by(profile)
        self._ends: dict[int, list[Running]] = {}  # one event for all that ends at one time

    @property
    @override
    def waits(self) -> bool:
        """Whether any task waits: not counted anew."""
        return self.waiting > 0

    # Jobs

    def _come(self, spec: JobSpec) -> None:
        run = self._admit(spec, self.job_id(spec))
        if spec.probe is not None and self._needs_probe is not None and self._needs_probe(run.job.id):
            run.probe = self._admit(probing.job(spec), model.JobId(f"{run.job.id}-probe"), probe_of=run.job.id)

    def _admit(self, spec: JobSpec, job_id: model.JobId, probe_of: model.JobId | None = None) -> JobRun:
        now_s = self.clock.now_s
        queue = model.QueueName(spec.queue)
        job = model.Job(
            id=job_id,
            queue=queue,
            submitted_s=now_s,
            name=spec.id,
            namespace=model.NamespaceName(spec.namespace),
            kind=spec.program,
            probe_of=probe_of,
        )
        is_known = spec.stated or self._needs_probe is None
        run = JobRun(
            spec=spec,
            truth=self._truth.of_job(spec.phases, self.workload.cluster.node_mem_mb),
            job=job,
            classes=tuple(self._class(job, i, phase, is_known=is_known) for i, phase in enumerate(spec.phases)),
            left=sum(phase.tasks for phase in spec.phases),
            submitted_ms=self.clock.now_ms,
            master=None if spec.master is None else self._class(job, len(spec.phases), spec.master, is_known=False),
        )
        self.runs[job.id] = run
        if self.profile.observers:
            counts = {task_class.id: phase.tasks for task_class, phase in zip(run.classes, spec.phases, strict=True)}
            masters = () if run.master is None else (run.master,)
            counts |= {master.id: 1 for master in masters}
            self.notify(model.Submitted(now_s=now_s, job=job, classes=(*masters, *run.classes), tasks=counts))
        self._arrived(run)
        return run

    def _class(self, job: model.Job, step: int, phase: Phase, *, is_known: bool) -> model.TaskClass:
        resources = model.Resources(cpu_milli=round(phase.cores * 1000), memory_bytes=phase.mem_ideal_mb * MB)
        return model.TaskClass(
            id=model.ClassId(f"{job.id}/{step}/{phase.kind}"),
            job=job.id,
            resources=resources,
            stage=STAGES.get(phase.kind, model.Stage.OTHER),
            step=step,
            estimates=estimates(phase, self.workload.cluster)
            if is_known
            else model.Fixed(read_bytes=phase.input_bytes),
        )

    def submit_master(self, run: JobRun) -> None:
        """Submit the job's master."""
        assert run.master is not None
        self.submit(run, run.master, [model.Task(id=model.TaskId(f"{run.master.id}-0"), task_class=run.master.id)])

    def drop_probe(self, run: JobRun) -> None:
        """Drop the probing job of a finished job if it has not begun."""
        probe = run.probe
        if probe is None or not probe.unplaced:
            return
        self.waiting -= probe.unplaced
        probe.unplaced = 0
        self.room.withdraw(probe.job.id)
        self.notify(model.Ended(now_s=self.clock.now_s, job=probe.job.id, succeeded=False))

    def submit_next_phase(self, run: JobRun) -> None:
        """Submit the tasks of the next phase."""
        run.phase += 1
        task_class, phase = run.classes[run.phase], run.spec.phases[run.phase]
        run.unplaced = phase.tasks
        tasks = [
            model.Task(id=model.TaskId(f"{task_class.id}-{i}"), task_class=task_class.id, index=i)
            for i in range(phase.tasks)
        ]
        self.submit(run, task_class, tasks)

    def submit(self, run: JobRun, task_class: model.TaskClass, tasks: Sequence[model.Task]) -> None:
        """Submit tasks of a job."""
        self.waiting += len(tasks)
        self.room.submit(run.job, [task_class], tasks)

    def place(self, decision: model.Placement) -> Running:
        """Carry a decision out: deduct it, and submit the next phase when this one is placed whole."""
        self.ledger.assume(decision)
        self.waiting -= 1
        run, task_class = self.runs[decision.job.id], decision.task_class
        phase = -1 if task_class is run.master else run.phase
        given_mb = decision.resources.memory_bytes // MB
        task = Running(decision.task.id, run, phase, decision.node, given_mb, task_class.id, index=decision.task.index)
        if self.profile.observers:
            self.notify_placed(decision)
        return task

    def placed_whole(self, run: JobRun) -> bool:
        """Record a placed task; start the next phase after the last of its phase. Returns whether it did."""
        run.unplaced -= 1
        if run.unplaced:
            return False
        following = run.phase + 1
        if following == len(run.classes) or run.spec.phases[following].when_ended:
            return False
        self.submit_next_phase(run)
        return True

    def ended_whole(self, run: JobRun) -> bool:
        """Record the end of a task; start the next phase if that waits for its phase's last. Returns whether it did."""
        rest = run.spec.phases[run.phase + 1 :]
        if run.unplaced or not rest or not rest[0].when_ended or run.left > sum(phase.tasks for phase in rest):
            return False
        self.submit_next_phase(run)
        return True

    def start(self, task: Running) -> None:
        """Start the task; the shell is notified at its end."""
        run, given_mb, tally = task.run, task.given_mb, self.tally
        now_ms = task.started_ms = self.clock.now_ms
        phase = run.truth[task.phase]
        run_ms = self._truth.run_time_ms(phase, given_mb, task.index)
        mb_ms, end_ms = given_mb * run_ms, now_ms + run_ms
        if run.job.probe_of is None:
            tally.tasks += 1
        else:
            tally.probes += 1
            tally.probe_mb_ms += mb_ms
        if given_mb < run.spec.phases[task.phase].mem_ideal_mb:
            tally.elastic += 1
        tally.mb_ms += mb_ms
        tally.core_ms += phase.cores * run_ms
        together = self._ends.get(end_ms)
        if together is None:
            together = self._ends[end_ms] = []
            self.clock.at(end_ms, Priority.END, self._end)
        together.append(task)
        if self.profile.observers:
            job = task.run.job.id
            self.notify(
                model.Started(now_s=self.clock.now_s, task=task.id, task_class=task.task_class, job=job, node=task.node)
            )

    def _end(self) -> None:
        together = self._ends.pop(self.clock.now_ms)
        self.clock.events += len(together) - 1
        self._ended(together)

    def give_back(self, tasks: Sequence[Running]) -> None:
        """Remove tasks: free their room, and reconsider the tasks that it helps."""
        ledger = self.ledger
        freed = {task.node: ledger.gone(task.id) for task in tasks}
        for node, freed_room in freed.items():
            self.room.capacity_freed(freed_room, ledger.free(node))
        for task in tasks if self.profile.observers else ():
            self.notify(
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


def estimates(phase: Phase, cluster: Cluster) -> penalty.Elastic:
    """Return the estimates of a phase's tasks for policies: the paper's models with the workload's parameters."""
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
