"""Fields of an MRJob's life cycle: suspension, deadlines, and which fields are mutable."""

from typing import Final, Literal

from pydantic import Field

from boathouse.resources.base import Model

ALWAYS_MUTABLE: Final = frozenset({"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "cleanUp"})
"""Fields that are also mutable in a batch/Job, and `cleanUp`."""
MUTABLE_WHILE_SUSPENDED: Final = frozenset({"queue", "nodeSelector", "tolerations", "podTemplate"})
"""Fields that queueing systems set when they admit a job. While it is suspended no pod with the old values exists."""


class Life(Model):
    """Suspension, deadlines and timeouts of a job."""

    suspend: bool = Field(
        default=False,
        description="Suspends the job, like batch/Job: running pods are deleted, results of finished tasks are kept.",
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=10 * 365 * 86400,
        description="The job fails this long after status.startTime, which a resume resets.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=10 * 365 * 86400,
        description="The job, its pods and their logs are deleted this many seconds after it finished. Its "
        "output is kept. Absent: the job is kept.",
    )
    clean_up: Literal["OnEnd", "OnDelete", "Never"] = Field(
        default="OnEnd",
        description="When a task removes the work folder (OUTPUT/_temporary/boathouse-UID) of a job that did not "
        "succeed. OnEnd: when it fails, before it expires. OnDelete: when it is deleted; a finalizer waits for this at "
        "most 10 minutes. Never: the folder is kept. A job that succeeds leaves no work folder.",
    )
    task_timeout_seconds: int = Field(
        default=600,
        ge=0,
        le=30 * 86400,
        description="An attempt fails if its command neither reads, writes nor reports for this long, like "
        "mapreduce.task.timeout. 0: never.",
    )
    slow_start_completed_maps_percent: int = Field(
        default=100,
        ge=0,
        le=100,
        description="Reduces start when this share of the maps is done, like the fraction "
        "mapreduce.job.reduce.slowstart.completedmaps. 100: after the last map.",
    )
