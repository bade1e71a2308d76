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
for port in map(int, sys.argv[2:]):
    try:
        socket.create_connection((sys.argv[1], port), timeout=5).close()
        reached.append(port)
    except OSError:
        pass
print(json.dumps(reached))
"""


@pytest.fixture
def reached(place):
    """Return a function that says which ports of a replica a pod of the namespace reaches."""
    command = ["sleep", "600"]
    place.cluster.apply(client(place.namespace, command))
    place.cluster.run("wait", "pod/client", "-n", place.namespace, "--for=condition=Ready", "--timeout=120s")

    def connect():
        address = operator(place.cluster)["status"]["podIP"]
        ports = map(str, (METRICS, HEALTH, PROGRESS))
        return json.loads(
            place.cluster.run("exec", "client", "-n", place.namespace, "--", "python3", "-c", CONNECT, address, *ports)
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


def operator(cluster):
    """Return the pod of a replica."""
    return cluster.get("pods", "-n", install.NAMESPACE, "-l", faults.OPERATOR)["items"][0]


def container(cluster):
    return operator(cluster)["status"]["containerStatuses"][0]


def test_pods_reach_the_progress_port_alone_and_those_named_by_metrics_from_the_metrics(place, reached):
    before = container(place.cluster)
    assert reached() == [PROGRESS]
    scraper = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}}}
    install.install(place.cluster, {**conftest.VALUES, "networkPolicy": {"metricsFrom": [scraper]}})
    try:
        harness.until(lambda: reached() == [METRICS, PROGRESS], "the scraper reaches the metrics, and not the probes")
    finally:
        install.install(place.cluster, conftest.VALUES)
    now = container(place.cluster)  # probed by the kubelet all the time, from the pod's own node
    assert (now["ready"], now["containerID"]) == (True, before["containerID"])
