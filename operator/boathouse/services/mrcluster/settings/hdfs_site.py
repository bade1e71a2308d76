"""hdfs-site.xml: folders, addresses and limits of the NameNode and the DataNodes. Pure."""

from typing import Final

from boathouse.resources import quantity
from boathouse.services.mrcluster import naming, ports
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.settings import paths

_ANY: Final = "0.0.0.0"  # noqa: S104 - inside the pod
_LEAST_BLOCK_BYTES: Final = 1024**2
_SAFE_MODE_BYTES: Final = 100 * 1024**2
"""With less free space the NameNode enters safe mode."""
_RESERVED_SHARE: Final = 20
"""A 20th of each volume of blocks stays free."""


def of(cluster: Cluster) -> dict[str, str]:
    """Return the settings that Boathouse sets."""
    return _name_node(cluster) | _data_node()


def defaults(cluster: Cluster) -> dict[str, str]:
    """Return settings that users may change. A DataNode is dead after 90 s without heartbeat.

    Clients of HDFS wait for a NameNode that starts again, at first for a minute, then for five: without this policy,
    which they read from the same file, they give up after 10 s, and with them the running jobs.

    A volume is full when only the reserved share is free. By default, a DataNode demands 1 GiB of free space beside.
    """
    return {
        "dfs.client.retry.policy.enabled": "true",
        "dfs.client.retry.policy.spec": "2000,30,10000,30",
        "dfs.client.block.write.replace-datanode-on-failure.best-effort": "true",
        "dfs.datanode.round-robin-volume-choosing-policy.additional-available-space": "0",
        "dfs.datanode.du.reserved": str(quantity.units(cluster.spec.core.volume.size) // _RESERVED_SHARE),
        "dfs.heartbeat.interval": "3",
        "dfs.namenode.checkpoint.period": "3600",
        "dfs.namenode.decommission.interval": "10",
        "dfs.namenode.heartbeat.recheck-interval": "30000",
        "dfs.namenode.safemode.extension": "0",
        "dfs.reformat.disabled": "true",
    }


def _name_node(cluster: Cluster) -> dict[str, str]:
    """Nothing here depends on the number of nodes, so that a cluster that grows need not restart.

    No file may have more replicas than `dfs.replication`, which is at most the first number of core nodes: otherwise no
    core node could be decommissioned while the file exists.
    """
    master = naming.Names(cluster).fqdn(naming.MASTER)
    return {
        "dfs.namenode.name.dir": f"file://{paths.NAME_FOLDER}",
        "dfs.namenode.checkpoint.dir": f"file://{paths.CHECKPOINT}/dfs",
        "dfs.namenode.rpc-address": f"{master}:{ports.NAME_NODE}",
        "dfs.namenode.rpc-bind-host": _ANY,
        "dfs.namenode.http-address": f"{master}:{ports.NAME_NODE_HTTP}",
        "dfs.namenode.http-bind-host": _ANY,
        "dfs.namenode.secondary.http-address": f"{_ANY}:{ports.CHECKPOINT_HTTP}",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.hosts.exclude": paths.HDFS_EXCLUDE,
        "dfs.replication": str(cluster.replication),
        "dfs.namenode.replication.max": str(cluster.replication),
        "dfs.blocksize": str(quantity.units(cluster.spec.hdfs.block_size)),
        "dfs.namenode.fs-limits.min-block-size": str(_LEAST_BLOCK_BYTES),
        "dfs.namenode.resource.du.reserved": str(_SAFE_MODE_BYTES),
        "dfs.webhdfs.enabled": "true",
        "dfs.permissions.enabled": "true",
        "dfs.cluster.administrators": paths.USER,
    }


def _data_node() -> dict[str, str]:
    return {
        "dfs.datanode.data.dir": f"file://{paths.BLOCKS}/data",
        "dfs.datanode.address": f"{_ANY}:{ports.DATA_NODE}",
        "dfs.datanode.http.address": f"{_ANY}:{ports.DATA_NODE_HTTP}",
        "dfs.datanode.ipc.address": f"{_ANY}:{ports.DATA_NODE_IPC}",
        "dfs.datanode.hostname": paths.from_env(paths.FQDN_ENV, "localhost"),
        "dfs.datanode.use.datanode.hostname": "true",
        "dfs.client.use.datanode.hostname": "true",
    }
