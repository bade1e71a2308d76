"""Builders: a job, its pods, and a look at them."""

import dataclasses
from typing import Any

import pytest

from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrjob import status as mrjob_status
from boathouse.scheduling import reasons
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.mrjob.attempts import settle
from boathouse.services.mrjob.attempts.attempt_pod import AttemptPod, Ending
from boathouse.services.mrjob.job import model
from boathouse.services.mrjob.planning import observation, planner
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract
from boathouse_task.contract import TaskType

CREATED = "2026-01-01T00:00:00Z"
CREATED_S = 1767225600.0
UID = "0a1b2c3d-0000-4000-8000-000000000000"


class Build:
    """Values with everything decided that a test does not care for."""

    UID = UID
    CREATED_S = CREATED_S

    @staticmethod
    def body(**spec: Any) -> dict[str, Any]:
        stage = {"command": ["python3", "stage.py"]}
        return {
            "metadata": {
                "name": "wordcount",
                "namespace": "demo",
                "uid": UID,
                "generation": 1,
                "creationTimestamp": CREATED,
            },
            "spec": {"input": ["s3://b/in"], "output": "s3://b/out", "mapper": stage, "reducer": stage} | spec,
        }

    @classmethod
    def job(cls, **spec: Any) -> model.Job:
        return cls.of(cls.body(**spec))

    @staticmethod
    def of(body: dict[str, Any]) -> model.Job:
        config = OperatorConfig.model_validate({"task": {"image": "boathouse-task:dev"}})
        job = model.from_resource(body, config)
        assert isinstance(job, model.Job), job
        return job

    @staticmethod
    def pod(task: str, attempt: int = 1, state: PodLife = PodLife.RUNNING, **more: Any) -> AttemptPod:
        """`pod("m-3")`, `pod("setup")`, `pod("1/m-3")` of step 1."""
        step, _, task = task.rpartition("/")
        letter, _, index = task.partition("-")
        kind = {"m": TaskType.MAP, "r": TaskType.REDUCE}.get(letter) or TaskType(task)
        values = {"name": f"{task}-a{attempt}", "uid": f"uid-{task}-a{attempt}", "node": "n1", "placed_s": CREATED_S}
        values["step"] = int(step or 0)
        return AttemptPod(task_type=kind, index=int(index or 0), attempt=attempt, state=state, **(values | more))

    @classmethod
    def won(cls, task: str, attempt: int = 1, **result: Any) -> AttemptPod:
        values = {"outcome": "succeeded", "winner_attempt": attempt} | result
        return cls.pod(task, attempt, PodLife.SUCCEEDED, result=contract.TaskResult(**values))

    @classmethod
    def failed(cls, task: str, attempt: int = 1, *, user: bool = True, reason: str = "UserCommandFailed", **more: Any):
        values = {"message": "exit code 1", "exit_code": 1, "time_s": CREATED_S} | more
        return cls.pod(task, attempt, PodLife.FAILED, ending=Ending(reason=reason, user_error=user, **values))

    @classmethod
    def stuck(cls, task: str, reason: str, **more: Any) -> AttemptPod:
        problem = Problem(reason=reason, message="why")
        return cls.pod(task, state=PodLife.STARTING, problem=problem, **more)

    @staticmethod
    def plan(splits: int = 3, digest: str = "d1") -> mrjob_status.PlanStatus:
        return mrjob_status.PlanStatus(digest=digest, splits=splits, bytes=100, shards=1)

    @staticmethod
    def diagnosis(reason: str, message: str, scarce: str | None = None) -> reasons.JobDiagnosis:
        """Return why one task of the job is pending."""
        return reasons.JobDiagnosis(job=UID, reason=reason, message=message, waiting=1, scarce=scarce)

    @classmethod
    def look(cls, job: model.Job, *pods: AttemptPod, state: JobState | None = None, **more: Any) -> observation.Desired:
        """One look at a job; 1,000 s after its creation unless `now_s` says otherwise."""
        values = {
            "now_s": CREATED_S + 1000,
            "limits": settle.Limits(start_timeout_s=10_000, image_pull_timeout_s=10_000),
        } | more
        return planner.plan(observation.Observation(job=job, state=state or JobState(), pods=pods, **values))

    @classmethod
    def mapping(cls, job: model.Job, splits: int = 3) -> JobState:
        """The record of a job whose plan has just been accepted."""
        return cls.look(job, stored=cls.plan(splits)).state

    @classmethod
    def reducing(cls, job: model.Job, splits: int = 3) -> JobState:
        """The record of a job whose maps are done."""
        return cls.look(job, *(cls.won(f"m-{index}") for index in range(splits)), state=cls.mapping(job, splits)).state

    replace = staticmethod(dataclasses.replace)


@pytest.fixture(scope="session")
def build() -> type[Build]:
    return Build
