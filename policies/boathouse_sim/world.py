"""A shell in virtual time: the operator's ledger, queue and cycle, with nodes and jobs that are only numbers.

Two shells of `boathouse_sim.simulation` drive it: `Instant`, where a task starts when it fits, and `Heartbeats`, by
YARN's rules.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from typing_extensions import override

from boathouse_policies import framework, model
from boathouse_policies.yarn_me import penalty
from boathouse_sim import probing
from boathouse_sim.base_world import MB, Attempt, BaseWorld, Run, size, tasks_of
from boathouse_sim.clock import Priority
from boathouse_sim.workload import Cluster, Errors, JobSpec, PenaltyModel, Phase, Truth, Workload

_NAMED = (model.Stage.MAP, model.Stage.REDUCE, model.Stage.EXECUTOR, model.Stage.UBER, model.Stage.PROBE)
STAGES = {str(stage): stage for stage in (*_NAMED, model.Stage.DRIVER)}  # by the kind of a phase


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class JobRun(Run):
    """A job of phases on its way."""

    spec: JobSpec
    truth: tuple[Phase, ...]  # its phases as they really are
    classes: tuple[model.TaskClass, ...]  # one for each phase
    phase: int = -1  # the last one that was submitted
    unplaced: int = 0  # tasks of that phase that wait
    left: int  # tasks of all phases that did not end
    master: model.TaskClass | None = None  # of its master's container, if it has one of its own
    container: "Running | None" = None  # that container, once placed
    probe: "JobRun | None" = None  # its probing job, if the policy asked for one


@dataclasses.dataclass(slots=True, eq=False)
class Running(Attempt):
    """A task that was placed; its phase is -1 for a master's container."""

    run: JobRun
    phase: int
    given_mb: int
    started_ms: int = -1


class World(BaseWorld[JobSpec, JobRun]):
    """One simulation. `arrived` is called when a job comes, `ended` with the tasks that end at one time, as started.

    `errors` says how the truth strays from the estimates, `seed` is of what is drawn for that.
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
        super().__init__(workload, profile, workload.jobs)
        self._arrived, self._ended = arrived, ended
        self.waiting = 0  # tasks in the room
        self._truth = Truth(errors or Errors(), np.random.default_rng(seed))
        # How the profile says that a job needs a probe; None for a profile that predicts nothing
        self._needs_probe: Callable[[model.JobId], bool] | None = getattr(profile.order, "needs_probe", None)
        self._ends: dict[int, list[Running]] = {}  # one event for all that ends at one time

    @property
    @override
    def waits(self) -> bool:
        """Whether any task waits: not counted anew."""
        return self.waiting > 0

    @override
    def _arrive(self, spec: JobSpec) -> None:
        run = self._admit(spec, self.new_job(spec))
        job_id = run.job.id
        if spec.probe is not None and self._needs_probe is not None and self._needs_probe(job_id):
            probe = probing.job(spec)
            run.probe = self._admit(probe, self.new_job(probe, f"{job_id}-probe", probe_of=job_id))

    def _admit(self, spec: JobSpec, job: model.Job) -> JobRun:
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
        classes = [(task_class, phase.tasks) for task_class, phase in zip(run.classes, spec.phases, strict=True)]
        self.notify_submitted(job, classes if run.master is None else [(run.master, 1), *classes])
        self._arrived(run)
        return run

    def _class(self, job: model.Job, step: int, phase: Phase, *, is_known: bool) -> model.TaskClass:
        known = estimates(phase, self.workload.cluster) if is_known else model.Fixed(read_bytes=phase.input_bytes)
        return model.TaskClass(
            id=model.ClassId(f"{job.id}/{step}/{phase.kind}"),
            job=job.id,
            resources=size(phase.cores, phase.mem_ideal_mb),
            stage=STAGES.get(phase.kind, model.Stage.OTHER),
            step=step,
            estimates=known,
        )

    def drop_probe(self, run: JobRun) -> None:
        """Drop the probing job of a finished job if it has not begun."""
        probe = run.probe
        if probe is not None and probe.unplaced:
            self.waiting -= probe.unplaced
            probe.unplaced = 0
            self.room.withdraw(probe.job.id)
            self.notify(model.Ended(now_s=self.clock.now_s, job=probe.job.id, succeeded=False))

    def submit_next_phase(self, run: JobRun) -> None:
        """Submit the tasks of the next phase."""
        run.phase += 1
        run.unplaced = run.spec.phases[run.phase].tasks
        self.submit(run, run.classes[run.phase], run.unplaced)

    def submit(self, run: JobRun, task_class: model.TaskClass, count: int = 1) -> None:
        """Submit tasks of a job."""
        self.waiting += count
        self.room.submit(run.job, [task_class], tasks_of(task_class, range(count)))

    def place(self, decision: model.Placement) -> Running:
        """Carry a decision out: deduct it, and submit the next phase when this one is placed whole."""
        self.ledger.assume(decision)
        self.waiting -= 1
        run, task_class = self.runs[decision.job.id], decision.task_class
        phase = -1 if task_class is run.master else run.phase
        given_mb = decision.resources.memory_bytes // MB
        task = Running(run, decision.task, task_class, decision.node, phase, given_mb)
        self.notify_placed(task, decision)
        return task

    def placed_whole(self, run: JobRun) -> bool:
        """Record a placed task; start the next phase after the last of its phase. Returns whether it did."""
        run.unplaced -= 1
        following = run.phase + 1
        if run.unplaced or following == len(run.classes) or run.spec.phases[following].when_ended:
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
        run_ms = self._truth.run_time_ms(phase, given_mb, task.task.index)
        mb_ms, end_ms = given_mb * run_ms, now_ms + run_ms
        if run.job.probe_of is None:
            tally.tasks += 1
        else:
            tally.probes += 1
            tally.probe_mb_ms += mb_ms
        tally.elastic += given_mb < run.spec.phases[task.phase].mem_ideal_mb
        tally.mb_ms += mb_ms
        tally.core_ms += phase.cores * run_ms
        together = self._ends.get(end_ms)
        if together is None:
            together = self._ends[end_ms] = []
            self.clock.at(end_ms, Priority.END, self._end)
        together.append(task)
        if self.profile.observers:
            self.notify(model.Started(**self.about(task)))

    def _end(self) -> None:
        together = self._ends.pop(self.clock.now_ms)
        self.clock.events += len(together) - 1
        self._ended(together)

    def give_back(self, tasks: Sequence[Running]) -> None:
        """Remove tasks: free their room, and reconsider the tasks that it helps."""
        ledger = self.ledger
        freed = {task.node: ledger.gone(task.task.id) for task in tasks}
        for node, freed_room in freed.items():
            self.room.capacity_freed(freed_room, ledger.free(node))
        for task in tasks if self.profile.observers else ():
            duration_s = (self.clock.now_ms - task.started_ms) / 1000
            counters = dict(task.run.spec.phases[task.phase].counters) if task.phase >= 0 else {}
            self.notify(model.Finished(**self.about(task), duration_s=duration_s, counters=counters))


def estimates(phase: Phase, cluster: Cluster) -> penalty.Elastic:
    """Return the estimates of a phase's tasks for policies: the paper's models with the workload's parameters."""
    ideal, ideal_s, factor = phase.mem_ideal_mb * MB, phase.duration_ms / 1000, phase.penalty.factor
    run_time: penalty.RunTime
    if phase.penalty.model is PenaltyModel.STEP:
        run_time = penalty.Mapper(ideal_s=ideal_s, ideal_bytes=ideal, undersized_s=ideal_s * factor, output_bytes=ideal)
    else:
        shuffled, slower_s = ideal * penalty.BUFFER_SHARE, ideal_s * (factor - 1)
        rate = shuffled / slower_s if slower_s > 0 else np.inf
        run_time = penalty.Reducer(ideal_s=ideal_s, input_bytes=shuffled, disk_bytes_per_s=rate)
    return penalty.Elastic(
        run_time, ideal_bytes=ideal, step_bytes=cluster.mem_granularity_mb * MB, least_share=cluster.min_mem_fraction
    )
