"""What the operator's token does not permit: pods outside of Pod Security `restricted`, and closed namespaces."""

from typing import Any

import pytest

from tests.contract.chart.builders import (
    EPOCH,
    OPERATOR,
    OWNER,
    binding,
    fenced,
    grant,
    mrjob,
    object_,
    pod,
    task_pod,
)
from tests.contract.chart.restricted import ADMITTED, REFUSED, container

pytestmark = pytest.mark.apiserver

NAMESPACE = "unguarded"  # it enforces no Pod Security Standard: the policy alone refuses


@pytest.mark.parametrize("case", REFUSED)
def test_a_pod_outside_of_the_restricted_standard_is_refused(operator, case):
    spec, complaint = REFUSED[case]
    assert complaint in operator.creates(task_pod(NAMESPACE, **spec))


@pytest.mark.parametrize("case", ADMITTED)
def test_a_pod_within_the_restricted_standard_is_admitted(operator, case):
    assert operator.creates(task_pod(NAMESPACE, **ADMITTED[case])) == "admitted"


def test_the_old_annotation_of_apparmor_is_judged_too(operator):
    manifest = task_pod(NAMESPACE)
    manifest["metadata"]["annotations"]["container.apparmor.security.beta.kubernetes.io/task"] = "unconfined"
    assert "AppArmor profiles" in operator.creates(manifest)


# Namespaces in which nothing runs


@pytest.mark.parametrize("namespace", ["kube-system", "boathouse-system", "closed"])
def test_nothing_is_created_where_boathouse_runs_nothing(operator, namespace):
    assert "runs nothing in kube-system" in operator.creates(task_pod(namespace))
    owned = object_("ConfigMap", "wc-plan", namespace, metadata={"ownerReferences": [OWNER]})
    assert "writes no ConfigMaps in kube-system" in operator.creates(owned)


def test_nothing_is_bound_where_boathouse_runs_nothing(operator):
    assert "runs nothing in kube-system" in operator.binds("neighbour", "boathouse-system", **fenced())


def test_the_certificate_authority_is_published_in_its_own_namespace_only_where_others_are_closed(operator):
    name = "boathouse-progress-ca"
    assert operator.creates(object_("ConfigMap", name, "boathouse-system")) == "admitted"
    assert "writes no ConfigMaps in kube-system" in operator.creates(object_("ConfigMap", name, "closed"))


def test_a_namespace_with_another_value_of_the_label_is_open(installed, operator):
    installed.kubectl("label", "namespace", NAMESPACE, "boathouse.dev/enabled=true", "--overwrite")
    try:
        assert operator.creates(task_pod(NAMESPACE)) == "admitted"
    finally:
        installed.kubectl("label", "namespace", NAMESPACE, "boathouse.dev/enabled-")


@pytest.mark.parametrize("namespace", ["kube-system", "closed"])
def test_jobs_and_pods_are_refused_where_boathouse_runs_nothing(alice, namespace):
    assert "runs nothing in kube-system" in alice.creates(mrjob(namespace))
    assert "places no pods in kube-system" in alice.creates(pod(namespace=namespace, schedulerName="boathouse"))
    assert alice.creates(pod(namespace=namespace)) == "admitted"


# Service accounts


@pytest.fixture(scope="module")
def administrators(installed):
    """Carol administers the namespace by the built-in role; dave edits it; the account `boss` is its administrator."""
    manifests = [
        object_("ServiceAccount", "boss", NAMESPACE),
        binding("carol", NAMESPACE, "ClusterRole", "admin", {"kind": "User", "name": "carol"}),
        binding("dave", NAMESPACE, "ClusterRole", "edit", {"kind": "User", "name": "dave"}),
        binding("boss", NAMESPACE, "ClusterRole", "admin", {"kind": "ServiceAccount", "name": "boss"}),
    ]
    installed.apply(*manifests)
    yield {name: installed.acting_as(name) for name in ("carol", "dave")}
    installed.delete(*manifests)


def run_as(account: str) -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    return binding(f"boathouse-run-as-{account}", NAMESPACE, "ClusterRole", "boathouse-run-as", subject)


def test_a_pod_runs_as_a_service_account_once_an_administrator_of_the_namespace_permits_it(
    installed, operator, administrators
):
    named = task_pod(NAMESPACE, serviceAccountName="builder")
    refusal = operator.creates(named)
    assert "Boathouse may not run pods as the service account builder" in refusal
    command = refusal.partition("permit it: kubectl ")[2].split()
    administrators["carol"].until(lambda: administrators["carol"].creates(run_as("builder")), "admitted")
    assert administrators["carol"].kubectl(*command).returncode == 0
    try:
        operator.until(lambda: operator.creates(named), "admitted")
        assert "as the service account boss" in operator.creates(task_pod(NAMESPACE, serviceAccountName="boss"))
    finally:
        installed.delete(run_as("builder"))


def test_an_editor_of_the_namespace_does_not_permit_it(administrators):
    administrators["carol"].until(lambda: administrators["carol"].creates(run_as("builder")), "admitted")
    assert "cannot create resource" in administrators["dave"].creates(run_as("builder"))


def test_a_grant_in_one_namespace_says_nothing_about_another(installed, operator):
    installed.apply(object_("ServiceAccount", "builder", "demo"), run_as("builder"))
    try:
        operator.until(lambda: operator.creates(task_pod(NAMESPACE, serviceAccountName="builder")), "admitted")
        assert "may not run pods" in operator.creates(task_pod("demo", serviceAccountName="builder"))
    finally:
        installed.delete(run_as("builder"), object_("ServiceAccount", "builder", "demo"))


# What it may do nowhere


def test_no_container_is_added_to_a_pod_that_exists(installed, operator):
    """The roles do not allow it either; the policy holds where somebody grants them more."""
    more = {"apiGroups": [""], "resources": ["pods/ephemeralcontainers"], "verbs": ["get", "patch", "update"]}
    grant_more = [
        object_("ClusterRole", "chart-test-more", api="rbac.authorization.k8s.io/v1", rules=[more]),
        grant("chart-test-more", "chart-test-more", OPERATOR),
    ]
    installed.apply(*grant_more)
    try:
        added = {"spec": {"ephemeralContainers": [container() | {"name": "e"}]}}
        operator.until(
            lambda: operator.patches("pod/foreign", added, subresource="ephemeralcontainers"), "adds no containers"
        )
    finally:
        installed.delete(*grant_more)


def test_an_old_epoch_is_refused_whatever_else_is_right(operator):
    assert "boathouse-fence" in operator.creates(task_pod(NAMESPACE, epoch=EPOCH - 1))
