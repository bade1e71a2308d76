"""NetworkPolicies that the network enforces: who reaches the operator's ports, and that its probes still do."""

import json
import os

import pytest

from boathouse_e2e import faults, install
from e2e.tests import conftest, harness

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.alone,
    pytest.mark.skipif(os.environ.get("PROVIDER", "local") != "local", reason="needs a network that enforces"),
]
METRICS, HEALTH, PROGRESS = 8080, 8081, 8443
CONNECT = """
import json, socket, sys
reached = []
for address, port in (target.split(":") for target in sys.argv[1:]):
    try:
        socket.create_connection((address, int(port)), timeout=5).close()
        reached.append(int(port))
    except OSError:
        pass
print(json.dumps(sorted(set(reached))))
"""


@pytest.fixture
def reached(place):
    """Return a function that says which ports of any replica a pod of the namespace reaches."""
    command = ["sleep", "600"]
    place.cluster.apply(client(place.namespace, command))
    place.cluster.run("wait", "pod/client", "-n", place.namespace, "--for=condition=Ready", "--timeout=120s")

    def connect():
        addresses = [pod["status"]["podIP"] for pod in operators(place.cluster)]
        targets = [f"{address}:{port}" for address in addresses for port in (METRICS, HEALTH, PROGRESS)]
        return json.loads(
            place.cluster.run("exec", "client", "-n", place.namespace, "--", "python3", "-c", CONNECT, *targets)
        )

    return connect


def client(namespace, command):
    container = {
        "name": "client",
        "image": "localhost/boathouse-task:dev",
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    }
    spec = {"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "client", "namespace": namespace}, "spec": spec}


def operators(cluster):
    return cluster.get("pods", "-n", install.NAMESPACE, "-l", faults.OPERATOR)["items"]


def ready(cluster):
    """Return the containers of the replicas that are ready."""
    found = [pod["status"]["containerStatuses"][0] for pod in operators(cluster)]
    return [status["containerID"] for status in found if status["ready"]]


def test_pods_reach_the_progress_port_alone_and_those_named_by_metrics_from_the_metrics(place, reached):
    before = ready(place.cluster)
    assert len(before) == len(operators(place.cluster))
    assert reached() == [PROGRESS]
    scraper = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}}}
    install.install(place.cluster, {**conftest.VALUES, "networkPolicy": {"metricsFrom": [scraper]}})
    try:
        harness.until(lambda: reached() == [METRICS, PROGRESS], "the scraper reaches the metrics, and not the probes")
    finally:
        install.install(place.cluster, conftest.VALUES)
    assert ready(place.cluster) == before  # probed by the kubelets all the time, from the pods' own nodes
