"""The names of a SparkApp: kind, condition types, and reasons in addition to those of `boathouse.resources.names`."""

from enum import StrEnum
from typing import Final

from boathouse.resources.names import GROUP

SPARKAPP_KIND: Final = "SparkApp"
SPARKAPP_PLURAL: Final = "sparkapps"

LABEL_TASK_TYPE: Final = f"{GROUP}/task-type"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"

ANNOTATION_HADOOP_CLUSTERS: Final = f"{GROUP}/hadoop-clusters"
"""On the ConfigMap of an attempt: the Hadoop clusters that its properties name, as NAME=UID."""

ACCOUNT: Final = "boathouse-spark"
ACCOUNT_PATTERN: Final = r"^boathouse-spark(-[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"
TASK_TYPE_DRIVER: Final = "driver"
TASK_TYPE_EXECUTOR: Final = "executor"


class ConditionType(StrEnum):
    """The types of a SparkApp's conditions."""

    ADMITTED = "Admitted"
    SUSPENDED = "Suspended"
    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    EXECUTORS_READY = "ExecutorsReady"
    CONFIG_OVERRIDDEN = "ConfigOverridden"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Reason(StrEnum):
    """Reasons that only SparkApps have."""

    DRIVER_PLACED = "DriverPlaced"
    DRIVER_STARTING = "DriverStarting"
    DRIVER_RUNNING = "DriverRunning"
    MINIMUM_RUNNING = "MinimumRunning"
    WAITING_FOR_EXECUTORS = "WaitingForExecutors"
    NO_EXECUTORS_REQUESTED = "NoExecutorsRequested"
    RESTARTING = "Restarting"
    PROPERTIES_CHANGED_IN_PROGRAM = "PropertiesChangedInProgram"
    # The application's
    APPLICATION_FAILED = "ApplicationFailed"
    SERVICE_ACCOUNT_NOT_FOUND = "ServiceAccountNotFound"
    CONFIG_MAP_REFUSED = "ConfigMapRefused"
    EXCEEDS_QUOTA = "ExceedsQuota"
    TOO_MANY_RESTARTS = "TooManyRestarts"
    # The infrastructure's
    DRIVER_LOST = "DriverLost"
    DRIVER_START_TIMEOUT = "DriverStartTimeout"
    EXECUTOR_START_TIMEOUT = "ExecutorStartTimeout"
    NAME_TAKEN = "NameTaken"
