"""What kind applies to a new cluster from the node image: the pod network and the StorageClass."""

from __future__ import annotations

import json
from typing import Any, Final

CNI_IMAGE: Final = "localhost/kind-cni:dev"
POD_NETWORK: Final = "10.244.0.0/16"
STORAGE_CLASS: Final = "standard"

_NAME: Final = "kind-cni"
_HERE: Final = {"name": _NAME, "namespace": "kube-system"}
_CONFIG_FOLDER: Final = "/etc/cni/net.d"


def pod_network() -> str:
    """Return the manifest of the pod network: one daemon on each node, which may read nodes."""
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    role = {
        **rbac,
        "kind": "ClusterRole",
        "metadata": {"name": _NAME},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}],
    }
    binding = {
        **rbac,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": _NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME},
        "subjects": [{"kind": "ServiceAccount", **_HERE}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _HERE}
    return _documents(account, role, binding, _daemon_set())


def _daemon_set() -> dict[str, Any]:
    labels = {"k8s-app": _NAME}
    own_node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    container = {
        "name": _NAME,
        "image": CNI_IMAGE,
        "imagePullPolicy": "Never",
        "env": [{"name": "NODE_NAME", "valueFrom": own_node}, {"name": "POD_NETWORK", "value": POD_NETWORK}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config", "mountPath": _CONFIG_FOLDER}],
    }
    pod = {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": _NAME,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "config", "hostPath": {"path": _CONFIG_FOLDER, "type": "DirectoryOrCreate"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {**_HERE, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def storage() -> str:
    """Return the manifest of the StorageClass that kind expects; no volume is made for its claims."""
    storage_class = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    return _documents(storage_class)


def _documents(*objects: dict[str, Any]) -> str:
    """Return objects as YAML documents, of which JSON is a part."""
    return "".join(f"---\n{json.dumps(one, indent=2)}\n" for one in objects)
