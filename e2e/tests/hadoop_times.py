"""Where the time goes until a Hadoop cluster is ready: Kubernetes' part, that of Hadoop's JVMs, and ours."""

import dataclasses
from collections.abc import Iterator

from boathouse_cli import model
from e2e.tests.hadoop_harness import Clusters

REGISTERED = {
    "datanode": "successfully registered with NN",
    "nodemanager": "Registered with ResourceManager as",
}
"""What the log of a daemon says when it is a node of the cluster."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds since the MRCluster was created, of the last node each. Kubernetes' are whole seconds.

    Attributes:
        placed_s: All pods have a Kubernetes node: our part.
        started_s: Their containers run: that of the kubelets.
        stored_s: All DataNodes are registered: Hadoop's.
        computed_s: All NodeManagers are registered: Hadoop's.
        ready_s: The MRCluster is ready, for which all NodeManagers must run: our part after them.
    """

    placed_s: float
    started_s: float
    stored_s: float
    computed_s: float
    ready_s: float

    def __str__(self) -> str:
        """Return a line."""
        return (
            f"seconds since its creation: pods placed {self.placed_s:.0f}, started {self.started_s:.0f}; DataNodes "
            f"registered {self.stored_s:.1f}, NodeManagers {self.computed_s:.1f}; ready {self.ready_s:.0f}"
        )


def measured(clusters: Clusters, name: str) -> Times:
    """Read the times of a cluster whose nodes have all registered, and none again."""
    cluster, pods = clusters.look(name), clusters.pods(name)
    assert cluster.status.ready_s is not None
    registered_s = {
        container: max(second for pod in pods.values() for second in _registered_s(clusters, pod, container))
        for container in REGISTERED
    }
    began_s = cluster.created_s
    return Times(
        placed_s=max(model.task_pod(pod).placed_s for pod in pods.values()) - began_s,
        started_s=max(second for pod in pods.values() for second in _started_s(pod)) - began_s,
        stored_s=registered_s["datanode"] - began_s,
        computed_s=registered_s["nodemanager"] - began_s,
        ready_s=cluster.status.ready_s - began_s,
    )


def _started_s(pod: model.Raw) -> Iterator[float]:
    for status in pod["status"]["containerStatuses"]:
        yield model.epoch_s(status["state"]["running"]["startedAt"])


def _registered_s(clusters: Clusters, pod: model.Raw, container: str) -> Iterator[float]:
    """Yield when the daemon in a container registered first; nothing if the pod has no such container."""
    if container not in {container_spec["name"] for container_spec in pod["spec"]["containers"]}:
        return
    name = pod["metadata"]["name"]
    log = clusters.cluster.run("logs", name, "-n", clusters.place.namespace, "-c", container, "--timestamps")
    line = next((line for line in log.splitlines() if REGISTERED[container] in line), None)
    assert line is not None, f"{container} of {name} does not say {REGISTERED[container]!r}"
    yield model.epoch_s(line.partition(" ")[0])
