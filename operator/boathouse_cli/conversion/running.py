"""What would be refused of an object that the API server accepts: by the operator, or when it creates the pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from boathouse.resources import quantity
from boathouse.resources.sparkapp.fields import FIELDS
from boathouse_cli.conversion import admission

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from boathouse.resources.config import OperatorConfig
    from boathouse_cli.conversion.admission import Problem

_ANY: Final = "any"
_NAMES: Final = frozenset({"claimName", "configMapName", "secretName", "serviceAccountName", "priorityClassName"})
"""Fields that are the name of another object."""
_FREE: Final = frozenset({"labels", "annotations", "sparkConf", "hadoopConf", "conf", "settings"})
"""Fields whose keys users choose, and which pods have not or whose schema says it all."""
_WHOLE: Final = frozenset(
    {"spark.sql.shuffle.partitions", "spark.default.parallelism", "spark.task.cpus", "spark.task.maxFailures"}
)
_FIELD_OF: Final = {key: field for field, key in FIELDS.items()}


def problems(manifest: Mapping[str, Any]) -> list[Problem]:
    """Return what would be refused later; queues and defaults of the cluster are not known."""
    found = [*_of_pods(manifest["spec"], "spec"), *_of_properties(manifest["spec"].get("sparkConf") or {})]
    return found or list(_of_operator(manifest))


def _of_operator(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    from boathouse.resources.config import OperatorConfig
    from boathouse.services.frame.kind import Refusal

    queue = manifest["spec"].get("queue", "default")
    config = OperatorConfig.model_validate(
        {
            "queues": [{"name": name} for name in dict.fromkeys(["default", queue])],
            "task": {"image": _ANY},
            "spark": {"image": _ANY},
        }
    )
    known = {"name": _ANY, "namespace": _ANY, "uid": _ANY, "creationTimestamp": "2026-01-01T00:00:00Z"}
    answer = _reader(manifest["kind"])(
        {"spec": manifest["spec"], "metadata": {**known, **manifest["metadata"]}}, config
    )
    if isinstance(answer, Refusal):
        yield "spec", f"the operator refuses it: {answer.message}"


def _of_properties(conf: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the properties that Spark cannot read, of those that have a field and of some that many people set."""
    for key, text in conf.items():
        value, field = str(text).strip(), _FIELD_OF.get(key, "")
        if key in _WHOLE or field.endswith(("Executors", ".instances")):
            if re.fullmatch(r"[+-]?[0-9]+", value) is None:
                yield f"spec.sparkConf[{key}]", f'Spark refuses it: "{value}" is not a whole number: correct it'
        elif field.endswith(".enabled") and value.lower() not in {"true", "false"}:
            yield f"spec.sparkConf[{key}]", f'Spark refuses it: "{value}" is neither true nor false: correct it'


def _reader(kind: str) -> Callable[[Mapping[str, Any], OperatorConfig], object]:
    if kind == "SparkApp":
        from boathouse.services.sparkapp import app

        return app.from_resource
    from boathouse.services.mrjob.job import model

    return model.from_resource


def _of_pods(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _of_pods(each, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, each in value.items():
            where = f"{path}.{key}"
            if key in _NAMES:
                yield from _of_name(where, each)
            elif key in _CHECKS:
                yield from _CHECKS[key](where, each)
            elif key not in _FREE:
                yield from _of_pods(each, where)


def _of_references(path: str, value: Any) -> Iterator[Problem]:
    for each in value if isinstance(value, list) else [value]:
        yield from _of_name(f"{path}.name", each["name"])


def _of_name(path: str, name: str) -> Iterator[Problem]:
    if not admission.is_subdomain(name):
        yield path, f'"{name}" is no name of an object: use lower-case letters, digits, - and .'


def _of_resources(path: str, resources: Mapping[str, Any]) -> Iterator[Problem]:
    for name, amount in resources.items():
        if not admission.is_qualified(name):
            yield path, f'"{name}" is no name of an extended resource: write PREFIX/NAME, such as nvidia.com/gpu'
        if quantity.parse(amount) % 1:
            yield path, f"{amount} of {name} is no whole number: extended resources have no parts"


def _of_tolerations(path: str, tolerations: list[Mapping[str, Any]]) -> Iterator[Problem]:
    for each in tolerations:
        yield from _of_toleration(path, each)


def _of_toleration(path: str, toleration: Mapping[str, Any]) -> Iterator[Problem]:
    key, value = toleration.get("key"), toleration.get("value")
    is_any_value = toleration.get("operator", "Equal") == "Exists"
    if not key and not is_any_value:
        yield path, "a toleration without a key needs the operator Exists"
    if is_any_value and value:
        yield path, f'the operator Exists has no value, not "{value}"'
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        yield path, "tolerationSeconds is for the effect NoExecute"
    yield from admission.label_problems(path, {key: value or ""} if key else {})


_CHECKS: Final[Mapping[str, Callable[[str, Any], Iterator[Problem]]]] = {
    **dict.fromkeys(
        ("secretKeyRef", "configMapKeyRef", "secretRef", "configMapRef", "imagePullSecrets"), _of_references
    ),
    "extendedResources": _of_resources,
    "nodeSelector": admission.label_problems,
    "tolerations": _of_tolerations,
}
"""What pods refuse of a field."""
