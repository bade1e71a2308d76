"""The daemons of Hadoop: their containers, ports and folders, and the variables that their settings read. Pure.

Ports are fixed: with another port, a NodeManager is another node to YARN.
"""

import dataclasses
from typing import Final

from boathouse.services import hadoop
from boathouse_task import cluster_contract

NAME_NODE_PORT: Final = hadoop.NAME_NODE_PORT
NAME_NODE_HTTP_PORT: Final = hadoop.WEB_HDFS_PORT
CHECKPOINT_HTTP_PORT: Final = 9868
DATA_NODE_PORT: Final = 9866
DATA_NODE_HTTP_PORT: Final = 9864
DATA_NODE_IPC_PORT: Final = 9867
RESOURCE_MANAGER_PORT: Final = 8032
SCHEDULER_PORT: Final = 8030
RESOURCE_TRACKER_PORT: Final = 8031
RESOURCE_MANAGER_ADMIN_PORT: Final = 8033
RESOURCE_MANAGER_HTTP_PORT: Final = 8088
NODE_MANAGER_PORT: Final = 8041
LOCALIZER_PORT: Final = 8040
NODE_MANAGER_HTTP_PORT: Final = 8042
SHUFFLE_PORT: Final = 13562
HISTORY_PORT: Final = 10020
HISTORY_HTTP_PORT: Final = 19888
APPLICATION_MASTER_PORTS: Final = (40000, 40199)
"""First and last port where ApplicationMasters listen for the clients of their jobs."""
CANARY_PORT: Final = 9899
"""Port of the agent that no NetworkPolicy opens."""
CONTROL_PORT: Final = 9898
"""Port of the agent that the NetworkPolicies open to the operator alone."""

PORTS: Final = {
    "hdfs": NAME_NODE_PORT,
    "namenode-http": NAME_NODE_HTTP_PORT,
    "datanode": DATA_NODE_PORT,
    "datanode-http": DATA_NODE_HTTP_PORT,
    "datanode-ipc": DATA_NODE_IPC_PORT,
    "resourcemanager": RESOURCE_MANAGER_PORT,
    "scheduler": SCHEDULER_PORT,
    "tracker": RESOURCE_TRACKER_PORT,
    "rm-admin": RESOURCE_MANAGER_ADMIN_PORT,
    "rm-http": RESOURCE_MANAGER_HTTP_PORT,
    "nodemanager": NODE_MANAGER_PORT,
    "localizer": LOCALIZER_PORT,
    "nm-http": NODE_MANAGER_HTTP_PORT,
    "shuffle": SHUFFLE_PORT,
    "history": HISTORY_PORT,
    "history-http": HISTORY_HTTP_PORT,
}
"""The ports of the Service."""

CLIENT_PORTS: Final = (
    *(NAME_NODE_PORT, NAME_NODE_HTTP_PORT, DATA_NODE_PORT, DATA_NODE_HTTP_PORT, RESOURCE_MANAGER_PORT),
    *(SCHEDULER_PORT, RESOURCE_MANAGER_HTTP_PORT, HISTORY_PORT, HISTORY_HTTP_PORT),
)
"""The ports that pods outside of the cluster need, beside `APPLICATION_MASTER_PORTS`."""

CONF_FOLDER: Final = "/etc/hadoop"
DATA_FOLDER: Final = "/data"
"""Mount path of the parts of a claim. Daemons make their folders below: they set modes, which only an owner may."""
NAME_MOUNT: Final = f"{DATA_FOLDER}/name"
NAME_FOLDER: Final = f"{NAME_MOUNT}/dfs"
BLOCKS_FOLDER: Final = f"{DATA_FOLDER}/dfs"
RM_STATE_FOLDER: Final = f"{DATA_FOLDER}/rm"
AGENT_FOLDER: Final = f"{DATA_FOLDER}/agent"
HDFS_EXCLUDE: Final = f"{AGENT_FOLDER}/{cluster_contract.HDFS_EXCLUDE}"
YARN_EXCLUDE: Final = f"{AGENT_FOLDER}/{cluster_contract.YARN_EXCLUDE}"
CHECKPOINT_FOLDER: Final = "/checkpoint"
LOCAL_FOLDER: Final = "/local"
REFRESH_FOLDER: Final = "/refresh"

FQDN_ENV: Final = "BOATHOUSE_FQDN"
YARN_MEMORY_ENV: Final = "BOATHOUSE_YARN_MEMORY_MB"
YARN_VCORES_ENV: Final = "BOATHOUSE_YARN_VCORES"
LABELS_ENV: Final = "BOATHOUSE_NODE_LABELS"
"""`config` on transient nodes: the NodeManager reads its label from the settings. Absent elsewhere: no label."""
_HDFS: Final = "org.apache.hadoop.hdfs.server"
_YARN: Final = "org.apache.hadoop.yarn.server"


def from_env(variable: str, default: str = "") -> str:
    """Return a value that Hadoop replaces with a variable of its environment."""
    return f"${{env.{variable}:-{default}}}"


@dataclasses.dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon, which has a container of its own. Its port is open when it is ready; 0: none."""

    container: str
    java_class: str
    port: int = 0


NAME_NODE: Final = Daemon("namenode", f"{_HDFS}.namenode.NameNode", NAME_NODE_PORT)
CHECKPOINT: Final = Daemon("checkpoint", f"{_HDFS}.namenode.SecondaryNameNode")
DATA_NODE: Final = Daemon("datanode", f"{_HDFS}.datanode.DataNode", DATA_NODE_PORT)
RESOURCE_MANAGER: Final = Daemon(
    "resourcemanager", f"{_YARN}.resourcemanager.ResourceManager", RESOURCE_MANAGER_HTTP_PORT
)
HISTORY: Final = Daemon("history", "org.apache.hadoop.mapreduce.v2.hs.JobHistoryServer", HISTORY_HTTP_PORT)
NODE_MANAGER: Final = Daemon("nodemanager", f"{_YARN}.nodemanager.NodeManager", NODE_MANAGER_HTTP_PORT)

ALL: Final = (NAME_NODE, CHECKPOINT, DATA_NODE, RESOURCE_MANAGER, HISTORY, NODE_MANAGER)
