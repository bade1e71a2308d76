"""The status of an MRCluster, with sets of nodes as text (`3-7,12`), the resource as a whole, and its CRD."""

import dataclasses
import re
from collections.abc import Iterable
from typing import Annotated, Final, Literal

import pydantic
from pydantic import ConfigDict, Field

from boathouse.resources.base import ATOMIC, Model, map_list, optional, rule, rules
from boathouse.resources.crd import AGE, CustomResource, PrinterColumn
from boathouse.resources.mrcluster import names
from boathouse.resources.mrcluster.spec import MRClusterSpec
from boathouse.resources.statuses import ABSENT, Conditions, Count, Part, RequiredTime, Status, Text, Time, about

MAX_NUMBERS: Final = 700
MAX_LENGTH: Final = 8192
_RANGE: Final = re.compile(r"(?P<first>[0-9]{1,10})(-(?P<last>[0-9]{1,10}))?")


def ranges_text(numbers: Iterable[int]) -> str:
    """Return the numbers as text."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_ranges(ranges: str) -> tuple[int, ...]:
    """Return the numbers of a text, sorted; parts that are no ranges are left out, and numbers beyond `MAX_NUMBERS`."""
    numbers: set[int] = set()
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if match:
            first, last = int(match["first"]), int(match["last"] or match["first"])
            numbers.update(range(first, min(last, first + MAX_NUMBERS) + 1))
    return tuple(sorted(numbers)[:MAX_NUMBERS])


def _ranges_of_status(ranges: object) -> tuple[int, ...]:
    if not isinstance(ranges, str) or len(ranges) > MAX_LENGTH:
        raise ValueError(f"ranges are a text of at most {MAX_LENGTH} characters, such as 3-7,12")
    return parse_ranges(ranges)


Ranges = Annotated[
    tuple[int, ...],
    pydantic.BeforeValidator(_ranges_of_status),
    pydantic.PlainSerializer(lambda numbers: ranges_text(numbers) or None),
    pydantic.WithJsonSchema({"type": "string", "maxLength": MAX_LENGTH}),
]
Phase = Literal["Pending", "Starting", "Ready", "Degraded", "Expired"]
MAX_NAME: Final = 40
"""Characters of a cluster's name: the names of its pods and of its Service are longer."""
MAX_LEAVING, MAX_SIZES, MAX_SIZE_REASON = 64, 120, 512
MAX_MESSAGE: Final = 640
"""Of a condition: with all conditions as long as that, the largest cluster has a status below 32 KiB."""


class NodeCounts(Model):
    """Nodes of a role."""

    wanted: int = Field(default=0, description="Nodes that the cluster shall have, without those that leave.")
    ready: int = Field(default=0, description="Registered with HDFS (core) or YARN (transient).")
    pending: int = Field(default=0, description="Wanted, and not ready yet.")
    leaving: int = Field(default=0, description="Drained by order.")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeavingNode(Part):
    """A node that is drained."""

    host: Annotated[str, about("Short name of the node, such as t17.", max_length=16)]
    since_s: Annotated[RequiredTime, about("When its drain began.", alias="since")]
    deadline_s: Annotated[Time, about("Absent: it leaves when it is drained.", alias="deadline")] = None
    reason: Annotated[
        str,
        about(
            "Shrinking: fewer nodes are wanted. Rolling: it has former settings. Unknown: the status did "
            "not have it. Drained, TimedOut: the drain has ended, and its pod is deleted.",
            max_length=24,
        ),
    ] = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SizeReason(Part):
    """Why the cluster has the nodes that it has."""

    time_s: Annotated[RequiredTime, about("When this was decided.", alias="time")]
    reason: Annotated[str, about("The policy's decision and the figures that it rests on.", max_length=MAX_SIZE_REASON)]
    offer: Annotated[int, about("Nodes of the last offer; negative: asked back.")] = 0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SizeChange(Part):
    """The nodes since a time."""

    time_s: Annotated[RequiredTime, about("From when on the cluster had these nodes.", alias="time")]
    core: Annotated[int, about("Core nodes.")]
    transient: Annotated[int, about("Transient nodes.")]


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
    resource_manager: str | None = optional(
        "URL of the ResourceManager's pages. Absent: the cluster has no YARN.", max_length=256
    )
    job_history: str | None = optional(
        "URL of the JobHistoryServer's pages. Absent: the cluster has no YARN.", max_length=256
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MRClusterStatus(Status):
    """What the operator observed and decided."""

    phase: Annotated[
        Phase,
        about(
            "Pending: it has no pod yet. Starting: HDFS or YARN is not available. Degraded: something is "
            "wrong, see the condition. Expired: not used for ttlSecondsAfterIdle, and deleted."
        ),
    ] = "Pending"
    conditions: Annotated[Conditions, about("What holds of the cluster, such as Ready, Degraded and Resizing.")] = ()
    queue: Annotated[Text, about("The queue the cluster is in.", max_length=63)] = ""
    reason: Annotated[Text, about("Why it is pending or degraded.", max_length=64)] = ""
    start_s: Annotated[Time, about("When its first pod was submitted.")] = None
    ready_s: Annotated[Time, about("When it became ready for the first time.")] = None
    completion_s: Annotated[Time, about("When it expired.")] = None
    cluster_id: Annotated[
        Text,
        about(
            "The ID of its HDFS. Once it is set, the volume of the NameNode is never formatted again.",
            alias="clusterID",
            max_length=128,
        ),
    ] = ""
    first_core_nodes: Annotated[Count, ABSENT, about("Core nodes at first; it never has fewer.")] = 0
    replication: Annotated[Count, ABSENT, about("Copies of each block of new files.")] = 0
    next_transient: Annotated[
        Count,
        ABSENT,
        about("The number of the next transient node. A number is used again only after a restore of etcd."),
    ] = 0
    core: NodeCounts | None = None
    transient: NodeCounts | None = None
    wanted_core: Annotated[Ranges, about("Numbers of core nodes that exist or shall: 0-2.")] = ()
    wanted_transient: Annotated[Ranges, about("Numbers of transient nodes that exist or shall: 3-7,12.")] = ()
    leaving: Annotated[
        tuple[LeavingNode, ...],
        ABSENT,
        about(
            "Nodes that are drained, or whose pods are deleted after it.",
            max_length=MAX_LEAVING,
            json_schema_extra=map_list("host"),
        ),
    ] = ()
    size: SizeReason | None = None
    sizes: Annotated[
        tuple[SizeChange, ...],
        ABSENT,
        about("Changes of the size, the latest last.", max_length=MAX_SIZES, json_schema_extra=ATOMIC),
    ] = ()
    load_percent: Annotated[int | None, about("F: running and pending containers, of the slots.")] = None
    slots: Annotated[int | None, about("Maps that can run at the same time.")] = None
    containers: Containers | None = None
    applications: Annotated[int | None, about("Running and pending applications of YARN.")] = None
    hdfs: HdfsUsage | None = None
    addresses: Addresses | None = None
    settings: Annotated[Text, about("Digest of the settings that all nodes started with.", max_length=64)] = ""
    last_active_s: Annotated[Time, about("When the cluster was last in use.")] = None


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


MRCLUSTER = CustomResource(
    kind=names.KIND,
    plural=names.PLURAL,
    short_names=("mrc",),
    model=MRCluster,
    columns=(
        PrinterColumn("Phase", ".status.phase", "Phase of the cluster."),
        PrinterColumn("Core", ".status.core.ready", "Core nodes that are ready.", type="integer"),
        PrinterColumn("Transient", ".status.transient.ready", "Transient nodes that are ready.", type="integer"),
        PrinterColumn("Load%", ".status.loadPercent", "Running and pending containers, of the slots.", type="integer"),
        PrinterColumn("Queue", ".status.queue", "Queue of the cluster."),
        PrinterColumn("Policy", ".spec.resizing.policy", "Resizing policy.", priority=1),
        PrinterColumn("Version", ".spec.version", "Version of Hadoop.", priority=1),
        PrinterColumn("Used", ".status.hdfs.usedBytes", "Bytes used in HDFS.", type="integer", priority=1),
        PrinterColumn("Reason", ".status.reason", "Why it is pending or degraded.", priority=1),
        AGE,
    ),
)
