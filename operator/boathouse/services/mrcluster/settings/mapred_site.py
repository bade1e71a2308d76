"""mapred-site.xml: MapReduce on YARN, its history, and sizes of tasks that fit the nodes. Pure."""

from typing import Final

from boathouse.services.mrcluster import naming, ports
from boathouse.services.mrcluster.cluster import Cluster
from boathouse.services.mrcluster.settings import sizes, yarn_site

ADD_OPENS: Final = "--add-opens=java.base/java.lang=ALL-UNNAMED"
"""Guice, cglib and WebHDFS need it on Java 17."""
STAGING: Final = "/tmp/hadoop-yarn/staging"  # noqa: S108 - in HDFS
_HISTORY: Final = "/mr-history"
_MOST_SORT_MB: Final = 100
_MOST_COPIES: Final = 10
"""Hadoop's default replication of the files of a job."""


def of(cluster: Cluster) -> dict[str, str]:
    """Return the settings that Boathouse sets."""
    master = naming.Names(cluster).fqdn(naming.MASTER)
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.application.classpath": sizes.classpath(cluster),
        "mapreduce.job.emit-timeline-data": "false",
        "mapreduce.jobhistory.bind-host": "0.0.0.0",  # noqa: S104 - inside the pod
        "mapreduce.jobhistory.address": f"{master}:{ports.HISTORY}",
        "mapreduce.jobhistory.webapp.address": f"{master}:{ports.HISTORY_HTTP}",
        "mapreduce.jobhistory.intermediate-done-dir": f"{_HISTORY}/tmp",  # noqa: S108 - in HDFS
        "mapreduce.jobhistory.done-dir": f"{_HISTORY}/done",
        "yarn.app.mapreduce.am.staging-dir": STAGING,
    }


def defaults(cluster: Cluster) -> dict[str, str]:
    """Return settings that users may change.

    Streaming runs a program beside each task's JVM, so the heap is 0.6 of the container instead of Hadoop's 0.8.
    """
    found = sizes.of(cluster)
    first, last = ports.APPLICATION_MASTERS
    return {
        "mapreduce.am.max-attempts": yarn_site.APPLICATION_MASTER_ATTEMPTS,
        "mapreduce.admin.map.child.java.opts": ADD_OPENS,
        "mapreduce.admin.reduce.child.java.opts": ADD_OPENS,
        "mapreduce.client.submit.file.replication": str(min(_MOST_COPIES, cluster.replication)),
        "mapreduce.job.heap.memory-mb.ratio": "0.6",
        sizes.MAP_MEMORY: str(found.map_mb),
        "mapreduce.reduce.memory.mb": str(found.map_mb),
        "mapreduce.task.io.sort.mb": str(min(_MOST_SORT_MB, found.map_mb // 4)),
        "yarn.app.mapreduce.am.admin-command-opts": ADD_OPENS,
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{found.am_mb * 3 // 4}m",
        "yarn.app.mapreduce.am.job.client.port-range": f"{first}-{last}",
        sizes.AM_MEMORY: str(found.am_mb),
    }
