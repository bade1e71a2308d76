"""The ports of a cluster's daemons, which are fixed: with another port, a NodeManager is another node to YARN."""

from typing import Final

NAME_NODE: Final = 8020
NAME_NODE_HTTP: Final = 9870
CHECKPOINT_HTTP: Final = 9868
DATA_NODE: Final = 9866
DATA_NODE_HTTP: Final = 9864
DATA_NODE_IPC: Final = 9867
RESOURCE_MANAGER: Final = 8032
SCHEDULER: Final = 8030
RESOURCE_TRACKER: Final = 8031
RESOURCE_MANAGER_ADMIN: Final = 8033
RESOURCE_MANAGER_HTTP: Final = 8088
NODE_MANAGER: Final = 8041
LOCALIZER: Final = 8040
NODE_MANAGER_HTTP: Final = 8042
SHUFFLE: Final = 13562
HISTORY: Final = 10020
HISTORY_HTTP: Final = 19888
APPLICATION_MASTERS: Final = (40000, 40199)
"""First and last port where ApplicationMasters listen for the clients of their jobs."""
CANARY: Final = 9899
"""Port of the agent that no NetworkPolicy opens."""
CONTROL: Final = 9898
"""Port of the agent that the NetworkPolicies open to the operator alone."""

BY_NAME: Final = {
    "hdfs": NAME_NODE,
    "namenode-http": NAME_NODE_HTTP,
    "datanode": DATA_NODE,
    "datanode-http": DATA_NODE_HTTP,
    "datanode-ipc": DATA_NODE_IPC,
    "resourcemanager": RESOURCE_MANAGER,
    "scheduler": SCHEDULER,
    "tracker": RESOURCE_TRACKER,
    "rm-admin": RESOURCE_MANAGER_ADMIN,
    "rm-http": RESOURCE_MANAGER_HTTP,
    "nodemanager": NODE_MANAGER,
    "localizer": LOCALIZER,
    "nm-http": NODE_MANAGER_HTTP,
    "shuffle": SHUFFLE,
    "history": HISTORY,
    "history-http": HISTORY_HTTP,
}
"""The ports of the Service."""

OF_CLIENTS: Final = (
    NAME_NODE,
    NAME_NODE_HTTP,
    DATA_NODE,
    DATA_NODE_HTTP,
    RESOURCE_MANAGER,
    SCHEDULER,
    RESOURCE_MANAGER_HTTP,
    HISTORY,
    HISTORY_HTTP,
)
"""The ports that pods outside of the cluster need, beside `APPLICATION_MASTERS`."""
