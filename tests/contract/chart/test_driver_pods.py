"""What a driver's pods may be; and which pods the operator may give a token: drivers, and nothing else."""

from typing import Any

import pytest

from tests.contract.chart import drivers
from tests.contract.chart.builders import (
    OWNER,
    binding,
    driver_pod,
    fenced,
    object_,
    placeholder_pod,
    sparkapp,
    submission,
    task_pod,
)
from tests.contract.chart.restricted import ADMITTED, REFUSED, projected

pytestmark = pytest.mark.apiserver

NAMESPACE = "unguarded"  # it enforces no Pod Security Standard: the policies alone refuse
CLASSES = ("batch-low", "batch-high")


VALUES = {
    "spark": {"namespaces": ["demo", NAMESPACE], "priorityClasses": ["batch-low"]},
    "queues": [{"name": "default", "priorityClasses": ["other"]}],
}


@pytest.fixture(scope="module")
def driver(start_driver):
    return start_driver("free", NAMESPACE)


# Executors


@pytest.mark.parametrize("case", REFUSED)
def test_an_executor_outside_of_the_restricted_standard_is_refused(driver, case):
    spec, complaint = REFUSED[case]
    refusal = driver.api.creates(driver.executor(**spec))
    assert "boathouse-driver: " in refusal
    assert complaint in refusal


@pytest.mark.parametrize("case", ADMITTED)
def test_an_executor_within_the_restricted_standard_is_admitted(driver, case):
    assert driver.api.creates(driver.executor(**ADMITTED[case])) == "admitted"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"schedulerName": "default-scheduler"}, "for the scheduler boathouse only"),
        ({"schedulerName": None}, "for the scheduler boathouse only"),
        ({"nodeName": "node-0"}, "spec.nodeName"),
        ({"serviceAccountName": drivers.ACCOUNT, "serviceAccount": None}, "executors do not run as boathouse-spark"),
        ({"serviceAccountName": "builder", "serviceAccount": None}, "may not run as the service account builder"),
        ({"automountServiceAccountToken": None}, "without the token of their service account"),
        (projected(serviceAccountToken={"path": "t", "audience": "boathouse.dev"}), "tokens for the audiences"),
        ({"priorityClassName": "batch-high", "priority": None}, "may not have the PriorityClass batch-high"),
        ({"priorityClassName": "system-node-critical"}, "system-"),
    ],
    ids=lambda value: str(value)[:40],
)
@pytest.mark.usefixtures("classes")
def test_an_executor_gets_nothing_that_its_application_has_no_right_to(driver, spec, complaint):
    assert complaint in driver.api.creates(driver.executor(**spec))


@pytest.fixture(scope="module")
def classes(installed):
    made = [object_("PriorityClass", name, api="scheduling.k8s.io/v1", value=1) for name in CLASSES]
    installed.apply(*made)
    yield
    installed.delete(*made)


@pytest.mark.usefixtures("classes")
def test_an_executor_has_a_class_that_its_account_may_use_in_whatever_queue_its_application_is(driver):
    """The default queue does not accept the class: executors are in the queue of their application."""
    low = driver.executor(priorityClassName="batch-low")
    driver.api.until(lambda: driver.api.creates(low), "admitted")


def test_an_executor_runs_as_an_account_once_an_administrator_permits_it(installed, driver):
    subject = {"kind": "ServiceAccount", "name": "builder", "namespace": NAMESPACE}
    permitted = binding("boathouse-run-as-builder", NAMESPACE, "ClusterRole", "boathouse-run-as", subject)
    installed.apply(permitted)
    try:
        named = driver.executor(serviceAccountName="builder", serviceAccount=None)
        driver.api.until(lambda: driver.api.creates(named), "admitted")
    finally:
        installed.delete(permitted)


# Drivers


@pytest.mark.parametrize("namespace", ["demo", NAMESPACE])
def test_the_operator_creates_a_driver_with_its_token(operator, namespace):
    operator.until(lambda: operator.creates(driver_pod(namespace)), "admitted")


@pytest.mark.parametrize("is_driver", [True, False], ids=["driver", "executor"])
@pytest.mark.parametrize("namespace", ["demo", NAMESPACE])
def test_the_operator_creates_placeholders_where_nothing_but_restricted_pods_may_run(operator, namespace, is_driver):
    manifest = placeholder_pod(namespace, is_driver=is_driver)
    operator.until(lambda: operator.creates(manifest), "admitted")


def labelled(**labels: str | None) -> dict[str, Any]:
    """A driver's pod with some of its labels replaced."""
    manifest = driver_pod(NAMESPACE)
    named = {f"boathouse.dev/{name.replace('_', '-')}": value for name, value in labels.items()}
    merged = {**manifest["metadata"]["labels"], **named}
    manifest["metadata"]["labels"] = {key: value for key, value in merged.items() if value is not None}
    return manifest


def owned(**fields: Any) -> dict[str, Any]:
    """A driver's pod with some fields of its owner replaced."""
    manifest = driver_pod(NAMESPACE)
    manifest["metadata"]["ownerReferences"][0] |= fields
    return manifest


TOKEN = "operator creates pods without the token of their service account"
NO_DRIVER = {
    "a task": (lambda: task_pod(NAMESPACE, automountServiceAccountToken=True), TOKEN),
    "a task with the account": (
        lambda: task_pod(NAMESPACE, automountServiceAccountToken=True, serviceAccountName=drivers.ACCOUNT),
        TOKEN,
    ),
    "the account default": (lambda: driver_pod(NAMESPACE, serviceAccountName="default"), TOKEN),
    "an account that sounds alike": (
        lambda: driver_pod(NAMESPACE, serviceAccountName="boathouse-sparkle"),
        'serviceaccount "boathouse-sparkle" not found',
    ),
    "another role": (lambda: labelled(task_type="executor"), TOKEN),
    "no role": (lambda: labelled(task_type=None), TOKEN),
    "another kind": (lambda: labelled(kind="MRJob"), TOKEN),
    "a job's pod": (lambda: owned(kind="MRJob"), TOKEN),
    "a pod's pod": (lambda: owned(apiVersion="v1", kind="SparkApp"), "pods of its own resources only"),
    "no controller": (lambda: owned(controller=False), "pods of its own resources only"),
}


@pytest.mark.parametrize("case", NO_DRIVER)
def test_nothing_but_a_driver_gets_a_token(operator, case):
    build, complaint = NO_DRIVER[case]
    assert complaint in operator.creates(build())


@pytest.mark.parametrize("case", [case for case in REFUSED if not case.startswith("token")])
def test_a_driver_is_within_the_restricted_standard(operator, case):
    spec, complaint = REFUSED[case]
    assert complaint in operator.creates(driver_pod(NAMESPACE, **spec))


def test_a_driver_has_no_token_of_another_api_server(operator):
    other = projected(serviceAccountToken={"path": "t", "audience": "https://other.example"})
    assert "tokens for the audiences" in operator.creates(driver_pod(NAMESPACE, **other))


def test_a_driver_whose_account_is_not_bound_is_refused_with_the_command(installed, operator):
    account = object_("ServiceAccount", "boathouse-spark-etl", NAMESPACE)
    installed.apply(account)
    manifest = driver_pod(NAMESPACE, serviceAccountName="boathouse-spark-etl")
    try:
        operator.until(lambda: operator.creates(manifest), "as the service account boathouse-spark-etl")
        command = operator.creates(manifest).partition("permit it: kubectl ")[2].partition(" (kubectl boathouse")[0]
        assert installed.kubectl(*command.split()).returncode == 0
        operator.until(lambda: operator.creates(manifest), "admitted")
    finally:
        installed.delete(account)
        installed.kubectl("delete", "rolebinding", "boathouse-spark-driver-boathouse-spark-etl", "-n", NAMESPACE)


def test_a_namespace_without_the_account_says_so(operator):
    refusal = operator.creates(driver_pod("closed"))
    assert 'serviceaccount "boathouse-spark" not found' in refusal


# What else the operator creates and deletes for an application


@pytest.fixture(scope="module")
def application():
    return submission(NAMESPACE, name="pi", uid="1-2")


def test_the_operator_creates_the_config_map_and_the_service_of_an_application(operator, application):
    assert operator.creates(application.config_map) == "admitted"
    assert operator.creates(application.service) == "admitted"


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"type": "NodePort"}, "of the type ClusterIP"),
        ({"type": "LoadBalancer"}, "of the type ClusterIP"),
        ({"type": "ExternalName", "externalName": "example.org"}, "of the type ClusterIP"),
        ({"externalIPs": ["192.0.2.1"]}, "without externalIPs"),
        ({"selector": {"app": "web"}}, "for the pods of that resource"),
        ({"selector": {"boathouse.dev/job-uid": "3-4"}}, "for the pods of that resource"),
        ({"selector": None}, "for the pods of that resource"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_service_leads_to_the_pods_of_its_owner_only(operator, application, spec, complaint):
    assert complaint in operator.creates(application.service | {"spec": {**application.service["spec"], **spec}})


def test_a_service_belongs_to_a_resource_of_boathouse_and_to_an_open_namespace(operator, application):
    metadata = application.service["metadata"]
    free = application.service | {"metadata": {**metadata, "ownerReferences": []}}
    closed = application.service | {"metadata": {**metadata, "namespace": "closed"}}
    assert "that a resource of its own owns" in operator.creates(free)
    assert "writes no Services in kube-system" in operator.creates(closed)


def test_the_operator_deletes_executors_of_drivers(operator, driver):
    manifest = driver.executor(number=3)
    assert driver.api.kubectl("create", "-f", "-", body=[manifest]).returncode == 0
    assert operator.deletes(f"pod/{manifest['metadata']['name']}", NAMESPACE) == "admitted"


def test_of_an_application_the_operator_changes_its_finalizer_only(installed, operator):
    manifest = sparkapp(NAMESPACE, name="finalized")
    installed.apply(manifest)
    held = {"metadata": {"finalizers": ["boathouse.dev/clean-up"]}}
    try:
        assert operator.patches("sparkapp/finalized", held, NAMESPACE) == "admitted"
        for patch in ({"spec": {"suspend": True}}, {"metadata": {"labels": {"a": "b"}}}):
            refusal = operator.patches("sparkapp/finalized", patch, NAMESPACE)
            assert "only the finalizer boathouse.dev/clean-up" in refusal
    finally:
        installed.delete(manifest)


def test_an_old_epoch_creates_no_driver(operator):
    manifest = driver_pod(NAMESPACE)
    manifest["metadata"]["annotations"] |= fenced(6)["annotations"]
    assert "boathouse-fence" in operator.creates(manifest)


def test_nobody_else_creates_drivers(alice):
    manifest = driver_pod(NAMESPACE)
    del manifest["spec"]["schedulerName"]
    assert "boathouse-guard" in alice.creates(manifest)
    manifest["metadata"] |= {"labels": {}, "annotations": {}, "ownerReferences": [OWNER | {"kind": "SparkApp"}]}
    assert "made by Boathouse only" in alice.creates(manifest)
