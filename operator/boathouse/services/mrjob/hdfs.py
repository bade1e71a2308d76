"""The HDFS of a job: addresses of the clusters in its URLs, nodes that store its inputs, and how far they are. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from boathouse.services.frame.kind import ObjectUid
from boathouse.services.hadoop import Directory
from boathouse.services.mrjob.model import Job
from boathouse_policies import model
from boathouse_task.contract import HdfsAddress, Plan, TaskType

_NAME = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")  # others are addresses of NameNodes, or no names
_MOST_UNKNOWN = 8
NodeOf = Callable[[str], model.NodeName | None]
"""Returns the node of a host that a plan names; None if the host has no node now."""


def addresses(job: Job, clusters: Directory) -> dict[str, HdfsAddress]:
    """Return the addresses by name of the clusters in the job's URLs. One that does not exist is left out."""
    return {
        cluster.name: HdfsAddress(name_node=cluster.name_node, web_hdfs=cluster.web_hdfs)
        for cluster in clusters.find_all(job.namespace, sorted(set(names(job))))
    }


def used(job: Job, clusters: Directory) -> list[ObjectUid]:
    """Return the clusters in the job's URLs."""
    return [cluster.uid for cluster in clusters.find_all(job.namespace, set(names(job)))]


def unknown(job: Job, clusters: Directory) -> list[str]:
    """Return names in the job's URLs of clusters that do not exist, or that a new leader has not reconciled yet."""
    return clusters.unlisted(job.namespace, sorted(set(filter(is_name, names(job)))))[:_MOST_UNKNOWN]


def is_name(text: str) -> bool:
    """Return whether a URL's host is the name of a cluster."""
    return _NAME.fullmatch(text) is not None


def names(job: Job) -> Iterator[str]:
    """Yield the names of the clusters in the job's URLs."""
    spec = job.spec
    files = [*(spec.files or ()), *(spec.archives or ()), *([spec.jar] if spec.jar is not None else ())]
    for url in (*spec.input, spec.output, *(file.url or "" for file in files)):
        if url.startswith("hdfs://"):
            yield urlsplit(url).netloc


def locations(task_type: TaskType, index: int, plan: Plan | None, node_of: NodeOf) -> Sequence[model.NodeName]:
    """Return the nodes that store the split of a map, whose plan has hosts, as pods move; none for other tasks."""
    if task_type is not TaskType.MAP or plan is None or not 0 <= index < len(plan.splits):
        return ()
    which = plan.splits[index].locations
    nodes = map(node_of, plan.location_sets[which] if which >= 0 else ())
    return tuple(dict.fromkeys(node for node in nodes if node is not None))


def distance(
    node: model.NodeName, stored_on: Sequence[model.NodeName], nodes: Mapping[model.NodeName, model.Node]
) -> model.Distance:
    """Return how far a node is from the closest of some nodes."""
    if node in stored_on:
        return model.Distance.NODE
    here, there = nodes.get(node), [nodes[name] for name in stored_on if name in nodes]
    if here is None or not there:
        return model.Distance.ANYWHERE
    if here.server is not None and any(here.server == other.server for other in there):
        return model.Distance.SERVER
    if here.rack is not None and any(here.rack == other.rack for other in there):
        return model.Distance.RACK
    return model.Distance.ANYWHERE
