"""Tells the profile's observers what happens to jobs: from one look at a job's pods to the next, as events.

Derived from what is there, not from what was done: after a restart the first look tells of every pod that still
exists, ended ones included, so that observers know what runs and learn the rest of a job that began before.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod, AttemptState
from boathouse.services.mrjob.job.model import Job, JobUid
from boathouse.services.mrjob.placement import program, submission
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_policies import framework, model, run_times
from boathouse_task import contract
from boathouse_task.contract import TaskType

_WAITING_PHASES: Final = frozenset({"wait"})
"""Of a reduce that waits for maps: no work of its own."""
_INPUT_BYTES: Final = ("Bytes Read", "Reduce shuffle bytes")


@dataclasses.dataclass(slots=True)
class _ReportedPod:
    """What observers were told of a pod."""

    task: model.TaskId
    task_class: model.ClassId
    node: model.NodeName
    pod: AttemptPod
    started: bool = False
    ended: bool = False


@dataclasses.dataclass(slots=True)
class _ReportedJob:
    job: Job
    classes: tuple[model.TaskClass, ...] = ()
    pods: dict[str, _ReportedPod] = dataclasses.field(default_factory=dict)
    names: dict[str, _ReportedPod] = dataclasses.field(default_factory=dict)
    """The latest pod of each name: a report finds its own however many there are."""


class PolicyEvents:
    """One for the process.

    Args:
        observers: Of the profile.
        learner: Learns how long tasks take.
        now: The scheduler's seconds.
    """

    def __init__(
        self, observers: Sequence[framework.Observer], learner: run_times.Learner, now: Callable[[], float]
    ) -> None:
        self._observers = observers
        self._learner = learner
        self._now = now
        self._jobs: dict[JobUid, _ReportedJob] = {}

    def update(
        self, job: Job, state: JobState, pods: Sequence[AttemptPod], classes: Sequence[model.TaskClass]
    ) -> list[AttemptPod]:
        """Tell what has changed since the last look at a job that is not over.

        Args:
            job: The job.
            state: Its state, with what the pods brought.
            pods: All its pods.
            classes: All classes of its current step that are known, with estimates.

        Returns:
            Pods that are new and were started with less memory than they asked for.
        """
        reported = self._jobs.setdefault(job.uid, _ReportedJob(job))
        reported.job = job
        placed = [pod for pod in pods if pod.node is not None]
        if reported.classes != tuple(classes):
            reported.classes = tuple(classes)
            left = {one.id: _left(job, state, one, reported, placed) for one in classes}
            now_s, known = self._now(), submission.scheduler_job(job)
            self._publish(model.Submitted(now_s=now_s, job=known, classes=reported.classes, tasks=left))
        less = [pod for pod in placed if pod.ideal_memory_bytes and pod.uid not in reported.pods]
        for pod in placed:
            self._pod(reported, pod)
        here = {pod.uid for pod in placed}
        for uid, known_pod in list(reported.pods.items()):
            if uid not in here:
                self._end(reported, known_pod, None)
                del reported.pods[uid]
                if reported.names.get(known_pod.pod.name) is known_pod:
                    del reported.names[known_pod.pod.name]
        return less

    def ended(self, uid: JobUid, *, succeeded: bool, pods: Sequence[AttemptPod] = ()) -> None:
        """The job is over or gone; nothing if nobody was told of it."""
        reported = self._jobs.pop(uid, None)
        if reported is None:
            return
        for pod in pods:
            if pod.node is not None:  # also those that came and ended since the last look
                self._pod(reported, pod)
        for known in reported.pods.values():
            self._end(reported, known, None)
        self._learner.forget(model.JobId(uid))
        self._publish(model.Ended(now_s=self._now(), job=model.JobId(uid), succeeded=succeeded))

    def report(self, uid: JobUid, pod_name: str, report: contract.TaskReport) -> None:
        """A running task reported."""
        reported = self._jobs.get(uid)
        known = reported.names.get(pod_name) if reported else None
        if reported is None or known is None or known.ended:
            return
        self._publish(
            model.Progress(
                **self._about(reported.job, known),
                fraction=report.progress,
                phase=report.phase,
                counters=_flat(report.counters),
            )
        )

    def node_changed(self, name: model.NodeName, node: model.Node | None) -> None:
        """A node came, changed or went."""
        self._publish(model.NodeChanged(now_s=self._now(), name=name, node=node))

    def tick(self) -> None:
        """Time passed."""
        self._publish(model.Tick(now_s=self._now()))

    def _pod(self, reported: _ReportedJob, pod: AttemptPod) -> None:
        known = reported.pods.get(pod.uid)
        if known is None:
            known = reported.pods[pod.uid] = reported.names[pod.name] = self._place(reported.job, pod)
        if known.ended:
            return
        if pod.memory_bytes != known.pod.memory_bytes:
            self._publish(
                model.Resized(
                    **self._about(reported.job, known), resources=submission.placed_resources(reported.job, pod)
                )
            )
        known.pod = pod
        if pod.state is not AttemptState.STARTING and not known.started:
            known.started = True
            self._publish(model.Started(**self._about(reported.job, known)))
        if not pod.state.is_live:
            self._end(reported, known, pod)

    def _place(self, job: Job, pod: AttemptPod) -> _ReportedPod:
        class_id = submission.class_id(job, pod.task_type, pod.step)
        task = model.TaskId(f"{job.namespace}/{pod.name}")
        assert pod.node is not None
        known = _ReportedPod(task, class_id, model.NodeName(pod.node), pod)
        self._publish(
            model.Placed(
                **self._about(job, known),
                resources=submission.placed_resources(job, pod),
                distance=model.Distance.ANYWHERE,
            )
        )
        return known

    def _about(self, job: Job, known: _ReportedPod) -> model.About:
        return {
            "now_s": self._now(),
            "task": known.task,
            "task_class": known.task_class,
            "job": model.JobId(job.uid),
            "node": known.node,
        }

    def _end(self, reported: _ReportedJob, known: _ReportedPod, pod: AttemptPod | None) -> None:
        """A pod ended, or (None) went without having been seen to end."""
        if known.ended:
            return
        known.ended = True
        if pod is None or pod.result is None:
            reason = pod.ending.reason if pod is not None and pod.ending is not None else "PodLost"
            if pod is not None and reason == "OOMKilled" and pod.ideal_memory_bytes:
                self._learner.out_of_memory(program.stage(reported.job, pod.task_type, pod.step))
            self._publish(model.Failed(**self._about(reported.job, known), reason=reason))
            return
        seconds, counters = _worked_s(pod.result), _flat(pod.result.counters)
        read = sum(counters.get(name, 0.0) for name in _INPUT_BYTES)
        less = bool(pod.ideal_memory_bytes)
        stage = program.stage(reported.job, pod.task_type, pod.step)
        self._learner.learn(stage, seconds=seconds, input_bytes=read, less=less)
        self._publish(model.Finished(**self._about(reported.job, known), duration_s=seconds, counters=counters))

    def _publish(self, event: model.Event) -> None:
        for observer in self._observers:
            observer.observe(event)


def _left(job: Job, state: JobState, one: model.TaskClass, reported: _ReportedJob, placed: Sequence[AttemptPod]) -> int:
    """Tasks of a class that observers do not know to be placed: those whose pods they are about to be told of count."""
    task_type = TaskType(one.stage.value)
    stage = state.stages.get(task_type)
    if stage is None:
        return 0
    busy = {pod.index for pod in placed if pod.task_type is task_type and pod.step == state.step and pod.state.is_live}
    news = [
        pod
        for pod in placed
        if submission.class_id(job, pod.task_type, pod.step) == one.id and pod.uid not in reported.pods
    ]
    failing = sum(pod.result is None and not pod.state.is_live for pod in news)  # told as placed, then as failed
    waiting = sum(not stage.winner[index] and index not in busy for index in range(stage.total))
    return waiting + len(news) - failing


def _worked_s(result: contract.TaskResult) -> float:
    """How long a task worked, without its waits."""
    spans = [timing for timing in result.timings if timing.phase not in _WAITING_PHASES]
    return sum(max(0, each.end_ms - each.start_ms) for each in spans) / 1000


def _flat(counters: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    return {name: float(value) for values in counters.values() for name, value in values.items()}
