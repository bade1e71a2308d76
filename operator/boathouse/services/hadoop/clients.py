"""What clients of clusters need: a user, and the names of clusters as those of file systems. Pure."""

from collections.abc import Iterable
from typing import Final

from boathouse.services.hadoop.directory import ClusterFacts

USER_ENV: Final = "HADOOP_USER_NAME"
USER: Final = "hadoop"
"""The user of all daemons and jobs of a cluster."""
ARENAS: Final = ("MALLOC_ARENA_MAX", "4")
"""Variable of all JVMs, as in Hadoop's own scripts. By default glibc keeps up to eight arenas for each core of the
node, for which the limits of containers have no room. NodeManagers pass the variable on to their containers."""
NAMESERVICES: Final = "dfs.nameservices"
_NAME_NODE: Final = "nn"
_PROVIDER: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


def name_services(clusters: Iterable[ClusterFacts], given: str = "") -> dict[str, str]:
    """Return the settings by which hdfs://NAME/ is the HDFS of each of these clusters.

    A nameservice needs no address in the URL. It has one NameNode, whose provider repeats requests.

    Args:
        clusters: The clusters.
        given: Nameservices that there are already, as in `dfs.nameservices`.
    """
    clusters = tuple(clusters)
    if not clusters:
        return {}
    known = filter(None, (name.strip() for name in given.split(",")))
    names = dict.fromkeys([*known, *(cluster.name for cluster in clusters)])
    settings = {NAMESERVICES: ",".join(names), "dfs.client.use.datanode.hostname": "true"}
    for cluster in clusters:
        settings |= {
            f"dfs.ha.namenodes.{cluster.name}": _NAME_NODE,
            f"dfs.namenode.rpc-address.{cluster.name}.{_NAME_NODE}": cluster.name_node,
            f"dfs.client.failover.proxy.provider.{cluster.name}": _PROVIDER,
        }
    return settings
