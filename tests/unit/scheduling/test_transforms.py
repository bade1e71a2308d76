"""Transforms keep the used fields of an object and limit its size."""

import dataclasses
import gc
import json
import sys

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from boathouse.cluster import views, wire
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling import transforms
from boathouse.scheduling.pods import ownership, requests, translate
from boathouse.scheduling.volumes import rules as volumes_
from boathouse.services.mrjob import attempt_pods
from tests.builders import manifests

transform = transforms.pods(names.SCHEDULER_NAME, labels=mrjob_names.POD_LABELS)
KIB = 1024

quantities = st.sampled_from(["100m", "1", "1500u", "2Gi", "10P", "9Ei", "3n"])
amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu", "hugepages-2Mi"]), quantities)
resources = st.builds(wire.ResourceRequirements, requests=amounts, limits=amounts)
ports = st.lists(st.builds(wire.ContainerPort, host_port=st.sampled_from([0, 80, 443])), max_size=2).map(tuple)
container = st.builds(
    wire.Container,
    name=st.sampled_from(["a", "b", names.CONTAINER]),
    resources=resources,
    restart_policy=st.sampled_from(["", "Always"]),
    ports=ports,
)
containers = st.lists(container, max_size=3, unique_by=lambda one: one.name).map(tuple)
status = st.builds(
    wire.ContainerStatus, name=st.sampled_from(["a", "b"]), resources=st.none() | resources, allocated_resources=amounts
)
requirement = st.builds(
    wire.Requirement, key=st.just("zone"), operator=st.sampled_from(["In", "Exists"]), values=st.just(("a",))
)
terms = st.lists(st.builds(wire.NodeSelectorTerm, match_expressions=st.tuples(requirement)), max_size=2).map(tuple)
selector = st.none() | st.builds(wire.LabelSelector, match_expressions=st.tuples(requirement))
pod_term = st.builds(wire.PodAffinityTerm, topology_key=st.just("zone"), label_selector=selector)
pod_terms = st.lists(pod_term, max_size=2).map(tuple)
present = st.lists(st.builds(wire.Present), max_size=2).map(tuple)
affinity = st.builds(
    wire.Affinity,
    node_affinity=st.none()
    | st.builds(wire.NodeAffinity, required=st.none() | st.builds(wire.NodeSelector, node_selector_terms=terms)),
    pod_affinity=st.none() | st.builds(wire.PodAffinity, required=pod_terms, preferred=present),
    pod_anti_affinity=st.none() | st.builds(wire.PodAffinity, required=pod_terms, preferred=present),
)
volumes = st.lists(
    st.builds(
        wire.Volume,
        name=st.sampled_from(["v", "w"]),
        persistent_volume_claim=st.none() | st.builds(wire.ClaimSource, claim_name=st.just("c")),
        ephemeral=st.none() | st.builds(wire.Present),
    ),
    max_size=3,
).map(tuple)
spreads = st.lists(
    st.builds(wire.TopologySpreadConstraint, when_unsatisfiable=st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
    max_size=3,
).map(tuple)
spec = st.builds(
    wire.PodSpec,
    node_name=st.sampled_from(["", "n1"]),
    scheduler_name=st.sampled_from(["boathouse", "other"]),
    priority=st.sampled_from([0, 5]),
    node_selector=st.sampled_from([{}, {"zone": "a"}]),
    affinity=st.none() | affinity,
    topology_spread_constraints=spreads,
    scheduling_gates=st.sampled_from([(), (wire.Present(),)]),
    volumes=volumes,
    containers=containers,
    init_containers=containers,
    resources=st.none() | resources,
    overhead=amounts,
)
statuses = st.builds(
    wire.PodStatus,
    phase=st.sampled_from(["Pending", "Running"]),
    container_statuses=st.lists(status, max_size=2).map(tuple),
    allocated_resources=amounts,
    nominated_node_name=st.sampled_from(["", "n1"]),
)
pods = st.builds(
    wire.PodView,
    metadata=st.builds(
        wire.ObjectMeta,
        name=st.just("p"),
        namespace=st.just("demo"),
        uid=st.just("u"),
        resource_version=st.just("1"),
        labels=st.sampled_from([{}, {"app": "web", names.LABEL_QUEUE: "q"}]),
    ),
    spec=spec,
    status=statuses,
)


@settings(max_examples=300, deadline=None)
@given(pods)
def test_a_reduced_pod_has_the_requests_and_constraints_of_the_whole_pod(pod):
    small = transform(pod)
    assert small.resources == translate.resources_of(requests.pod_requests(pod))
    assert small.host_ports == translate.host_ports(pod)
    assert small.claims_by_field == tuple(translate.claims_by_field(pod))
    assert small.is_bindable == pod.is_bindable
    assert small.is_gated == bool(pod.spec.scheduling_gates)
    assert small.anti_affinity == translate.anti_affinity(pod)
    if pod.spec.scheduler_name == "boathouse" and not pod.spec.node_name:
        assert small.constraints == translate.constraints(pod)
        assert small.unsupported == translate.unsupported(pod)


def test_of_a_pod_with_very_many_labels_the_first_count():
    labels = {f"label-{i:04}": "x" * 60 for i in range(100)}
    small = transform(manifests.pod_view("p", meta={"labels": labels}))
    assert list(small.labels) == [f"label-{i:04}" for i in range(transforms.MOST_LABEL_LENGTH // 70)]


def task(state: dict, **more) -> wire.PodView:
    labels = {names.LABEL_JOB_UID: "u", mrjob_names.LABEL_TASK_TYPE: "map", mrjob_names.LABEL_TASK_INDEX: "3"}
    raw = {
        "metadata": {
            "name": "t",
            "namespace": "demo",
            "uid": "p",
            "resourceVersion": "1",
            "labels": labels | {mrjob_names.LABEL_ATTEMPT: "1", "app": "x"},
            "annotations": {names.ANNOTATION_IDEAL_MEMORY: "999", "note": "x" * KIB},
            "ownerReferences": [{"apiVersion": names.API_VERSION, "kind": "MRJob", "uid": "u", "controller": True}],
        },
        "spec": {
            "nodeName": "n1",
            "schedulerName": "boathouse",
            "containers": [{"name": "task", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}],
        },
        "status": {"containerStatuses": [{"name": "task", "state": state}, {"name": "other", "state": {}}], **more},
    }
    return msgspec.convert(raw, wire.PodView)


TERMINATED = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    "pod",
    [
        task({"running": {"startedAt": "2026-01-01T00:00:00Z"}}, phase="Running"),
        task(TERMINATED, phase="Failed"),
        task({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}, phase="Pending"),
        task({}, phase="Failed", reason="Evicted", message="Pod ephemeral local storage usage exceeds the total limit"),
        task({}, phase="Failed", conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}]),
    ],
)
def test_a_reduced_task_pod_has_the_state_and_result_of_the_whole_pod(pod):
    small = transform(pod)
    whole = msgspec.structs.replace(small, metadata=pod.metadata, status=pod.status)
    assert attempt_pods.task_pod(small) == attempt_pods.task_pod(whole)
    assert attempt_pods.task_pod(small).memory_bytes == 1 << 30


# Sizes


def size_of(thing: object) -> int:
    """Return the bytes of an object and of all that it holds alone."""
    if isinstance(thing, str | bytes | int | float | bool | type(None)):
        return sys.getsizeof(thing)
    held = (
        [getattr(thing, name) for name in thing.__struct_fields__]
        if isinstance(thing, msgspec.Struct)
        else [*thing.keys(), *thing.values()]
        if isinstance(thing, dict)
        else [getattr(thing, one.name) for one in dataclasses.fields(thing)]
        if dataclasses.is_dataclass(thing)
        else list(thing)
        if isinstance(thing, tuple)
        else gc.get_referents(thing)
    )
    return sys.getsizeof(thing) + sum(map(size_of, held))


def written(spec: dict | None = None, meta: dict | None = None) -> wire.PodView:
    spec = {"containers": [{"name": "c"}]} | (spec or {})
    metadata = {"name": "p", "namespace": "demo", "uid": "u", "resourceVersion": "1"} | (meta or {})
    return msgspec.json.decode(json.dumps({"metadata": metadata, "spec": spec}), type=wire.PodView)


def requirements(count: int, length: int = 50) -> dict:
    expressions = [{"key": f"key-{i}", "operator": "In", "values": ["x" * length]} for i in range(count)]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def claims(count: int) -> list[dict]:
    return [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"{'x' * 60}-{i}"}} for i in range(count)]


def host_ports(count: int) -> list[dict]:
    return [{"containerPort": 1, "hostPort": i, "hostIP": "10.0.0.1"} for i in range(1, count + 1)]


def spread(length: int) -> list[dict]:
    selector = {"matchLabels": {"app": "x" * length}}
    return [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        for _ in range(3)
    ]


LARGE = {
    "annotations": written(meta={"annotations": {f"a/{i}": "x" * KIB for i in range(200)}}),
    "labels": written(meta={"labels": {f"label-{i}": "x" * 60 for i in range(3000)}}),
    "owners": written(meta={"ownerReferences": [{"name": "x" * KIB, "uid": str(i)} for i in range(200)]}),
    "owner": written(meta={"ownerReferences": [{"name": "x" * 200 * KIB, "uid": "u", "controller": True}]}),
    "containers": written({"containers": [{"name": f"c{i}", "ports": [{"containerPort": i}]} for i in range(3000)]}),
    "environment": written({"containers": [{"name": "c", "env": [{"name": "x", "value": "x" * 200 * KIB}]}]}),
    "volumes": written({"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(3000)]}),
    "constraints of others": written({"affinity": requirements(3000)}),
    "constraints of ours": written({"schedulerName": "boathouse", "affinity": requirements(3000)}),
    "constraints of ours on a node": written(
        {"schedulerName": "boathouse", "nodeName": "n1", "affinity": requirements(3000)}
    ),
    "long constraints of ours": written({"schedulerName": "boathouse", "affinity": requirements(3, length=60 * KIB)}),
    "long spread constraints of ours": written(
        {"schedulerName": "boathouse", "topologySpreadConstraints": spread(60 * KIB)}
    ),
    "gates": written({"schedulerName": "boathouse", "schedulingGates": [{"name": f"g/{i}"} for i in range(3000)]}),
    "claims": written({"nodeName": "n1", "volumes": claims(3000)}),
    "claims of ours": written({"schedulerName": "boathouse", "volumes": claims(99)}),
    "host ports": written({"nodeName": "n1", "containers": [{"name": "c", "ports": host_ports(3000)}]}),
    "long names of resources": written(
        {
            "nodeName": "n1",
            "containers": [{"name": "c", "resources": {"requests": {f"{'x' * 200}/{i}": "1" for i in range(64)}}}],
        }
    ),
    "resources": written(
        {"containers": [{"name": "c", "resources": {"requests": {f"x/{i}": "1" for i in range(3000)}}}]}
    ),
}


@pytest.mark.parametrize("pod", LARGE.values(), ids=LARGE)
def test_a_large_pod_is_reduced_to_less_than_12_kib(pod):
    assert size_of(transform(pod)) < 12 * KIB


def test_a_reduced_pod_records_that_it_had_too_many_constraints():
    assert transform(LARGE["constraints of ours"]).too_many_constraints > wire.MOST_CONSTRAINTS


@pytest.mark.parametrize("which", ["long constraints of ours", "long spread constraints of ours", "claims of ours"])
def test_a_pod_over_the_limits_of_constraints_is_too_complex(which):
    small = transform(LARGE[which])
    with pytest.raises(requests.UnreadablePodError, match="at most") as refused:
        ownership.foreign_class(small)
    assert refused.value.is_too_complex


@pytest.mark.parametrize("label", ["NoSuchEffect", "x" * 200 * KIB], ids=len)
def test_the_error_of_unrepresentable_constraints_is_truncated(label):
    small = transform(manifests.pod_view(tolerations=(wire.Toleration(effect=label),)))
    assert small.resources.cpu_milli == 1000
    assert len(small.constraints) <= transforms.MESSAGE_LENGTH
    with pytest.raises(requests.UnreadablePodError, match="not a valid TaintEffect" if len(label) < KIB else "x"):
        ownership.foreign_class(small)


def test_an_undecodable_pod_keeps_its_node_and_scheduler():
    spec = wire.PodSpec(node_name="n1", scheduler_name="boathouse")
    meta = wire.ObjectMeta(name="p", namespace="demo", uid="u")
    small = transform(wire.UnreadablePod(metadata=meta, spec=spec, status=wire.PodStatus(phase="Running")))
    assert (small.node_name, small.scheduler_name, small.status.phase) == ("n1", "boathouse", "Running")
    assert ownership.of(small).resources == translate.WHOLE_NODE


def test_the_requests_of_a_pod_are_summed_once(monkeypatch):
    sums = []
    whole = requests.pod_requests
    monkeypatch.setattr(requests, "pod_requests", lambda pod: sums.append(pod) or whole(pod))
    small = manifests.pod_facts()
    ownership.foreign_class(small)
    ownership.of(small)
    assert len(sums) == 1


def test_a_reduced_node_is_translated_like_the_whole_node():
    whole = manifests.node_view(labels={"zone": "a"}, taints=(wire.Taint(key="k", effect="NoSchedule"),))
    annotated = msgspec.structs.replace(whole.metadata, annotations={"a": "x" * KIB})
    small = transforms.node(msgspec.structs.replace(whole, metadata=annotated))
    assert translate.node(small) == translate.node(whole)
    assert small.metadata.annotations == {}


def test_a_reduced_node_has_the_address_of_its_kubelet():
    kinds = ("Hostname", "x"), ("InternalIP", "1" * KIB), ("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1")
    addresses = tuple(wire.NodeAddress(type=kind, address=address) for kind, address in kinds)
    endpoints = wire.DaemonEndpoints(kubelet_endpoint=wire.DaemonEndpoint(port=10250))
    whole = manifests.node_view()
    status = msgspec.structs.replace(whole.status, addresses=addresses, daemon_endpoints=endpoints)
    small = transforms.node(msgspec.structs.replace(whole, status=status))
    assert small.internal_ip == "10.0.0.1"
    assert len(small.status.addresses) == 1
    assert small.status.daemon_endpoints.kubelet_endpoint.port == 10250


def test_a_claim_with_a_too_long_selector_selects_nothing():
    labels = {f"label-{i}": "x" * 60 for i in range(3000)}
    spec = views.ClaimSpec(selector=wire.LabelSelector(match_labels=labels))
    small = transforms.claim(views.ClaimView(metadata=wire.ObjectMeta(name="c"), spec=spec))
    assert size_of(small) < 4 * KIB
    assert not volumes_._selects(small.spec.selector, labels)


def test_a_reduced_claim_has_its_binding():
    annotations = {views.BIND_COMPLETED: "yes", views.SELECTED_NODE: "n1", "note": "x" * 200 * KIB}
    whole = views.ClaimView(
        metadata=wire.ObjectMeta(name="c", annotations=annotations, labels={"a": "b"}),
        spec=views.ClaimSpec(volume_name="v"),
    )
    small = transforms.claim(whole)
    assert small.is_bound
    assert small.metadata.annotations[views.SELECTED_NODE] == "n1"
    assert size_of(small) < 4 * KIB
