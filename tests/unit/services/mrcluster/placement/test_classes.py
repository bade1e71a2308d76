"""The nodes of a cluster as they are submitted to the scheduler."""

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.resources.mrcluster.names import LABEL_HOST, Role
from boathouse.scheduling.pods import translate
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrcluster import files, placement
from boathouse.services.mrcluster.placement import NodePods
from boathouse.services.mrcluster.planning.observation import NodePod
from boathouse_policies import koala, model
from tests.builders.mrclusters import FULL, UID, cluster

HOSTS = ("t17", "c1", "master", "c0", "t4")
IN_PODS = {"emptyDir": True}
VOLATILE = {"dataPolicy": "Delete", "master": {"volume": IN_PODS}, "core": {"volume": IN_PODS}}


def node_pods(**fields) -> NodePods:
    found = cluster(**fields)
    return NodePods(cluster=found, rendered=files.render(found), may_format=False)


def submitted_nodes(*hosts: str, existing=(), **fields) -> placement.Nodes:
    return placement.of(node_pods(**fields), hosts, existing)


def class_of(found: placement.Nodes, host: str) -> model.TaskClass:
    task = next(task for task in found.tasks if found.factory.host(task.id) == host)
    return next(task_class for task_class in found.classes if task_class.id == task.task_class)


@pytest.mark.parametrize("fields", [{}, FULL, VOLATILE])
@pytest.mark.parametrize("host", HOSTS)
def test_a_class_is_what_the_pod_requests_and_may_not_share(host, fields):
    found = submitted_nodes(*HOSTS, **fields)
    task, known = node_pods(**fields).task(host), class_of(found, host)
    manifest = found.factory.build(task, known.resources, model.NodeName("n1"))
    view = msgspec.convert(manifest, wire.PodView)
    assert view.spec.node_name == "n1"
    assert f"{view.metadata.namespace}/{view.metadata.name}" == task
    assert known.resources == translate.manifest_resources(manifest)
    del manifest["spec"]["nodeName"]
    assert known.constraints == translate.constraints(msgspec.convert(manifest, wire.PodView))


def test_the_master_is_served_first_and_hosts_in_the_order_of_their_numbers():
    found = submitted_nodes(*HOSTS)
    assert [found.factory.host(task.id) for task in found.tasks] == ["master", "c0", "c1", "t4", "t17"]
    assert [task_class.id for task_class in found.classes] == [
        f"{UID}/{last}" for last in ("master", "c0", "c1", "transient")
    ]
    assert {one.stage for one in found.classes} == {model.Stage.NODE}


def test_a_class_of_a_host_with_a_claim_names_it_and_hosts_without_one_share_theirs():
    known = class_of(submitted_nodes("c0"), "c0")
    assert len(known.constraints.claims) == 1
    assert class_of(submitted_nodes("t1"), "t1").constraints.claims == ()
    assert [one.id for one in submitted_nodes("c0", "c1", **VOLATILE).classes] == [f"{UID}/core"]


def test_core_nodes_of_a_cluster_take_the_same_port_that_no_socket_has():
    ports = {class_of(submitted_nodes(host), host).constraints.host_ports for host in ("c0", "c1")}
    assert ports == {(model.HostPort(port=0, protocol=f"apart/demo/{UID}"),)}
    assert not class_of(submitted_nodes("t1"), "t1").constraints.host_ports
    assert not class_of(submitted_nodes("master"), "master").constraints.host_ports


def test_zones_and_node_selectors_are_constraints():
    known = class_of(submitted_nodes("t1", **FULL), "t1").constraints
    assert known.node_selector == (("disk", "ssd"),)
    zone = model.Expression(key="topology.kubernetes.io/zone", operator=model.Operator.IN, values=("a", "b"))
    assert known.affinity == (model.AffinityTerm(expressions=(zone,)),)
    assert "batch" in {toleration.key for toleration in known.tolerations}


def test_nodes_are_kept_apart_by_the_labels_that_they_share():
    term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["team"]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    template = {"metadata": {"labels": {"team": "blue"}}, "affinity": {"podAntiAffinity": required}}
    known = class_of(submitted_nodes("t1", podTemplate=template), "t1")
    other = model.Expression(key="team", operator=model.Operator.NOT_IN, values=("blue",))
    pods_of_others = model.PodSet(selector=model.Selector(expressions=(other,)), namespaces=("demo",))
    assert known.constraints.pod_anti_affinity == (model.PodTerm(topology_key="zone", pods=pods_of_others),)
    assert known.labels["team"] == "blue"
    assert LABEL_HOST not in known.labels


def test_a_pod_without_a_node_is_bound_and_one_that_is_deleted_is_not():
    waiting = NodePod(name="x", uid="u4", host="t4", role=Role.TRANSIENT, number=4, life=PodLife.UNPLACED)
    deleted = NodePod(
        name="x", uid="u5", host="t5", role=Role.TRANSIENT, number=5, life=PodLife.UNPLACED, deleting_since_s=1.0
    )
    running = NodePod(name="x", uid="u6", host="t6", role=Role.TRANSIENT, number=6, node="n1")
    found = submitted_nodes("t7", existing=(waiting, deleted, running))
    assert [(found.factory.host(task.id), task.pod_uid) for task in found.tasks] == [("t4", "u4"), ("t7", None)]


def test_the_job_has_the_weight_and_the_priority_of_the_cluster():
    job = placement.of(node_pods(weight=3, **FULL), [], priority=7).job
    assert (job.id, job.name, job.weight, job.priority) == (UID, "demo/etl", 3.0, 7)
    assert (job.priority_class, job.queue, job.namespace) == ("low", "default", "demo")


@pytest.mark.parametrize(("policy", "last"), [("gsp", "transient"), ("ggp", "transient"), ("ggdp", "core")])
def test_policies_know_the_classes_of_roles_and_by_which_the_cluster_grows(policy, last):
    found = submitted_nodes("master", "c0", "c1", "t4").submission(koala.Config(policy=koala.Policy(policy)))
    assert found.worker == f"{UID}/{last}"
    assert found.tasks == {f"{UID}/master": 1, f"{UID}/core": 2, f"{UID}/transient": 1}
    assert [task_class.id for task_class in found.classes] == list(found.tasks)
    assert not any(task_class.constraints.claims for task_class in found.classes)


def test_a_cluster_without_compute_has_no_transient_nodes():
    found = submitted_nodes("c0", compute=False).submission(koala.Config(policy=koala.Policy.STATIC))
    assert [task_class.id for task_class in found.classes] == [f"{UID}/master", f"{UID}/core"]


def test_a_tenants_pod_takes_no_node_from_a_cluster_of_another_namespace():
    labels = {names.LABEL_APART: UID}
    view = msgspec.convert({"metadata": {"name": "p", "namespace": "other", "labels": labels}}, wire.PodView)
    (port,) = class_of(submitted_nodes("c0"), "c0").constraints.host_ports
    assert not any(port.conflicts(other) for other in translate.host_ports(view))
