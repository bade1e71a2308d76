"""Nodes of a cluster in the scheduler: where their volumes are, and decisions about their number."""

import dataclasses

import pytest

from boathouse.cluster import views, wire
from boathouse.scheduling.volumes import rules
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.mrcluster import files, placement
from boathouse.services.mrcluster.placement import NodePods
from boathouse.services.mrcluster.scaling import Scaling
from boathouse_policies import koala, model, profiles
from tests.builders import manifests
from tests.builders.mrclusters import UID, cluster
from tests.builders.operators import desks
from tests.unit.scheduling.test_volumes import claim, volume

NODE = {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
CLUSTER = cluster(metadata={"namespace": "ns"}, transient={"maximum": 8})
PODS = NodePods(cluster=CLUSTER, rendered=files.render(CLUSTER), may_format=True)


class Desk(desks.Desk):
    """A scheduler whose storage a test changes."""

    def __init__(self, *nodes: str, provisioner: str = views.NO_PROVISIONER, **options) -> None:
        late = views.ClassView(
            metadata=wire.ObjectMeta(name="late"), provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer"
        )
        self.claims, self.volumes = dict[str, views.ClaimView](), dict[str, views.VolumeView]()
        found = rules.Storage()
        found = dataclasses.replace(found, claims=self.claims, volumes=self.volumes, classes={"late": late})
        super().__init__(found, **options)
        for name in nodes:
            self.node(name, labels={"kubernetes.io/hostname": name}, allocatable=NODE)

    def store(self, *objects: views.ClaimView | views.VolumeView) -> None:
        self.claims |= {
            stored_claim.metadata.key: stored_claim
            for stored_claim in objects
            if isinstance(stored_claim, views.ClaimView)
        }
        self.volumes |= {
            stored_volume.metadata.name: stored_volume
            for stored_volume in objects
            if isinstance(stored_volume, views.VolumeView)
        }
        self.scheduler.intake.on_storage()

    def submit_hosts(self, *hosts: str) -> None:
        placement.submit(self.scheduler, placement.of(PODS, hosts))

    def placed_on(self, *hosts: str) -> list[str | None]:
        """Run a cycle; return the nodes of these hosts."""
        self.scheduler.cycle()
        operations = [self.row(PODS.task(host)).operation for host in hosts]
        return [operation.node if operation else None for operation in operations]


def claim_of(host: str, **fields) -> views.ClaimView:
    return claim(CLUSTER.named(host), **fields)


def test_a_host_whose_claim_is_bound_to_a_local_volume_is_placed_on_its_node():
    desk = Desk("n1", "n2", "n3")
    desk.store(
        claim_of("c0", volume="v0"), volume("v0", host="n2"), claim_of("c1", volume="v1"), volume("v1", host="n3")
    )
    desk.submit_hosts("c0", "c1")
    assert desk.placed_on("c0", "c1") == ["n2", "n3"]


def test_a_host_whose_volume_is_on_a_full_node_is_pending_and_others_are_not():
    desk = Desk("n1", "n2")
    desk.show(desks.task_pod("ns/x", node="n2", revision=1, containers=(manifests.container(cpu="16"),)))
    desk.store(claim_of("c0", volume="v0"), volume("v0", host="n2"))
    desk.submit_hosts("c0", "t1")
    assert desk.placed_on("c0", "t1") == [None, "n1"]
    message = desk.scheduler.diagnosis(model.JobId(UID)).message
    assert "1 Insufficient cpu, 1 node(s) didn't match PersistentVolume's node affinity" in message


def test_claims_that_wait_for_their_first_consumer_get_local_volumes_on_different_nodes():
    desk = Desk("n1", "n2")
    desk.store(
        claim_of("c0"), claim_of("c1"), *(volume(f"{host}-{i}", host=host) for host in ("n1", "n2") for i in (0, 1))
    )
    desk.submit_hosts("c0", "c1")
    placed = desk.placed_on("c0", "c1")
    assert sorted(placed) == ["n1", "n2"]
    promised = [desk.row(PODS.task(host)).promise.bindings.volumes for host in ("c0", "c1")]
    assert [chosen.partition("-")[0] for ((_, chosen),) in promised] == placed


def test_claims_that_wait_for_their_first_consumer_are_provisioned_where_their_host_is_placed():
    desk = Desk("n1", "n2", provisioner="example.com/d")
    desk.store(claim_of("master", size="10Gi"), claim_of("c0"))
    desk.submit_hosts("master", "c0")
    assert None not in desk.placed_on("master", "c0")
    for host in ("master", "c0"):
        assert desk.row(PODS.task(host)).promise.bindings.provisions == (f"ns/{CLUSTER.named(host)}",)


def test_a_host_is_pending_until_its_claim_is_observed():
    desk = Desk("n1", provisioner="example.com/d")
    desk.submit_hosts("c0")
    assert desk.placed_on("c0") == [None]
    desk.store(claim_of("c0"))
    assert desk.placed_on("c0") == ["n1"]


def cluster_load(**fields) -> koala.Cluster:
    values = {"slots": 4, "node_slots": 2, "core_nodes": 2, "first_core_nodes": 2, "most_nodes": 8}
    return koala.Cluster(name=model.JobId(UID), **values | fields)


class Scaled:
    """A scheduler with one cluster of which the load is reported."""

    def __init__(self) -> None:
        self.desk = Desk("n1", "n2", switches=profiles.Switches(scale=True), profile="boathouse")
        profile = self.desk.scheduler.state.profile
        self.scaling = Scaling(profile, profile.observers, lambda: self.desk.now_s, lambda _: None)
        self.desk.scheduler.adjuster.scaler = self.scaling.take
        self.scaling.submit(ObjectUid(UID), placement.of(PODS, []).submission(koala.Config()))

    def report(self, **fields) -> None:
        self.scaling.report(ObjectUid(UID), cluster_load(**fields), master=model.TaskId("ns/m"), node="n1")

    def refusals_at(self, *times_s: float) -> list[str]:
        for now_s in times_s:
            self.desk.now_s = now_s
            self.desk.scheduler.cycle()
        refused = [event for event in self.desk.observer.events if isinstance(event, model.Refused)]
        self.desk.observer.events.clear()
        return [event.reason for event in refused]


def test_a_decision_that_is_refused_is_reported_once_and_decided_again_after_a_period():
    scaled = Scaled()
    scaled.report(transient_nodes=4, leaving_nodes=2)
    assert scaled.refusals_at(29.0) == []
    assert scaled.refusals_at(30.0, 31.0, 32.0, 58.0) == ["Leaving"]
    scaled.report(transient_nodes=4, leaving_nodes=2)
    assert scaled.refusals_at(60.0, 61.0) == ["Leaving"]


def test_a_decision_is_kept_for_the_next_plan_without_a_refusal():
    scaled = Scaled()
    scaled.report(running_tasks=4, runnable_tasks=90)
    assert scaled.refusals_at(30.0, 31.0) == []
    assert scaled.scaling.target(ObjectUid(UID)).nodes == 7


@pytest.mark.parametrize("scale", [True, False])
def test_without_the_switch_no_cluster_is_resized(scale):
    desk = Desk("n1", profile="koala", switches=profiles.Switches(scale=scale))
    desk.scheduler.adjuster.scaler = lambda _: ""
    desk.scheduler.adjuster.take(model.Scale(job=model.JobId(UID), workers=4, reason=""))
    reasons = [event.reason for event in desk.observer.events if isinstance(event, model.Refused)]
    assert reasons == ([] if scale else ["SwitchedOff"])
