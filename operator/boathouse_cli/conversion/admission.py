"""What would be refused of an object: by the API server, by the operator, or when it creates the pods.

The schema of a new object's CRD and the CEL rules in it are read without a cluster. Messages are those of the API
server as far as users read them. Rules on changes have no meaning for a new object.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import cel

from boathouse.resources import quantity
from boathouse.resources.base import RULES
from boathouse.resources.crd import CustomResource
from boathouse.resources.sparkapp.fields import FIELDS

Problem = tuple[str, str]
"""The path of a field, and what is wrong with it."""
_SUBDOMAIN: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_BOUNDS: Final[tuple[tuple[str, Callable[[Any, Any], bool], str], ...]] = (
    ("minimum", lambda value, bound: value >= bound, "should be greater than or equal to {}"),
    ("maximum", lambda value, bound: value <= bound, "should be less than or equal to {}"),
    ("minLength", lambda value, bound: len(value) >= bound, "should be at least {} chars long"),
    ("maxLength", lambda value, bound: not isinstance(value, str) or len(value) <= bound, "Too long: at most {}"),
    ("minItems", lambda value, bound: len(value) >= bound, "should have at least {} items"),
    ("maxItems", lambda value, bound: len(value) <= bound, "Too many: must have at most {} items"),
    ("maxProperties", lambda value, bound: len(value) <= bound, "Too many: must have at most {} items"),
    ("pattern", lambda value, bound: re.search(re.sub(r"\$$", r"\\Z", bound), value) is not None, "should match '{}'"),
    ("enum", lambda value, bound: value in bound, "Unsupported value: {value}: supported values: {}"),
)
_FIELD: Final = re.compile(r"(?P<path>(?:spec\.)?[a-z]\w*(?:\.[A-Za-z]\w*)+) (?P<rest>.+)", re.DOTALL)


def problems(resource: CustomResource, manifest: Mapping[str, Any]) -> list[Problem]:
    """Return what the API server would refuse; rules are judged if the fields have their types and bounds."""
    schema = spec_schema(resource)
    spec = _with_defaults(schema, manifest["spec"])
    found = [*metadata_problems(manifest["metadata"]), *_of_schema(schema, spec, "spec")]
    return found or list(_of_rules(schema, spec, "spec"))


@functools.cache
def spec_schema(resource: CustomResource) -> Mapping[str, Any]:
    """Return the schema of the spec of a custom resource."""
    schema: Mapping[str, Any] = resource.manifest()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema["properties"]["spec"]  # type: ignore[no-any-return]  # decoded JSON


def metadata_problems(metadata: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the metadata of an object."""
    name, beginning = metadata.get("name"), metadata.get("generateName")
    if name is None and not beginning:
        yield "metadata.name", "Required value: name the object"
    for key, given, checked in (("name", name, name), ("generateName", beginning, str(beginning).rstrip("-"))):
        if given is not None and not _is_subdomain(checked):
            yield f"metadata.{key}", f'"{given}" is no name of an object: use lower-case letters, digits, - and .'
    namespace = metadata.get("namespace")
    if namespace is not None and _LABEL.fullmatch(str(namespace)) is None:
        yield "metadata.namespace", f'"{namespace}" is no name of a namespace: use lower-case letters, digits and -'
    yield from _label_problems("metadata.labels", metadata.get("labels") or {})
    for key in metadata.get("annotations") or {}:
        if not _is_qualified(key.lower()):
            yield "metadata.annotations", f'"{key}" is no [PREFIX/]NAME of an annotation: correct it'


def _label_problems(path: str, labels: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in labels.items():
        if not _is_qualified(key):
            yield path, f'"{key}" is no [PREFIX/]NAME of a label: correct it'
        if value and _NAME.fullmatch(value) is None:
            yield path, f'"{value}" is no value of the label {key}: use at most 63 letters, digits, -, _ and .'


def _is_subdomain(text: object) -> bool:
    return isinstance(text, str) and _SUBDOMAIN.fullmatch(text) is not None


def _is_qualified(key: str) -> bool:
    """Return whether it can be the key of a label, or the name of an extended resource."""
    prefix, slash, name = key.rpartition("/")
    return _NAME.fullmatch(name) is not None and (not slash or _is_subdomain(prefix))


def _with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value with the defaults of its schema, as the API server stores it; null fields are left out."""
    if isinstance(value, dict):
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties") or {}
        defaults = {key: inner["default"] for key, inner in fields.items() if "default" in inner}
        given = {key: item for key, item in value.items() if item is not None}
        return defaults | {key: _with_defaults(fields.get(key) or others, item) for key, item in given.items()}
    if isinstance(value, list):
        return [_with_defaults(schema.get("items", {}), item) for item in value]
    return value


def _of_schema(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Problem]:
    wanted = _TYPES.get(schema.get("type", ""), (int, str) if schema.get("x-kubernetes-int-or-string") else ())
    has_type = isinstance(value, wanted) and (wanted == (bool,) or not isinstance(value, bool))
    if not has_type:
        yield path, f"must be of type {schema.get('type', 'integer or string')}: {_shown(value)}"
        return
    for key, holds, message in _BOUNDS:
        if key in schema and not holds(value, schema[key]):
            bound = schema[key]
            shown_bound = ", ".join(map(_shown, bound)) if isinstance(bound, list) else bound
            yield path, message.format(shown_bound, value=_shown(value))
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}", "Required value"
    seen = []
    for key in _keys(schema, value):
        if key in seen:
            yield path, f"Duplicate value: {_shown(key)}"
        seen.append(key)
    for inner, part, where in _children(schema, value, path):
        if inner is None:
            yield where, "unknown field: remove it"
        else:
            yield from _of_schema(inner, part, where)


def _keys(schema: Mapping[str, Any], value: Any) -> list[Any]:
    """Return what must differ in the items of a list that is a set or a map."""
    if schema.get("x-kubernetes-list-type") == "set":
        return list(value)
    keys = schema.get("x-kubernetes-list-map-keys", ())
    return [[item.get(key) for key in keys] for item in value if isinstance(item, dict)] if keys else []


def _children(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[tuple[Mapping[str, Any] | None, Any, str]]:
    """Yield the parts of a value with their schemas (None: there is no such field) and paths."""
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        for key, part in value.items():
            yield fields.get(key, schema.get("additionalProperties")), part, f"{path}.{key}"
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield schema["items"], part, f"{path}[{number}]"


def _of_rules(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Problem]:
    for rule in schema.get(RULES, ()):
        if "oldSelf" in rule["rule"] and not rule.get("optionalOldSelf"):
            continue
        if not _evaluate(rule["rule"], value):
            message = (
                _evaluate(rule["messageExpression"], value) if "messageExpression" in rule else rule.get("message")
            )
            message = message if isinstance(message, str) else f"does not satisfy {rule['rule']}"
            match = _FIELD.fullmatch(message)  # the message knows the field better than the place of the rule
            yield (match["path"], match["rest"]) if match else (path, message)
    for inner, part, where in _children(schema, value, path):
        if inner is not None:
            yield from _of_rules(inner, part, where)


def _evaluate(expression: str, value: Any) -> Any:
    """Return the value of an expression; what cannot be evaluated here is left to the API server."""
    try:
        return _program(expression).execute(cel.Context({"self": value, "oldSelf": {}}, dict(_FUNCTIONS)))
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        return True


@functools.cache
def _program(expression: str) -> cel.Program:
    return cel.compile(expression)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except ValueError:
        return False
    return True


def _compare(left: str, right: str) -> int:
    left_value, right_value = quantity.parse(left), quantity.parse(right)
    return (left_value > right_value) - (left_value < right_value)


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "isQuantity": _is_quantity,
    "quantity": str,
    "compareTo": _compare,
    "asApproximateFloat": lambda text: float(quantity.parse(text)),
    "isInteger": lambda text: quantity.parse(text) % 1 == 0,
    "asInteger": lambda text: int(quantity.parse(text)),
    "sum": sum,
    "upperAscii": lambda text: "".join(char.upper() if char.isascii() else char for char in text),
    "replace": lambda text, old, new: text.replace(old, new),
    "split": lambda text, separator: text.split(separator),
    "hasValue": lambda _old: False,
}
"""What Kubernetes adds to CEL, as far as the rules use it; a quantity is its text."""


_ANY: Final = "any"
_NAMES: Final = frozenset({"claimName", "configMapName", "secretName", "serviceAccountName", "priorityClassName"})
"""Fields that are the name of another object."""
_FREE: Final = frozenset({"labels", "annotations", "sparkConf", "hadoopConf", "conf", "settings"})
"""Fields whose keys users choose, and which pods have not or whose schema says it all."""
_WHOLE: Final = frozenset(
    {"spark.sql.shuffle.partitions", "spark.default.parallelism", "spark.task.cpus", "spark.task.maxFailures"}
)
_FIELD_OF: Final = {key: field for field, key in FIELDS.items()}


def refusals(manifest: Mapping[str, Any]) -> list[Problem]:
    """Return what would be refused later; queues and defaults of the cluster are not known."""
    found = [*_of_pods(manifest["spec"], "spec"), *_of_properties(manifest["spec"].get("sparkConf") or {})]
    return found or list(_of_operator(manifest))


def _of_operator(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    from boathouse.resources.config import OperatorConfig
    from boathouse.services.frame.kind import Refusal
    from boathouse.services.mrjob import model as mrjob
    from boathouse.services.sparkapp import model as sparkapp

    queues = [{"name": name} for name in dict.fromkeys(["default", manifest["spec"].get("queue", "default")])]
    config = OperatorConfig.model_validate({"queues": queues, "task": {"image": _ANY}, "spark": {"image": _ANY}})
    known = {"name": _ANY, "namespace": _ANY, "uid": _ANY, "creationTimestamp": "2026-01-01T00:00:00Z"}
    raw = {"spec": manifest["spec"], "metadata": known | manifest["metadata"]}
    answer = (sparkapp if manifest["kind"] == "SparkApp" else mrjob).from_resource(raw, config)
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


def _of_pods(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, list):
        for number, part in enumerate(value):
            yield from _of_pods(part, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            where = f"{path}.{key}"
            if key in _NAMES:
                yield from _of_name(where, part)
            elif key in _CHECKS:
                yield from _CHECKS[key](where, part)
            elif key not in _FREE:
                yield from _of_pods(part, where)


def _of_references(path: str, value: Any) -> Iterator[Problem]:
    for reference in value if isinstance(value, list) else [value]:
        yield from _of_name(f"{path}.name", reference["name"])


def _of_name(path: str, name: str) -> Iterator[Problem]:
    if not _is_subdomain(name):
        yield path, f'"{name}" is no name of an object: use lower-case letters, digits, - and .'


def _of_resources(path: str, resources: Mapping[str, Any]) -> Iterator[Problem]:
    for name, amount in resources.items():
        if not _is_qualified(name):
            yield path, f'"{name}" is no name of an extended resource: write PREFIX/NAME, such as nvidia.com/gpu'
        if quantity.parse(amount) % 1:
            yield path, f"{amount} of {name} is no whole number: extended resources have no parts"


def _of_tolerations(path: str, tolerations: list[Mapping[str, Any]]) -> Iterator[Problem]:
    for toleration in tolerations:
        key, value = toleration.get("key"), toleration.get("value")
        is_any_value = toleration.get("operator", "Equal") == "Exists"
        if not key and not is_any_value:
            yield path, "a toleration without a key needs the operator Exists"
        if is_any_value and value:
            yield path, f'the operator Exists has no value, not "{value}"'
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            yield path, "tolerationSeconds is for the effect NoExecute"
        yield from _label_problems(path, {key: value or ""} if key else {})


_CHECKS: Final[Mapping[str, Callable[[str, Any], Iterator[Problem]]]] = {
    **dict.fromkeys(
        ("secretKeyRef", "configMapKeyRef", "secretRef", "configMapRef", "imagePullSecrets"), _of_references
    ),
    "extendedResources": _of_resources,
    "nodeSelector": _label_problems,
    "tolerations": _of_tolerations,
}
"""What pods refuse of a field."""
