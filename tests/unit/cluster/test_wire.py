from __future__ import annotations

import msgspec
import pytest

from boathouse.cluster import catalogue, wire
from boathouse.services.mrjob.job.model import MRJOBS
from tests.builders import manifests


def view(manifest):
    return msgspec.convert(manifest, wire.PodView)


def test_a_pod_shows_what_its_request_depends_on():
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    pod = view(
        manifests.pod("p", initContainers=[sidecar], overhead={"cpu": "10m"}, resources={"limits": {"cpu": "2"}})
    )
    assert pod.spec.init_containers[0].restart_policy == "Always"
    assert (pod.spec.overhead, pod.spec.resources.limits) == ({"cpu": "10m"}, {"cpu": "2"})


def test_a_pod_shows_how_its_container_ended():
    terminated = {"exitCode": 3, "message": "{}", "finishedAt": "2026-01-01T00:00:10Z"}
    pod = view({"metadata": {}, "status": {"containerStatuses": [{"name": "t", "state": {"terminated": terminated}}]}})
    assert pod.status.container_statuses[0].state.terminated.exit_code == 3


def test_a_pod_names_its_claims_and_its_controller():
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "persistentVolumeClaim": {"claimName": "data"}}]
    owner = {"apiVersion": "v1", "kind": "MRJob", "name": "j", "uid": "u", "controller": True}
    pod = view(manifests.pod("p", volumes=volumes, owner=owner))
    assert [volume.persistent_volume_claim for volume in pod.spec.volumes] == [
        None,
        wire.ClaimSource(claim_name="data"),
    ]
    assert pod.metadata.controller.name == "j"


def test_required_affinities_are_told_from_wishes():
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x"}]}}
    assert view(manifests.pod("p", affinity=anti)).spec.affinity.pod_anti_affinity.required


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(catalogue.PODS.path(), "/api/v1/pods", id="all pods"),
        pytest.param(
            catalogue.PODS.path("ns", "p", "binding"), "/api/v1/namespaces/ns/pods/p/binding", id="a subresource"
        ),
        pytest.param(catalogue.NODES.path(None, "n"), "/api/v1/nodes/n", id="no namespace"),
        pytest.param(MRJOBS.path("ns"), "/apis/boathouse.dev/v1alpha1/namespaces/ns/mrjobs", id="a custom resource"),
    ],
)
def test_paths(path, expected):
    assert path == expected


def test_a_path_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="needs a namespace"):
        catalogue.PODS.path(None, "p")
    with pytest.raises(ValueError, match="no namespace"):
        catalogue.NODES.path("ns", "n")


def test_a_node_shows_where_its_kubelet_listens():
    addresses = [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.1"}]
    status = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}
    node = msgspec.convert({"metadata": {}, "status": status}, wire.NodeView)
    assert (node.internal_ip, node.status.daemon_endpoints.kubelet_endpoint.port) == ("10.0.0.1", 10250)
