"""Run jobs with the code of the task pods, from an MRJob as the operator reads it."""

import os
from pathlib import Path
from typing import Any

import msgspec

from boathouse.resources.config import OperatorConfig
from boathouse.services.mrjob import model
from boathouse.services.mrjob.pod_builder import PodBuilder, PodSettings
from boathouse.services.mrjob.settle import Attempt
from boathouse_task import local
from boathouse_task.contract import Counters, TaskSpec, TaskType
from boathouse_task.environment import Environment
from tests.streaming import scripts
from tests.streaming.jobs import Job

_CONFIG = OperatorConfig.model_validate({"queues": [{"name": "default"}, {"name": "night"}]})


def run(job: Job, folder: Path) -> dict[str, bytes] | None:
    """Return the job's output files by name; None if it failed."""
    return run_counted(job, folder)[0]


def run_counted(job: Job, folder: Path) -> tuple[dict[str, bytes] | None, Counters]:
    """Return the job's output files by name, None if it failed; and the counters that its commands set."""
    scripts.place(job, folder)
    work = folder / "work"
    work.mkdir()
    variables = {"PATH": os.environ["PATH"]}
    surroundings = Environment(work_path=work, pod_uid="pod", variables=variables)
    try:
        result = local.run_job(_task_spec(job, folder), surroundings)
    except local.JobFailed:
        return None, {}
    return scripts.parts(folder / "out"), scripts.of_commands(result.counters)


def _task_spec(job: Job, folder: Path) -> TaskSpec:
    """Return the parameters of the setup task."""
    made = model.from_resource(_manifest(job, folder), _CONFIG)
    assert isinstance(made, model.Job), made
    spec = PodBuilder(job=made, settings=PodSettings(progress_url="", scratch_bytes=0)).task_spec(
        Attempt(task_type=TaskType.SETUP, index=0, number=1)
    )
    return msgspec.structs.replace(spec, progress_url=None, split_max_bytes=job.split_bytes)


def _manifest(job: Job, folder: Path) -> dict[str, Any]:
    files = [{"name": name, "url": f"file://{folder}/scripts/{name}"} for name in job.scripts]
    archives = [{"name": "dictionary", "url": f"file://{folder}/archives/{name}"} for name in job.archives]
    spec = job.spec | {
        "image": "image",
        "input": [f"file://{folder}/in"],
        "output": f"file://{folder}/out",
        "files": files,
        "archives": archives,
        "storage": {"volume": {"claimName": "claim", "mountPath": str(folder)}},
    }
    metadata = {"name": "job", "namespace": "default", "uid": "0123-4567", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": spec}
