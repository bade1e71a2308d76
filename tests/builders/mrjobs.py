"""MRJobs as the API server has them, their models and attempts, and what the planner decides about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.scheduling import reasons
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.mrjob import model, settle, submission
from boathouse.services.mrjob.attempt_pods import AttemptPod, Ending
from boathouse.services.mrjob.job_state import JobState, StageState
from boathouse.services.mrjob.planning import observation, planner
from boathouse.services.mrjob.pod_builder import PodBuilder, PodSettings
from boathouse_task import contract
from boathouse_task.contract import TaskType

if TYPE_CHECKING:
    from boathouse_policies import run_times

UID = "0a1b2c3d-0000-4000-8000-000000000000"
CREATED = "2026-01-01T00:00:00Z"
CREATED_S = 1767225600.0
CONFIG = OperatorConfig.model_validate({"task": {"image": "boathouse-task:dev"}})
SETTINGS = PodSettings(progress_url="https://boathouse-progress.boathouse-system.svc", scratch_bytes=10 << 30)


def mrjob(
    *,
    uid: str = UID,
    revision: int = 1,
    name: str = "wordcount",
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return an MRJob as the API server has it."""
    stage = {"command": ["python3", "stage.py"]}
    own = {"name": name, "namespace": "demo", "uid": uid, "resourceVersion": str(revision), "generation": 1}
    own |= {"creationTimestamp": CREATED}
    fields = {"input": ["s3://b/in"], "output": "s3://b/out", "mapper": stage, "reducer": stage}
    resource = {"metadata": own | (metadata or {}), "spec": fields | spec}
    return resource if status is None else resource | {"status": status}


def job(**fields: Any) -> model.Job:
    """Return the model of an MRJob with these fields."""
    found = model.from_resource(mrjob(**fields), CONFIG)
    assert isinstance(found, model.Job), found
    return found


def cluster_job(**spec: Any) -> model.Job:
    """Return the model of an MRJob that runs on the cluster `lake`."""
    return job(**({"input": ["/in"], "output": "/out", "clusterRef": {"name": "lake"}} | spec))


def attempt(task_type: TaskType = TaskType.MAP, index: int = 0, number: int = 1, **fields: Any) -> settle.Attempt:
    """Return an attempt, by default the first one of the first map."""
    return settle.Attempt(task_type=task_type, index=index, number=number, **fields)


def map_program(job: model.Job) -> run_times.Stage:
    """Return the program of a job's maps, as the learner of run times knows it."""
    return submission.run_times_stage(job, TaskType.MAP, 0)


def task_manifest(
    job: model.Job, task_type: TaskType, node: str | None = "n1", settings: PodSettings = SETTINGS, **fields: Any
) -> dict[str, Any]:
    """Return the pod of the first attempt of a task as the operator creates it."""
    builder = PodBuilder(job=job, settings=settings, **fields)
    return builder.build(attempt(task_type), job.stage(task_type).resources, node)


def attempt_pod(task: str, attempt: int = 1, state: PodLife = PodLife.RUNNING, **fields: Any) -> AttemptPod:
    """Return the pod of an attempt: `attempt_pod("m-3")`, `attempt_pod("setup")`, `attempt_pod("1/m-3")` of step 1."""
    step, _, task = task.rpartition("/")
    letter, _, index = task.partition("-")
    kind = {"m": TaskType.MAP, "r": TaskType.REDUCE}.get(letter) or TaskType(task)
    values = {"name": f"{task}-a{attempt}", "uid": f"uid-{task}-a{attempt}", "node": "n1", "placed_s": CREATED_S}
    values["step"] = int(step or 0)
    return AttemptPod(task_type=kind, index=int(index or 0), attempt=attempt, state=state, **(values | fields))


def succeeded_pod(task: str, attempt: int = 1, **result: Any) -> AttemptPod:
    """Return the pod of an attempt that succeeded with this result."""
    values = {"outcome": "succeeded", "winner_attempt": attempt} | result
    return attempt_pod(task, attempt, PodLife.SUCCEEDED, result=contract.TaskResult(**values))


def failed_pod(
    task: str, attempt: int = 1, *, user: bool = True, reason: str = "UserCommandFailed", **ending: Any
) -> AttemptPod:
    """Return the pod of an attempt that failed, by the user's fault or the infrastructure's."""
    values = {"message": "exit code 1", "exit_code": 1, "time_s": CREATED_S} | ending
    return attempt_pod(task, attempt, PodLife.FAILED, ending=Ending(reason=reason, user_error=user, **values))


def stuck_pod(task: str, reason: str) -> AttemptPod:
    """Return the pod of an attempt that cannot start."""
    return attempt_pod(task, state=PodLife.STARTING, problem=Problem(reason=reason, message="why"))


def plan_status(splits: int = 3, digest: str = "d1") -> mrjob_status.PlanStatus:
    """Return what a status has of a split plan."""
    return mrjob_status.PlanStatus(digest=digest, splits=splits, bytes=100, shards=1)


def diagnosis(reason: str, message: str, scarce: str | None = None) -> reasons.JobDiagnosis:
    """Return why one task of the job is pending."""
    return reasons.JobDiagnosis(reason=reason, message=message, scarce=scarce)


def desired(
    job: model.Job, *pods: AttemptPod, state: JobState | None = None, after_s: float = 1000.0, **observed: Any
) -> observation.Desired:
    """Plan a job with these pods, some time after its creation."""
    limits = settle.Limits(start_timeout_s=10_000, image_pull_timeout_s=10_000)
    values = {"now_s": CREATED_S + after_s, "limits": limits} | observed
    return planner.plan(observation.Observation(job=job, state=state or JobState(), pods=pods, **values))


def mapping(job: model.Job, splits: int = 3) -> JobState:
    """Return the state of a job whose plan has just been accepted."""
    return desired(job, stored=plan_status(splits)).state


def reducing(job: model.Job, splits: int = 3) -> JobState:
    """Return the state of a job whose maps have succeeded."""
    pods = [succeeded_pod(f"m-{index}") for index in range(splits)]
    return desired(job, *pods, state=mapping(job, splits)).state


def stage_state(*winners: int) -> StageState:
    """Return the state of a stage whose tasks have these winners; 0 is a task that has not succeeded."""
    stage = StageState.empty(len(winners))
    stage.winner[:] = winners
    return stage


def pending_attempts(desired: observation.Desired) -> list[str]:
    """Return the attempts to be scheduled, as `["m-0-a1", "setup-a1", "1/m-0-a1"]`."""
    letters = {TaskType.MAP: "m-{}", TaskType.REDUCE: "r-{}"}
    return [
        f"{f'{attempt.step}/' if attempt.step else ''}"
        f"{letters.get(attempt.task_type, attempt.task_type.value).format(attempt.index)}-a{attempt.number}"
        for attempt in desired.waiting
    ]


def deleted_pods(desired: observation.Desired) -> list[str]:
    """Return the names of the pods to be deleted."""
    return [pod.name for pod in desired.delete]


def split_plan(splits: int = 20) -> contract.Plan:
    """Return a plan with splits of one byte in different files."""
    return contract.Plan(splits=[split(f"s3://b/{number * number * 7919}", number) for number in range(splits)])


def split(url: str = "s3://b/x", number: int = 1, **fields: Any) -> contract.Split:
    """Return a split of a file."""
    values = {"offset_bytes": number, "length_bytes": number, "size_bytes": number} | fields
    return contract.Split(url=url, **values)
