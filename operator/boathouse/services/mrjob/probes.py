"""Run probes: a job of its own for the scheduler, with one pod that runs a job's commands on a sample of its input."""

import dataclasses
import hashlib
from collections.abc import Sequence

import numpy as np

from boathouse.resources.config import PredictionConfig
from boathouse.scheduling import scheduler
from boathouse.services.frame.pod_index import PodIndex
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.frame.related_objects import RelatedObjects
from boathouse.services.frame.writes import Writes
from boathouse.services.hadoop import Directory
from boathouse.services.mrjob import hdfs, pod_builder, submission
from boathouse.services.mrjob.attempt_pods import AttemptPod
from boathouse.services.mrjob.job_state import JobState
from boathouse.services.mrjob.memory import ProbeMemory
from boathouse.services.mrjob.model import Job, JobUid
from boathouse.services.mrjob.planning import predictions
from boathouse.services.mrjob.planning.observation import SizeView
from boathouse.services.mrjob.policy_events import PolicyEvents
from boathouse.services.mrjob.settle import Attempt
from boathouse.services.mrjob.split_plans import Plans
from boathouse_policies import fspy, model
from boathouse_policies.fspy import prediction
from boathouse_task.contract import Plan, TaskType


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Decides which jobs are probed, and runs their probes."""

    sizes: fspy.SizeBased
    settings: PredictionConfig
    pods: PodIndex[AttemptPod]
    plans: Plans
    events: PolicyEvents
    placing: scheduler.Scheduler
    related_objects: RelatedObjects
    pod_settings: pod_builder.PodSettings
    clusters: Directory

    def view(self, job: Job, state: JobState) -> SizeView:
        """Return what the profile knows of a job's size, and its probe."""
        return SizeView(
            prediction=self.sizes.prediction(model.JobId(job.uid)),
            wants_probe=self._wants_probe(job, state),
            may_probe=self.settings.probe,
            probe=_pod(self.pods, job.uid),
            patience_s=self.settings.probe_seconds,
        )

    def _wants_probe(self, job: Job, state: JobState) -> bool:
        is_allowed, plan = self.settings.probe and job.spec.probing != "Never" and len(job.steps) == 1, state.plan
        if not is_allowed or plan is None or state.stages[TaskType.MAP].done or plan.splits < self.settings.least_maps:
            return False
        return not job.is_uber(state.step, plan.splits, plan.bytes) and self.sizes.needs_probe(model.JobId(job.uid))

    async def carry_on(self, job: Job, state: JobState, memory: ProbeMemory, writes: Writes) -> float | None:
        """Submit or withdraw a job's probe, as its status says. Returns when to requeue."""
        phase = state.prediction.probe if state.prediction is not None else None
        plan = self.plans.plan(job.uid, 0)
        if phase is None:
            return 0.0 if plan is not None and not state.finished and self._wants_probe(job, state) else None
        is_under_way, pod = phase in predictions.UNDER_WAY, _pod(self.pods, job.uid)
        if is_under_way or (phase == "Succeeded" and not memory.is_published):
            self.events.probe(job, [] if pod is None else [pod], plan)
            memory.is_published = True
        if not is_under_way:
            self.forget(job.uid, succeeded=phase == "Succeeded")
        elif plan is not None and (pod is None or pod.state is PodLife.UNPLACED):
            pod_uid = None if pod is None else pod.uid
            if memory.submitted != pod_uid:
                await self._submit(job, plan, pod_uid, writes)
            memory.submitted = pod_uid
        return None

    async def _submit(self, job: Job, plan: Plan, pod_uid: str | None, writes: Writes) -> None:
        priority = await self.related_objects.priority(job.priority_class)
        builder = pod_builder.PodBuilder(
            job=job,
            settings=self.pod_settings,
            splits=plan.splits,
            hdfs=hdfs.addresses(job, self.clusters),
            sample=self._sample(job, plan),
            probe_s=self.settings.probe_seconds,
        )
        factory = submission.Factory(builder, [Attempt(task_type=TaskType.PROBE, index=0, number=1, pod_uid=pod_uid)])
        with writes.attempt("submit"):
            tasks, probe = factory.tasks(None, lambda _host: None), submission.probe_job(job, priority)
            self.placing.submit(probe, [submission.probe_class(job)], tasks, factory)

    def _sample(self, job: Job, plan: Plan) -> Sequence[tuple[int, int]]:
        """Return the splits that a probe reads, and how many bytes of each; the same after a restart."""
        seed = int.from_bytes(hashlib.blake2b(job.uid.encode(), digest_size=8).digest(), "big")
        drawn = prediction.sample(
            [split.length_bytes for split in plan.splits],
            reducers=job.steps[0].reduces,
            most_splits=self.sizes.config.sampled_splits,
            rng=np.random.default_rng(seed),
        )
        return [(place, max(1, count)) for place, count in drawn.parts]

    def forget(self, uid: JobUid, *, succeeded: bool = False) -> None:
        """Withdraw a probe, and publish its end."""
        probe = submission.probe_uid(uid)
        self.events.ended(probe, succeeded=succeeded, pods=self.pods.of(probe))
        self.placing.withdraw(model.JobId(probe))


def surplus(pods: PodIndex[AttemptPod], job: Job, state: JobState) -> Sequence[tuple[str, str]]:
    """Return name and UID of a probe's pod that is to be deleted, because the probe is over."""
    pod, prediction = _pod(pods, job.uid), state.prediction
    is_over = prediction is None or prediction.probe not in predictions.UNDER_WAY
    return [(pod.name, pod.uid)] if pod is not None and is_over and pod.is_active else []


def _pod(pods: PodIndex[AttemptPod], uid: JobUid) -> AttemptPod | None:
    return next(iter(pods.of(submission.probe_uid(uid))), None)
