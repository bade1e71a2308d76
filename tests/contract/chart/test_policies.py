"""What the API server lets through and what it refuses once the chart is applied. The operator itself does not run."""

import json
from typing import Any

import pytest

from tests.contract.chart.builders import (
    EPOCH,
    OPERATORS_LABEL,
    OWNER,
    fenced,
    lease,
    object_,
    pod,
    task_pod,
    wait_for_policies,
)

pytestmark = pytest.mark.apiserver

# The fence


def test_a_pod_of_the_current_epoch_is_created(operator):
    assert operator.creates(task_pod()) == "admitted"


def test_a_pod_of_an_old_epoch_is_refused(operator):
    refusal = operator.creates(task_pod(epoch=EPOCH - 1))
    assert "(Forbidden)" in refusal
    assert "boathouse-fence: this write is of epoch 6 and the Lease is at 7: another replica leads now" in refusal


def test_a_pod_is_bound_in_the_current_epoch(operator):
    assert operator.binds("foreign", **fenced()) == "admitted"


def test_a_binding_of_an_old_epoch_is_refused(operator):
    assert "boathouse-fence: this write is of epoch 6" in operator.binds("foreign", **fenced(EPOCH - 1))


@pytest.mark.parametrize("metadata", [{}, {"annotations": {"boathouse.dev/epoch": "7"}}])
def test_a_binding_cannot_pass_the_fence_by(operator, metadata):
    assert "boathouse-account: a pod or Binding without the label" in operator.binds("foreign", **metadata)


def test_a_binding_without_an_epoch_is_refused(operator):
    assert "denied request: boathouse-" in operator.binds("foreign", **fenced(None))


def test_a_pod_cannot_pass_the_fence_by(operator):
    manifest = task_pod()
    del manifest["metadata"]["labels"]["boathouse.dev/fenced"]
    assert "boathouse-account: a pod or Binding without the label" in operator.creates(manifest)


def test_other_schedulers_bind_without_restrictions(alice):
    assert alice.binds("ordinary") == "admitted"


def test_without_the_lease_only_boathouse_is_held_up(cluster, operator, alice, controller):
    cluster.delete(lease(EPOCH))
    try:
        cluster.until(lambda: operator.creates(task_pod()), "no params found")
        assert "no params found" in operator.binds("foreign", **fenced())
        assert alice.binds("ordinary") == "admitted"
        assert alice.creates(pod()) == "admitted"
        assert alice.creates(pod(schedulerName="boathouse")) == "admitted"
        assert controller.creates(pod("boathouse-1", "boathouse-system", meta=OPERATORS_LABEL)) == "admitted"
    finally:
        cluster.apply(lease(EPOCH))
        cluster.until(lambda: operator.creates(task_pod()), "admitted")


def test_a_lease_without_an_epoch_lets_nothing_through(cluster, operator):
    cluster.kubectl(
        "patch",
        "lease",
        "boathouse",
        "-n",
        "boathouse-system",
        "--type=merge",
        "-p",
        '{"spec":{"leaseTransitions":null}}',
    )
    try:
        cluster.until(lambda: operator.creates(task_pod()), "the Lease is at 0")
    finally:
        cluster.apply(lease(EPOCH))
        cluster.until(lambda: operator.creates(task_pod()), "admitted")


def test_the_fence_holds_again_after_an_uninstall_and_an_install(cluster, chart, operator):
    manifests = [*chart.render(), lease(EPOCH)]
    cluster.uninstall(*manifests)
    cluster.apply(*manifests[:-1], lease(EPOCH + 1))
    cluster.until(lambda: operator.creates(task_pod()), "of epoch 7 and the Lease is at 8")
    cluster.apply(lease(EPOCH))
    wait_for_policies(cluster)


def test_a_running_task_is_resized_in_the_current_epoch_only(operator, task):
    unchanged = {"spec": {"containers": [{"name": "task"}]}}

    def resize(manager: str) -> str:
        return operator.patches(task, unchanged, subresource="resize", merge="strategic", manager=manager)

    refusal = "boathouse-fence: this write is of epoch"
    assert f"{refusal} 6 and the Lease is at 7" in resize("boathouse-6")
    assert f"{refusal} none" in resize("boathouse")
    assert resize("boathouse-7") == "admitted"


# The operator's account


def test_the_operator_creates_only_pods_of_its_own_resources(operator):
    manifest = task_pod()
    manifest["metadata"]["ownerReferences"] = []
    assert "pods of its own resources only" in operator.creates(manifest)


def test_the_operator_deletes_only_pods_that_it_made(operator, task):
    assert operator.deletes(task) == "admitted"
    assert "deletes only pods that it made" in operator.deletes("pod/foreign")
    assert "deletes only pods that it made" in operator.deletes("pod/ordinary")


def test_the_operator_writes_the_status_only_of_pods_that_are_its_concern(operator, task):
    status = {"status": {"message": "waiting"}}
    assert operator.patches(task, status, subresource="status") == "admitted"
    assert operator.patches("pod/foreign", status, subresource="status") == "admitted"
    assert "changes only pods that it made" in operator.patches("pod/ordinary", status, subresource="status")


def test_with_the_status_of_a_pod_the_operator_writes_the_record_of_a_suspension_only(operator, task):
    record = {"metadata": {"annotations": {"boathouse.dev/suspension": "{}"}}}
    assert operator.patches(task, record, subresource="status") == "admitted"
    only = "the annotation boathouse.dev/suspension only"
    for what, metadata in (
        ("pod/foreign", record["metadata"]),
        (task, {"annotations": {"boathouse.dev/epoch": "8"}}),
        (task, {"annotations": {"boathouse.dev/epoch": None}}),
        (task, {"labels": {"a": "b"}}),
    ):
        assert only in operator.patches(what, {"metadata": metadata}, subresource="status")


def test_the_operator_resizes_only_pods_that_it_made(operator):
    unchanged = {"spec": {"containers": [{"name": "c"}]}}
    assert "resizes only pods that it made" in operator.patches(
        "pod/foreign", unchanged, subresource="resize", merge="strategic", manager="boathouse-7"
    )


def test_the_leader_labels_its_own_pod_and_changes_nothing_else(operator):
    labelled = {"metadata": {"labels": {"boathouse.dev/leader": "true"}}}
    other = {"metadata": {"labels": {"app.kubernetes.io/instance": "other"}}}
    assert operator.patches("pod/boathouse-0", labelled, "boathouse-system") == "admitted"
    assert "only the label boathouse.dev/leader" in operator.patches("pod/boathouse-0", other, "boathouse-system")
    assert "changes only pods that it made" in operator.patches("pod/neighbour", labelled, "boathouse-system")


def test_of_a_job_the_operator_changes_its_finalizer_only(operator):
    assert operator.patches("mrjob/wc", {"metadata": {"finalizers": ["boathouse.dev/clean-up"]}}) == "admitted"
    for patch in (
        {"spec": {"suspend": True}},
        {"metadata": {"finalizers": ["example.org/other"]}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"finalizers": ["boathouse.dev/clean-up"], "annotations": {"a": "b"}}},
    ):
        assert "only the finalizer boathouse.dev/clean-up" in operator.patches("mrjob/wc", patch)


def test_the_operator_writes_config_maps_of_its_own_only(operator):
    shard = object_("ConfigMap", "wc-1-plan-000", "demo", metadata={"ownerReferences": [OWNER]})
    assert operator.creates(shard) == "admitted"
    assert operator.creates(object_("ConfigMap", "boathouse-progress-ca", "demo")) == "admitted"
    assert operator.creates(object_("ConfigMap", "boathouse-learned", "boathouse-system")) == "admitted"
    assert "the operator writes only" in operator.creates(object_("ConfigMap", "boathouse-learned", "demo"))
    assert "the operator writes only" in operator.creates(object_("ConfigMap", "other", "demo"))
    owned = {"metadata": {"ownerReferences": [OWNER]}}
    assert "the operator writes only" in operator.patches("configmap/coredns", owned)


# Users


def test_a_user_may_ask_boathouse_to_place_a_pod(alice):
    assert alice.creates(pod(schedulerName="boathouse")) == "admitted"


def test_a_user_may_not_choose_the_node_for_boathouse(alice):
    refusal = alice.creates(pod(schedulerName="boathouse", nodeName="node-0"))
    assert "spec.nodeName: Boathouse chooses the node" in refusal
    assert alice.creates(pod(nodeName="node-0")) == "admitted"


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_a_user_may_not_pretend_to_be_a_task(alice, field):
    manifest = pod(meta={field: {"boathouse.dev/job-uid": "1-2"}})
    assert "written by Boathouse only" in alice.creates(manifest)


def test_nobody_else_makes_pods_that_a_job_owns(alice, controller):
    manifest = pod(meta={"ownerReferences": [OWNER]})
    assert "made by Boathouse only" in alice.creates(manifest)
    assert "made by Boathouse only" in controller.creates(manifest)


def test_a_controller_may_copy_the_queue_of_a_template_and_no_other_label_of_ours(controller):
    queue = {"boathouse.dev/queue": "nightly"}
    assert controller.creates(pod(meta={"labels": queue})) == "admitted"
    for forged in (
        {"boathouse.dev/job-uid": "1-2"},
        {"boathouse.dev/task-type": "map"},
        {"boathouse.dev/fenced": "true"},
    ):
        assert "written by Boathouse only" in controller.creates(pod(meta={"labels": queue | forged}))
    assert "written by Boathouse only" in controller.creates(pod(meta={"annotations": {"boathouse.dev/epoch": "7"}}))


def test_a_user_may_name_the_queue_of_a_pod_that_is_created(alice):
    assert alice.creates(pod(meta={"labels": {"boathouse.dev/queue": "nightly"}})) == "admitted"
    assert "written by Boathouse only" in alice.creates(pod(meta={"annotations": {"boathouse.dev/queue": "nightly"}}))


@pytest.mark.parametrize("value", ["another", None], ids=["changed", "removed"])
def test_a_user_may_not_change_what_boathouse_wrote(alice, task, value):
    patch = {"metadata": {"labels": {"boathouse.dev/job-uid": value}}}
    assert "written by Boathouse only" in alice.patches(task, patch)


def test_a_user_may_change_the_rest_of_a_task_pod(alice, task):
    assert alice.patches(task, {"metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}}}) == "admitted"
    assert alice.deletes(task) == "admitted"


TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}
PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
SPREAD = {"maxSkew": 1, **TERM}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resourceClaims": [{"name": "g", "resourceClaimName": "g"}]}, "spec.resourceClaims"),
    ],
)
def test_what_the_scheduler_does_not_honour_is_refused_by_field(alice, spec, field):
    assert field in alice.creates(pod(schedulerName="boathouse", **spec))
    assert alice.creates(pod(**spec)) == "admitted"


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}},
        {"affinity": {"podAffinity": REQUIRED, "podAntiAffinity": REQUIRED}},
        {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]},
        {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "DoNotSchedule"}]},
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]},
    ],
)
def test_constraints_on_other_pods_preferences_and_volumes_are_admitted(alice, spec):
    assert alice.creates(pod(schedulerName="boathouse", **spec)) == "admitted"


# Volumes: the operator's account binds those at hand, and asks for others to be made

STORAGE = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
CLAIM_SPEC = {**STORAGE, "resources": {"requests": {"storage": "1Gi"}}}
VOLUME_SPEC = {**STORAGE, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/volume"}}
OTHER_CLASS = {"storageClassName": "other"}  # or the controller manager would bind the claim to the volume
WHOM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "demo", "name": "c", "uid": "1-2"}


@pytest.fixture(scope="module")
def with_storage(installed):
    installed.apply(
        object_("PersistentVolumeClaim", "c", "demo", spec=CLAIM_SPEC | OTHER_CLASS),
        object_("PersistentVolume", "free", spec=VOLUME_SPEC),
        object_("PersistentVolume", "kept", spec=VOLUME_SPEC | {"claimRef": {"namespace": "demo", "name": "other"}}),
    )


@pytest.mark.usefixtures("with_storage")
def test_the_operator_gives_a_volume_its_claim_and_a_claim_its_node(operator):
    bound = {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}
    assert operator.patches("pv/free", {"metadata": bound, "spec": {"claimRef": WHOM}}) == "admitted"
    selected = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "node-0"}}}
    assert operator.patches("pvc/c", selected) == "admitted"


@pytest.mark.usefixtures("with_storage")
@pytest.mark.parametrize(
    ("what", "patch", "complaint"),
    [
        ("pv/kept", {"spec": {"claimRef": WHOM}}, "only to a volume that has none"),
        ("pv/free", {"spec": {"persistentVolumeReclaimPolicy": "Delete", "claimRef": WHOM}}, "claimRef only"),
        (
            "pv/free",
            {"metadata": {"labels": {"a": "b"}}, "spec": {"claimRef": WHOM}},
            "of volumes pv.kubernetes.io/bound",
        ),
        ("pvc/c", {"spec": {"volumeName": "free"}}, "nothing in the spec"),
        ("pvc/c", {"metadata": {"annotations": {"a": "b"}}}, "selected-node only"),
    ],
)
def test_the_operator_writes_nothing_else_of_volumes_and_claims(operator, what, patch, complaint):
    assert complaint in operator.patches(what, patch)


# The policies themselves


def test_the_api_server_finds_nothing_wrong_with_the_expressions(installed):
    """The controller manager checks every expression against the types of what it matches."""
    of_account = ("account", "account-claims", "account-configmaps", "account-network", "account-pods")
    names = [f"boathouse-{name}" for name in (*of_account, "fence", "guard")]

    def statuses() -> list[dict[str, Any]]:
        found = installed.kubectl("get", "validatingadmissionpolicy", *names, "--output=json").stdout
        return [policy.get("status", {}) for policy in json.loads(found)["items"]]

    installed.until(lambda: str(all("typeChecking" in status for status in statuses())), "True")
    assert [status["typeChecking"] for status in statuses()] == [{}] * len(names)


# Pod security


def test_the_operators_own_pod_is_restricted(chart, controller):
    template = chart.render().find("Deployment")["spec"]["template"]
    manifest = object_("Pod", "boathouse-1", "boathouse-system", **template)
    assert controller.creates(manifest) == "admitted"


def test_the_pod_of_helm_test_is_restricted_and_selected_by_no_service(chart, alice):
    manifest = chart.test_pod()
    services = chart.render().of("Service")
    assert alice.creates(manifest) == "admitted"
    assert all(
        not service["spec"]["selector"].items() <= manifest["metadata"]["labels"].items() for service in services
    )


def test_the_restricted_standard_is_in_force_here(alice):
    assert "violates PodSecurity" in alice.creates(pod(hostNetwork=True))
