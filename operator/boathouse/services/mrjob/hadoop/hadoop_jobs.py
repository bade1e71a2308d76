"""Carry out jobs on Hadoop clusters: have their clients scheduled, ask for their tags, kill their applications."""

import dataclasses
from collections.abc import Mapping
from functools import partial

from boathouse import failpoints
from boathouse.services.frame import controllers, pod_index, protocols
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.related_objects import RelatedObjects
from boathouse.services.frame.writes import Writes
from boathouse.services.hadoop import MRCLUSTERS, ClusterFacts
from boathouse.services.mrjob import hdfs, settle, submission
from boathouse.services.mrjob.hadoop import mirror, observation, options, plan
from boathouse.services.mrjob.hadoop.client_pod import ClientBuilder
from boathouse.services.mrjob.hadoop.observation import ClientPod, Desired, HadoopObservation, Submission
from boathouse.services.mrjob.job_state import TERMINAL, JobState
from boathouse.services.mrjob.memory import JobMemory
from boathouse.services.mrjob.model import Job, JobUid
from boathouse.services.mrjob.pod_builder import PodSettings
from boathouse.services.progress.auth import Caller
from boathouse_policies import model


@dataclasses.dataclass(slots=True)
class _Job:
    """A job that is not over: its namespace and cluster, its memory unless it is at rest, and the tags it follows."""

    named: tuple[str, str]
    memory: JobMemory | None = None
    tags: frozenset[str] = frozenset()


class HadoopJobs:
    """Jobs on Hadoop clusters."""

    def __init__(
        self, leader: controllers.LeaderServices, settings: PodSettings, related: RelatedObjects, later: pod_index.Later
    ) -> None:
        self._related_objects = related
        self._context, self._config, self._pod_settings = leader.controllers.context, leader.settings, settings
        self._clusters, self._applications = leader.clusters, leader.applications
        self._scheduler, self._bundles = leader.scheduling.scheduler, leader.bundles
        self._mark = leader.controllers.mark
        self._jobs: dict[ObjectUid, _Job] = {}
        self.clients: pod_index.PodIndex[ClientPod] = pod_index.PodIndex(observation.read_client, self._mark, later)
        self._clusters.subscribe(self._cluster_changed)

    def _cluster_changed(self, uid: ObjectUid) -> None:
        """Reconcile the jobs of a cluster: those that name it, or used it if it was deleted."""
        facts = self._clusters.get(uid)
        for job_uid, job in self._jobs.items():
            is_named = facts is not None and job.named == (facts.namespace, facts.name)
            if is_named or self._clusters.is_used(uid, job_uid):
                self._mark(job_uid)

    async def observe(self, job: Job, memory: JobMemory) -> HadoopObservation:
        """Collect the input of the planner, with what the client lacks to start."""
        state, related = memory.state, self._related_objects
        is_over = state.finished or job.deleting_since_s is not None
        named = [job.cluster, *self._names(job)]
        if is_over:
            named = [job.cluster] if state.hadoop is not None and state.hadoop.is_open else []
        unlisted = self._clusters.unlisted(job.namespace, named)[:1]  # the job's own first: one costs one request
        unknown: dict[str, str | None] = dict.fromkeys(unlisted)
        for name in filter(hdfs.is_name, unlisted):
            unknown[name] = await related.uid(MRCLUSTERS, job.namespace, name)
        observation, attempt = self._observe(job, memory, unknown), state.hadoop
        pods, missing = observation.pods, observation.missing
        if any(file.config_map_key_ref for file in job.spec.files or ()):
            pods = [await related.with_mounts(pod, job.namespace, observation.now_s) for pod in pods]
        if not (pods or is_over or job.spec.suspend or (attempt is not None and attempt.applications)):
            missing = await submission.missing_files(job, related)
        return dataclasses.replace(observation, pods=pods, missing=missing)

    def _observe(self, job: Job, memory: JobMemory, unknown: Mapping[str, str | None]) -> HadoopObservation:
        """Collect what is known at the same time; `unknown` has the UIDs of clusters that were not reconciled."""
        self._jobs.setdefault(job.uid, _Job((job.namespace, job.cluster))).memory = memory
        now_s, pods = self._context.now(), self.clients.of(job.uid)
        may_create = self._scheduler.may_create(model.JobId(job.uid))
        attempt, hadoop = memory.state.hadoop, memory.hadoop
        views = {tag: self._applications.view(tag) for tag in mirror.tags(job.uid, attempt.attempt)} if attempt else {}
        if attempt is not None and any(pod.attempt == attempt.attempt for pod in pods):
            hadoop.observed = attempt.attempt
        can_submit = may_create or any(pod.state.is_live for pod in pods)
        hadoop.clientless_s = _since(hadoop.clientless_s, now_s, holds=not can_submit)
        view = views.get(attempt.tag) if attempt else None
        ended = view is not None and bool(view.applications) and not view.running
        hadoop.all_ended_s = _since(hadoop.all_ended_s, now_s, holds=ended)
        is_begun = attempt is not None and attempt.attempt == hadoop.begun
        state = Submission.NONE if is_begun else Submission.UNKNOWN
        return HadoopObservation(
            job=job,
            state=memory.state,
            now_s=now_s,
            limits=settle.Limits.of(self._config.task),
            cluster=self._clusters.find(job.namespace, job.cluster),
            unknown={name: uid for name, uid in unknown.items() if self._clusters.find(job.namespace, name) is None},
            pods=pods,
            views=views,
            submission=Submission.MADE if attempt and attempt.attempt == hadoop.observed else state,
            may_create=may_create,
            clientless_s=hadoop.clientless_s,
            all_ended_s=hadoop.all_ended_s,
            diagnosis=self._scheduler.diagnosis(model.JobId(job.uid)),
        )

    def _names(self, job: Job) -> list[str]:
        return sorted({*hdfs.names(job), *options.names_in_arguments(job)} - {job.cluster})

    def plan(self, observation: HadoopObservation, memory: JobMemory) -> protocols.Desired[JobState]:
        """Return the desired state of a job, with effects in the frame's order."""
        desired = plan.plan(observation)
        former, now = memory.state.hadoop, desired.state.hadoop
        if now is not None and (former is None or now.attempt > former.attempt):
            memory.hadoop.begun = now.attempt
        return protocols.Desired(
            state=desired.state,
            delete=[(pod.name, pod.uid) for pod in desired.delete],
            after=[partial(self._carry_out, observation, desired, memory)],
            recheck_at_s=desired.recheck_at_s,
            holds_deletion=desired.is_ending,
            is_at_rest=_is_at_rest(observation, desired.state),
        )

    async def _carry_out(
        self, observation: HadoopObservation, desired: Desired, memory: JobMemory, writes: Writes
    ) -> float | None:
        """Ask for tags, kill applications, and have the client scheduled. Returns when to requeue."""
        job, cluster = observation.job, observation.cluster
        self._follow(self._jobs[job.uid], observation, desired)
        is_over = desired.state.finished and not desired.is_ending
        named = () if is_over else (job.cluster, *self._names(job))
        self._clusters.use(job.uid, [cluster.uid for cluster in self._clusters.find_all(job.namespace, named)])
        if is_over:
            del self._jobs[job.uid]
        elif _is_at_rest(observation, desired.state):
            self._jobs[job.uid].memory = None
        if cluster is not None:
            self._kill(cluster, desired, memory, writes)
        if not desired.submits:
            self._scheduler.withdraw(model.JobId(job.uid))
        may_submit = desired.submits and cluster is not None and _is_written(desired.state, memory)
        if may_submit or any(pod.state.is_live for pod in observation.pods):  # it must trust a new leader's certificate
            await self._bundles.ensure(job.namespace)
        return self._submit(observation, cluster, memory, writes) if may_submit and cluster is not None else None

    def _follow(self, job: _Job, observation: HadoopObservation, desired: Desired) -> None:
        """Follow the tags of an open attempt and of earlier ones.

        A client of an earlier attempt that had leave can still submit if its pod was deleted by force while its node
        did not respond. The operator kills that application as soon as it is reported.
        """
        uid, cluster, attempt = observation.job.uid, observation.cluster, desired.state.hadoop
        is_open = attempt is not None and attempt.is_open and cluster is not None
        wanted = frozenset(mirror.tags(uid, attempt.attempt) if attempt is not None and is_open else ())
        for tag in job.tags - wanted:
            self._applications.drop(tag)
        if cluster is not None and wanted:
            with failpoints.around("mrjob.tags"):
                for tag in wanted:
                    self._applications.follow(cluster.uid, tag, uid)
        job.tags = wanted

    def _kill(self, cluster: ClusterFacts, desired: Desired, memory: JobMemory, writes: Writes) -> None:
        """Order kills. That the attempt stops must be in the status first: else its end would count as a failure."""
        attempt = desired.state.hadoop
        if attempt is None or (attempt.is_stopping and not _is_written(desired.state, memory)):
            return
        for application_id in desired.kill:
            with writes.attempt("kill-application"):
                self._applications.request_kill(cluster.uid, application_id)

    def _submit(
        self, observation: HadoopObservation, cluster: ClusterFacts, memory: JobMemory, writes: Writes
    ) -> float | None:
        """Have the client of the attempt scheduled. Returns 0 to reconcile at once: its pod ended unobserved."""
        job, attempt = observation.job, memory.state.hadoop
        assert attempt is not None
        memory.hadoop.begun = 0
        builder = ClientBuilder(
            job=job,
            attempt=attempt.attempt,
            cluster=cluster,
            clusters=(cluster, *self._clusters.find_all(job.namespace, self._names(job))),
            settings=self._pod_settings,
            image=self._config.task.image,
            image_pull_policy=self._config.task.image_pull_policy,
            hdfs=hdfs.addresses(job, self._clusters),
        )
        pod = next((pod for pod in observation.pods if pod.attempt == attempt.attempt), None)
        task_class, task = builder.submission(pod.uid if pod is not None and pod.node is None else None)
        with writes.attempt("submit"):
            over = self._scheduler.submit(submission.scheduler_job(job), [task_class], [task], builder)
        if over:
            memory.hadoop.observed = attempt.attempt
            self._scheduler.withdraw(model.JobId(job.uid))
        return 0.0 if over else None

    def find(self, uid: ObjectUid, caller: Caller) -> ClientPod | None:
        """Return a live client of a job that this process knows."""
        job = self._jobs.get(uid)
        pod = self.clients.find(uid, caller.pod_name) if job and job.named[0] == caller.namespace else None
        return pod if pod is not None and pod.state.is_live else None

    def may_submit(self, uid: ObjectUid, pod: ClientPod) -> bool:
        """Return whether a client may submit: its attempt is open in the status that the API server has."""
        memory = self._jobs[uid].memory if uid in self._jobs else None
        attempt = memory.state.hadoop if memory is not None else None
        if memory is None or attempt is None or not self._context.may_lead() or not pod.is_active:
            return False
        is_over = memory.state.finished or memory.written.get("phase") in TERMINAL
        is_current = attempt.attempt == pod.attempt and attempt.is_open and not attempt.is_stopping
        return is_current and not is_over and _is_written(memory.state, memory)

    def forget(self, uid: JobUid) -> None:
        """Drop all data about a deleted job."""
        job = self._jobs.pop(uid, None)
        self._clusters.use(uid, ())
        for tag in job.tags if job else ():
            self._applications.drop(tag)


def _is_at_rest(observation: HadoopObservation, state: JobState) -> bool:
    return state.phase == "Suspended" and state.hadoop is None and not observation.pods


def _since(known_s: float | None, now_s: float, *, holds: bool) -> float | None:
    return None if not holds else now_s if known_s is None else known_s


def _is_written(state: JobState, memory: JobMemory) -> bool:
    """Return whether the API server has the attempt, and whether it stops, as in the state."""
    written, attempt = memory.written.get("hadoop") or {}, state.hadoop
    known = written.get("attempt"), bool(written.get("stopping"))
    return attempt is not None and known == (attempt.attempt, attempt.is_stopping)
