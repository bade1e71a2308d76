"""The Hadoop clusters whose HDFS an application sees. Pure."""

from boathouse.services.hadoop.directory import ClusterFacts, Directory
from boathouse.services.sparkapp.app import App


def of(app: App, clusters: Directory) -> list[ClusterFacts]:
    """Return the clusters of an application that exist."""
    found = (clusters.find(app.namespace, name) for name in app.hadoop_clusters)
    return [cluster for cluster in found if cluster is not None]


def unknown(app: App, clusters: Directory) -> list[str]:
    """Return the names of those that do not exist, or that a new leader has not reconciled yet."""
    return [name for name in app.hadoop_clusters if clusters.find(app.namespace, name) is None]
