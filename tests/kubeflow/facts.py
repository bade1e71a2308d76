"""Facts of a submission, by field: the same for what Kubeflow's operator runs and what Boathouse runs."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from boathouse.services.sparkapp import objects, sizing
from boathouse.services.sparkapp.pods import trial_executor
from tests.builders.sparkapps import app, submission
from tests.kubeflow import rules

_WHOLE: Final = ("priorityClassName", "schedulerName", "serviceAccountName")
_OPAQUE: Final = ("dnsConfig", "hostAliases", "hostNetwork", "initContainers", "shareProcessNamespace")
_SPARKS_DEFAULTS: Final[Mapping[str, str]] = {
    f"spark.{role}.{field}": value for role in rules.ROLES for field, value in {"cores": "1", "memory": "1g"}.items()
}
_SIZE: Final = re.compile(r"spark\.(driver|executor)\.memory(Overhead)?")
_TIME: Final = "spark.dynamicAllocation.shuffleTracking.timeout"
_OF_PODS: Final = re.compile(
    r"spark\.kubernetes\.(container\.image.*|authenticate\.(driver|executor)\.serviceAccountName)"
)
_SIZED: Final = ("cpu", "memory", "ephemeral-storage")
"""What properties say."""


def of_kubeflow(application: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of what Kubeflow's operator runs."""
    found = rules.submission(application)
    proxy = {"proxyUser": found.proxy_user} if found.proxy_user else {}
    facts = {f"{role}.{key}": fact for role, pod in found.pods.items() for key, fact in _of_pod(pod).items()}
    return {**facts, **_of_conf(found.conf), "program": list(found.program), **proxy}


def of_boathouse(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of what Boathouse runs for a SparkApp."""
    model = app(name=manifest["metadata"]["name"], **manifest["spec"])
    found = submission(model)
    pods = {"driver": found.driver, "executor": trial_executor(model, found.names)}
    facts = {f"{role}.{key}": fact for role, pod in pods.items() for key, fact in _of_pod(pod).items()}
    arguments = found.driver["spec"]["containers"][0]["args"]
    name, *words = arguments[arguments.index("--class") + 1 :]
    program = words if model.is_python else [name, *words]
    conf = objects.properties(model, found.names)
    return {**facts, **_of_conf(conf), "program": program}


def _of_pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    spec, metadata = pod["spec"], pod["metadata"]
    container, *others = spec["containers"]
    spec = {"serviceAccountName": "default", **spec}
    facts = {key: spec[key] for key in (*_WHOLE, *_OPAQUE) if spec.get(key)}
    facts |= {"sidecars": others} if others else {}
    facts |= {key: container[key] for key in ("image", "imagePullPolicy", "lifecycle", "ports") if container.get(key)}
    for kind, parts in spec.get("affinity", {}).items():
        facts |= {f"affinity.{kind}.{part}": value for part, value in parts.items()}
    facts |= {f"label.{key}": value for key, value in metadata["labels"].items()}
    facts |= {f"annotation.{key}": value for key, value in metadata["annotations"].items()}
    facts |= {f"nodeSelector.{key}": value for key, value in spec.get("nodeSelector", {}).items()}
    facts |= {f"imagePullSecret.{secret['name']}": True for secret in spec.get("imagePullSecrets", ())}
    facts |= {
        f"env.{variable['name']}": {k: v for k, v in variable.items() if k != "name"} for variable in container["env"]
    }
    tolerations = [{"operator": "Equal", **toleration} for toleration in spec.get("tolerations", ())]
    for key, items in (("tolerations", tolerations), ("envFrom", container.get("envFrom"))):
        facts |= {f"{key}.{json.dumps(item, sort_keys=True)}": True for item in items or ()}
    if (seconds := spec.get("terminationGracePeriodSeconds")) is not None:
        facts["terminationGracePeriodSeconds"] = seconds
    security = {**spec.get("securityContext", {}), **container.get("securityContext", {})}
    facts |= {f"security.{key}": value for key, value in security.items()}
    facts |= {f"limit.{key}": value for key, value in container["resources"]["limits"].items() if key not in _SIZED}
    return facts | _of_mounts(spec.get("volumes", ()), container["volumeMounts"])


def _of_mounts(volumes: Any, mounts: Any) -> dict[str, Any]:
    by_name = {volume["name"]: {kind: value for kind, value in volume.items() if kind != "name"} for volume in volumes}
    facts = {}
    for mount in mounts:
        source = {kind: dict(fields) for kind, fields in by_name.get(mount["name"], {}).items()}
        ((kind, fields),) = source.items() or [("absent", {})]
        is_read_only = kind in {"configMap", "secret"} or fields.pop("readOnly", False) or mount.get("readOnly", False)
        fact = {kind: fields, "readOnly": is_read_only, "subPath": mount.get("subPath", "")}
        facts[f"mount.{mount['mountPath'].rstrip('/')}"] = fact
    return facts


def _of_conf(given: Mapping[str, str]) -> dict[str, Any]:
    """Return facts of properties: sizes in MiB, times in milliseconds, and the numbers of executors that come out."""
    conf = {key: value for key, value in {**_SPARKS_DEFAULTS, **given}.items() if not _OF_PODS.fullmatch(key)}
    facts: dict[str, Any] = {key: _value(key, value) for key, value in conf.items()}
    prefix = "spark.dynamicAllocation."
    dynamic = {key: facts.pop(key) for key in list(facts) if re.fullmatch(rf"{prefix}(\w+Executors|enabled)", key)}
    instances = int(facts.pop("spark.executor.instances", 0))
    is_dynamic = dynamic.get(f"{prefix}enabled") == "true"
    if not is_dynamic:
        facts = {key: fact for key, fact in facts.items() if not key.startswith(prefix)}
    least, first = (int(dynamic.get(f"{prefix}{bound}Executors", 0)) for bound in ("min", "initial"))
    numbers = {
        "min": least if is_dynamic else instances,
        "initial": max(least, first, instances) if is_dynamic else instances,
        "max": dynamic.get(f"{prefix}maxExecutors", "") if is_dynamic else instances,
    }
    return {f"conf.{key}": fact for key, fact in facts.items()} | {f"executors.{k}": v for k, v in numbers.items()}


def _value(key: str, value: str) -> Any:
    if _SIZE.fullmatch(key):
        return sizing.mebibytes(value)
    if key == _TIME:
        return value.removesuffix("ms") if value.endswith("ms") else str(int(value.removesuffix("s")) * 1000)
    return value
