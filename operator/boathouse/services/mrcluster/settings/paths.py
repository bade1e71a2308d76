"""Folders in the containers of a cluster, and the variables that its settings read. Pure."""

from typing import Final

from boathouse_task import cluster_contract

USER: Final = "hadoop"
"""The user of all daemons and jobs, and HDFS's superuser."""
CONF: Final = "/etc/hadoop"
DATA: Final = "/data"
"""Mount path of the parts of a claim. Daemons make their folders below: they set modes, which only an owner may."""
NAME: Final = f"{DATA}/name"
NAME_FOLDER: Final = f"{NAME}/dfs"
BLOCKS: Final = f"{DATA}/dfs"
RM_STATE: Final = f"{DATA}/rm"
AGENT: Final = f"{DATA}/agent"
HDFS_EXCLUDE: Final = f"{AGENT}/{cluster_contract.HDFS_EXCLUDE}"
YARN_EXCLUDE: Final = f"{AGENT}/{cluster_contract.YARN_EXCLUDE}"
CHECKPOINT: Final = "/checkpoint"
LOCAL: Final = "/local"
REFRESH: Final = "/refresh"

FQDN_ENV: Final = "BOATHOUSE_FQDN"
YARN_MEMORY_ENV: Final = "BOATHOUSE_YARN_MEMORY_MB"
YARN_VCORES_ENV: Final = "BOATHOUSE_YARN_VCORES"
LABELS_ENV: Final = "BOATHOUSE_NODE_LABELS"
"""`config` on transient nodes: the NodeManager reads its label from the settings. Absent elsewhere: no label."""


def from_env(variable: str, default: str = "") -> str:
    """Return a value that Hadoop replaces with a variable of its environment."""
    return f"${{env.{variable}:-{default}}}"
