"""The fields of an MRJob about its life: suspension, deadlines, what may change after creation."""

from typing import Final, Literal

from pydantic import Field

from boathouse.resources.base import Model

ALWAYS_MUTABLE: Final = frozenset({"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "cleanUp"})
"""As of a batch/Job; and what is done when the job has ended."""
MUTABLE_WHILE_SUSPENDED: Final = frozenset({"queue", "nodeSelector", "tolerations", "podTemplate"})
"""What queueing systems set when they admit a job: no pod exists that was made by the old values."""


class Life(Model):
    """How long a job and its tasks may take, and whether it may run at all."""

    suspend: bool = Field(
        default=False,
        description="As of a batch/Job: while true, no task runs. Pods that run are deleted, finished tasks are kept.",
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=10 * 365 * 86400,
        description="The job fails when it has been active for so long since status.startTime (set anew by a resume).",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=10 * 365 * 86400,
        description="The job is deleted this many seconds after it finished, with its pods and their logs; "
        "never its output. Absent: it stays.",
    )
    clean_up: Literal["OnEnd", "OnDelete", "Never"] = Field(
        default="OnEnd",
        description="When a task removes the work folder (OUTPUT/_temporary/boathouse-UID) of a job that did not "
        "succeed. OnEnd: when it fails, before it expires. OnDelete: when it is deleted, by a finalizer that gives up "
        "after 10 minutes. Never: it stays. A job that succeeds leaves nothing.",
    )
    task_timeout_seconds: int = Field(
        default=600,
        ge=0,
        le=30 * 86400,
        description="A command that neither reads, nor writes, nor reports for so long fails its attempt, as "
        "mapreduce.task.timeout; 0: never.",
    )
    slow_start_completed_maps_percent: int = Field(
        default=100,
        ge=0,
        le=100,
        description="Reduces start when so many of the maps are done, as mapreduce.job.reduce.slowstart.completedmaps "
        "(there a fraction). 100: after the last map.",
    )
