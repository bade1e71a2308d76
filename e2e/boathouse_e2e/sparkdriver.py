"""A driver pod built by hand, as Spark's own submission would leave it: it shows what the Spark image can do by itself.

Driver and executors satisfy the `restricted` pod security standard, with a read-only root file system.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from boathouse_e2e import images, storage

if TYPE_CHECKING:
    from collections.abc import Mapping

ACCOUNT = "spark-by-hand"
"""No account of Boathouse's drivers: the chart's policies would refuse executors that are not for its scheduler."""
_CONF = "/opt/spark/conf"
_TEMPLATE = "executor.json"
_WRITABLE = {"tmp": "/tmp", "home": "/opt/spark/work-dir"}  # noqa: S108 # in the container
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
MAGIC_COMMITTER = {
    "spark.hadoop.fs.s3a.committer.name": "magic",
    "spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.cloud.PathOutputCommitProtocol",
    "spark.sql.parquet.output.committer.class": "org.apache.spark.internal.io.cloud.BindingParquetOutputCommitter",
}
S3A = {
    "spark.hadoop.fs.s3a.endpoint": storage.ENDPOINT,
    "spark.hadoop.fs.s3a.endpoint.region": storage.REGION,
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """An application to run.

    Attributes:
        name: the driver pod's name.
        namespace: where it runs; its Secret has the storage's keys.
        arguments: those of spark-submit: options, the application and its arguments.
        files: the files of a folder /opt/app in the driver, by name.
        conf: properties beside the defaults.
        uid: the user that driver and executors run as.
    """

    name: str
    namespace: str
    arguments: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    uid: int = 10001

    def manifests(self) -> list[dict[str, Any]]:
        """Return its account with its rights, its configuration and its driver pod."""
        return [*account(self.namespace), self._config_map(), self._driver()]

    def _config_map(self) -> dict[str, Any]:
        lines = [f"{key}={value}" for key, value in {**self._properties(), **self.conf}.items()]
        template = {"apiVersion": "v1", "kind": "Pod", "spec": self._pod({"name": "executor"})}
        data = {"spark.properties": "\n".join([*lines, ""]), _TEMPLATE: json.dumps(template), **self.files}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": self._metadata(), "data": data}

    def _metadata(self) -> dict[str, Any]:
        return {"name": self.name, "namespace": self.namespace}

    def _properties(self) -> dict[str, str]:
        keys = {f"spark.kubernetes.executor.secretKeyRef.{key}": f"{storage.SECRET}:{key}" for key in _KEYS}
        return {
            "spark.app.name": self.name,
            "spark.master": "k8s://https://kubernetes.default.svc",
            "spark.submit.deployMode": "client",
            "spark.kubernetes.submitInDriver": "true",
            "spark.kubernetes.namespace": self.namespace,
            "spark.kubernetes.driver.pod.name": self.name,
            "spark.kubernetes.executor.podNamePrefix": self.name,
            "spark.kubernetes.executor.podTemplateFile": f"{_CONF}/{_TEMPLATE}",
            "spark.kubernetes.executor.useDriverPodIP": "true",
            # Without these the driver deletes services and volume claims when it ends, and has no right to.
            "spark.kubernetes.driver.service.deleteOnTermination": "false",
            "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
            "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
            "spark.kubernetes.executor.request.cores": "300m",
            "spark.kubernetes.container.image": images.SPARK,
            "spark.executor.instances": "2",
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.driver.port": "7078",
            "spark.driver.blockManager.port": "7079",
            "spark.decommission.enabled": "true",
            "spark.authenticate": "true",
            "spark.ui.killEnabled": "false",
            **keys,
            **S3A,
            **MAGIC_COMMITTER,
        }

    def _pod(self, container: dict[str, Any]) -> dict[str, Any]:
        mounts = [{"name": name, "mountPath": path} for name, path in _WRITABLE.items()]
        own = {**container, "securityContext": _RESTRICTED}
        own["volumeMounts"] = [*mounts, *container.get("volumeMounts", [])]
        return {
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": self.uid,
                "runAsGroup": self.uid,
                "fsGroup": self.uid,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [own],
            "volumes": [{"name": name, "emptyDir": {}} for name in _WRITABLE],
        }

    def _driver(self) -> dict[str, Any]:
        pod = self._pod(self._container())
        volumes = [{"name": "conf", "configMap": {"name": self.name}}, {"name": "local", "emptyDir": {}}]
        spec = {**pod, "volumes": [*pod["volumes"], *volumes], "serviceAccountName": ACCOUNT, "restartPolicy": "Never"}
        labels = {"app": self.name, "spark-role": "driver"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {**self._metadata(), "labels": labels}, "spec": spec}

    def _container(self) -> dict[str, Any]:
        environment: list[dict[str, Any]] = [
            {"name": "SPARK_CONF_DIR", "value": _CONF},
            {"name": "SPARK_LOCAL_DIRS", "value": "/var/spark"},
        ]
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        environment += [{"name": "SPARK_DRIVER_BIND_ADDRESS", "valueFrom": address}]
        environment += [
            {"name": key, "valueFrom": {"secretKeyRef": {"name": storage.SECRET, "key": key}}} for key in _KEYS
        ]
        return {
            "name": "driver",
            "image": images.SPARK,
            "imagePullPolicy": "IfNotPresent",
            "args": ["driver", "--properties-file", f"{_CONF}/spark.properties", *self.arguments],
            "env": environment,
            "resources": {"requests": {"cpu": "300m", "memory": "900Mi"}, "limits": {"memory": "1Gi"}},
            "volumeMounts": [
                {"name": "conf", "mountPath": _CONF},
                {"name": "conf", "mountPath": "/opt/app"},
                {"name": "local", "mountPath": "/var/spark"},
            ],
        }


def account(namespace: str) -> list[dict[str, Any]]:
    """Return the drivers' account, which may make and delete executor pods and their configuration."""
    metadata = {"name": ACCOUNT, "namespace": namespace}
    pods = ["get", "list", "watch", "create", "patch", "delete", "deletecollection"]
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": pods},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "verbs": ["create", "get", "list", "delete", "deletecollection"],
        },
    ]
    group = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
    ]
