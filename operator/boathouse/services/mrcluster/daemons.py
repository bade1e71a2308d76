"""The daemons of Hadoop: their classes, and the container of each. Pure."""

import dataclasses
from typing import Final

from boathouse.services.mrcluster import ports


@dataclasses.dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon, which has a container of its own.

    Attributes:
        container: Name of the container.
        port: The port that is open when it is ready; 0: none.
    """

    container: str
    java_class: str
    port: int = 0


_HDFS: Final = "org.apache.hadoop.hdfs.server"
_YARN: Final = "org.apache.hadoop.yarn.server"

NAME_NODE: Final = Daemon("namenode", f"{_HDFS}.namenode.NameNode", ports.NAME_NODE)
CHECKPOINT: Final = Daemon("checkpoint", f"{_HDFS}.namenode.SecondaryNameNode")
DATA_NODE: Final = Daemon("datanode", f"{_HDFS}.datanode.DataNode", ports.DATA_NODE)
RESOURCE_MANAGER: Final = Daemon(
    "resourcemanager", f"{_YARN}.resourcemanager.ResourceManager", ports.RESOURCE_MANAGER_HTTP
)
HISTORY: Final = Daemon("history", "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer", ports.HISTORY_HTTP)
NODE_MANAGER: Final = Daemon("nodemanager", f"{_YARN}.nodemanager.NodeManager", ports.NODE_MANAGER_HTTP)

ALL: Final = (NAME_NODE, CHECKPOINT, DATA_NODE, RESOURCE_MANAGER, HISTORY, NODE_MANAGER)
