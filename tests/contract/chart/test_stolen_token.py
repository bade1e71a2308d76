"""What the operator's token does not permit: pods outside of Pod Security `restricted`, and closed namespaces."""

from typing import Any

import pytest

from tests.contract.chart.builders import (
    EPOCH,
    OPERATOR,
    OWNER,
    SAFE,
    binding,
    fenced,
    grant,
    mrjob,
    object_,
    pod,
    task_pod,
)

pytestmark = pytest.mark.apiserver

NAMESPACE = "unguarded"  # it enforces no Pod Security Standard: the policy alone refuses
HTTP = {"httpGet": {"port": 80, "host": "10.0.0.1"}}
TCP = {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}


def container(**security: Any) -> dict[str, Any]:
    """A container within `restricted`, with fields of its securityContext replaced."""
    return {"name": "c", "image": "i", "securityContext": SAFE | security}


def whole(**security: Any) -> dict[str, Any]:
    """The securityContext of a pod within `restricted`, with fields replaced."""
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} | security


def of_containers(**security: Any) -> dict[str, Any]:
    return {"volumes": [], "containers": [container(**security)]}


def of_init_containers(**security: Any) -> dict[str, Any]:
    return {"initContainers": [container(**security) | {"name": "init"}]}


def of_pod(**security: Any) -> dict[str, Any]:
    return {"securityContext": whole(**security)}


def with_volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}], "containers": [container()]}


def with_probe(field: str, probe: dict[str, Any]) -> dict[str, Any]:
    return {"volumes": [], "containers": [container() | {field: probe}]}


def projected(**source: Any) -> dict[str, Any]:
    return with_volume(projected={"sources": [source]})


REFUSED = {
    "hostNetwork": ({"hostNetwork": True}, "hostNetwork, hostPID or hostIPC"),
    "hostPID": ({"hostPID": True}, "hostNetwork, hostPID or hostIPC"),
    "hostIPC": ({"hostIPC": True}, "hostNetwork, hostPID or hostIPC"),
    "hostProcess": ({"hostNetwork": True} | of_pod(windowsOptions={"hostProcess": True}), "windowsOptions.hostProcess"),
    "hostProcess of a container": (
        {"hostNetwork": True} | of_containers(windowsOptions={"hostProcess": True}),
        "windowsOptions.hostProcess",
    ),
    "privileged": (of_containers(privileged=True, allowPrivilegeEscalation=True), "privileged containers"),
    "privileged init container": (
        of_init_containers(privileged=True, allowPrivilegeEscalation=True),
        "privileged containers",
    ),
    "capabilities kept": (of_containers(capabilities={}), "drop the capabilities ALL"),
    "capabilities added": (of_containers(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}), "NET_BIND_SERVICE"),
    "hostPath": (with_volume(hostPath={"path": "/"}), "volumes of the types"),
    "nfs": (with_volume(nfs={"server": "s", "path": "/"}), "volumes of the types"),
    "hostPort": (with_probe("ports", [{"containerPort": 80, "hostPort": 80}]), "hostPort"),
    "liveness probe of a host": (with_probe("livenessProbe", HTTP), "a host in probes or lifecycle handlers"),
    "readiness probe of a host": (with_probe("readinessProbe", TCP), "a host in probes or lifecycle handlers"),
    "startup probe of a host": (with_probe("startupProbe", HTTP), "a host in probes or lifecycle handlers"),
    "postStart of a host": (with_probe("lifecycle", {"postStart": HTTP}), "a host in probes or lifecycle handlers"),
    "preStop of a host": (with_probe("lifecycle", {"preStop": HTTP}), "a host in probes or lifecycle handlers"),
    "AppArmor": (of_pod(appArmorProfile={"type": "Unconfined"}), "AppArmor profiles"),
    "AppArmor of a container": (of_containers(appArmorProfile={"type": "Unconfined"}), "AppArmor profiles"),
    "SELinux type": (of_pod(seLinuxOptions={"type": "spc_t"}), "seLinuxOptions"),
    "SELinux user": (of_pod(seLinuxOptions={"user": "u"}), "seLinuxOptions"),
    "SELinux role": (of_containers(seLinuxOptions={"role": "r"}), "seLinuxOptions"),
    "procMount": ({"hostUsers": False} | of_containers(procMount="Unmasked"), "procMount Default"),
    "sysctl": (of_pod(sysctls=[{"name": "kernel.msgmax", "value": "1"}]), "safe sysctls"),
    "privilege escalation": (of_containers(allowPrivilegeEscalation=True), "allowPrivilegeEscalation false"),
    "privilege escalation by default": (
        {
            "volumes": [],
            "containers": [{"name": "c", "image": "i", "securityContext": {"capabilities": {"drop": ["ALL"]}}}],
        },
        "allowPrivilegeEscalation false",
    ),
    "root by default": (
        {"securityContext": whole(runAsNonRoot=None), "volumes": [], "containers": [container()]},
        "runAsNonRoot",
    ),
    "root": (of_pod(runAsNonRoot=False), "runAsNonRoot"),
    "root in a container": (of_containers(runAsNonRoot=False), "runAsNonRoot"),
    "user 0": (of_pod(runAsUser=0), "runAsUser 0"),
    "user 0 in an init container": (of_init_containers(runAsUser=0), "runAsUser 0"),
    "seccomp": (of_pod(seccompProfile={"type": "Unconfined"}), "seccomp profiles"),
    "seccomp of a container": (of_containers(seccompProfile={"type": "Unconfined"}), "seccomp profiles"),
    "no seccomp": (
        {"securityContext": {"runAsNonRoot": True}, "volumes": [], "containers": [container()]},
        "seccomp profiles",
    ),
    "token in the usual place": ({"automountServiceAccountToken": True}, "automountServiceAccountToken false"),
    "token of the API server": (
        projected(serviceAccountToken={"path": "t"}),
        "tokens for the audiences boathouse.dev,",
    ),
    "token of another API server": (
        projected(serviceAccountToken={"path": "t", "audience": "https://kubernetes.default.svc"}),
        "tokens for the audiences boathouse.dev,",
    ),
    "certificate of the API server": (
        projected(
            podCertificate={
                "signerName": "kubernetes.io/kube-apiserver-client-pod",
                "keyType": "ED25519",
                "credentialBundlePath": "c",
            }
        ),
        "without certificates",
    ),
}
ADMITTED = {
    "as it is": {},
    "a port below 1024": of_containers(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    "profiles of the container alone": {
        "securityContext": {},
        **of_containers(runAsNonRoot=True, seccompProfile={"type": "Localhost", "localhostProfile": "p"}),
    },
    "a safe sysctl": of_pod(sysctls=[{"name": "net.ipv4.tcp_syncookies", "value": "1"}]),
    "SELinux of containers": of_pod(seLinuxOptions={"type": "container_t", "level": "s0"}),
    "a probe": with_probe("readinessProbe", {"httpGet": {"port": 80}}),
    "an init container": of_init_containers(),
    "a workload identity": projected(serviceAccountToken={"path": "t", "audience": "sts.amazonaws.com"}),
}


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
