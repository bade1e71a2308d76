"""Messages between the operator and its programs on Hadoop clusters: an MRCluster's agent and the client of a job.

Both sides import this module, which only has values, and ignore unknown fields.

The agent of an MRCluster runs in the master's pod. It sends an `AgentReport` every few seconds and gets `AgentOrders`
in response. What a report says comes from programs of a user's image, so each field has bounds, and decoding refuses a
report with a value outside of them.

The client of a job on a Hadoop cluster submits the job's application. Its pod has two containers. One has the cluster's
image and becomes the JVM that submits. Beside it runs the task image, which prepares the job and asks the operator for
leave to submit.
"""

import enum
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from boathouse_task.contract import MAX_AMOUNT, MIN_AMOUNT, FileSource, HdfsAddress, S3Config

AGENT_ENV = "BOATHOUSE_AGENT"
"""Variable with the JSON of `AgentSpec`."""
REPORT_MAX_BYTES = 65_536
"""The progress endpoint's limit of an `AgentReport`."""
MOST_NODES = 701
"""500 transient nodes, 200 core nodes and the master."""
MOST_LEAVING = 64
MOST_TAGS = 32
MOST_APPLICATIONS = 8
"""Applications of a tag."""
MOST_KILLS = 16
MOST_COUNTERS = 64
"""Counters of an application, in all its groups."""
MOST_GROUPS = 16
MOST_VERSION_CHARS = 32
MOST_SAFE_MODE_CHARS = 200
LEAST_TAGS = 4
"""Tags that a report keeps if it would be too large."""
DEFAULT_DISTANCE_S = 5.0
"""Time between two reports."""
NO_TIMEOUT = -1

HDFS_EXCLUDE = "dfs.exclude"
"""File in `AgentSpec.files_path`: the nodes that leave HDFS, a host name a line (dfs.hosts.exclude)."""
YARN_EXCLUDE = "yarn.exclude.xml"
"""File in `AgentSpec.files_path`: the nodes that leave YARN, with timeouts (YARN's nodes.exclude-path)."""
TRANSIENT_LABEL = "transient"
"""YARN's node label of transient nodes, not exclusive. YARN does not start unlabelled ApplicationMasters on them."""


class Request(enum.StrEnum):
    """Requests of the agent to the container `refresh`, which carries them out with the image's own commands.

    The agent writes a number to `refresh_path/REQUEST.want`. The container runs the command and writes the number and
    the command's exit status to `refresh_path/REQUEST.done`, as in `7 0`.
    """

    HDFS = "hdfs"
    """`hdfs dfsadmin -refreshNodes`."""
    YARN = "yarn"
    """`yarn rmadmin -refreshNodes -g -server`."""


Figure = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Amount = Annotated[int, msgspec.Meta(ge=MIN_AMOUNT, le=MAX_AMOUNT)]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Host = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,62}\Z")]
Tag = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]{1,64}\Z")]
APPLICATION_ID = "application_[0-9]{1,20}_[0-9]{1,10}"
ApplicationId = Annotated[str, msgspec.Meta(pattern=rf"^{APPLICATION_ID}\Z")]
WORD = "[A-Z_]{1,24}"
Word = Annotated[str, msgspec.Meta(pattern=rf"^{WORD}\Z")]
ClusterId = Annotated[str, msgspec.Meta(pattern=r"^[\x21-\x7e]{1,100}\Z")]
CounterName = Annotated[str, msgspec.Meta(max_length=128)]
CounterGroup = Annotated[dict[CounterName, Amount], msgspec.Meta(max_length=MOST_COUNTERS)]


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters of an agent (environment variable `AGENT_ENV`)."""

    namespace: str
    cluster_uid: str
    progress_url: str
    """https://HOST[:PORT] of the progress endpoint."""
    domain: str
    """Domain of the nodes, SERVICE.NAMESPACE.svc. A node's name is HOST.domain; daemons may register with the domain of
    the Kubernetes cluster behind it."""
    has_compute: bool = True
    """Whether the cluster has a ResourceManager."""
    name_node_port: int = 9870
    resource_manager_port: int = 8088
    history_port: int = 19888
    node_manager_port: int = 8041
    """The port in YARN's names of nodes."""
    canary_port: int = 9899
    """No NetworkPolicy allows it."""
    control_port: int = 9898
    """The cluster's NetworkPolicies allow it for the operator."""
    files_path: str = "/data/agent"
    """Folder on the master's volume for the orders and the exclude files."""
    refresh_path: str = "/refresh"
    """Folder that the agent shares with the container `refresh`."""


class Version(msgspec.Struct, frozen=True, order=True, array_like=True):
    """Version of orders: of two, the later is the larger. JSON: [epoch, revision].

    The epoch is that of the leader's Lease, the revision the resourceVersion of the status that the orders follow.
    """

    epoch: Figure = 0
    revision: Figure = 0


class DfsState(enum.StrEnum):
    """State of a node's DataNode."""

    NONE = "-"
    LIVE = "L"
    STALE = "S"
    """The NameNode had no heartbeat for 30 s."""
    DEAD = "D"
    DECOMMISSIONING = "P"
    DECOMMISSIONED = "X"


class YarnState(enum.StrEnum):
    """State of a node's NodeManager. Only nodes that leave are lost, shut down or decommissioned; others are absent."""

    NONE = "-"
    NEW = "N"
    RUNNING = "R"
    UNHEALTHY = "U"
    LOST = "L"
    DECOMMISSIONING = "D"
    DECOMMISSIONED = "X"
    SHUTDOWN = "S"


class HdfsFigures(msgspec.Struct, frozen=True, kw_only=True):
    """State of a cluster's HDFS."""

    cluster_id: ClusterId
    started_s: Figure
    """When the NameNode started, in epoch seconds."""
    safe_mode: bool
    capacity_bytes: Figure = 0
    used_bytes: Figure = 0
    free_bytes: Figure = 0
    files: Figure = 0
    missing: Figure = 0
    """Blocks without a replica; the next ones have corrupt replicas only, too few replicas, or are being copied."""
    corrupt: Figure = 0
    under_replicated: Figure = 0
    pending_replication: Figure = 0
    version: Annotated[str, msgspec.Meta(max_length=MOST_VERSION_CHARS)] = ""
    """Version of Hadoop of the NameNode; empty if it is unknown."""
    safe_mode_text: Annotated[str, msgspec.Meta(max_length=MOST_SAFE_MODE_CHARS)] = ""
    """Why it is in safe mode, in its own words; empty if it is not, or if the agent is an older one."""


class YarnFigures(msgspec.Struct, frozen=True, kw_only=True):
    """State of a cluster's YARN. Sums over nodes include nodes of all labels."""

    started_s: Figure
    """When the ResourceManager started, in epoch seconds of its node."""
    up_s: Figure = 0
    running: Figure = 0
    """Containers that run, those of ApplicationMasters included."""
    pending: Figure = 0
    """Containers that applications have requested and not got."""
    apps_running: Figure = 0
    """Applications with an ApplicationMaster; the pending ones wait for theirs."""
    apps_pending: Figure = 0
    memory_mb: Figure = 0
    """Memory of the running nodes, and what containers use of it."""
    used_mb: Figure = 0


class NodeFigures(msgspec.Struct, frozen=True, array_like=True):
    """State of a node; JSON: a list in the order of the attributes."""

    host: Host
    """Short name, such as `c0` or `t17`."""
    dfs: DfsState = DfsState.NONE
    yarn: YarnState = YarnState.NONE
    containers: Figure = 0
    memory_mb: Figure = 0
    """Memory that it offers to YARN."""
    blocks_left: Figure = 0
    """Under-replicated blocks of a DataNode that is being decommissioned."""
    free_bytes: Figure = 0
    """Free space of its DataNode, and the space that the blocks on it use."""
    used_bytes: Figure = 0

    @property
    def is_idle(self) -> bool:
        """Whether it runs, stores nothing and has no container."""
        return self.yarn is YarnState.RUNNING and self.dfs is DfsState.NONE and not self.containers


class ApplicationFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """State of an application."""

    id: ApplicationId
    name: Annotated[str, msgspec.Meta(max_length=80)] = ""
    state: Word
    """YARN's state of the application, such as ACCEPTED, RUNNING, FINISHED, FAILED or KILLED."""
    final: Word = "UNDEFINED"
    """Result that it declared: UNDEFINED, SUCCEEDED, FAILED, KILLED or ENDED."""
    progress: Percent = 0
    started_ms: Figure = 0
    finished_ms: Figure = 0
    maps: tuple[Figure, Figure] = (0, 0)
    """Tasks that are done, and all tasks; [0, 0] if unknown. The same for reduces."""
    reduces: tuple[Figure, Figure] = (0, 0)
    counters: Annotated[dict[CounterName, CounterGroup], msgspec.Meta(max_length=MOST_GROUPS)] = {}
    """Of an application that has ended, as soon as the JobHistoryServer has them."""
    diagnostics: Annotated[str, msgspec.Meta(max_length=500)] = ""
    """Why it failed or waits."""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, whatever its result."""
        return self.state in {"FINISHED", "FAILED", "KILLED"}


Applications = Annotated[list[ApplicationFigures], msgspec.Meta(max_length=MOST_APPLICATIONS)]


class AgentReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Periodic report of an agent."""

    version: Version = Version()
    """Of the orders that the agent holds; [0, 0]: none."""
    refreshed: bool = False
    """Whether HDFS and YARN have read them since they last started."""
    error: Annotated[str, msgspec.Meta(max_length=300)] = ""
    """Why not, or what the agent could not do."""
    took_ms: Figure = 0
    """Time from the first question of this round until the report was sent."""
    hdfs: HdfsFigures | None = None
    """None if the NameNode does not respond."""
    yarn: YarnFigures | None = None
    """None if the ResourceManager does not respond."""
    nodes: Annotated[list[NodeFigures], msgspec.Meta(max_length=MOST_NODES)] = []
    """Nodes that HDFS or YARN know. A node that is absent is not registered, unless `idle_nodes` is above 0."""
    idle_nodes: Figure = 0
    """Number of idle nodes that were left out because the report would be too large."""
    tags: Annotated[dict[Tag, Applications], msgspec.Meta(max_length=MOST_TAGS)] = {}
    """Applications of each tag that the ResourceManager was asked for and responded."""
    canary: bool = False
    """Whether the agent listens on the canary port and on the control port."""
    follows: Figure = 0
    """Number of the last response that the agent got before this round; 0: none. The agent asked for what it reports
    after that response."""


class Leaving(msgspec.Struct, frozen=True, array_like=True):
    """A node that is drained; JSON: [host, timeout_s, stores]."""

    host: Host
    timeout_s: int = NO_TIMEOUT
    """Time after which YARN stops its containers; `NO_TIMEOUT`: never."""
    stores: bool = False
    """Whether it has a DataNode."""


class AgentOrders(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Response to a report."""

    next_s: float = DEFAULT_DISTANCE_S
    version: Version | None = None
    """Of `leaving`. None: the leader does not know the cluster yet, and the agent keeps its orders."""
    leaving: Annotated[list[Leaving], msgspec.Meta(max_length=MOST_LEAVING)] = []
    """All nodes that are drained."""
    tags: Annotated[list[Tag], msgspec.Meta(max_length=MOST_TAGS)] = []
    """Tags of applications that the next report should have."""
    kill: Annotated[list[ApplicationId], msgspec.Meta(max_length=MOST_KILLS)] = []
    """IDs of applications to kill."""
    number: Figure = 0
    """Of this response, which the next report has as `follows`."""


def encode_report(report: AgentReport) -> bytes:
    """Return a report as JSON, without its less important parts if it would be larger than the endpoint accepts.

    A report of figures that no cluster has can still be too large. The endpoint refuses it.
    """
    body = b""
    for smaller in _reductions(report):
        body = msgspec.json.encode(smaller)
        if len(body) <= REPORT_MAX_BYTES:
            break
    return body


def _reductions(report: AgentReport) -> Iterator[AgentReport]:
    """Yield the report, and ever smaller ones. The last tags lose most, so the agent rotates their order."""
    yield report
    tags = dict(report.tags)
    cleared: dict[str, Any]
    for cleared in ({"diagnostics": ""}, {"counters": {}}):
        for tag in reversed(report.tags):
            tags[tag] = [replace(application, **cleared) for application in tags[tag]]
            yield replace(report, tags=tags)
    report = replace(report, tags={tag: tags[tag] for tag in list(tags)[:LEAST_TAGS]})
    yield report
    busy = [node for node in report.nodes if not node.is_idle]
    yield replace(report, nodes=busy, idle_nodes=len(report.nodes) - len(busy))


CLIENT_ENV = "BOATHOUSE_CLIENT"
"""Variable with the JSON of `ClientSpec`."""
CONF_PATH = "/etc/hadoop"
"""Mount path of the cluster's settings."""
CONF_FOLDER = "conf"
"""Folder in the work folder with the cluster's settings and those of the job."""
FILES_FOLDER = "run"
"""Folder in the work folder with the job's files and the scripts of its commands."""
GO_FILE = "go"
"""File in the work folder: the client has leave to submit."""
STOP_FILE = "stop"
"""File in the work folder with a `TaskResult`: the client must end without a submission."""
SITES = ("core-site.xml", "hdfs-site.xml", "mapred-site.xml", "yarn-site.xml")
"""Files of the cluster's settings. Hadoop reads them in an order of its own, and the last value wins."""


class ClientSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters of a client (environment variable `CLIENT_ENV`)."""

    job_uid: str
    job_name: str
    namespace: str
    attempt: int
    progress_url: str
    settings: dict[str, str] = {}
    """Settings of the job, which win over the cluster's."""
    secret_settings: dict[str, str] = {}
    """Variables of this container by the settings that get their values. `settings` win."""
    scripts: dict[str, list[str]] = {}
    """Commands by the name of the script that runs them, in `FILES_FOLDER`."""
    exported: list[str] = []
    """Variables of this container that the scripts set."""
    files: list[FileSource] = []
    """Files for `FILES_FOLDER`."""
    s3: S3Config | None = None
    hdfs: dict[str, HdfsAddress] = {}
    """Addresses of the clusters that hdfs:// URLs name."""
    secret_variables: list[str] = []
    """Environment variables whose values must be masked."""


class Leave(msgspec.Struct, frozen=True, kw_only=True):
    """Response of the endpoint to a client that may submit."""

    attempt: int
