"""Publish events about applications, their drivers and executors to the profile's observers."""

import dataclasses
from collections.abc import Callable, Sequence

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.pod_events import Ended, PodEvents, Publisher
from boathouse.services.sparkapp import observation
from boathouse.services.sparkapp.gang import Gang
from boathouse_policies import framework, model, run_times


@dataclasses.dataclass(slots=True)
class _ReportedApp:
    """State of an application in its last published events, with the most executors of which the observers know."""

    gang: Gang
    pods: PodEvents[observation.AppPod]
    executors: int = -1
    spilled_bytes: int = 0


class PolicyEvents:
    """Publishes events about all applications of this process."""

    def __init__(
        self,
        observers: Sequence[framework.Observer],
        learner: run_times.Learner,
        now: Callable[[], float],
        epoch_s: Callable[[], float],
    ) -> None:
        self._publisher, self._learner, self._epoch_s = Publisher(observers, now), learner, epoch_s
        self._apps: dict[ObjectUid, _ReportedApp] = {}

    def update(self, uid: ObjectUid, gang: Gang, pods: Sequence[observation.AppPod], *, spilled_bytes: int = 0) -> None:
        """Publish the changes of a submitted application since the last call, and keep what its executors spilled."""
        reported = self._apps.get(uid) or self._apps.setdefault(uid, self._begin(gang))
        before, reported.gang, reported.spilled_bytes = reported.gang, gang, spilled_bytes
        placed = sum(pod.stage is model.Stage.EXECUTOR and pod.node is not None and pod.state.is_live for pod in pods)
        most = max(gang.executor.gang_min, placed)
        if most > reported.executors or (before.driver, before.executor) != (gang.driver, gang.executor):
            reported.executors = most
            self._submit(reported, pods)
        reported.pods.update(pods)

    def update_pods(self, uid: ObjectUid, pods: Sequence[observation.AppPod]) -> None:
        """Publish the changes of the pods of an application that is between two attempts."""
        if uid in self._apps:
            self._apps[uid].pods.update(pods)

    def ended(self, uid: ObjectUid, *, succeeded: bool, pods: Sequence[observation.AppPod] = ()) -> None:
        """Publish the end of an application that finished, was suspended or deleted, if it was published before.

        Executors of an application that succeeded have done their work, though they may exist for some seconds.
        """
        reported = self._apps.pop(uid, None)
        if reported is None:
            return
        reported.pods.forget(map(observation.ended, pods) if succeeded else pods)
        self._learner.forget(model.JobId(uid))
        self._publisher.ended(model.JobId(uid), succeeded=succeeded)

    def _begin(self, gang: Gang) -> _ReportedApp:
        pods = PodEvents[observation.AppPod](
            self._publisher.publish,
            about=lambda pod: self._about(reported.gang, pod),
            distance=lambda _: model.Distance.ANYWHERE,
            ended=lambda pod: self._end(reported, pod),
        )
        reported = _ReportedApp(gang, pods)
        return reported

    def _submit(self, reported: _ReportedApp, pods: Sequence[observation.AppPod]) -> None:
        """Publish the application with the tasks that have no published placement, those of `pods` included."""
        gang, events = reported.gang, reported.pods
        published = [pod for pod in pods if events.knows(pod) and pod.state.is_live]
        executors = sum(pod.stage is model.Stage.EXECUTOR for pod in published)
        tasks = {
            gang.driver.id: int(len(published) == executors),
            gang.executor.id: max(0, reported.executors - executors),
        }
        self._publisher.submitted(gang.job, (gang.driver, gang.executor), tasks)

    def _about(self, gang: Gang, pod: observation.AppPod) -> model.About:
        task_class = gang.driver if pod.stage is model.Stage.DRIVER else gang.executor
        return self._publisher.about(gang.job.id, gang.job.namespace, pod, task_class.id)

    def _end(self, reported: _ReportedApp, pod: observation.AppPod) -> Ended:
        ended_s = self._epoch_s() if pod.ended_s is None else pod.ended_s
        ended = Ended(duration_s=max(0.0, ended_s - (pod.placed_s or 0.0)), reason=pod.reason)
        if pod.stage is model.Stage.EXECUTOR and reported.gang.stage is not None:
            self._learn(reported, reported.gang.stage, pod, ended)
        return ended

    def _learn(self, reported: _ReportedApp, stage: run_times.Stage, pod: observation.AppPod, ended: Ended) -> None:
        memory_bytes = pod.resources.memory_bytes
        if memory_bytes != reported.gang.executor.resources.memory_bytes:
            return
        is_less = memory_bytes < stage.ideal_bytes
        if not ended.reason:
            spilled = reported.spilled_bytes / max(1, reported.executors) if is_less else 0.0
            used = run_times.MemoryUse(memory_bytes=memory_bytes, spilled_bytes=spilled)
            self._learner.learn(stage, seconds=ended.duration_s, input_bytes=0.0, less=is_less, used=used)
        elif is_less and ended.reason == observation.EXECUTOR_FAILED:
            self._learner.out_of_memory(stage, memory_bytes)  # it may have had another reason, which nothing tells
