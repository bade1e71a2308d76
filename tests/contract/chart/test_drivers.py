"""What a driver may do with its token: with its own executors and ConfigMaps, and with nothing of anybody else."""

from typing import Any

import pytest

from tests.contract.chart import drivers
from tests.contract.chart.builders import SPARK_AND_QUEUES, fenced, grant, object_, pod

pytestmark = pytest.mark.apiserver

NOT_OWN = "only pods and ConfigMaps that have its own pod as their only owner and controller"
OURS = "labels and annotations of boathouse.dev are written by Boathouse only"
USER = f"system:serviceaccount:demo:{drivers.ACCOUNT}"


VALUES = SPARK_AND_QUEUES


@pytest.fixture(scope="module")
def driver(start_driver):
    """A driver with an executor and a ConfigMap of its own."""
    return with_children(start_driver("one"))


@pytest.fixture(scope="module")
def other(start_driver):
    """The driver of another application in the same namespace."""
    return with_children(start_driver("two"))


def with_children(driver: drivers.Driver) -> drivers.Driver:
    for manifest in (driver.executor(number=7), driver.config_map(own_map(driver))):
        created = driver.api.kubectl("create", "-f", "-", body=[manifest])
        assert created.returncode == 0, created.stderr
    return driver


def own_map(driver: drivers.Driver) -> str:
    return f"{driver.name}-map"


def executor_of(driver: drivers.Driver) -> str:
    return f"pod/{driver.name.removesuffix('-driver')}-exec-7"


# What Spark does


@pytest.mark.parametrize("configuration", drivers.configurations())
def test_every_executor_that_spark_made_is_admitted(driver, configuration):
    """Those of the priority class are judged where the account may use it."""
    manifest = driver.executor(of=configuration)
    manifest["spec"].pop("priorityClassName", None)
    assert driver.api.creates(manifest) == "admitted"


def test_a_driver_creates_and_deletes_the_config_map_of_its_executors(driver):
    assert driver.api.creates(driver.config_map()) == "admitted"
    assert driver.api.deletes(f"configmap/{own_map(driver)}") == "admitted"


def test_a_driver_deletes_its_executors_one_by_one_and_all_at_once(driver):
    assert driver.api.deletes(executor_of(driver)) == "admitted"
    labels = f"spark-app-selector={driver.name},spark-role=executor"
    assert driver.api.deletes_all("pods", labels) == "admitted"


def test_a_driver_labels_its_executors_for_decommissioning(driver):
    assert driver.api.patches(executor_of(driver), {"metadata": {"labels": {"decommission": "true"}}}) == "admitted"


def test_a_driver_labels_an_executor_that_the_scheduler_has_bound(installed, operator, driver):
    """The Binding's label and annotation are on the pod, and stay as they are."""
    manifest = driver.executor(number=8)
    name = manifest["metadata"]["name"]
    assert driver.api.kubectl("create", "-f", "-", body=[manifest]).returncode == 0
    node = installed.get("nodes")["items"][0]["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = object_("Binding", name, "demo", metadata=fenced(), target=target)
    path = f"/api/v1/namespaces/demo/pods/{name}/binding"
    bound = operator.kubectl("create", "--raw", path, "-f", "-", body=[binding])
    assert bound.returncode == 0, bound.stderr
    assert driver.api.patches(f"pod/{name}", {"metadata": {"labels": {"decommission": "true"}}}) == "admitted"
    for ours in ({"labels": {"boathouse.dev/fenced": None}}, {"annotations": {"boathouse.dev/epoch": "8"}}):
        assert OURS in driver.api.patches(f"pod/{name}", {"metadata": ours})


# What belongs to others


OWNERS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "none": [],
    "another driver": [("other", {})],
    "both": [("own", {}), ("other", {"controller": False})],
    "no controller": [("own", {"controller": False})],
    "controller absent": [("own", {"controller": None})],
    "another kind": [("own", {"kind": "ConfigMap"})],
    "an application": [("own", {"apiVersion": "example.org/v1", "kind": "SparkApp"})],
    "nobody": [("own", {"uid": "00000000-0000-0000-0000-000000000000"})],
}


@pytest.mark.parametrize("kind", ["pod", "config map"])
@pytest.mark.parametrize("case", OWNERS)
def test_what_a_driver_creates_has_its_own_pod_as_the_only_owner(driver, other, kind, case):
    pods = {"own": driver, "other": other}
    meta = {"ownerReferences": [pods[whose].owner(**fields) for whose, fields in OWNERS[case]]}
    refusal = driver.api.creates(driver.executor(meta) if kind == "pod" else driver.config_map(**meta))
    assert "(Forbidden)" in refusal
    assert NOT_OWN in refusal


def test_a_driver_deletes_nothing_of_others(driver, other):
    assert NOT_OWN in driver.api.deletes(executor_of(other))
    assert NOT_OWN in driver.api.deletes("pod/ordinary")
    assert NOT_OWN in driver.api.deletes(other.pod)
    assert NOT_OWN in driver.api.deletes(driver.pod)
    assert NOT_OWN in driver.api.deletes(f"configmap/{own_map(other)}")
    assert NOT_OWN in driver.api.deletes("configmap/coredns")


@pytest.mark.parametrize("resource", ["pods", "configmaps"])
def test_a_driver_cannot_delete_all_of_its_namespace_at_once(driver, other, resource):
    assert other.pod
    assert NOT_OWN in driver.api.deletes_all(resource)


def test_a_driver_changes_nothing_of_others_and_not_itself(driver, other):
    patch = {"metadata": {"labels": {"a": "b"}}}
    for what in (executor_of(other), "pod/ordinary", other.pod, driver.pod):
        assert NOT_OWN in driver.api.patches(what, patch)


def test_a_driver_cannot_give_its_executors_away(driver, other):
    for owners in ([], None, [other.owner()], [driver.owner(), other.owner(controller=False)]):
        patch = {"metadata": {"ownerReferences": owners}}
        assert NOT_OWN in driver.api.patches(executor_of(driver), patch)


def test_a_driver_cannot_take_executors_of_others_over(driver, other):
    patch = {"metadata": {"ownerReferences": [driver.owner()]}}
    assert NOT_OWN in driver.api.patches(executor_of(other), patch)
    assert NOT_OWN in driver.api.patches("pod/ordinary", patch)


# What is Boathouse's


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("name", ["queue", "job-uid", "task-type", "fenced"])
def test_executors_have_no_labels_of_boathouse(driver, field, name):
    ours = {field: {f"boathouse.dev/{name}": "default"}}
    with_ours = {field: {**driver.executor()["metadata"].get(field, {}), **ours[field]}}
    assert OURS in driver.api.creates(driver.executor(with_ours))
    assert OURS in driver.api.creates(driver.config_map(**ours))
    assert OURS in driver.api.patches(executor_of(driver), {"metadata": ours})


@pytest.mark.parametrize("label", ["app.kubernetes.io/name", "spark-role"])
@pytest.mark.parametrize("value", ["other", None], ids=["changed", "removed"])
def test_executors_have_the_labels_by_which_network_policies_select_them(driver, label, value):
    labels = {**driver.executor()["metadata"]["labels"], label: value}
    complaint = "executors have the labels app.kubernetes.io/name=spark and spark-role=executor"
    assert complaint in driver.api.creates(driver.executor({"labels": labels}))
    assert complaint in driver.api.patches(executor_of(driver), {"metadata": {"labels": {label: value}}})


def test_a_driver_cannot_label_itself(driver):
    patch = {"metadata": {"labels": {"boathouse.dev/queue": "gold"}}}
    refusal = driver.api.patches(driver.pod, patch)
    assert OURS in refusal or NOT_OWN in refusal  # two policies refuse it


def test_no_finalizer_keeps_an_executor_when_its_driver_is_gone(driver):
    held = {"finalizers": ["example.org/held"]}
    assert "drivers set no finalizers" in driver.api.creates(driver.executor(held))
    assert "drivers set no finalizers" in driver.api.creates(driver.config_map(**held))
    assert "drivers set no finalizers" in driver.api.patches(executor_of(driver), {"metadata": held})


def test_a_driver_does_not_publish_certificate_authorities(driver):
    assert "that begin with boathouse- are taken" in driver.api.creates(driver.config_map("boathouse-progress-ca"))


# Whose token it is


def test_a_token_that_is_bound_to_no_pod_writes_nothing(installed, driver):
    token = installed.kubectl("create", "token", drivers.ACCOUNT, "--namespace=demo").stdout.strip()
    unbound = installed.with_token(token)
    for refusal in (
        unbound.creates(driver.executor()),
        unbound.deletes(executor_of(driver)),
        unbound.patches(executor_of(driver), {"metadata": {"labels": {"a": "b"}}}),
        installed.acting_as(USER).creates(driver.executor()),
    ):
        assert "this token is bound to no pod" in refusal


def test_a_token_of_an_ordinary_pod_with_the_account_owns_what_it_creates_and_nothing_else(installed, driver):
    """An editor of the namespace may create such a pod; it is no driver, and cannot act as one."""
    manifest = pod("pretender", serviceAccountName=drivers.ACCOUNT, schedulerName="nobody")
    installed.apply(manifest)
    try:
        bound = ("--bound-object-kind=Pod", "--bound-object-name=pretender")
        token = installed.kubectl("create", "token", drivers.ACCOUNT, "--namespace=demo", *bound).stdout.strip()
        pretender = installed.with_token(token)
        pretender.until(lambda: pretender.creates(driver.executor()), NOT_OWN)
        assert NOT_OWN in pretender.deletes(executor_of(driver))
    finally:
        installed.delete(manifest)


def test_the_token_of_a_driver_that_is_gone_is_worth_nothing(installed, start_driver):
    gone = start_driver("gone")
    assert gone.api.creates(gone.executor()) == "admitted"
    installed.kubectl("delete", gone.pod, "--namespace=demo", "--grace-period=0", "--force", "--wait=true")
    gone.api.until(lambda: gone.api.deletes_all("pods", "a=b"), "Unauthorized")


# What roles do not allow

MAY = ["create pods", "patch pods", "deletecollection pods", "list configmaps", "deletecollection configmaps"]
MAY_NOT = [
    *("create services", "delete services", "create persistentvolumeclaims", "create secrets", "list secrets"),
    *("create pods/exec", "get pods/log", "create pods/binding", "create pods/eviction", "patch pods/status"),
    *("patch pods/ephemeralcontainers", "create pods/attach", "update pods", "patch configmaps", "update configmaps"),
    *("create serviceaccounts/token", "create sparkapps.boathouse.dev", "list sparkapps.boathouse.dev"),
    *("list nodes", "create rolebindings.rbac.authorization.k8s.io"),
]


@pytest.mark.parametrize("right", MAY)
def test_a_driver_may(driver, right):
    verb, resource = right.split()
    assert driver.api.may(verb, resource, "demo") == "yes"
    assert driver.api.may(verb, resource, "unguarded") == "no"


@pytest.mark.parametrize("right", MAY_NOT)
def test_a_driver_may_not(driver, right):
    verb, resource = right.split()
    assert driver.api.may(verb, resource, "demo").splitlines()[-1] == "no"


def test_a_driver_uses_no_parts_of_pods_whatever_else_is_granted(installed, driver, other):
    parts = ["pods/exec", "pods/eviction", "pods/binding", "pods/status", "pods/ephemeralcontainers"]
    more = {"apiGroups": [""], "resources": parts, "verbs": ["create", "get", "patch", "update"]}
    granted = [
        object_("ClusterRole", "driver-more", api="rbac.authorization.k8s.io/v1", rules=[more]),
        grant("driver-more", "driver-more", USER),
    ]
    installed.apply(*granted)
    refusal = "drivers use no subresources of pods"
    try:
        driver.api.until(lambda: driver.api.binds(executor_of(driver).removeprefix("pod/")), refusal)
        assert refusal in driver.api.patches(executor_of(driver), {"status": {"message": "m"}}, subresource="status")
        assert refusal in driver.api.kubectl("exec", other.name, "--namespace=demo", "--", "sh").stderr
        eviction = object_("Eviction", other.name, "demo", api="policy/v1")
        path = f"/api/v1/namespaces/demo/pods/{other.name}/eviction"
        assert refusal in driver.api.kubectl("create", "--raw", path, "-f", "-", body=[eviction]).stderr
    finally:
        installed.delete(*granted)


def test_the_api_server_finds_nothing_wrong_with_the_policies_for_drivers(installed):
    names = [f"boathouse-{name}" for name in ("driver", "driver-parts", "driver-pods", "account-services")]
    path = "--output=jsonpath={.items[*].status.typeChecking}"
    installed.until(lambda: installed.kubectl("get", "validatingadmissionpolicy", *names, path).stdout, "{} {} {} {}")
