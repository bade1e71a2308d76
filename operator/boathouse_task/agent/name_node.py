"""Client of a cluster's NameNode: its figures by JMX, folders by WebHDFS."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import msgspec

from boathouse_task.cluster_contract import MOST_SAFE_MODE_CHARS, MOST_VERSION_CHARS, DfsState, HdfsFigures
from boathouse_task.rest import Rest, RestError, clip, figure, host_of

USER = "hadoop"
STALE_S = 30
"""dfs.namenode.stale.datanode.interval."""
_SAFE_MODE_ON = "Safe mode is ON. "
_JMX = "/jmx?qry=Hadoop:service=NameNode,name="


@dataclass(frozen=True, slots=True, kw_only=True)
class DataNode:
    """State of a DataNode."""

    state: DfsState
    name: str = ""
    """The name that it registered."""
    blocks_left: int = 0
    """Under-replicated blocks, if it is being decommissioned."""
    free_bytes: int = 0
    used_bytes: int = 0


class NameNode:
    """Asks a NameNode at its HTTP port. DataNodes outside the domain of the cluster's nodes are left out."""

    def __init__(self, rest: Rest, domain: str) -> None:
        self._rest = rest
        self._domain = domain

    def state(self) -> tuple[HdfsFigures, Mapping[str, DataNode]]:
        """Return the figures of HDFS and the state of each host with a DataNode.

        Raises RestError if the NameNode does not respond, or has not loaded its namespace yet.
        """
        infos = self._rest.get(f"{_JMX}NameNodeInfo", list[_Info], "beans")
        if not infos or not infos[0].cluster_id:
            raise RestError("NameNode: it has not loaded its namespace yet")
        systems = self._rest.get(f"{_JMX}FSNamesystem", list[_System], "beans")
        if not systems:
            raise RestError("NameNode: it has no figures yet")
        info, system = infos[0], systems[0]
        figures = HdfsFigures(
            cluster_id=clip(info.cluster_id, 100),
            started_s=figure(info.started_ms // 1000),
            safe_mode=bool(info.safe_mode),
            capacity_bytes=figure(system.capacity_total),
            used_bytes=figure(system.capacity_used),
            free_bytes=figure(system.capacity_remaining),
            files=figure(system.files_total),
            missing=figure(system.missing_blocks),
            corrupt=figure(system.corrupt_blocks),
            under_replicated=figure(system.under_replicated_blocks),
            pending_replication=figure(system.pending_replication_blocks),
            version=clip(info.software_version, MOST_VERSION_CHARS),
            safe_mode_text=clip(info.safe_mode.removeprefix(_SAFE_MODE_ON), MOST_SAFE_MODE_CHARS),
        )
        return figures, self._data_nodes(info)

    def make_folders(self, permissions: Mapping[str, str]) -> None:
        """Make folders that do not exist yet, with octal permissions. Folders that exist keep theirs.

        Raises RestError if the NameNode does not respond, or is in safe mode.
        """
        for path, permission in permissions.items():
            query = urlencode({"op": "MKDIRS", "permission": permission, "user.name": USER})
            self._rest.put(f"/webhdfs/v1{quote(path)}?{query}")

    def _data_nodes(self, info: "_Info") -> dict[str, DataNode]:
        """Return the DataNodes. Of two with one name, one is dead: the former volume of the node."""
        decommissioning = _nodes(info.decommissioning)
        data_nodes = {}
        for is_live, text in ((False, info.dead), (True, info.live)):
            for address, node in _nodes(text).items():
                name = address.rpartition(":")[0]
                host = host_of(name, self._domain)
                if host is not None:
                    data_nodes[host] = DataNode(
                        state=_state(node, is_live=is_live),
                        name=name,
                        blocks_left=figure(decommissioning.get(address, _Node()).under_replicated_blocks),
                        free_bytes=figure(node.remaining),
                        used_bytes=figure(node.used),
                    )
        return data_nodes


def _state(node: "_Node", *, is_live: bool) -> DfsState:
    if node.admin_state == "Decommissioned":
        return DfsState.DECOMMISSIONED
    if not is_live:
        return DfsState.DEAD
    if node.admin_state == "Decommission In Progress":
        return DfsState.DECOMMISSIONING
    return DfsState.STALE if node.last_contact > STALE_S else DfsState.LIVE


class _Info(msgspec.Struct):
    """The bean NameNodeInfo. Its lists of nodes are texts with JSON."""

    cluster_id: str = msgspec.field(default="", name="ClusterId")
    software_version: str = msgspec.field(default="", name="SoftwareVersion")
    started_ms: int = msgspec.field(default=0, name="NNStartedTimeInMillis")
    safe_mode: str = msgspec.field(default="", name="Safemode")
    live: str = msgspec.field(default="{}", name="LiveNodes")
    dead: str = msgspec.field(default="{}", name="DeadNodes")
    decommissioning: str = msgspec.field(default="{}", name="DecomNodes")


class _System(msgspec.Struct, rename="pascal"):
    """The bean FSNamesystem."""

    capacity_total: int
    capacity_used: int
    capacity_remaining: int
    files_total: int
    missing_blocks: int
    corrupt_blocks: int
    under_replicated_blocks: int
    pending_replication_blocks: int


class _Node(msgspec.Struct, rename="camel"):
    """A DataNode in one of the lists, which have different attributes."""

    admin_state: str = ""
    last_contact: int = 0
    used: int = 0
    remaining: int = 0
    under_replicated_blocks: int = 0


def _nodes(text: str) -> dict[str, _Node]:
    try:
        return msgspec.json.decode(text, type=dict[str, _Node])
    except (msgspec.DecodeError, RecursionError) as error:
        raise RestError(f"NameNode: unexpected list of nodes: {error}") from None
