"""Pods inside and outside of the Pod Security Standard `restricted`, and with tokens, as fields of a pod's spec."""

from typing import Any

from tests.contract.chart.builders import SAFE

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
        "tokens for the audiences",
    ),
    "token of another API server": (
        projected(serviceAccountToken={"path": "t", "audience": "https://kubernetes.default.svc"}),
        "tokens for the audiences",
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
