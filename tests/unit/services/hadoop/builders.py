"""Clusters as the directory lists them."""

from collections.abc import Mapping

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop.directory import ClusterFacts
from boathouse_policies.model import NodeName


def cluster(
    *, uid: str = "u-1", name: str = "lake", namespace: str = "a", hosts: Mapping[str, str] | None = None
) -> ClusterFacts:
    """Return a ready cluster whose hosts are on these nodes."""
    return ClusterFacts(
        uid=ObjectUid(uid),
        namespace=namespace,
        name=name,
        queue="default",
        phase="Ready",
        is_ready=True,
        has_compute=True,
        domain=f"{name}-nodes.{namespace}.svc",
        image="boathouse-hadoop:test",
        classpath="/opt/hadoop/lib/*",
        java_home="/opt/java",
        settings=f"{name}-conf-12345678",
        hosts={host: NodeName(node) for host, node in (hosts or {}).items()},
    )
