"""The properties by which an application reads and writes the HDFS of clusters as hdfs://NAME/. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.services.hadoop import clients
from boathouse.services.hadoop.directory import ClusterFacts

_HADOOP: Final = "spark.hadoop."


def of(clusters: Sequence[ClusterFacts], conf: Mapping[str, str]) -> dict[str, str]:
    """Return the properties for these clusters beside the nameservices that the application has already."""
    settings = clients.name_services(clusters, conf.get(f"{_HADOOP}{clients.NAMESERVICES}", ""))
    return {f"{_HADOOP}{key}": value for key, value in settings.items()}
