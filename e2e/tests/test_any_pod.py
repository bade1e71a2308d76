"""Pods of Kubernetes' own controllers on a real cluster, placed by the installed operator with the chart's rights."""

import pytest

from e2e.tests import harness, local_volumes

pytestmark = pytest.mark.cluster

IMAGE = "localhost/boathouse-task:dev"
KEEPER = """
import os, pathlib, time, uuid
kept = pathlib.Path("/data/first")
if not kept.exists():
    kept.write_text(f"{os.environ['HOSTNAME']} on {os.environ['NODE']}: {uuid.uuid4()}")
print(kept.read_text(), flush=True)
time.sleep(3600)
"""


def template(*command: str, **spec) -> dict:
    container = {"name": "c", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": list(command)}
    container |= {"resources": {"requests": {"cpu": "20m", "memory": "32Mi"}}} | spec.pop("container", {})
    whole = {"schedulerName": "boathouse", "terminationGracePeriodSeconds": 1, "containers": [container], **spec}
    return {"metadata": {"labels": {"app": "any"}}, "spec": whole}


def status(place: harness.Place, what: str) -> dict:
    return place.cluster.get(what, "-n", place.namespace).get("status", {})


def apply(place: harness.Place, group: str, kind: str, name: str, spec: dict) -> None:
    metadata = {"name": name, "namespace": place.namespace}
    place.cluster.apply({"apiVersion": group, "kind": kind, "metadata": metadata, "spec": spec})


def test_the_pods_of_a_deployment_and_of_a_job_are_placed_and_run(place):
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "any"}}, "template": template("sleep", "3600")}
    apply(place, "apps/v1", "Deployment", "web", spec)
    apply(place, "batch/v1", "Job", "batch", {"completions": 2, "template": template("true", restartPolicy="Never")})
    harness.until(lambda: status(place, "deployment/web").get("availableReplicas") == 2, "the Deployment is available")
    harness.until(lambda: status(place, "job/batch").get("succeeded") == 2, "the Job is complete")


@pytest.fixture
def storage_class(place):
    with local_volumes.pool(place.cluster, volumes_per_node=1) as name:
        yield name


def said(place: harness.Place, pod: str) -> str:
    """Return what a pod has logged; nothing while it is not there or does not run."""
    found = [one for one in place.cluster.get("pods", "-n", place.namespace)["items"] if one["metadata"]["name"] == pod]
    runs = found and found[0]["status"]["phase"] == "Running"
    return place.cluster.run("logs", pod, "-n", place.namespace) if runs else ""


def test_the_pods_of_a_stateful_set_go_to_their_volumes_and_come_back_to_them(place, storage_class):
    by_node = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    mounted = {"env": [by_node], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}}
    claim |= {"storageClassName": storage_class} if storage_class else {}
    spec = {
        "replicas": 2,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "any"}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        "template": template("python3", "-c", KEEPER, container=mounted, securityContext={"runAsUser": 0}),
    }
    apply(place, "apps/v1", "StatefulSet", "db", spec)
    harness.until(lambda: status(place, "statefulset/db").get("readyReplicas") == 2, "the StatefulSet is ready")
    first = harness.until(lambda: said(place, "db-0"), "db-0 says what it wrote")
    place.cluster.run("delete", "pod", "db-0", "-n", place.namespace)
    assert harness.until(lambda: said(place, "db-0"), "another db-0 says what it found") == first
