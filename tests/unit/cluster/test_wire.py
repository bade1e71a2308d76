from __future__ import annotations

import re

import msgspec
import pytest

from boathouse.cluster import catalogue, views, wire, written
from boathouse.services.mrjob.model import MRJOBS
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


def test_a_token_of_no_pod_names_none():
    user = written.UserInfo(username="system:serviceaccount:demo:s")
    assert (user.pod_name, user.pod_uid) == ("", "")


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


def test_a_required_anti_affinity_is_decoded():
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


def expression(values: int = 1) -> dict:
    return {"key": "zone", "operator": "In", "values": [str(n) for n in range(values)]}


HOST = {"topologyKey": "kubernetes.io/hostname"}
SELECTED = HOST | {"namespaceSelector": {"matchExpressions": [expression(10)]}}
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


@pytest.mark.parametrize(
    ("spec", "constraints_per_item"),
    [
        ({"nodeSelector": lambda n: {str(i): "x" for i in range(n)}}, 1),
        ({"tolerations": lambda n: [{"key": str(i)} for i in range(n)]}, 1),
        ({"volumes": lambda n: [{"name": str(i)} for i in range(n)]}, 1),
        ({"schedulingGates": lambda n: [{"name": str(i)} for i in range(n)]}, 1),
        ({"resourceClaims": lambda n: [{"name": str(i)} for i in range(n)]}, 1),
        ({"topologySpreadConstraints": lambda n: [HOST for _ in range(n)]}, 1),
        ({"topologySpreadConstraints": lambda n: [HOST | {"labelSelector": {"matchLabels": {"a": "b"}}}] * n}, 2),
        ({"containers": lambda n: [{"name": "c", "ports": [{"hostPort": 1}] * n}]}, 1),
        ({"initContainers": lambda n: [{"name": "c", "ports": [{"hostPort": 1}] * n}]}, 1),
        ({"affinity": lambda n: {"podAffinity": {REQUIRED: [HOST] * n}}}, 1),
        ({"affinity": lambda n: {"podAntiAffinity": {PREFERRED: [{}] * n}}}, 1),
        ({"affinity": lambda n: {"podAffinity": {PREFERRED: [{}] * n}}}, 1),
        ({"affinity": lambda n: {"podAffinity": {REQUIRED: [HOST | {"namespaces": ["x"] * 10}] * n}}}, 2),
        (
            {"affinity": lambda n: {"podAffinity": {REQUIRED: [SELECTED] * n}}},
            3,
        ),
        (
            {
                "affinity": lambda n: {
                    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression()]}] * n}}
                }
            },
            2,
        ),
        (
            {
                "affinity": lambda n: {
                    "nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {"matchFields": [expression(20)]}}] * n}
                }
            },
            4,
        ),
    ],
)
def test_the_constraints_of_a_pod_are_dropped_beyond_a_maximum(spec, constraints_per_item):
    ((name, build),) = spec.items()
    most = wire.MOST_CONSTRAINTS // constraints_per_item
    assert wire._count_constraints(view({"spec": {name: build(most)}}).spec) == most * constraints_per_item
    assert view({"spec": {name: build(most)}}).spec.too_many_constraints == 0
    assert view({"spec": {name: build(most + 1)}}).spec.too_many_constraints == (most + 1) * constraints_per_item


def test_of_too_many_constraints_only_the_first_terms_of_required_anti_affinity_stay():
    anti = {"podAntiAffinity": {REQUIRED: [HOST] * 150}, "podAffinity": {REQUIRED: [HOST]}}
    spec = view({"spec": {"affinity": anti, "nodeSelector": {"a": "b"}, "tolerations": [{"key": "k"}]}}).spec
    assert (spec.too_many_constraints, spec.node_selector, spec.tolerations) == (153, {}, ())
    assert len(spec.affinity.pod_anti_affinity.required) == wire.MOST_CONSTRAINTS
    assert spec.affinity.pod_affinity is None
    assert view({"spec": {"tolerations": [{}] * 101, "affinity": {}}}).spec.affinity is None


RESOURCES = [
    found for module in (catalogue, views) for found in vars(module).values() if isinstance(found, catalogue.Resource)
]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_the_name_of_a_resource_is_the_plural_of_its_kind(resource):
    kind = resource.kind
    assert re.fullmatch("([A-Z]{1,4}[a-z]+)+", kind)
    assert resource.plural in {f"{kind.lower()}s", f"{kind.lower()}es", f"{kind.lower().removesuffix('y')}ies"}


DEFAULTS = {
    "ClaimSpec.volume_mode": "Filesystem",
    "ClassView.volume_binding_mode": "Immediate",
    "ContainerPort.protocol": "TCP",
    "Disk.pool": "rbd",
    "PodSpec.restart_policy": "Always",
    "PodSpec.scheduler_name": "default-scheduler",
    "Toleration.operator": "Equal",
    "TopologySpreadConstraint.node_affinity_policy": "Honor",
    "TopologySpreadConstraint.node_taints_policy": "Ignore",
    "TopologySpreadConstraint.when_unsatisfiable": "DoNotSchedule",
    "VolumeSpec.volume_mode": "Filesystem",
}
"""Kubernetes' own, which its API server may leave out."""


def kinds_of_views(kind=wire.View):
    """Yield what is decoded of objects, with all that inherits from it in the package."""
    for view in kind.__subclasses__():
        if view.__module__.startswith("boathouse.cluster."):
            yield view
            yield from kinds_of_views(view)


def test_a_text_that_is_left_out_is_empty_or_the_default_of_kubernetes():
    texts = {
        f"{view.__name__}.{field.name}": field.default
        for view in kinds_of_views()
        for field in msgspec.structs.fields(view)
        if field.type is str and field.default is not msgspec.NODEFAULT
    }
    assert len(texts) >= 80
    assert not view({"metadata": {"name": "p"}}).is_terminal
    assert {name: default for name, default in texts.items() if default} == DEFAULTS


def test_an_object_without_a_namespace_is_known_by_its_name():
    assert wire.Identity(name="n1").key == "n1"


def test_the_plural_of_a_resource_is_that_of_its_kind():
    found = [resource for resource in vars(catalogue).values() if isinstance(resource, catalogue.Resource)]
    for resource in found:
        assert resource.kind[0].isupper()
        assert resource.path("demo" if resource.namespaced else None).endswith(resource.plural)
        assert resource.plural in {f"{stem}{ending}" for stem, ending in endings(resource.kind.lower())}
    assert len(found) >= 12


def endings(kind):
    """Yield the stems and endings that the plural of a kind may have."""
    yield from ((kind, "s"), (kind, "es"), (kind.removesuffix("y"), "ies"))
