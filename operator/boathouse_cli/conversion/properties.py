"""Spark's properties as a SparkApp: fields where there are any, else `sparkConf` and `hadoopConf`."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import pydantic

from boathouse.resources import names, quantity
from boathouse.resources.sparkapp import fields
from boathouse.resources.sparkapp.roles import SIZE_PATTERN, OverheadFactor
from boathouse_cli.conversion import pod_fields
from boathouse_cli.conversion.draft import DRIVER, EXECUTOR, ROLES, Draft, Unconvertible

MAX_ITEMS: Final = 64
_NAME: Final = "[-A-Za-z0-9_.]+"
_FACTOR: Final = pydantic.TypeAdapter[str](OverheadFactor)
_SECONDS: Final = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}

_FILES: Final = frozenset({"deps.jars", "deps.pyFiles", "deps.files", "deps.archives"})


def _of_field(draft: Draft, field: str, where: str, text: str) -> Any:
    """Return the value of a field that has one; None: the text stays a property, which may say more than the field."""
    if field in _FILES:
        return _files(draft, where, text)
    if field.endswith(".javaOptions") and "-Xmx" in text:
        draft.note(where, "Spark refuses -Xmx: remove it, and set memory")
        return None
    if field.startswith("deps."):
        return _items(field, text)
    if field == "monitoring.eventLogDir":
        return text if pod_fields.is_loadable(text) and not text.startswith("file:") else None
    return _BY_ENDING[field.rsplit(".", 1)[-1]](text.strip())


def words(text: str) -> list[str]:
    """Return the items of a list with commas."""
    return [item.strip() for item in text.split(",") if item.strip()]


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _seconds(text: str) -> int | None:
    """Return a time in whole seconds, rounded up, of one in milliseconds or with a unit; None for 0 and other texts."""
    match = re.fullmatch(r"(?P<number>[0-9]{1,9})(?P<unit>ms|s|min|m|h|d)?", text.lower())
    if match is None:
        return None
    number, unit = int(match["number"]), match["unit"] or "ms"
    return (-(-number // 1000) if unit == "ms" else number * _SECONDS[unit]) or None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(2**31)) else None


def _positive(text: str) -> int | None:
    return _whole(text) or None


def _size(text: str) -> str | None:
    """Return a size; one that ends with b would be written back without it, so it stays as it is."""
    return text if re.fullmatch(SIZE_PATTERN, text) and not text.lower().endswith("b") else None


def _factor(text: str) -> str | None:
    try:
        return _FACTOR.validate_python(text)
    except pydantic.ValidationError:
        return None


def _cpu(text: str) -> str | None:
    try:
        return text if quantity.parse(text) > 0 else None
    except ValueError:
        return None


def _files(draft: Draft, where: str, text: str) -> list[str] | None:
    found = [pod_fields.in_pods(draft, where, item) for item in words(text)]
    return found if 0 < len(found) <= MAX_ITEMS and all(map(pod_fields.is_loadable, found)) else None


def _items(field: str, text: str) -> list[str] | None:
    pattern, most = _ITEMS[field]
    found = words(text)
    return found if 0 < len(found) <= most and all(re.fullmatch(pattern, item) for item in found) else None


_ITEMS: Final[Mapping[str, tuple[str, int]]] = {
    "deps.packages": (f"{_NAME}:{_NAME}:[-A-Za-z0-9_.+]+", MAX_ITEMS),
    "deps.excludePackages": (f"{_NAME}:{_NAME}", MAX_ITEMS),
    "deps.repositories": ("https?://[^, ]+", 16),
}
_BY_ENDING: Final[Mapping[str, Callable[[str], Any]]] = {
    "cores": _positive,
    "coreLimit": _cpu,
    "coreRequest": _cpu,
    "enabled": _boolean,
    "initialExecutors": _whole,
    "instances": _whole,
    "javaOptions": lambda text: text or None,
    "maxExecutors": _positive,
    "memory": _size,
    "memoryOverhead": _size,
    "memoryOverheadFactor": _factor,
    "minExecutors": _whole,
    "minMemoryOverhead": _size,
    "offHeapMemory": _size,
    "pysparkMemory": _size,
    "shuffleTrackingTimeoutSeconds": _seconds,
}
"""How a field is read, by the end of its path."""


_K8S: Final = "spark.kubernetes."
_HADOOP: Final = "spark.hadoop."
_ROLE: Final = r"(?P<role>driver|executor)\."
_VOLUME: Final = rf"spark\.kubernetes\.{_ROLE}volumes\.(?P<kind>[^.]+)\.(?P<name>[^.]+)\.(?P<part>.+)"
S3_ADVICE: Final = (
    "keys of a store belong into a Secret: kubectl create secret generic NAME with AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, and set storage.s3.secretRef and storage.s3.endpointURL"
)

_SUBMITTER: Final = re.compile(
    r"spark\.kubernetes\.(submission\..*|report\.interval|context|authenticate\.submission\..*|file\.upload\.path"
    r"|trust\.certificates)|spark\.app\.(id|submitTime)"
)
"""Said to the submitter, which a SparkApp does not have."""
_SET_ANYWAY: Final[Mapping[str, str]] = {
    "spark.authenticate": "true",
    "spark.ui.killEnabled": "false",
    "spark.kubernetes.allocation.pods.allocator": "direct",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
    "spark.kubernetes.driver.waitToReusePersistentVolumeClaim": "false",
    "spark.shuffle.service.enabled": "false",
    "spark.submit.deployMode": "cluster",
}
"""Closed properties whose usual value is what Boathouse sets."""


def drop_metadata(draft: Draft, conf: dict[str, str], where: Callable[[str], str], advice: str) -> None:
    """Drop properties that are metadata: in manifests, name and namespace of the object win."""
    for key, field in (("spark.app.name", "name"), ("spark.kubernetes.namespace", "namespace")):
        own = draft.metadata.get(field)
        if conf.pop(key, own) != own:
            draft.note(where(key), f"metadata.{field} is taken, which says otherwise: {advice}")


class Properties:
    """The properties of an application that are not converted yet."""

    def __init__(self, draft: Draft, given: Mapping[str, str], where: Callable[[str], str]) -> None:
        self._draft = draft
        self._left = dict(given)
        self._where = where
        for key in [key for key in given if not key.startswith("spark.")]:
            del self._left[key]
            draft.note(where(key), "Spark ignores keys that do not begin with spark.: remove it")

    def _refuse_unwritable(self) -> None:
        """Take out what cannot be in a file of properties; those of pods are not written there."""
        for key, value in list(self._left.items()):
            if len(key) > fields.MAX_KEY or not key.isprintable() or re.search(r"[\x00\r\n]", value):
                why = "has control characters or a line end, or a long key: correct it"
            elif len(value) > fields.MAX_VALUE:
                why = f"has more than {fields.MAX_VALUE} characters: put it into a file"
            else:
                continue
            self._draft.note(self._where(key), why)
            del self._left[key]

    def convert_pods(self) -> None:
        """Convert what describes pods: volumes first, because files may be on them."""
        self._volumes()
        for key in list(self._left):
            if _SUBMITTER.fullmatch(key) or self._left[key].strip() == _SET_ANYWAY.get(key):
                del self._left[key]
        for pattern, convert in _PODS:
            for key, match in self._matching(pattern):
                convert(self._draft, self._where(key), self._left.pop(key), **match.groupdict())
        roles = ("", *(f"{role}." for role in ROLES))
        found = {role: image for role in roles if (image := self._left.pop(f"{_K8S}{role}container.image", None))}
        if found:
            chosen, images = found.get(f"{EXECUTOR}.") or next(iter(found.values())), dict.fromkeys(found.values())
            self._draft.put("image", chosen)
            if len(images) > 1:
                advice = f"driver and executors run the same image: {chosen} is taken, of {', '.join(images)}"
                self._draft.note(f"{_K8S}container.image", advice)

    def _matching(self, pattern: str) -> list[tuple[str, re.Match[str]]]:
        """Return the properties that are left whose keys match, so that they can be taken."""
        return [(key, match) for key in self._left if (match := re.fullmatch(pattern, key, re.DOTALL))]

    def convert_rest(self) -> None:
        """Convert the others; the type of the program and the volumes are known."""
        self._refuse_unwritable()
        self._adjust_allocation()
        self._fields()
        for key, value in self._left.items():
            where = self._where(key)
            if fields.is_closed(key):
                short = key.removeprefix("spark.")
                closed = ((group, part) for group, parts in fields.CLOSED.items() for part in parts)
                group = next(group for group, part in closed if re.fullmatch(part, short))
                self._draft.note(where, _CLOSED_ADVICE[group])
            elif key.startswith(_HADOOP):
                self._draft.merge("hadoopConf", {key.removeprefix(_HADOOP): value})
            elif key.startswith("spark.yarn."):
                self._draft.note(where, "has no effect on Kubernetes: remove it")
            elif key == "spark.shuffle.service.enabled":
                self._draft.note(where, "Kubernetes has no external shuffle service: shuffle tracking replaces it")
            else:
                self._draft.merge("sparkConf", {key: value})
        self._left = {}

    def _volumes(self) -> None:
        found: dict[tuple[str, str, str], dict[str, str]] = {}
        for key, match in self._matching(_VOLUME):
            parts = found.setdefault((match["role"], match["kind"], match["name"]), {"": self._where(key)})
            parts[match["part"]] = self._left.pop(key)
        for parts in found.values():
            for part in [part for part in parts if part not in _MOUNT and not part.startswith("options.")]:
                self._draft.note(parts[""], f"{part} of a volume has no counterpart: remove it")
                del parts[part]
        mounts = [
            pod_fields.Mount(
                role=role,
                path=parts[""],
                name=name,
                mount_path=parts.get("mount.path", ""),
                source={
                    kind: {key.removeprefix("options."): value for key, value in parts.items() if key not in _MOUNT}
                },
                sub_path=parts.get("mount.subPath", "") or parts.get("mount.subPathExpr", ""),
                is_read_only=parts.get("mount.readOnly") == "true",
            )
            for (role, kind, name), parts in found.items()
        ]
        for key, match in self._matching(rf"spark\.kubernetes\.{_ROLE}secrets\.(?P<name>.+)"):
            role, name, path = match["role"], match["name"], self._left.pop(key)
            source = {"secret": {"secretName": name}}
            mounts.append(pod_fields.Mount(role=role, path=self._where(key), name=name, mount_path=path, source=source))
        pod_fields.convert(self._draft, mounts)

    def _fields(self) -> None:
        for field, key in fields.FIELDS.items():
            text = self._left.get(key)
            if text is None or not self._has_field(field):
                continue
            value = _of_field(self._draft, field, self._where(key), text)
            if value is not None and self._draft.get(field) is None:
                self._draft.put(field, value)
                del self._left[key]
        for field, implied in _IMPLIED.items():
            if self._draft.get(field) is not None:
                self._left.pop(implied, None)

    def _has_field(self, field: str) -> bool:
        """Return whether the field says the same: some say more than their property."""
        match field:
            case "executor.offHeapMemory" | "monitoring.eventLogDir":
                return self._is(_IMPLIED[field], "true")
            case "executor.pysparkMemory":
                return self._draft.spec.get("type") == "Python"
            case _:
                return True

    def _is(self, key: str, value: str) -> bool:
        return self._left.get(key, "").strip().lower() == value

    def _adjust_allocation(self) -> None:
        """With dynamic allocation, Spark begins with the largest of the numbers that it is given."""
        prefix = "spark.dynamicAllocation."
        enabled = f"{prefix}enabled"
        if self._is(enabled, "false"):  # the others have no effect, and may contradict each other
            for key in [key for key in self._left if key.startswith(prefix) and key != enabled]:
                del self._left[key]
        if not self._is(enabled, "true"):
            return
        first = ("spark.executor.instances", f"{prefix}initialExecutors")
        numbers = {key: self._left.get(key, "") for key in (*first, f"{prefix}minExecutors")}
        known = {key: int(number) for key, number in numbers.items() if number.isdigit()}
        if not known.keys().isdisjoint(first):
            self._left[f"{prefix}initialExecutors"] = str(max(known.values()))
        if "spark.executor.instances" in known:
            del self._left["spark.executor.instances"]
        if self._is(f"{prefix}shuffleTracking.enabled", "true"):
            del self._left[f"{prefix}shuffleTracking.enabled"]


_IMPLIED: Final = {
    "executor.offHeapMemory": "spark.memory.offHeap.enabled",
    "monitoring.eventLogDir": "spark.eventLog.enabled",
}
"""Fields that say the same as two properties, and the second of these."""
_MOUNT: Final = ("", "mount.path", "mount.subPath", "mount.subPathExpr", "mount.readOnly")


_CLOSED_ADVICE: Final[Mapping[str, str]] = {
    "identity": "Boathouse sets it for each attempt: remove it",
    "master": "Boathouse sets it: remove it",
    "scheduler": "Boathouse schedules drivers and executors itself, whole gangs first: remove it",
    "labels and fields of pods": "has no counterpart: use the fields of spec.driver and spec.executor",
    "templates": "Boathouse makes the pods itself: use the fields of spec.driver, spec.executor and spec.podTemplate",
    "service account": "drivers have no rights on claims and no Kerberos, and Boathouse sets their account: remove it",
    "security": "Boathouse sets it: remove it",
}
assert _CLOSED_ADVICE.keys() == fields.CLOSED.keys()  # so that a new group gets its advice


def _metadata_field(field: str, draft: Draft, _path: str, value: str) -> None:
    draft.metadata[field] = pod_fields.object_name(value) if field == "name" else value


def _master(draft: Draft, path: str, value: str) -> None:
    if not value.startswith("k8s://"):
        draft.note(path, f"{value} is not used: the application runs in this Kubernetes cluster, from an image")


def _noted(advice: str, draft: Draft, path: str, _value: str) -> None:
    draft.note(path, advice)


def _scheduler(draft: Draft, path: str, value: str) -> None:
    if value != names.SCHEDULER_NAME:
        draft.note(path, _CLOSED_ADVICE["scheduler"])


def _pull_policy(draft: Draft, _path: str, value: str) -> None:
    if value != "IfNotPresent":
        draft.put("imagePullPolicy", value)


def _pull_secrets(draft: Draft, _path: str, value: str) -> None:
    draft.extend("imagePullSecrets", [{"name": name} for name in words(value)])


def _metadata(draft: Draft, path: str, value: str, *, role: str, what: str, key: str) -> None:
    pod_fields.put_metadata(draft, role, path, f"{what}s", {key: value})


def _node_selector(draft: Draft, _path: str, value: str, *, role: str, key: str) -> None:
    draft.merge(f"{role}nodeSelector", {key: value})


def _variable(draft: Draft, path: str, value: str, *, role: str, name: str) -> None:
    pod_fields.put_variables(draft, role, path, [{"name": name, "value": value}])


def _secret_variable(draft: Draft, path: str, value: str, *, role: str, name: str) -> None:
    secret, _, key = value.partition(":")
    reference = {"secretKeyRef": {"name": secret, "key": key}}
    pod_fields.put_variables(draft, role, path, [{"name": name, "valueFrom": reference}])


_PODS: Final[tuple[tuple[str, Callable[..., None]], ...]] = (
    (r"spark\.app\.name", partial(_metadata_field, "name")),
    (r"spark\.master", _master),
    (
        r"spark\.submit\.deployMode",
        partial(_noted, "the driver runs in a pod, as with cluster: read its output by `boathouse logs`"),
    ),
    (r"spark\.yarn\.queue", pod_fields.put_queue),
    (r"spark\.hadoop\.fs\.s3a\.(bucket\.[^.]*\.)?(access\.key|secret\.key|session\.token)", partial(_noted, S3_ADVICE)),
    (r"spark\.executorEnv\.(?P<name>.+)", partial(_variable, role=EXECUTOR)),
    (r"spark\.kubernetes\.driverEnv\.(?P<name>.+)", partial(_variable, role=DRIVER)),
    (rf"spark\.kubernetes\.{_ROLE}secretKeyRef\.(?P<name>.+)", _secret_variable),
    (rf"spark\.kubernetes\.{_ROLE}(?P<what>label|annotation)\.(?P<key>.+)", _metadata),
    (r"spark\.kubernetes\.(?P<role>(driver\.|executor\.)?)node\.selector\.(?P<key>.+)", _node_selector),
    (r"spark\.kubernetes\.namespace", partial(_metadata_field, "namespace")),
    (r"spark\.kubernetes\.((driver|executor)\.)?scheduler\.name", _scheduler),
    (r"spark\.kubernetes\.container\.image\.pullPolicy", _pull_policy),
    (r"spark\.kubernetes\.container\.image\.pullSecrets", _pull_secrets),
    (r"spark\.kubernetes\.authenticate\.driver\.serviceAccountName", partial(pod_fields.put_account, role=DRIVER)),
    (r"spark\.kubernetes\.authenticate\.executor\.serviceAccountName", partial(pod_fields.put_account, role=EXECUTOR)),
    (r"spark\.kubernetes\.(hadoop|executor)\.(hadoopC|c)onfigMapName", pod_fields.put_hadoop_config_map),
)
"""Properties of pods that have fields which say the same."""


def program(draft: Draft, path: str, file: str, *, main_class: str | None) -> None:
    """Set the program, by its file: Python or a jar, as in spark-submit."""
    base = file.split("#", maxsplit=1)[0].lower()
    if base.endswith(".r"):
        raise Unconvertible(path, "applications in R are not supported: keep them where they are")
    if base.endswith(".py"):
        draft.put("type", "Python")
        if main_class is not None:
            draft.note("--class", "a Python application has none: it is left out")
    elif main_class is None:
        raise Unconvertible("--class", f"is missing: name the class of {file} that has the main method")
    else:
        draft.put("type", "Scala")
        draft.put("mainClass", main_class)
