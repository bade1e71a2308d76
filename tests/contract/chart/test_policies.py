"""What the API server lets through and what it refuses once the chart is applied. The operator itself does not run."""

import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.apiserver

OPERATOR = "system:serviceaccount:boathouse-system:boathouse"
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
OWNER = {"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRJob", "name": "wc", "uid": "1-2", "controller": True}
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
EPOCH = 7


def pod(name: str = "p", namespace: str = "demo", *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Anybody's pod, within the restricted pod security standard."""
    secure = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {"name": "c", "image": "i", "securityContext": SAFE}
    whole = {"containers": [container], "securityContext": secure, "restartPolicy": "Never", **spec}
    metadata = {"name": name, "namespace": namespace, **(meta or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


def fenced(epoch: int | None = EPOCH) -> dict[str, Any]:
    annotations = {} if epoch is None else {"boathouse.dev/epoch": str(epoch)}
    return {"labels": {"boathouse.dev/fenced": "true"}, "annotations": annotations}


def task_pod(name: str = "wc-1-s0-m-00000-a1", *, epoch: int | None = EPOCH, **spec: Any) -> dict[str, Any]:
    """A task's pod as the operator creates it."""
    meta = fenced(epoch) | {"ownerReferences": [OWNER]}
    meta["labels"] |= {"boathouse.dev/job-uid": "1-2"}
    whole = {"schedulerName": "boathouse", "automountServiceAccountToken": False, "nodeName": "node-0", **spec}
    return pod(name, meta=meta, **whole)


def lease(epoch: int) -> dict[str, Any]:
    metadata = {"name": "boathouse", "namespace": "boathouse-system"}
    spec = {"leaseTransitions": epoch}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for what the API server's own caches take some milliseconds to learn."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"in 30 s not seen: {what}"


@pytest.fixture(scope="module", autouse=True)
def installed(cluster, chart):
    """The chart, an MRJob's namespace under the restricted standard, and some pods that wait in it."""
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}
        for name in ("boathouse-system", "demo")
    ]
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        for name in ("boathouse-system", "demo")  # as the controller manager would
    ]
    admin = {
        **{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "chart-test"}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": "alice"}, {"kind": "User", "name": CONTROLLER}],
    }
    cluster.apply(*namespaces, *accounts, admin)
    manifests = list(chart.render())
    waiting = [pod("ordinary"), pod("foreign", schedulerName="boathouse")]
    cluster.apply(*waiting, *manifests, lease(EPOCH))
    yield
    cluster.delete(*waiting, *manifests, lease(EPOCH), admin)


@pytest.fixture(scope="module")
def operator(cluster, installed):
    acting = cluster.acting_as(OPERATOR)
    until(lambda: "fence" in acting.creates(task_pod(epoch=EPOCH - 1)), "the fence")
    until(lambda: acting.creates(task_pod()) == "admitted", "the Lease")
    return acting


@pytest.fixture(scope="module")
def alice(cluster, operator):
    """A user who may do everything that roles can allow."""
    return cluster.acting_as("alice")


@pytest.fixture(scope="module")
def task(cluster, operator):
    """A task's pod that is there: made by the operator's name."""
    manifest = task_pod("wc-1-s0-m-00001-a1")
    created = operator.kubectl("create", "-f", "-", body=[manifest])
    assert created.returncode == 0, created.stderr
    yield f"pod/{manifest['metadata']['name']}"
    cluster.kubectl("delete", f"pod/{manifest['metadata']['name']}", "-n", "demo", "--force", "--grace-period=0")


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


@pytest.mark.parametrize("metadata", [{}, fenced(None), {"annotations": {"boathouse.dev/epoch": "7"}}])
def test_a_binding_cannot_pass_the_fence_by(operator, metadata):
    assert "boathouse-account: a pod or Binding without the label" in operator.binds("foreign", **metadata)


def test_a_pod_cannot_pass_the_fence_by(operator):
    manifest = task_pod()
    del manifest["metadata"]["labels"]["boathouse.dev/fenced"]
    assert "boathouse-account: a pod or Binding without the label" in operator.creates(manifest)


def test_other_schedulers_bind_as_ever(alice):
    assert alice.binds("ordinary") == "admitted"


def test_without_the_lease_only_boathouse_is_held_up(cluster, operator, alice):
    cluster.delete(lease(EPOCH))
    try:
        until(lambda: operator.creates(task_pod()) != "admitted", "that the Lease is gone")
        assert "no params found" in operator.binds("foreign", **fenced())
        assert alice.binds("ordinary") == "admitted"
        assert alice.creates(pod()) == "admitted"
        assert alice.creates(pod(schedulerName="boathouse")) == "admitted"
    finally:
        cluster.apply(lease(EPOCH))
        until(lambda: operator.creates(task_pod()) == "admitted", "the Lease again")


def test_a_lease_without_an_epoch_lets_nothing_through(cluster, operator):
    cluster.kubectl("patch", "lease", "boathouse", "-n", "boathouse-system", "--type=merge", "-p", '{"spec":{"leaseTransitions":null}}')
    try:
        until(lambda: "the Lease is at 0" in operator.creates(task_pod()), "that the Lease has no epoch")
    finally:
        cluster.apply(lease(EPOCH))
        until(lambda: operator.creates(task_pod()) == "admitted", "the Lease again")


# The operator's account


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"hostNetwork": True}, "no pods with hostNetwork"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "hostPath volumes"),
        ({"automountServiceAccountToken": True}, "without its token"),
        ({"serviceAccountName": "builder"}, "with the default service account"),
    ],
)
def test_a_stolen_token_makes_no_pod_that_takes_over_a_node(operator, spec, complaint):
    assert complaint in operator.creates(task_pod(**spec)) or "builder" in str(spec)


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


def test_the_leader_labels_its_own_pod_and_changes_nothing_else(cluster, operator):
    own = pod("boathouse-0", "boathouse-system", meta={"labels": {"app.kubernetes.io/name": "boathouse"}})
    cluster.apply(own, pod("neighbour", "boathouse-system"))
    labelled = {"metadata": {"labels": {"boathouse.dev/leader": "true"}}}
    other = {"metadata": {"labels": {"app.kubernetes.io/instance": "other"}}}
    assert operator.patches("pod/boathouse-0", labelled, "boathouse-system") == "admitted"
    assert "only the label boathouse.dev/leader" in operator.patches("pod/boathouse-0", other, "boathouse-system")
    assert "changes only pods that it made" in operator.patches("pod/neighbour", labelled, "boathouse-system")


def config_map(name: str, namespace: str = "demo", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **metadata}}


def test_the_operator_writes_config_maps_of_its_own_only(cluster, operator):
    cluster.apply(config_map("coredns"))
    assert operator.creates(config_map("wc-1-plan-000", ownerReferences=[OWNER])) == "admitted"
    assert operator.creates(config_map("boathouse-progress-ca")) == "admitted"
    assert "the operator writes only" in operator.creates(config_map("other"))
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


@pytest.mark.parametrize("user", ["alice", CONTROLLER])
def test_nobody_else_makes_pods_that_a_job_owns(cluster, operator, user):
    manifest = pod(meta={"ownerReferences": [OWNER]})
    assert "made by Boathouse only" in cluster.acting_as(user).creates(manifest)


def test_a_controller_may_copy_a_template_with_our_labels(cluster, operator):
    manifest = pod(meta={"labels": {"boathouse.dev/queue": "nightly"}})
    assert cluster.acting_as(CONTROLLER).creates(manifest) == "admitted"


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
        ({"affinity": {"podAffinity": REQUIRED}}, "spec.affinity.podAffinity.required"),
        ({"affinity": {"podAntiAffinity": REQUIRED}}, "spec.affinity.podAntiAffinity.required"),
        ({"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "DoNotSchedule"}]}, "spec.topologySpread"),
        ({"resourceClaims": [{"name": "g", "resourceClaimName": "g"}]}, "spec.resourceClaims"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "spec.volumes with persistentVol"),
    ],
)
def test_what_the_scheduler_does_not_honour_is_refused_by_field(alice, spec, field):
    assert field in alice.creates(pod(schedulerName="boathouse", **spec))
    assert alice.creates(pod(**spec)) == "admitted"


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"podAffinity": PREFERRED, "podAntiAffinity": PREFERRED}},
        {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]},
        {"volumes": [{"name": "v", "emptyDir": {}}]},
    ],
)
def test_what_is_only_preferred_is_admitted(alice, spec):
    assert alice.creates(pod(schedulerName="boathouse", **spec)) == "admitted"


# Pod security


def test_the_operators_own_pod_is_restricted(cluster, chart, operator):
    template = chart.render().find("Deployment")["spec"]["template"]
    meta = {"name": "boathouse-0", "namespace": "boathouse-system", **template["metadata"]}
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "boathouse", "namespace": "boathouse-system"}})
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": meta | {"name": "boathouse-1"}, "spec": template["spec"]}
    assert cluster.acting_as(CONTROLLER).creates(manifest) == "admitted"


def test_the_restricted_standard_is_in_force_here(alice):
    assert "violates PodSecurity" in alice.creates(pod(hostNetwork=True))
