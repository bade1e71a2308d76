"""Return the addresses of the clusters whose HDFS a job reads or writes. Pure."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop.directory import Directory
from boathouse.services.mrjob.job.model import Job
from boathouse_task.contract import HdfsAddress

_SCHEME = "hdfs"
_NAME = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")
"""Others are addresses of NameNodes, or no names."""
_MOST_UNKNOWN = 8


def addresses(job: Job, clusters: Directory) -> dict[str, HdfsAddress]:
    """Return the addresses by name of the clusters in the job's URLs. One that does not exist is left out."""
    found = ((name, clusters.find(job.namespace, name)) for name in sorted(set(names(job))))
    return {
        name: HdfsAddress(name_node=cluster.name_node, web_hdfs=cluster.web_hdfs)
        for name, cluster in found
        if cluster is not None
    }


def used(job: Job, clusters: Directory) -> list[ObjectUid]:
    """Return the clusters in the job's URLs."""
    found = (clusters.find(job.namespace, name) for name in set(names(job)))
    return [cluster.uid for cluster in found if cluster is not None]


def unknown(job: Job, clusters: Directory) -> list[str]:
    """Return names in the job's URLs of clusters that do not exist, or that a new leader has not reconciled yet."""
    found = sorted({name for name in names(job) if is_name(name)})
    return [name for name in found if clusters.find(job.namespace, name) is None][:_MOST_UNKNOWN]


def is_name(text: str) -> bool:
    """Return whether a URL's host is the name of a cluster."""
    return _NAME.fullmatch(text) is not None


def names(job: Job) -> Iterator[str]:
    """Yield the names of the clusters in the job's URLs."""
    jar = job.on_cluster.jar if job.on_cluster is not None else None
    files = (*(file.url or "" for file in job.spec.files or ()), *([jar.url] if jar is not None else ()))
    archives = (archive.url for archive in job.spec.archives or ())
    for url in (*job.spec.input, job.spec.output, *files, *archives):
        if url.startswith(f"{_SCHEME}://"):
            yield urlsplit(url).netloc
