"""The names of an MRCluster: kind, roles, labels, condition types, and reasons beside `boathouse.resources.names`."""

from enum import StrEnum
from typing import Final

from boathouse.resources.names import GROUP, LABEL_TASK_TYPE

KIND: Final = "MRCluster"
PLURAL: Final = "mrclusters"

LABEL_HOST: Final = f"{GROUP}/host"
"""On a pod of a cluster: the short name of its node, such as `c0`."""
ANNOTATION_SETTINGS: Final = f"{GROUP}/settings"
"""On a pod of a cluster: the digest of the settings that it started with."""
POD_LABELS: Final = frozenset({LABEL_TASK_TYPE, LABEL_HOST, ANNOTATION_SETTINGS})


class Role(StrEnum):
    """What a pod of a cluster is for; the value of its label `task-type`."""

    MASTER = "master"
    CORE = "core"
    TRANSIENT = "transient"
    CLIENT = "client"


class ConditionType(StrEnum):
    """The types of an MRCluster's conditions."""

    ADMITTED = "Admitted"
    READY = "Ready"
    HDFS_AVAILABLE = "HDFSAvailable"
    YARN_AVAILABLE = "YARNAvailable"
    SCHEDULED = "Scheduled"
    DEGRADED = "Degraded"
    SETTINGS_OVERRIDDEN = "SettingsOverridden"
    ROLLED_OUT = "RolledOut"
    RESIZING = "Resizing"
    NETWORK_UNVERIFIED = "NetworkUnverified"
    IDLE = "Idle"


class Reason(StrEnum):
    """Reasons that only MRClusters have."""

    # Ready, HDFSAvailable, YARNAvailable
    AVAILABLE = "Available"
    STARTING = "Starting"
    NO_COMPUTE = "NoCompute"
    SAFE_MODE = "SafeMode"
    DATA_NODES_MISSING = "DataNodesMissing"
    NODE_MANAGERS_MISSING = "NodeManagersMissing"
    TTL_EXPIRED = "TTLExpired"
    # Degraded
    HEALTHY = "Healthy"
    NAME_VOLUME_EMPTY = "NameVolumeEmpty"
    FOREIGN_CLUSTER = "ForeignCluster"
    CORE_NODE_LOST = "CoreNodeLost"
    MISSING_BLOCKS = "MissingBlocks"
    DECOMMISSION_STALLED = "DecommissionStalled"
    VERSION_MISMATCH = "VersionMismatch"
    MASTER_NOT_REPORTING = "MasterNotReporting"
    AGENT_FAILING = "AgentFailing"
    MASTER_CONTAINER_FAILING = "MasterContainerFailing"
    # Scheduled
    NAME_TAKEN = "NameTaken"
    WRITE_REFUSED = "WriteRefused"
    # SettingsOverridden, RolledOut
    CLOSED_SETTINGS = "ClosedSettings"
    NOT_OVERRIDDEN = "NotOverridden"
    ROLLED_OUT = "RolledOut"
    ROLLING_OUT = "RollingOut"
    # Resizing
    AS_WANTED = "AsWanted"
    GROWING = "Growing"
    DRAINING = "Draining"
    SHRINK_BLOCKED = "ShrinkBlocked"
    NO_ROOM = "NoRoom"
    RESERVED_FOR_OTHERS = "ReservedForOthers"
    # NetworkUnverified
    ENFORCED = "Enforced"
    NOT_ENFORCED = "NotEnforced"
    CANNOT_TELL = "CannotTell"
    DISABLED = "Disabled"
    # Idle
    NO_APPLICATIONS = "NoApplications"
    IN_USE = "InUse"


class EventReason(StrEnum):
    """Reasons of events about MRClusters, beside their phases."""

    GREW = "Grew"
    SHRANK = "Shrank"
    DRAIN_TIMED_OUT = "DrainTimedOut"
    DECOMMISSION_UNDONE = "DecommissionUndone"
    NODE_REPLACED = "NodeReplaced"
    SETTINGS_OVERRIDDEN = "SettingsOverridden"
    NETWORK_UNVERIFIED = "NetworkUnverified"
