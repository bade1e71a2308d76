"""What every API server sets in the pods of each kind is no change by admission: it would cost a dry run per class."""

import json

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.scheduling import admitted
from boathouse.scheduling.pods import translate
from boathouse.services.sparkapp import gang, pods
from boathouse.services.sparkapp.model import AttemptNames
from boathouse_task.contract import TaskType
from tests.builders import mrjobs
from tests.builders.mrclusters import node_manifest
from tests.builders.sparkapps import app
from tests.unit.services import test_pod_builder as tasks
from tests.unit.services.mrcluster import test_pods as nodes
from tests.unit.services.mrjob_hadoop import test_client as clients

SPARK = app(nodeSelector={"disk": "ssd"})
ATTEMPT = AttemptNames.of(SPARK.name, SPARK.uid, 1)
PODS = {
    "map": lambda: tasks.manifest(mrjobs.job(**tasks.FULL), TaskType.MAP),
    "commit": lambda: tasks.manifest(mrjobs.job(**tasks.FULL), TaskType.COMMIT),
    "driver": lambda: pods.driver(SPARK, ATTEMPT),
    "executor": lambda: gang.DriverFactory(app=SPARK, attempt=ATTEMPT).build_expected(None),
    "client": clients.client_manifest,
    "master": lambda: node_manifest("master", **nodes.FULL),
    "core": lambda: node_manifest("c0", **nodes.FULL),
    "transient": lambda: node_manifest("t17", **nodes.FULL),
}


def as_stored(manifest):
    """Return a pod with what an API server sets: requests of limits, tolerations, a token, its phase."""
    stored = json.loads(json.dumps(manifest))
    spec = stored["spec"]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        resources = container.setdefault("resources", {})
        resources["requests"] = resources.get("limits", {}) | resources.get("requests", {})
        container |= {"terminationMessagePath": "/dev/termination-log"}
    lost = [{"key": f"node.kubernetes.io/{why}", "operator": "Exists"} for why in ("not-ready", "unreachable")]
    spec["tolerations"] = [*spec.get("tolerations", ()), *lost]
    token = {"name": "kube-api-access-x", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    spec["volumes"] = [*spec.get("volumes", ()), token]
    spec |= {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", "dnsPolicy": "ClusterFirst"}
    stored["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return msgspec.convert(stored | {"status": {"phase": "Pending", "qosClass": "Burstable"}}, wire.PodView)


@pytest.mark.parametrize("kind", PODS)
def test_defaults_of_the_api_server_are_no_changes(kind):
    manifest = PODS[kind]()
    stored = as_stored(manifest)
    translate.manifest_resources(manifest)  # as before each create
    assert admitted.changes(manifest, stored) is None


@pytest.mark.parametrize("kind", PODS)
def test_a_sidecar_and_a_selector_are_found_in_the_pods_of_each_kind(kind):
    manifest = PODS[kind]()
    stored = as_stored(manifest)
    proxy = wire.Container(name="proxy", resources=wire.ResourceRequirements(requests={"cpu": "100m"}))
    selector = {**stored.spec.node_selector, "zone": "b"}
    spec = msgspec.structs.replace(stored.spec, containers=(*stored.spec.containers, proxy), node_selector=selector)
    translate.manifest_resources(manifest)
    found = admitted.changes(manifest, msgspec.structs.replace(stored, spec=spec))
    assert (found.more.cpu_milli, found.constraints.node_selector) == (100, (("zone", "b"),))
