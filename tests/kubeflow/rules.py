"""Rules of what Kubeflow's Spark operator, and the spark-submit that it runs, make of a SparkApplication.

They were read from its source, not recorded from a run, because its Go module could not be downloaded. The source is
kubeflow/spark-operator, version 2: the options of spark-submit in `internal/controller/sparkapplication/submission.go`
(05d60616), the webhook of pods in `internal/webhook/sparkpod_defaulter.go` (5a97ca4d), the defaults in
`internal/webhook/sparkapplication_defaulter.go` (0dc641bd), and the chart's selector of the webhook (0c707ad0), which
takes pods with a template too. Two rules are as that operator's documentation has them, not as these versions are:
`executor.env` counts without `driver.env` (its issue 2584), and without `sparkConf` there is one executor too. Spark's
part is that of the recordings in `tests/spark/recorded`.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

ROLES: Final = ("driver", "executor")
_K8S: Final = "spark.kubernetes."
_VARIABLES: Final[Mapping[str, str]] = {"driver": "spark.kubernetes.driverEnv.", "executor": "spark.executorEnv."}
_LOCAL: Final = "spark-local-dir-"
_DEPENDENCIES: Final[Mapping[str, str]] = {
    "jars": "spark.jars",
    "packages": "spark.jars.packages",
    "excludePackages": "spark.jars.excludes",
    "repositories": "spark.jars.repositories",
    "pyFiles": "spark.submit.pyFiles",
    "files": "spark.files",
    "archives": "spark.archives",
}
_OF_ROLE: Final[Mapping[str, str]] = {
    "cores": "spark.ROLE.cores",
    "coreRequest": "spark.kubernetes.ROLE.request.cores",
    "coreLimit": "spark.kubernetes.ROLE.limit.cores",
    "memory": "spark.ROLE.memory",
    "memoryOverhead": "spark.ROLE.memoryOverhead",
    "serviceAccount": "spark.kubernetes.authenticate.ROLE.serviceAccountName",
    "javaOptions": "spark.ROLE.extraJavaOptions",
    "kubernetesMaster": "spark.kubernetes.ROLE.master",
    "instances": "spark.ROLE.instances",
    "deleteOnTermination": "spark.kubernetes.ROLE.deleteOnTermination",
}
_MAPS_OF_ROLE: Final[Mapping[str, str]] = {
    "labels": "spark.kubernetes.ROLE.label.",
    "annotations": "spark.kubernetes.ROLE.annotation.",
    "serviceLabels": "spark.kubernetes.ROLE.service.label.",
    "serviceAnnotations": "spark.kubernetes.ROLE.service.annotation.",
}
_FILES_OF_SECRETS: Final[Mapping[str, tuple[str, str]]] = {
    "GCPServiceAccount": ("GOOGLE_APPLICATION_CREDENTIALS", "key.json"),
    "HadoopDelegationToken": ("HADOOP_TOKEN_FILE_LOCATION", "hadoop.token"),
    "KerberosKeytab": ("KRB5_KEYTAB_FILE", "krb5.keytab"),
}
_FOLDERS: Final[Mapping[str, tuple[str, str]]] = {
    "hadoop": ("HADOOP_CONF_DIR", "/etc/hadoop/conf"),
    "spark": ("SPARK_CONF_DIR", "/etc/spark/conf"),
}
_SUBMITTER: Final = ("namespace", "driver.pod.name", "submission.waitAppCompletion")
_REPLACED: Final = ("affinity", "dnsConfig", "hostNetwork", "priorityClassName", "schedulerName")
_REPLACED_IF_NOT_FALSE: Final = ("terminationGracePeriodSeconds", "shareProcessNamespace")
_APPENDED: Final = ("tolerations", "hostAliases", "initContainers")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What runs.

    Attributes:
        pods: By role; without CPU and memory, which properties say.
        conf: Spark's properties that say nothing of pods.
        program: Class, file and arguments.
        proxy_user: For whom it runs.
    """

    pods: Mapping[str, Mapping[str, Any]]
    conf: Mapping[str, str]
    program: Sequence[str]
    proxy_user: str | None


def submission(application: Mapping[str, Any]) -> Submission:
    """Return what the operator runs for an application."""
    spec = application["spec"]
    conf = properties(application)
    pods = {role: _Pod(role, spec, conf).manifest for role in ROLES}
    name = spec.get("mainClass") if spec["type"] != "Python" else None
    program = [*([name] if name else []), spec["mainApplicationFile"], *spec.get("arguments", ())]
    conf = {key: value for key, value in conf.items() if key.removeprefix(_K8S) not in _SUBMITTER}
    return Submission(pods=pods, conf=conf, program=program, proxy_user=spec.get("proxyUser"))


def properties(application: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties that spark-submit is run with: of two with a key the last one counts."""
    spec, metadata = application["spec"], application["metadata"]
    given = spec.get("sparkConf", {})
    conf: dict[str, str] = {}
    for field, key in (("image", "container.image"), ("imagePullPolicy", "container.image.pullPolicy")):
        conf |= {f"{_K8S}{key}": spec[field]} if spec.get(field) else {}
    if spec.get("imagePullSecrets"):
        conf[f"{_K8S}container.image.pullSecrets"] = ",".join(spec["imagePullSecrets"])
    conf |= {f"{_K8S}pyspark.pythonVersion": spec["pythonVersion"]} if spec.get("pythonVersion") else {}
    conf |= {f"{_K8S}memoryOverheadFactor": spec["memoryOverheadFactor"]} if spec.get("memoryOverheadFactor") else {}
    conf |= given
    conf |= {f"spark.hadoop.{key}": value for key, value in spec.get("hadoopConf", {}).items()}
    for role in ROLES:
        conf |= _of_role(role, application, given)
    conf |= {f"{_K8S}node.selector.{key}": value for key, value in spec.get("nodeSelector", {}).items()}
    conf |= _allocation(spec.get("dynamicAllocation", {}))
    conf |= {key: ",".join(spec["deps"][name]) for name, key in _DEPENDENCIES.items() if spec.get("deps", {}).get(name)}
    if spec["type"] != "Python":
        conf["spark.jars"] = ",".join(filter(None, (conf.get("spark.jars"), spec["mainApplicationFile"])))
    return conf | {"spark.app.name": metadata["name"]}


def _of_role(role: str, application: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    spec = application["spec"]
    fields = {**_defaults(role, spec, given), **spec.get(role, {})}
    conf = {}
    if image := fields.get("image") or spec.get("image"):
        conf[f"{_K8S}{role}.container.image"] = image
    for field, key in _OF_ROLE.items():
        if field in fields:
            value = fields[field]
            conf[key.replace("ROLE", role)] = str(value).lower() if isinstance(value, bool) else str(value)
    labels = {**application["metadata"].get("labels", {}), **fields.get("labels", {})}
    for field, prefix in _MAPS_OF_ROLE.items():
        texts = labels if field == "labels" else fields.get(field, {})
        conf |= {f"{prefix.replace('ROLE', role)}{key}": value for key, value in texts.items()}
    for name, reference in fields.get("envSecretKeyRefs", {}).items():
        conf[f"{_K8S}{role}.secretKeyRef.{name}"] = f"{reference['name']}:{reference['key']}"
    conf |= {f"{_VARIABLES[role]}{name}": value for name, value in fields.get("envVars", {}).items()}
    for secret in fields.get("secrets", ()):
        conf[f"{_K8S}{role}.secrets.{secret['name']}"] = secret["path"]
        if known := _FILES_OF_SECRETS.get(secret.get("secretType")):
            conf[f"{_VARIABLES[role]}{known[0]}"] = f"{secret['path'].rstrip('/')}/{known[1]}"
    return conf


def _defaults(role: str, spec: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the defaults of the operator, unless `sparkConf` has them."""
    defaults: dict[str, Any] = {"cores": 1, "memory": "1g"}
    is_dynamic = spec.get("dynamicAllocation", {}).get("enabled") or given.get(_DYNAMIC) == "true"
    if role == "executor" and not is_dynamic:
        defaults["instances"] = 1
    return {field: value for field, value in defaults.items() if f"spark.{role}.{field}" not in given}


_DYNAMIC: Final = "spark.dynamicAllocation.enabled"


def _allocation(fields: Mapping[str, Any]) -> dict[str, str]:
    if not fields.get("enabled"):
        return {}
    prefix = "spark.dynamicAllocation."
    numbers = {f"{prefix}{key}": str(fields[key]) for key in fields if key.endswith("Executors")}
    tracking = {f"{prefix}shuffleTracking.enabled": str(fields.get("shuffleTrackingEnabled", True)).lower()}
    if "shuffleTrackingTimeout" in fields:
        tracking[f"{prefix}shuffleTracking.timeout"] = f"{fields['shuffleTrackingTimeout']}ms"
    return {_DYNAMIC: "true", **numbers, **tracking}


class _Pod:
    """A pod of a role: of its template, what Spark adds, what the webhook adds. Takes its properties from `conf`."""

    def __init__(self, role: str, spec: Mapping[str, Any], conf: dict[str, str]) -> None:
        template = spec.get(role, {}).get("template", {})
        self._role, self._name = role, f"spark-kubernetes-{role}"
        metadata, given = template.get("metadata", {}), template.get("spec", {})
        containers = given.get("containers", [])
        own = next(
            (container for container in containers if container["name"] == self._name),
            containers[0] if containers else {},
        )
        self._container = {"env": [], "envFrom": [], "volumeMounts": [], "resources": {"limits": {}}, **own}
        self._spec = {
            "volumes": [],
            "nodeSelector": {},
            "imagePullSecrets": [],
            **given,
            "containers": [self._container, *(container for container in containers if container is not own)],
        }
        for part in (self._spec, self._container):  # the parts that lists are added to are no parts of the manifest
            part |= {key: [*value] for key, value in part.items() if isinstance(value, list)}
        self._spec["containers"][0] = self._container
        self._metadata = {key: {**metadata.get(key, {})} for key in ("labels", "annotations")}
        self._add_of_spark(conf)
        self._add_of_webhook(spec, spec.get(role, {}))
        self.manifest = {"metadata": self._metadata, "spec": self._spec}

    def _add_of_spark(self, conf: dict[str, str]) -> None:
        prefix, is_last = f"{_K8S}{self._role}.", self._role == ROLES[-1]
        self._metadata["labels"] |= _taken(conf, f"{prefix}label.")
        self._metadata["annotations"] |= _taken(conf, f"{prefix}annotation.")
        common = _taken(conf, f"{_K8S}node.selector.", leave=not is_last)
        self._spec["nodeSelector"] = {**self._spec["nodeSelector"], **common, **_taken(conf, f"{prefix}node.selector.")}
        image = _taken(conf, f"{_K8S}container.image", leave=not is_last)
        self._container["image"] = _taken(conf, f"{prefix}container.image").get("", image.get(""))
        self._container["imagePullPolicy"] = image.get(".pullPolicy", "IfNotPresent")
        self._spec["imagePullSecrets"] += [
            {"name": secret_name} for secret_name in image.get(".pullSecrets", "").split(",") if secret_name
        ]
        accounts = _taken(conf, f"{_K8S}authenticate.", leave=not is_last)
        account = accounts.get(f"{self._role}.serviceAccountName", self._spec.get("serviceAccountName"))
        account = account or accounts.get("driver.serviceAccountName")  # which executors have too by default
        self._spec |= {"serviceAccountName": account} if account else {}
        self._add_variables(
            *({"name": name, "value": value} for name, value in _taken(conf, _VARIABLES[self._role]).items()),
            *(
                {"name": name, "valueFrom": {"secretKeyRef": dict(zip(("name", "key"), text.split(":"), strict=True))}}
                for name, text in _taken(conf, f"{prefix}secretKeyRef.").items()
            ),
        )
        for name, path in _taken(conf, f"{prefix}secrets.").items():
            self._mount(f"{name}-volume", {"secret": {"secretName": name}}, {"mountPath": path})

    def _add_of_webhook(self, spec: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self._add_to_container(fields)
        self._add_mounts(spec, fields)
        for key in _APPENDED:
            if fields.get(key):
                self._spec[key] = [*self._spec.get(key, []), *fields[key]]
        self._spec |= {key: fields[key] for key in _REPLACED if fields.get(key)}
        self._spec |= {key: fields[key] for key in _REPLACED_IF_NOT_FALSE if fields.get(key, False) is not False}
        self._spec["nodeSelector"] = {**self._spec["nodeSelector"], **fields.get("nodeSelector", {})}
        self._spec["containers"] += fields.get("sidecars", [])
        if scheduler := spec.get("batchScheduler"):
            self._spec["schedulerName"] = scheduler
        if (security := fields.get("podSecurityContext")) is not None:
            self._spec["securityContext"] = security

    def _add_to_container(self, fields: Mapping[str, Any]) -> None:
        self._add_variables(*fields.get("env", ()))
        self._container["envFrom"] += fields.get("envFrom", [])
        self._container |= {key: fields[key] for key in ("securityContext", "lifecycle", "ports") if key in fields}
        limits = {"of memory": fields["memoryLimit"]} if "memoryLimit" in fields else {}
        if (gpu := fields.get("gpu", {})).get("quantity", 0) > 0:
            limits[gpu["name"]] = str(gpu["quantity"])
        self._container["resources"] = {"limits": limits}

    def _add_mounts(self, spec: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        for name, (variable, path) in _FOLDERS.items():
            if given := spec.get(f"{name}ConfigMap"):
                self._mount(f"{name}-configmap-volume", {"configMap": {"name": given}}, {"mountPath": path})
                self._add_variables({"name": variable, "value": path})
        for config_map in fields.get("configMaps", ()):
            source = {"configMap": {"name": config_map["name"]}}
            self._mount(f"{config_map['name']}-vol"[:63], source, {"mountPath": config_map["path"]})
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for mount in fields.get("volumeMounts", ()):
            if mount["name"] in volumes:
                source = {kind: value for kind, value in volumes[mount["name"]].items() if kind != "name"}
                self._mount(mount["name"], source, mount)

    def _add_variables(self, *variables: Mapping[str, Any]) -> None:
        self._container["env"] = _named_last([*self._container["env"], *variables])

    def _mount(self, name: str, source: Mapping[str, Any], mount: Mapping[str, Any]) -> None:
        if all(volume["name"] != name for volume in self._spec["volumes"]):
            self._spec["volumes"].append({"name": name, **source})
        self._container["volumeMounts"].append({**mount, "name": name})


def _named_last(variables: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return list({variable["name"]: variable for variable in variables}.values())


def _taken(conf: dict[str, str], prefix: str, *, leave: bool = False) -> dict[str, str]:
    """Return the properties with a prefix, without it, and remove them unless another pod has them too."""
    found = {key: value for key, value in conf.items() if re.match(re.escape(prefix), key)}
    for key in found if not leave else ():
        del conf[key]
    return {key.removeprefix(prefix): value for key, value in found.items()}
