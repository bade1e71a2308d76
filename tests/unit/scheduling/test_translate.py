"""Pods and nodes as the policies see them."""

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.scheduling import transforms
from boathouse.scheduling.pods import requests, translate
from boathouse_policies import model
from tests.builders.manifests import container, node_view, pod_view


def spec(**fields) -> wire.PodView:
    return msgspec.convert({"spec": {"containers": [{"name": "c"}]} | fields}, wire.PodView)


def test_requests_are_rounded_up_and_what_a_node_has_is_rounded_down():
    asked = translate.resources_of(
        requests.pod_requests(pod_view(containers=(container(cpu="1500u", memory="1500m"),)))
    )
    offered = translate.node(node_view(allocatable={"cpu": "1500u", "memory": "1500m"})).allocatable
    assert (asked.cpu_milli, asked.memory_bytes) == (2, 2)
    assert (offered.cpu_milli, offered.memory_bytes) == (1, 1)


def test_a_node_offers_its_allocatable_its_pods_and_its_extended_resources():
    offered = translate.node(node_view(allocatable={"cpu": "4", "memory": "8Gi", "pods": "30", "example.com/gpu": "2"}))
    assert offered.max_pods == 30
    assert offered.allocatable == model.Resources.of(
        cpu_milli=4000, memory_bytes=8 << 30, extended={"example.com/gpu": 2}
    )


def test_a_node_tells_its_server_and_rack_by_labels():
    seen = translate.node(node_view(labels={"boathouse.dev/server": "s1", "boathouse.dev/rack": "r1"}))
    assert (seen.server, seen.rack) == ("s1", "r1")


def test_a_node_that_is_cordoned_tainted_or_not_ready_says_so():
    seen = translate.node(node_view(ready=False, unschedulable=True, taints=(wire.Taint(key="k", effect="NoExecute"),)))
    assert (seen.ready, seen.unschedulable) == (False, True)
    assert seen.taints == (model.Taint(key="k", effect=model.TaintEffect.NO_EXECUTE),)


def test_selectors_affinity_and_tolerations_are_kept():
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    subject = spec(
        nodeSelector={"b": "2", "a": "1"}, affinity={"nodeAffinity": required}, tolerations=[{"operator": "Exists"}]
    )
    zone = model.Expression(key="zone", operator=model.Operator.IN, values=("a",))
    assert translate.constraints(subject) == model.Constraints(
        node_selector=(("a", "1"), ("b", "2")),
        affinity=(model.AffinityTerm(expressions=(zone,)),),
        tolerations=(model.Toleration(operator=model.TolerationOperator.EXISTS),),
    )


def test_host_ports_of_containers_and_sidecars_are_kept():
    ports = [{"containerPort": 80, "hostPort": 80}]
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 53, "protocol": "UDP"}]}
    subject = spec(containers=[{"name": "c", "ports": ports}], initContainers=[sidecar])
    taken = translate.constraints(subject).host_ports
    assert [(port.port, port.protocol) for port in taken] == [(53, "UDP"), (80, "TCP")]


def test_a_pod_that_may_not_share_its_node_takes_a_port_that_no_socket_has_instead_of_its_term():
    labels = {"boathouse.dev/apart": "x"}
    metadata = {"name": "p", "namespace": "demo", "labels": labels}
    terms = [{"topologyKey": key, "labelSelector": {"matchLabels": labels}} for key in ("kubernetes.io/hostname", "z")]
    raw = {"metadata": metadata, "spec": {"affinity": {"podAntiAffinity": {REQUIRED: terms}}}}
    subject = msgspec.convert(raw, wire.PodView)
    assert translate.host_ports(subject) == (model.HostPort(port=0, protocol="apart/demo/x"),)
    assert [term.topology_key for term in translate.anti_affinity(subject)] == ["z"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
        ({"schedulingGroup": {"podGroupName": "g"}}, "spec.schedulingGroup"),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, "spec.workloadRef"),
    ],
)
def test_a_constraint_that_is_not_supported_is_named_by_its_field(fields, path):
    assert translate.unsupported(spec(**fields)) == path


def test_the_claims_of_a_pod_are_among_its_constraints_those_of_ephemeral_volumes_too():
    volumes = [{"name": "b", "persistentVolumeClaim": {"claimName": "z"}}, {"name": "scratch", "ephemeral": {}}]
    pod = msgspec.convert({"metadata": {"namespace": "ns", "name": "p"}, "spec": {"volumes": volumes}}, wire.PodView)
    assert translate.constraints(pod).claims == ("ns/p-scratch", "ns/z")


def test_wishes_are_ignored_and_not_refused():
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {}}]}
    spread = [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]
    subject = spec(affinity={"podAffinity": wish, "podAntiAffinity": wish}, topologySpreadConstraints=spread)
    assert translate.unsupported(subject) is None


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term_of(**fields) -> model.PodTerm:
    raw = {"metadata": {"name": "p", "namespace": "demo", "labels": {"app": "a", "hash": "1"}}}
    raw |= {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", **fields}]}}}}
    (found,) = translate.anti_affinity(msgspec.convert(raw, wire.PodView))
    return found


@pytest.mark.parametrize(
    ("fields", "namespaces", "selects_namespaces"),
    [
        pytest.param({}, ("demo",), None, id="its-own-namespace"),
        pytest.param({"namespaces": ["b", "a"]}, ("a", "b"), None, id="named-namespaces"),
        pytest.param({"namespaceSelector": {}}, (), model.Selector(), id="all-namespaces"),
        pytest.param({"namespaceSelector": {}, "namespaces": ["a"]}, ("a",), model.Selector(), id="both"),
    ],
)
def test_a_term_without_a_namespace_selector_and_with_an_empty_one_differ(fields, namespaces, selects_namespaces):
    found = term_of(**fields).pods
    assert (found.namespaces, found.namespace_selector) == (namespaces, selects_namespaces)


def test_no_selector_of_pods_selects_none_and_an_empty_one_all():
    assert term_of().pods.selector is None
    assert term_of(labelSelector={}).pods.selector == model.Selector()


@pytest.mark.parametrize(
    ("added", "values"),
    [
        pytest.param([], [("In", ("1",)), ("NotIn", ("a",))], id="not-created-yet"),
        pytest.param(
            [{"key": "hash", "operator": "In", "values": ["0"]}], [("In", ("0",)), ("NotIn", ("a",))], id="added"
        ),
    ],
)
def test_label_keys_of_a_term_select_the_pods_own_values_unless_the_api_server_has_added_them(added, values):
    selector = {"matchExpressions": added}
    found = term_of(labelSelector=selector, matchLabelKeys=["hash", "absent"], mismatchLabelKeys=["app"]).pods
    assert [(expression.operator, expression.values) for expression in found.selector.expressions] == values


def test_match_label_keys_of_a_spread_constraint_select_the_pods_own_values():
    spread = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 3}
    spread |= {"labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["hash", "absent"]}
    labels = {"app": "a", "hash": "1"}
    raw = {"metadata": {"namespace": "demo", "labels": labels}, "spec": {"topologySpreadConstraints": [spread]}}
    (found,) = translate.constraints(msgspec.convert(raw, wire.PodView)).spread
    assert [(expression.key, expression.values) for expression in found.selector.expressions] == [
        ("app", ("a",)),
        ("hash", ("1",)),
    ]
    assert (found.max_skew, found.min_domains, found.honors_affinity, found.honors_taints) == (2, 3, True, False)


@pytest.mark.parametrize(
    ("mine", "others", "conflict"),
    [
        pytest.param({"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d"}}, True, id="gce"),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            False,
            id="gce, both read",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
            {"gcePersistentDisk": {"pdName": "d"}},
            True,
            id="gce, one writes",
        ),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "e"}}, False, id="others"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            True,
            id="ebs, both read",
        ),
        pytest.param({"iscsi": {"iqn": "q", "lun": 0}}, {"iscsi": {"iqn": "q", "lun": 1}}, True, id="iscsi"),
        pytest.param(
            {"rbd": {"monitors": ["a", "b"], "image": "i"}},
            {"rbd": {"monitors": ["b", "c"], "image": "i", "pool": "rbd"}},
            True,
            id="rbd, a common monitor",
        ),
        pytest.param(
            {"rbd": {"monitors": ["a"], "image": "i"}}, {"rbd": {"monitors": ["b"], "image": "i"}}, False, id="rbd"
        ),
    ],
)
def test_pods_on_a_node_share_a_disk_that_they_name_at_most_for_reading(mine, others, conflict):
    first, second = (translate.host_ports(spec(volumes=[{"name": "v", **volume}])) for volume in (mine, others))
    assert any(one.conflicts(other) for one in first for other in second) is conflict


@pytest.mark.parametrize(("image", "is_kept_apart"), [("i", True), ("j", False)])
def test_disks_with_long_names_are_compared_by_their_whole_names(image, is_kept_apart):
    def rbd(image):
        return {"volumes": [{"name": "v", "rbd": {"monitors": ["m" * 300], "image": image}}]}

    (mine,) = translate.host_ports(spec(**rbd("i")))
    (theirs,) = transforms.pods("boathouse")(spec(**rbd(image), nodeName="n1")).host_ports
    assert mine.conflicts(theirs) is is_kept_apart


def test_a_pod_needs_the_features_of_a_kubelet_that_its_fields_depend_on():
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
    container = {"name": "c", "restartPolicyRules": [rule]}
    subject = spec(containers=[container], hostNetwork=True, hostUsers=False)
    assert translate.constraints(subject).features == (
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
    )
    assert translate.constraints(spec(hostNetwork=True)).features == ()
