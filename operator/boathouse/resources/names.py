"""Names of the API: group, labels, annotations, condition types, reasons, and those for which pods end.

Reasons of pods are free text in the API. Metrics and conditions use only values of the closed set `POD_REASONS`.
"""

from enum import StrEnum
from typing import Final

from boathouse_task import contract

GROUP = "boathouse.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

SCHEDULER_NAME = "boathouse"
MANAGER = "boathouse"
OPERATOR_NAMESPACE = "boathouse-system"
SHADOW = "boathouse-shadow"
"""ConfigMap in the operator's namespace with what a shadow profile has decided otherwise."""
SHADOW_KEY = "shadow.json"
TOKEN_AUDIENCE = contract.TOKEN_AUDIENCE

LABEL_JOB_UID = f"{GROUP}/job-uid"
LABEL_KIND = f"{GROUP}/kind"
LABEL_TASK_TYPE = f"{GROUP}/task-type"
TASK_TYPE_PLACEHOLDER = "placeholder"
"""The value of the label task-type of pods that stand for others while these wait for nodes."""
LABEL_QUEUE = f"{GROUP}/queue"
LABEL_APART = f"{GROUP}/apart"
"""On pods that may not share a node: no two pods of a namespace with the same value are placed on a node."""
LABEL_SERVER = f"{GROUP}/server"
LABEL_RACK = f"{GROUP}/rack"
"""On nodes: their physical host, and their rack."""
HOSTNAME = "kubernetes.io/hostname"
LABEL_LEADER = f"{GROUP}/leader"
LABEL_FENCED = f"{GROUP}/fenced"
"""Label `true` of every pod and Binding that the operator creates: the policy boathouse-fence checks only these."""

ANNOTATION_EPOCH = f"{GROUP}/epoch"
ANNOTATION_DECISION = f"{GROUP}/decision"
ANNOTATION_IDEAL_MEMORY = f"{GROUP}/ideal-memory"
"""The memory in bytes that a task requested, on a pod that was started with less."""

ANNOTATION_RESERVED = f"{GROUP}/reserved"
"""On a driver: the nodes where room was reserved for its executors when it was placed, with their numbers."""

ANNOTATION_SUSPENSION = f"{GROUP}/suspension"
"""On a task's pod: its last suspension, with the size that it had before."""
ANNOTATION_FIGURES = f"{GROUP}/figures"
"""On a pod: what the policies computed when they chose its node and size."""
ANNOTATION_SUSPEND_UNTIL = f"{GROUP}/suspend-reducers-until"
"""On an MRJob: suspends its reducers that lack map output until this time (RFC 3339), at most an hour ahead."""
ANNOTATION_EXECUTOR_MEMORY = f"{GROUP}/executor-memory"
"""On a driver: the memory in bytes that was chosen for its executors."""
ANNOTATION_EXIT_CODE = f"{GROUP}/exit-code"
"""On a pod that the operator ended, because containers that admission injected outlived its own: the exit code of its
own container, which is the pod's result."""
LABEL_PROBE = f"{GROUP}/probe"
"""Label `true` of the pod that runs a job on a sample of its input, to predict its size."""

FINALIZER = f"{GROUP}/clean-up"
"""Keeps a deleted object, such as an MRJob with `cleanUp: OnDelete`, until its clean-up has succeeded or failed."""

CONTAINER = "task"
PROGRESS_CA_CONFIG_MAP = "boathouse-progress-ca"
PROGRESS_CA_KEY = "ca.crt"
PROGRESS_SERVICE = "boathouse-progress"

APP_NAME = "app.kubernetes.io/name"
APP_INSTANCE = "app.kubernetes.io/instance"
APP_COMPONENT = "app.kubernetes.io/component"
APP_MANAGED_BY = "app.kubernetes.io/managed-by"
APP_PART_OF = "app.kubernetes.io/part-of"


class ConditionType(StrEnum):
    """Types of an MRJob's conditions."""

    ADMITTED = "Admitted"
    SUSPENDED = "Suspended"
    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CLEANED_UP = "CleanedUp"
    REDUCERS_SUSPENDED = "ReducersSuspended"
    SIZE_PREDICTED = "SizePredicted"
    SIGNALS_AVAILABLE = "SignalsAvailable"
    POLICIES_ACTIVE = "PoliciesActive"
    SETTINGS_OVERRIDDEN = "SettingsOverridden"


class Reason(StrEnum):
    """Reasons that the operator sets. The task runtime and the scheduler define further reasons."""

    # Good
    ADMITTED = "Admitted"
    ALL_TASKS_PLACED = "AllTasksPlaced"
    TASKS_RUNNING = "TasksRunning"
    JOB_FINISHED = "JobFinished"
    SUCCEEDED = "Succeeded"
    CLEANED_UP = "CleanedUp"
    KUBELETS_READ = "KubeletsRead"
    TRIED_AGAIN = "TriedAgain"
    # Not yet
    WAITING_FOR_TASKS = "WaitingForTasks"
    PENDING_EVALUATION = "PendingEvaluation"
    SUSPENDED = "Suspended"
    RESUMED = "Resumed"
    WAITING_FOR_MAPS = "WaitingForMaps"
    BY_HAND = "ByHand"
    REQUEST_OWED = "RequestOwed"
    RESUME_REFUSED = "ResumeRefused"
    CLEANING_UP = "CleaningUp"
    PROBING = "Probing"
    LEARNING = "Learning"
    PROBE_WITHDRAWN = "ProbeWithdrawn"
    HARMFUL = "Harmful"
    CLUSTER_NOT_READY = "ClusterNotReady"
    APPLICATIONS_UNKNOWN = "ApplicationsUnknown"
    # User errors
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    INVALID_SPEC = "InvalidSpec"
    INVALID_TIME = "InvalidTime"
    SWITCHED_OFF = "SwitchedOff"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_NOT_ALLOWED = "QueueNotAllowed"
    SECRET_NOT_FOUND = "SecretNotFound"  # noqa: S105 - a reason, not a secret
    CONFIG_MAP_NOT_FOUND = "ConfigMapNotFound"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    RUNTIME_NOT_FOUND = "RuntimeNotFound"
    TASK_FAILED = "TaskFailed"
    OOM_KILLED = "OOMKilled"
    TOO_MANY_SPLITS = "TooManySplits"
    TOO_MANY_JOBS = "TooManyJobs"
    CLUSTER_NOT_FOUND = "ClusterNotFound"
    NO_COMPUTE = "NoCompute"
    CLOSED_SETTINGS = "ClosedSettings"
    APPLICATION_FAILED = "ApplicationFailed"
    APPLICATION_KILLED = "ApplicationKilled"
    # Infrastructure errors
    POD_LOST = "PodLost"
    POD_START_TIMEOUT = "PodStartTimeout"
    PLAN_LOST = "PlanLost"
    INVALID_POD = "InvalidPod"
    SET_ASIDE = "SetAside"
    CLEAN_UP_FAILED = "CleanUpFailed"
    KUBELETS_NOT_READ = "KubeletsNotRead"
    KUBELETS_FAILING = "KubeletsFailing"
    PROBE_FAILED = "ProbeFailed"
    PROBE_TIMEOUT = "ProbeTimeout"


OUT_OF_RESOURCE: Final = "OutOfResource"
"""Replaces the kubelet's `OutOfNAME` of an extended resource, whose name is arbitrary."""

POD_REASONS: Final = frozenset(
    {
        # Rejected by the kubelet
        *("AdmissionError", "AppArmor", "InvalidNodeInfo", "NodeAffinity", "NodePorts", "OutOfcpu"),
        *("OutOfephemeral-storage", "OutOfmemory", "OutOfpods", OUT_OF_RESOURCE, "PodFeatureUnsupported"),
        *("PodOSNotSupported", "SysctlForbidden", "Taint", "TopologyAffinityError", "UnexpectedAdmissionError"),
        "UnsupportedPod",
        # Ended by the kubelet or the node controller
        *("DeadlineExceeded", "Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"),
        # DisruptionTarget
        *("DeletionByPodGC", "DeletionByTaintManager", "EvictionByEvictionAPI", "PreemptionByScheduler"),
        "TerminationByKubelet",
    }
)


def pod_reason(reason: str, otherwise: str) -> str:
    """Return the reason if it is in the closed set, `OUT_OF_RESOURCE` for an `OutOfNAME`, or else `otherwise`."""
    if reason in POD_REASONS:
        return reason
    return OUT_OF_RESOURCE if reason.startswith("OutOf") else otherwise
