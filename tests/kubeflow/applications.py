"""SparkApplications made up by chance from the fields of Kubeflow's resource; few names, so that fields meet."""

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

SEED: Final = 32
COUNT: Final = 300
NAME: Final = "app"
IMAGE: Final = "registry.example.com/spark:4.3.0"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_ZONE: Final = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
_NODES: Final = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [_ZONE]}}}
_APART: Final = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}]}}
_NEAR: Final = {"nodeAffinity": {_PREFERRED: [{"weight": 1, "preference": _ZONE}]}}
_VOLUMES: Final = (
    {"name": "claim", "persistentVolumeClaim": {"claimName": "shared"}},
    {"name": "read", "persistentVolumeClaim": {"claimName": "archive", "readOnly": True}},
    {"name": "maps", "configMap": {"name": "settings"}},
    {"name": "keys", "secret": {"secretName": "keys"}},
    {"name": "some", "configMap": {"name": "settings", "items": [{"key": "a", "path": "b"}]}},
    {"name": "scratch", "emptyDir": {"sizeLimit": "2Gi"}},
    {"name": "endless", "emptyDir": {}},
    {"name": "node", "hostPath": {"path": "/srv"}},
    {"name": "spark-local-dir-1", "emptyDir": {"sizeLimit": "5Gi"}},
)
_CONF: Final[Mapping[str, tuple[str, ...]]] = {
    "spark.sql.shuffle.partitions": ("10",),
    "spark.eventLog.enabled": ("true",),
    "spark.eventLog.dir": ("s3a://logs/spark",),
    "spark.app.name": ("other",),
    "spark.dynamicAllocation.enabled": ("true", "false"),
    "spark.dynamicAllocation.minExecutors": ("1", "2"),
    "spark.dynamicAllocation.maxExecutors": ("5",),
    "spark.executor.instances": ("2", "4"),
    "spark.hadoop.fs.s3a.endpoint": ("http://s3:9000",),
    "spark.jars": ("s3a://b/x.jar",),
    "spark.jars.packages": ("g:b:2.0",),
    "spark.kubernetes.container.image": ("registry.example.com/spark:old",),
    "spark.kubernetes.container.image.pullPolicy": ("Never",),
    "spark.kubernetes.container.image.pullSecrets": ("never",),
    "spark.kubernetes.memoryOverheadFactor": ("0.3",),
    "spark.kubernetes.node.selector.disk": ("hdd",),
    "spark.kubernetes.driver.pod.name": ("mine",),
    **{
        key.replace("ROLE", role): values
        for role in ("driver", "executor")
        for key, values in {
            "spark.ROLE.cores": ("3",),
            "spark.ROLE.memory": ("3g", "2048m"),
            "spark.ROLE.memoryOverhead": ("700m",),
            "spark.ROLE.extraJavaOptions": ("-Dx=1",),
            "spark.kubernetes.ROLE.request.cores": ("1500m",),
            "spark.kubernetes.ROLE.label.team": ("conf",),
            "spark.kubernetes.ROLE.label.only": ("conf",),
            "spark.kubernetes.ROLE.annotation.note": ("conf",),
            "spark.kubernetes.ROLE.node.selector.disk": ("tape",),
            "spark.kubernetes.ROLE.secretKeyRef.A": ("conf:key",),
            "spark.kubernetes.ROLE.secrets.keys": ("/mnt/conf/keys",),
            "spark.kubernetes.ROLE.container.image": ("registry.example.com/spark:role",),
        }.items()
    },
    "spark.kubernetes.driverEnv.A": ("conf",),
    "spark.executorEnv.A": ("conf",),
    "spark.executorEnv.D": ("conf",),
}


def manifests() -> list[dict[str, Any]]:
    """Return the manifests: the same at each call."""
    chance = random.Random(SEED)
    return [_manifest(chance) for _ in range(COUNT)]


def plain(application: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same program without any option."""
    needed = {key: application["spec"][key] for key in _NEEDED if key in application["spec"]}
    return {**application, "metadata": {"name": NAME, "namespace": "team"}, "spec": needed}


_NEEDED: Final = ("type", "mainApplicationFile", "mainClass", "sparkVersion", "mode", "image")


def _manifest(chance: random.Random) -> dict[str, Any]:
    density = chance.choice([0.03, 0.1, 0.2])
    is_python = chance.random() < 0.6
    main = {"mainApplicationFile": "local:///opt/app/main.py"} if is_python else {"mainClass": "org.example.Main"}
    spec: dict[str, Any] = {
        "type": "Python" if is_python else chance.choice(["Scala", "Java"]),
        "mainApplicationFile": "local:///opt/app/main.jar",
        "sparkVersion": "4.3.0",
        "mode": "cluster",
        **main,
        "image": IMAGE,
        "volumes": copy.deepcopy(list(_VOLUMES)),
        **_some(chance, density, _APPLICATION),
        **{role: _some(chance, density, fields) for role, fields in (("driver", _DRIVER), ("executor", _EXECUTOR))},
    }
    for field in sorted(_ROLE):  # what is of both roles in a SparkApp is mostly said for both
        for one, other in (("driver", "executor"), ("executor", "driver")):
            if field in spec[one] and field not in spec[other] and chance.random() < 0.4:
                spec[other][field] = copy.deepcopy(spec[one][field])
    metadata: dict[str, Any] = {"name": NAME, "namespace": "team"}
    if chance.random() < density:
        metadata["labels"] = {"team": "application", "owner": "x"}
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": metadata,
        "spec": spec,
    }


_Fields = Mapping[str, Callable[[random.Random], Any]]


def _some(chance: random.Random, density: float, fields: _Fields) -> dict[str, Any]:
    return {name: copy.deepcopy(make(chance)) for name, make in fields.items() if chance.random() < density}


def _any_of(*values: Any) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice(values)


def _part(values: Mapping[str, Callable[[random.Random], Any]]) -> Callable[[random.Random], dict[str, Any]]:
    return lambda chance: _some(chance, 0.5, values) or _some(chance, 1, values)


def _several(*values: Any) -> Callable[[random.Random], list[Any]]:
    return lambda chance: chance.sample(values, chance.randint(1, min(3, len(values))))


def _conf(chance: random.Random) -> dict[str, str]:
    return {key: chance.choice(_CONF[key]) for key in chance.sample(sorted(_CONF), chance.randint(1, 8))}


def _mount(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **more}


_SECURITY: Final[_Fields] = {
    "runAsUser": _any_of(1000, 185, 0),
    "runAsGroup": _any_of(1000, 0),
    "runAsNonRoot": _any_of(True, False),
}
_POD: Final[_Fields] = {
    "nodeSelector": _any_of({"disk": "ssd"}, {"zone": "a"}),
    "tolerations": _several({"key": "spark", "operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"}),
    "affinity": _any_of(_NODES, _NODES, _APART, {**_NODES, **_APART}, _NEAR),
    "priorityClassName": _any_of("high", "low"),
    "hostAliases": _any_of([{"ip": "10.0.0.1", "hostnames": ["db"]}]),
    "initContainers": _any_of([{"name": "fetch", "image": "busybox"}]),
    "hostNetwork": _any_of(True, False),
    "dnsConfig": _any_of({"nameservers": ["10.0.0.53"]}),
    "terminationGracePeriodSeconds": _any_of(0, 60),
    "shareProcessNamespace": _any_of(True, False),
    "schedulerName": _any_of("volcano"),
}
_CONTAINER: Final[_Fields] = {
    "env": _several(
        {"name": "A", "value": "env"},
        {"name": "B", "value": "env"},
        {"name": "A", "value": "again"},
        {"name": "C", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "k"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ),
    "envFrom": _any_of([{"configMapRef": {"name": "settings"}}], [{"secretRef": {"name": "keys"}, "prefix": "K_"}]),
    "securityContext": _part({**_SECURITY, "capabilities": _any_of({"drop": ["ALL"]}, {"add": ["NET_ADMIN"]})}),
    "volumeMounts": _several(
        _mount("claim", "/mnt/claim"),
        _mount("claim", "/data/claim", readOnly=True),
        _mount("read", "/mnt/read"),
        _mount("maps", "/mnt/maps"),
        _mount("keys", "/mnt/keys"),
        _mount("some", "/mnt/some"),
        _mount("scratch", "/mnt/scratch"),
        _mount("scratch", "/opt/scratch"),
        _mount("scratch", "/mnt/part/scratch", subPath="part"),
        _mount("endless", "/mnt/endless"),
        _mount("node", "/mnt/node"),
        _mount("spark-local-dir-1", "/mnt/spark-local-dir-1"),
        _mount("absent", "/mnt/absent"),
    ),
    "lifecycle": _any_of({"preStop": {"exec": {"command": ["true"]}}}),
}
_POD_SECURITY: Final = _part({**_SECURITY, "fsGroup": _any_of(1000, 2000), "supplementalGroups": _any_of([3000])})


def _template(chance: random.Random) -> dict[str, Any]:
    container = {"name": chance.choice(["spark-kubernetes-driver", "main"]), **_some(chance, 0.4, _CONTAINER)}
    metadata: _Fields = {
        "labels": _any_of({"team": "template"}, {"plain": "template"}),
        "annotations": _any_of({"note": "template"}),
    }
    more = {"imagePullSecrets": _any_of([{"name": "template"}]), "securityContext": _POD_SECURITY}
    return {
        "metadata": _some(chance, 0.5, metadata),
        "spec": {**_some(chance, 0.4, {**_POD, **more}), "containers": [container], "volumes": list(_VOLUMES)},
    }


_ROLE: Final[_Fields] = {
    **_POD,
    **_CONTAINER,
    "podSecurityContext": _POD_SECURITY,
    "cores": _any_of(1, 2),
    "coreRequest": _any_of("500m", "1"),
    "coreLimit": _any_of("2", "2500m"),
    "memory": _any_of("2g", "1500m", "4G"),
    "memoryOverhead": _any_of("600m", "1g"),
    "memoryLimit": _any_of("8g"),
    "javaOptions": _any_of("-XX:+UseG1GC"),
    "serviceAccount": _any_of("spark", "default"),
    "labels": _any_of({"team": "role"}, {"version": "1"}, {"team": "role", "only": "role"}),
    "annotations": _any_of({"note": "role"}),
    "envVars": _any_of({"A": "vars"}, {"D": "vars", "B": "vars"}),
    "envSecretKeyRefs": _any_of({"A": {"name": "keys", "key": "a"}}, {"E": {"name": "keys", "key": "e"}}),
    "gpu": _any_of({"name": "nvidia.com/gpu", "quantity": 2}, {"name": "nvidia.com/gpu", "quantity": 0}),
    "configMaps": _several(
        {"name": "log.conf", "path": "/mnt/log.conf"},
        {"name": "settings", "path": "/mnt/settings"},
        {"name": "maps", "path": "/mnt/maps"},
    ),
    "secrets": _several(
        {"name": "keys", "path": "/mnt/keys", "secretType": "Generic"},
        {"name": "cloud", "path": "/mnt/cloud/", "secretType": "GCPServiceAccount"},
        {"name": "token", "path": "/mnt/token", "secretType": "HadoopDelegationToken"},
    ),
    "sidecars": _any_of([{"name": "proxy", "image": "proxy:1"}]),
    "ports": _any_of([{"name": "debug", "containerPort": 5005, "protocol": "TCP"}]),
    "image": _any_of("registry.example.com/spark:role"),
    "template": _template,
}
_DRIVER: Final[_Fields] = {
    **_ROLE,
    "serviceLabels": _any_of({"a": "b"}),
    "serviceAnnotations": _any_of({"a": "b"}),
    "kubernetesMaster": _any_of("https://10.0.0.1"),
}
_EXECUTOR: Final[_Fields] = {
    **_ROLE,
    "instances": _any_of(1, 3),
    "deleteOnTermination": _any_of(True, False),
}
_DISABLED: Final = {"enabled": False, "minExecutors": 9, "maxExecutors": 1}
_BLOCK: Final[_Fields] = {
    "initialExecutors": _any_of(1, 1, 3),
    "minExecutors": _any_of(0, 2, 2),
    "maxExecutors": _any_of(5, 9),
    "shuffleTrackingEnabled": _any_of(True, False),
    "shuffleTrackingTimeout": _any_of(60000, 1500),
}
_APPLICATION: Final[_Fields] = {
    "arguments": _any_of(["10", "a b", "--x=1"]),
    "sparkConf": _conf,
    "hadoopConf": _any_of({"fs.defaultFS": "s3a://b", "fs.s3a.endpoint": "http://other:9000"}),
    "imagePullPolicy": _any_of("Always", "IfNotPresent"),
    "imagePullSecrets": _any_of(["registry"], ["registry", "other"]),
    "nodeSelector": _any_of({"disk": "ssd"}, {"pool": "batch"}),
    "memoryOverheadFactor": _any_of("0.2"),
    "deps": _part(
        {
            "jars": _any_of(["s3a://b/a.jar", "local:///opt/b.jar"]),
            "files": _any_of(["s3a://b/f.txt"]),
            "pyFiles": _any_of(["s3a://b/p.zip"]),
            "archives": _any_of(["s3a://b/a.zip#dir"]),
            "packages": _any_of(["g:a:1.0"]),
            "excludePackages": _any_of(["g:x"]),
            "repositories": _any_of(["https://repository.example.com/maven"]),
        }
    ),
    "dynamicAllocation": lambda chance: chance.choice(
        [_DISABLED, *[{"enabled": True, **_some(chance, 0.7, _BLOCK)}] * 4]
    ),
    "hadoopConfigMap": _any_of("hadoop"),
    "sparkConfigMap": _any_of("spark"),
    "proxyUser": _any_of("alice"),
    "pythonVersion": _any_of("3"),
    "batchScheduler": _any_of("volcano"),
    "batchSchedulerOptions": _part({"queue": _any_of("root.default"), "priorityClassName": _any_of("batch")}),
}
