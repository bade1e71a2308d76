"""The status of an MRCluster, and the resource as a whole."""

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from boathouse.resources.base import Condition, Model, rule, rules
from boathouse.resources.mrcluster.spec import MRClusterSpec

Phase = Literal["Pending", "Starting", "Ready", "Degraded", "Expired"]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
MAX_NAME: Final = 40
"""Characters of a cluster's name: the names of its pods and of its Service are longer."""
MAX_LEAVING: Final = 64
MAX_SIZES: Final = 120
MAX_MESSAGE: Final = 640
"""Of a condition: with all conditions as long as that, the largest cluster has a status below 32 KiB."""
MAX_SIZE_REASON: Final = 512
MAX_RANGES: Final = 8192
_ATOMIC: Final[JsonDict] = {"x-kubernetes-list-type": "atomic"}
Ranges = Annotated[str, Field(max_length=MAX_RANGES)]


class NodeCounts(Model):
    """Nodes of a role."""

    wanted: int = Field(default=0, description="Nodes that the cluster shall have, without those that leave.")
    ready: int = Field(default=0, description="Registered with HDFS (core) or YARN (transient).")
    pending: int = Field(default=0, description="Wanted, and not ready yet.")
    leaving: int = Field(default=0, description="Drained by order.")


class Leaving(Model):
    """A node that is drained."""

    host: str = Field(max_length=16, description="Short name of the node, such as t17.")
    since: Time = Field(description="When its drain began.")
    deadline: Time | None = Field(default=None, description="Absent: it leaves when it is drained.")
    reason: str = Field(
        default="",
        max_length=24,
        description="Shrinking: fewer nodes are wanted. Rolling: it has former settings. Unknown: the status did not "
        "have it. Drained, TimedOut: the drain has ended, and its pod is deleted.",
    )


class Size(Model):
    """Why the cluster has the nodes that it has."""

    time: Time = Field(description="When this was decided.")
    reason: str = Field(
        max_length=MAX_SIZE_REASON, description="The policy's decision and the figures that it rests on."
    )
    offer: int = Field(default=0, description="Nodes of the last offer; negative: asked back.")


class SizeChange(Model):
    """The nodes since a time."""

    time: Time = Field(description="From when on the cluster had these nodes.")
    core: int = Field(description="Core nodes.")
    transient: int = Field(description="Transient nodes.")


class Containers(Model):
    """Containers of YARN."""

    running: int = Field(default=0, description="Containers that run, without those of ApplicationMasters.")
    pending: int = Field(
        default=0,
        description="Containers that applications have requested and lack. A pending application counts as one.",
    )


class HdfsUsage(Model):
    """HDFS, as the NameNode reports it."""

    capacity_bytes: int = Field(default=0, description="Bytes that all DataNodes can hold.")
    used_bytes: int = Field(default=0, description="Bytes of blocks, all copies counted.")
    files: int = Field(default=0, description="Files and folders.")
    missing_blocks: int = Field(default=0, description="Blocks without a copy on a live DataNode.")
    under_replicated_blocks: int = Field(default=0, description="Blocks with fewer copies than their file asks for.")
    live_data_nodes: int = Field(default=0, description="DataNodes that send heartbeats.")


class Addresses(Model):
    """Addresses in the cluster of Kubernetes."""

    hdfs: str = Field(max_length=256, description="URL of HDFS for Hadoop's clients (fs.defaultFS).")
    web_hdfs: str = Field(alias="webHDFS", max_length=256, description="URL of the NameNode for WebHDFS.")
    resource_manager: str | None = Field(
        default=None, max_length=256, description="URL of the ResourceManager's pages. Absent: the cluster has no YARN."
    )
    job_history: str | None = Field(
        default=None,
        max_length=256,
        description="URL of the JobHistoryServer's pages. Absent: the cluster has no YARN.",
    )


class MRClusterStatus(Model):
    """What the operator observed and decided."""

    observed_generation: int | None = Field(
        default=None, description="Value of metadata.generation that the status is about."
    )
    phase: Phase | None = Field(
        default=None,
        description="Pending: it has no pod yet. Starting: HDFS or YARN is not available. Degraded: something is "
        "wrong, see the condition. Expired: not used for ttlSecondsAfterIdle, and deleted.",
    )
    conditions: list[Condition] | None = Field(
        default=None,
        max_length=16,
        description="What holds of the cluster, such as Ready, Degraded and Resizing.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    queue: str | None = Field(default=None, max_length=63, description="The queue the cluster is in.")
    reason: str | None = Field(default=None, max_length=64, description="Why it is pending or degraded.")
    start_time: Time | None = Field(default=None, description="When its first pod was submitted.")
    ready_time: Time | None = Field(default=None, description="When it became ready for the first time.")
    completion_time: Time | None = Field(default=None, description="When it expired.")
    cluster_id: str | None = Field(
        default=None,
        alias="clusterID",
        max_length=128,
        description="The ID of its HDFS. Once it is set, the volume of the NameNode is never formatted again.",
    )
    first_core_nodes: int | None = Field(default=None, description="Core nodes at first; it never has fewer.")
    replication: int | None = Field(default=None, description="Copies of each block of new files.")
    next_transient: int | None = Field(
        default=None,
        description="The number of the next transient node. A number is used again only after a restore of etcd.",
    )
    core: NodeCounts | None = None
    transient: NodeCounts | None = None
    wanted_core: Ranges | None = Field(default=None, description="Numbers of core nodes that exist or shall: 0-2.")
    wanted_transient: Ranges | None = Field(
        default=None, description="Numbers of transient nodes that exist or shall: 3-7,12."
    )
    leaving: list[Leaving] | None = Field(
        default=None,
        max_length=MAX_LEAVING,
        description="Nodes that are drained, or whose pods are deleted after it.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["host"]},
    )
    size: Size | None = None
    sizes: list[SizeChange] | None = Field(
        default=None,
        max_length=MAX_SIZES,
        description="Changes of the size, the latest last.",
        json_schema_extra=_ATOMIC,
    )
    load_percent: int | None = Field(default=None, description="F: running and pending containers, of the slots.")
    slots: int | None = Field(default=None, description="Maps that can run at the same time.")
    containers: Containers | None = None
    applications: int | None = Field(default=None, description="Running and pending applications of YARN.")
    hdfs: HdfsUsage | None = None
    addresses: Addresses | None = None
    settings: str | None = Field(
        default=None, max_length=64, description="Digest of the settings that all nodes started with."
    )
    last_active_time: Time | None = Field(default=None, description="When the cluster was last in use.")


_root_rules = (
    rule(
        f"self.metadata.name.matches('^[a-z]([-a-z0-9]{{0,{MAX_NAME - 2}}}[a-z0-9])?$')",
        f"metadata.name of a cluster has at most {MAX_NAME} small letters, digits and dashes, and begins with a "
        "letter: it is part of the names of hosts",
    ),
    rule(
        "!has(self.status) || !has(self.status.firstCoreNodes) || self.spec.core.count >= self.status.firstCoreNodes",
        "spec.core.count is less than the number of core nodes that the cluster started with "
        "(status.firstCoreNodes): raise it",
    ),
)


class MRCluster(Model):
    """A Hadoop cluster of pods: a master, core nodes with HDFS, and transient nodes that follow the load."""

    model_config = ConfigDict(json_schema_extra={"required": ["spec"], **rules(*_root_rules)})
    api_version: str | None = None
    kind: str | None = None
    spec: MRClusterSpec
    status: MRClusterStatus | None = None
