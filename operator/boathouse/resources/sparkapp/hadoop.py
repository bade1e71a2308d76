"""Fields of a SparkApp that reads and writes the HDFS of MRClusters."""

from typing import Annotated

from pydantic import Field

from boathouse.resources.base import DnsLabel, Model


class HadoopFields(Model):
    """Fields of a spec for the Hadoop clusters of the namespace."""

    hadoop_clusters: (
        Annotated[list[DnsLabel], Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "set"})] | None
    ) = Field(
        default=None,
        description="MRClusters of the namespace whose HDFS the application reads and writes as hdfs://NAME/PATH.",
    )
