"""Where the time goes until a Hadoop cluster is ready: Kubernetes' part, that of Hadoop's JVMs, and ours."""

import dataclasses
import re
from collections.abc import Iterator

from boathouse_cli import model
from e2e.tests.hadoop_harness import Clusters

REGISTERED = {
    "datanode": "successfully registered with NN",
    "nodemanager": "Registered with ResourceManager as",
}
"""What the log of a daemon says when it is a node of the cluster."""
_LINE = re.compile(r"(?P<time>\S+) ")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Times:
    """Seconds since the MRCluster was created, of the last node each.

    Attributes:
        placed_s: All pods have a Kubernetes node: ours.
        started_s: Their containers run: the kubelets'.
        registered_s: All daemons of nodes are registered: Hadoop's.
        ready_s: The MRCluster is ready: ours.
    """

    placed_s: float
    started_s: float
    registered_s: float
    ready_s: float

    def __str__(self) -> str:
        """Return the parts of the time."""
        jvms, last = self.registered_s - self.started_s, self.ready_s - self.registered_s
        return (
            f"ready after {self.ready_s:.0f} s: placed {self.placed_s:.0f} s, pods started "
            f"{self.started_s - self.placed_s:.0f} s, JVMs registered {jvms:.0f} s, noticed {last:.0f} s"
        )


def measured(clusters: Clusters, name: str) -> Times:
    """Read the times of a cluster that has just become ready. Kubernetes' are whole seconds."""
    cluster, pods = clusters.look(name), clusters.pods(name)
    assert cluster.ready_s is not None
    return Times(
        placed_s=max(placed_s(pod) for pod in pods.values()) - cluster.created_s,
        started_s=max(second for pod in pods.values() for second in _started_s(pod)) - cluster.created_s,
        registered_s=max(second for pod in pods.values() for second in _registered_s(clusters, pod))
        - cluster.created_s,
        ready_s=cluster.ready_s - cluster.created_s,
    )


def placed_s(pod: model.Raw) -> float:
    """When a pod got its node."""
    return model.task_pod(pod).placed_s


def _started_s(pod: model.Raw) -> Iterator[float]:
    for status in pod["status"]["containerStatuses"]:
        yield model.epoch_s(status["state"]["running"]["startedAt"])


def _registered_s(clusters: Clusters, pod: model.Raw) -> Iterator[float]:
    """Yield when the daemons of a node registered first."""
    for container in pod["spec"]["containers"]:
        if (text := REGISTERED.get(container["name"])) is None:
            continue
        what = (
            "logs",
            pod["metadata"]["name"],
            "-n",
            clusters.place.namespace,
            "-c",
            container["name"],
            "--timestamps",
        )
        lines = clusters.cluster.run(*what).splitlines()
        line = next((line for line in lines if text in line), None)
        assert line is not None, f"{container['name']} of {pod['metadata']['name']} does not say {text!r}"
        found = _LINE.match(line)
        assert found is not None
        yield model.epoch_s(found["time"])
