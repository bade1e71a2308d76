"""How long a SparkApp may take, and when it is started again."""

from typing import Final, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from boathouse.resources.base import Model, rule, rules

ALWAYS_MUTABLE: Final = frozenset({"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished"})
"""As of a batch/Job."""
MUTABLE_WHILE_SUSPENDED: Final = frozenset(
    {
        *("queue", "nodeSelector", "tolerations", "podTemplate", "driver", "executor", "dynamicAllocation"),
        *("restartPolicy", "timeouts"),
    }
)
"""What the next attempt is made by."""
_LONG: Final = 10 * 365 * 86400


class RestartPolicy(Model):
    """Whether a driver that ended is started again, as a new attempt with an application ID of its own."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "self.maxRetryIntervalSeconds >= self.onFailureRetryInterval",
                "restartPolicy.maxRetryIntervalSeconds is less than onFailureRetryInterval: raise it",
            )
        )
    )
    type: Literal["Never", "OnFailure", "Always"] = Field(
        default="Never", description="Always: also after a success, for streaming applications."
    )
    on_failure_retries: int = Field(
        default=3, ge=0, le=1000, description="Restarts after failures of the application itself."
    )
    on_infrastructure_failure_retries: int = Field(
        default=10, ge=0, le=1000, description="Restarts after lost nodes, evictions, rejections and start timeouts."
    )
    on_failure_retry_interval: int = Field(
        default=10, ge=1, le=86400, description="Seconds before the first restart; doubled for each further one."
    )
    max_retry_interval_seconds: int = Field(
        default=300, ge=1, le=86400, description="The longest time between two restarts, in seconds."
    )
    reset_after_seconds: int = Field(
        default=3600, ge=1, le=_LONG, description="An attempt that ran so long sets the counts of failures to 0."
    )


class Timeouts(Model):
    """How long each part may take; 0: no limit."""

    driver_start_seconds: int = Field(
        default=600, ge=0, le=_LONG, description="From a node for the driver until its container runs."
    )
    executor_start_seconds: int = Field(
        default=600, ge=0, le=_LONG, description="From a running driver until its minimum of executors runs."
    )
    driver_lost_seconds: int = Field(
        default=300,
        ge=1,
        le=_LONG,
        description="When the driver's node does not answer: how long to wait for the end of its pod before the next "
        "attempt. The old driver may still run where its node cannot be reached.",
    )


def _default(value: Model) -> JsonDict:
    """A default with all fields, because CEL rules check a default before the fields' own defaults are set."""
    return {"default": value.model_dump(by_alias=True)}


class Life(Model):
    """The life of an application as a whole."""

    suspend: bool = Field(
        default=False,
        description="As of a batch/Job: while true, no driver runs. One that runs is deleted, and its work is lost.",
    )
    active_deadline_seconds: int | None = Field(
        default=None,
        ge=1,
        le=_LONG,
        description="The application fails when it has been active for so long since status.startTime (set anew by a "
        "resume), attempts and waiting included.",
    )
    ttl_seconds_after_finished: int | None = Field(
        default=None,
        ge=0,
        le=_LONG,
        description="The application is deleted this many seconds after it finished, with its pods and their logs. "
        "Absent: it stays.",
    )
    restart_policy: RestartPolicy = Field(default_factory=RestartPolicy, json_schema_extra=_default(RestartPolicy()))
    timeouts: Timeouts = Field(default_factory=Timeouts, json_schema_extra=_default(Timeouts()))
