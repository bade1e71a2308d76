"""The properties by which an application reads and writes the HDFS of clusters as hdfs://NAME/. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.services.hadoop.directory import ClusterFacts

_DFS: Final = "spark.hadoop.dfs"
_NAMESERVICES: Final = f"{_DFS}.nameservices"
_NAME_NODE: Final = "nn"
_PROVIDER: Final = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"


def of(clusters: Sequence[ClusterFacts], conf: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for these clusters beside the nameservices that the application has already.

    A nameservice needs no address in the URL. It has one NameNode, whose provider repeats requests.
    """
    if not clusters:
        return {}
    given = filter(None, (name.strip() for name in conf.get(_NAMESERVICES, "").split(",")))
    nameservices = dict.fromkeys([*given, *(cluster.name for cluster in clusters)])
    properties = {_NAMESERVICES: ",".join(nameservices), f"{_DFS}.client.use.datanode.hostname": "true"}
    for cluster in clusters:
        properties |= {
            f"{_DFS}.ha.namenodes.{cluster.name}": _NAME_NODE,
            f"{_DFS}.namenode.rpc-address.{cluster.name}.{_NAME_NODE}": cluster.name_node,
            f"{_DFS}.client.failover.proxy.provider.{cluster.name}": _PROVIDER,
        }
    return properties
