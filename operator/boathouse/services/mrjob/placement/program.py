"""Which MRJobs run the same program: those with equal commands, files and image in one namespace."""

import hashlib
import json

from boathouse.services.mrjob.job.model import MIB, Job
from boathouse_policies import model, run_times
from boathouse_task.contract import TaskType


def kind(job: Job) -> str:
    """Return the identity of a job's program, `NAMESPACE/HASH`."""
    stages = [(step.mapper.command, step.reducer.command if step.reducer else (), step.combiner) for step in job.steps]
    files = sorted(file.model_dump_json() for file in job.files)
    text = json.dumps([job.image, stages, files], default=str)
    return f"{job.namespace}/{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def stage(job: Job, task_type: TaskType, step: int) -> run_times.Stage:
    """Return a stage of a job as the learner of run times identifies it."""
    asked = job.stage(task_type, step)
    return run_times.Stage(
        job=model.JobId(job.uid),
        program=kind(job),
        step=step,
        stage=model.Stage(task_type.value),
        ideal_bytes=asked.resources.memory_request_bytes,
        least_bytes=asked.min_memory_bytes - MIB if asked.min_memory_bytes else None,
        slowdown=asked.slowdown,
    )
