"""Fields of pods as fields of a SparkApp, and where the files of an application are in its pods.

They come from properties, or from a SparkApplication, with flat fields or a template (`PodSpecs`).
"""

import dataclasses
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from boathouse.resources import names
from boathouse.resources.sparkapp.names import ACCOUNT, ACCOUNT_PATTERN
from boathouse.resources.sparkapp.program import SCHEMES, TAKEN_FOLDERS
from boathouse.resources.sparkapp.spec import RESERVED_VARIABLES
from boathouse_cli.conversion.draft import CARRIED_PATH, EXECUTOR, ROLES, Draft, Unconvertible
from boathouse_cli.conversion.fields import Fields

EMPTY_SIZE: Final = "10Gi"
"""Of an emptyDir that has no limit: a SparkApp needs one."""
DEFAULT_MOUNT: Final = "/data"
_MAX_NAME: Final = 58
"""Room for a number; names of objects are longer than those of volumes, and have dots."""
_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "persistentVolumeClaim": ("claimName", "claimName"),
    "configMap": ("name", "configMapName"),
    "secret": ("secretName", "secretName"),
}
"""Kinds of volumes, with the field that names the object: Kubernetes', and a SparkApp's."""
HADOOP_CONF: Final = "/mnt/hadoop-conf"
MAX_NAME: Final = 52
"""Room for a suffix of the API server's, and for those of pods."""
_OURS: Final = ("boathouse.dev/", "app.kubernetes.io/")
_RESTRICTED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the pods of a SparkApp have anyway."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATION: Final = ("key", "operator", "value", "effect", "tolerationSeconds")


def is_loadable(uri: str) -> bool:
    """Return whether the API server accepts a URI, apart from `file:` URIs outside of mounts."""
    is_path_absolute = not uri.startswith(("local:", "file:")) or re.match(r"\w+:///[^/]", uri) is not None
    is_uri = re.fullmatch(rf"(?:{'|'.join(SCHEMES)})://[^, ]+", uri) is not None
    return is_uri and is_path_absolute and uri.isprintable()


def in_pods(draft: Draft, path: str, text: str) -> str:
    """Return the URI of a URI or path as pods see it, with a note if it is a file of the machine of `spark-submit`.

    The draft's volumes are known: `file:` is kept below them.
    """
    text = text.strip()
    match = re.fullmatch(r"([A-Za-z][-+.A-Za-z0-9]*):(.*)", text, re.DOTALL)
    scheme, rest = match.groups() if match else ("", text)
    if scheme not in {"", "local", "file"}:
        return text
    location = "/" + rest.lstrip("/") if scheme or rest.startswith("/") else posixpath.join("/opt/spark/work-dir", rest)
    location = posixpath.normpath(location) if rest else location
    if scheme == "local":
        return f"local://{location}"
    shared = draft.get("storage.volume")
    mounts = [shared.get("mountPath", DEFAULT_MOUNT)] if shared else []
    if any(location.startswith(f"{mount}/") for mount in [*mounts, *_volume_paths(draft)]):
        return f"file://{location}"
    if draft.carried is not None:
        name, mark, alias = text.partition("#")
        return f"file://{CARRIED_PATH}/{draft.carried.add(name)}{mark}{alias}"
    draft.note(
        path,
        f"{text} is a file of the machine of spark-submit, and Boathouse uploads none: put it into the image "
        f"at {location}, as the SparkApp says, or into a store or volume, and correct its URI",
    )
    return f"local://{location}"


def main_file(draft: Draft, path: str, text: str) -> str:
    """Return the URI of the program."""
    uri = in_pods(draft, path, text)
    if not is_loadable(uri):
        schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise Unconvertible(path, f"{uri} cannot be loaded by a driver: copy it to one of {schemes}")
    return uri


def _volume_paths(draft: Draft) -> list[str]:
    return [volume["mountPath"] for volume in draft.get("volumes") or ()]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume at a path of one role: where that is said, and Kubernetes' kind of volume with its fields."""

    role: str
    path: str
    name: str
    mount_path: str
    source: Mapping[str, Any]
    sub_path: str = ""
    is_read_only: bool = False


def convert(draft: Draft, mounts: list[Mount]) -> None:
    """Add volumes to a draft; those of one role only are then in both."""
    present = set(_volume_paths(draft))
    volumes: dict[str, dict[str, Any]] = {}
    roles: dict[str, set[str]] = {}
    for mount in mounts:
        try:
            volume = _volume(draft, mount)
        except Unconvertible as why:
            draft.note(why.path, why.advice)
            continue
        known = volumes.setdefault(mount.mount_path, volume)
        if mount.mount_path in present or {**known, "name": ""} != {**volume, "name": ""}:
            draft.note(mount.path, f"another volume is at {mount.mount_path}: mount this one elsewhere")
            continue
        roles.setdefault(mount.mount_path, set()).add(mount.role)
    for mount_path, found in roles.items():
        if len(found) < len(ROLES):
            draft.note(
                f"volume {volumes[mount_path]['name']}",
                f"was mounted by the {found.pop()} alone; a SparkApp mounts it in all pods: check that this may be",
            )
    _put(draft, [volume for path, volume in volumes.items() if path not in present])


def _put(draft: Draft, volumes: list[dict[str, Any]]) -> None:
    claims = [volume for volume in volumes if "claimName" in volume and "readOnly" not in volume]
    if len(claims) == 1 and draft.get("storage.volume") is None:
        claim, mount_path = claims[0]["claimName"], claims[0]["mountPath"]
        if mount_path.split("/")[1] not in {"work", "tmp", "files", "var", "opt"}:
            volumes.remove(claims[0])
            at = {} if mount_path == DEFAULT_MOUNT else {"mountPath": mount_path}
            draft.put("storage.volume", {"claimName": claim, **at})
    taken = {volume["name"] for volume in draft.get("volumes") or ()}
    for volume in volumes:
        label = dashed(volume["name"], _MAX_NAME) or "volume"
        base = f"v-{label}" if label.startswith(("boathouse-", "spark-")) else label
        numbered = (base, *(f"{base}-{number}" for number in range(2, len(taken) + 2)))
        volume["name"] = next(name for name in numbered if name not in taken)
        taken.add(volume["name"])
    draft.extend("volumes", volumes)


def _volume(draft: Draft, mount: Mount) -> dict[str, Any]:
    if mount.name.startswith("spark-local-dir-"):
        advice = "remove it, and set driver.ephemeralStorage or executor.ephemeralStorage"
        raise Unconvertible(mount.path, f"Boathouse mounts an emptyDir for Spark's local files: {advice}")
    if mount.sub_path:
        raise Unconvertible(mount.path, "subPath has no counterpart: mount the whole volume at a folder of its own")
    path = mount.mount_path
    is_path = re.fullmatch(r"(?:/[-._a-zA-Z0-9]+)+", path) is not None and "/." not in path
    if not is_path or any(f"{path}/".startswith(f"/{taken}/") for taken in TAKEN_FOLDERS):
        problem = "is taken in the pods of a SparkApp" if is_path else "is no path that a SparkApp takes"
        raise Unconvertible(mount.path, f"{path} {problem}: mount it at another folder, such as /mnt/{mount.name}")
    given = next(iter(mount.source.values()), None)
    is_read_only = mount.is_read_only or (isinstance(given, dict) and given.get("readOnly") in {True, "true"})
    volume = {"name": mount.name, "mountPath": path} | ({"readOnly": True} if is_read_only else {})
    return volume | _source(draft, mount)


def _source(draft: Draft, mount: Mount) -> dict[str, Any]:
    kind, given = next(iter(mount.source.items()), ("", None))
    fields: Mapping[str, Any] = given if isinstance(given, dict) else {}
    if kind == "emptyDir":
        if fields.get("medium"):
            draft.note(mount.path, "an emptyDir in memory has no counterpart: it is on the node's disk")
        if not fields.get("sizeLimit"):
            draft.note(mount.path, f"an emptyDir needs a size: {EMPTY_SIZE} is written, correct it")
        return {"emptyDirSize": fields.get("sizeLimit") or EMPTY_SIZE}
    theirs, ours = _SOURCES.get(kind, ("", ""))
    if not ours or not fields.get(theirs):
        advice = "use a PersistentVolumeClaim, a ConfigMap, a Secret or an emptyDir"
        raise Unconvertible(mount.path, f"volumes of type {kind or 'unknown'} have no counterpart: {advice}")
    if fields[theirs] == "OnDemand":
        raise Unconvertible(mount.path, "drivers may not create claims: create one, and name it")
    if fields.get("items") or fields.get("optional"):
        draft.note(mount.path, "items and optional have no counterpart: all keys are mounted, and it must exist")
    if fields.get("defaultMode") not in (None, 0o644):
        draft.note(mount.path, "defaultMode has no counterpart: files have the mode 0644")
    for key, value in fields.items():
        if value and key not in {theirs, "items", "optional", "defaultMode", "readOnly"}:
            draft.note(mount.path, f"{key} of the volume has no counterpart: remove it")
    return {ours: str(fields[theirs])}


def dashed(text: str, most: int) -> str:
    """Return a text in lower case with dashes in place of all but letters and digits; most are its characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:most].rstrip("-")


def object_name(text: str) -> str:
    """Return a name for an object: that of an application may have spaces and capitals."""
    return dashed(text, MAX_NAME) or "spark"


def put_account(draft: Draft, path: str, account: str, *, role: str) -> None:
    """Set the account of a role: a driver has one of its own, and executors have none with a driver's rights."""
    if role == EXECUTOR:
        if account.startswith(ACCOUNT):
            draft.note(path, "executors may not have a driver's rights: they run as default, or set serviceAccountName")
        elif account != "default":
            draft.put("serviceAccountName", account)
    elif re.fullmatch(ACCOUNT_PATTERN.strip("^$"), account) is None:
        draft.note(
            path,
            f"drivers do not run as {account}: allow them in the namespace by `boathouse enable-spark`, which creates "
            f"the account {ACCOUNT}; executors have spec.serviceAccountName, and not the driver's account as in Spark",
        )
    elif account != ACCOUNT:
        draft.put("driver.serviceAccountName", account)


def put_queue(draft: Draft, path: str, queue: str) -> None:
    """Set the queue, if its name can be one of Boathouse."""
    name = queue.removeprefix("root.")
    if re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) is None:
        draft.note(path, f"{queue} cannot be a queue of Boathouse: set spec.queue to one of `boathouse queues`")
    elif name != "default":
        draft.put("queue", name)


def put_metadata(draft: Draft, role: str, path: str, what: str, given: Mapping[str, str]) -> None:
    """Add labels or annotations of a role's pods; they replace those with the same key."""
    known = draft.get(f"{role}.{what}") or {}
    for key, value in given.items():
        if known.get(key, value) != value:
            draft.note(path, f"{key}: is given twice, and this one is taken: remove the other")
        if key.startswith(_OURS):
            draft.note(path, f"{what} that begin with {' or '.join(_OURS)} belong to Boathouse: choose other names")
    draft.merge(f"{role}.{what}", {key: str(value) for key, value in given.items() if not key.startswith(_OURS)})


def put_variables(draft: Draft, role: str, path: str, given: Sequence[Mapping[str, Any]]) -> None:
    """Add environment variables to a role; of two with a name the last one counts, as in a container."""
    found: dict[str, dict[str, Any]] = {}
    for env_var in given:
        name, given_source = str(env_var.get("name", "")), env_var.get("valueFrom")
        source: Mapping[str, Any] = given_source if isinstance(given_source, dict) else {}
        references = (kind for kind in ("secretKeyRef", "configMapKeyRef") if isinstance(source.get(kind), dict))
        reference = next(references, None)
        if re.fullmatch(RESERVED_VARIABLES, name) or name.startswith("BOATHOUSE_"):
            draft.note(path, f"{name}: Spark or Boathouse sets this variable: remove it")
        elif source and reference is None:
            draft.note(path, f"{name}: {', '.join(source)} has no counterpart: use secretKeyRef or configMapKeyRef")
        elif reference is not None:
            key = {part: str(source[reference][part]) for part in ("name", "key") if source[reference].get(part)}
            if source[reference].get("optional"):
                draft.note(path, f"{name}: optional has no counterpart: the {reference[:-6]} and its key must exist")
            _replace(draft, path, found, {"name": name, "valueFrom": {reference: key}})
        else:
            value = env_var.get("value")
            _replace(draft, path, found, {"name": name, "value": "" if value is None else str(value)})
    known = {variable["name"]: variable for variable in draft.get(f"{role}.env") or ()}
    for variable in found.values():
        _replace(draft, path, known, variable)
    draft.extend(f"{role}.env", list(found.values()))


def _replace(draft: Draft, path: str, known: dict[str, dict[str, Any]], variable: dict[str, Any]) -> None:
    name = variable["name"]
    if known.get(name, variable) != variable:
        draft.note(path, f"{name}: is given twice, and the last one is taken: remove the other")
    known[name] = variable


def mount_config_map(draft: Draft, path: str, name: str, *, volume: str, mount_path: str) -> None:
    """Mount a ConfigMap in driver and executors."""
    source = {"configMap": {"name": name}}
    convert(draft, [Mount(role=role, path=path, name=volume, mount_path=mount_path, source=source) for role in ROLES])


def put_hadoop_config_map(draft: Draft, path: str, name: str) -> None:
    """Mount a ConfigMap with Hadoop's files, and name its folder to Hadoop."""
    mount_config_map(draft, path, name, volume="hadoop-conf", mount_path=HADOOP_CONF)
    draft.extend("env", [{"name": "HADOOP_CONF_DIR", "value": HADOOP_CONF}])


class PodSpecs:
    """The pods of driver and executors, as they are converted, with the volumes of the spec; `mounts` is the result."""

    def __init__(self, draft: Draft, volumes: list[Mapping[str, Any]]) -> None:
        self._draft, self._volumes = draft, volumes
        self._of_both: dict[str, dict[str, tuple[str, Any]]] = {}
        self._security_of: dict[tuple[str, str], dict[str, tuple[str, Any]]] = {}
        self.mounts: list[Mount] = []

    def convert(self, role: str, fields: Fields) -> None:
        """Convert what the other operator sets in a role's pods itself: it wins over the template and properties."""
        self._pod(role, fields, security="podSecurityContext")
        self._container(role, fields)
        gpu = fields.inner("gpu")
        name, quantity = gpu.text("name"), gpu.take("quantity")
        if isinstance(quantity, int) and name is not None:
            self._draft.merge(f"{role}.extendedResources", {name: quantity} if quantity > 0 else {})
        elif name is not None or quantity is not None:
            self._draft.note(
                fields.path("gpu"), "has no name and whole quantity: write both, such as nvidia.com/gpu, 1"
            )
        gpu.note_left(self._draft)

    def finish(self, *, priority_class: str | None) -> None:
        """Set the fields that driver and executors have in common."""
        field, path = "podTemplate.priorityClassName", "spec.batchSchedulerOptions.priorityClassName"
        given = self._of_both.get(field)
        if priority_class and given is None:
            for role in ROLES:
                self._share(field, role, path, priority_class)
        elif priority_class and given and any(value != priority_class for _, value in given.values()):
            self._draft.note(path, "driver and executor say otherwise, and are taken: remove one of them")
        for field, by_role in self._of_both.items():
            path, value = by_role.get(EXECUTOR) or next(iter(by_role.values()))
            self._draft.put(field, value)
            if any(by_role.get(role, ("", None))[1] != value for role in ROLES):
                self._draft.note(path, f"spec.{field} is of driver and executors alike: check that this may be")

    def _share(self, field: str, role: str, path: str, value: Any) -> None:
        if value:
            self._of_both.setdefault(field, {})[role] = (path, value)

    def _withdraw(self, field: str, role: str) -> None:
        """Forget what the template of a role says: it is replaced."""
        by_role = self._of_both.get(field, {})
        by_role.pop(role, None)
        if not by_role:
            self._of_both.pop(field, None)

    def convert_template(self, role: str, template: Fields) -> None:
        """Convert a role's template, over which properties and fields win."""
        metadata = template.inner("metadata")
        for what in ("labels", "annotations"):
            put_metadata(self._draft, role, metadata.path(what), what, metadata.texts(what))
        spec = template.inner("spec")
        containers = spec.mappings("containers")
        main = _named(f"spark-kubernetes-{role}", containers) or (containers[0] if containers else {})
        if len(containers) > 1:
            self._draft.note(spec.path("containers"), "only Spark's container is run: the others have no counterpart")
        container = Fields({**main, "name": None}, spec.path("containers[0]"))
        self._volumes = [*self._volumes, *spec.mappings("volumes")]
        self._pod(role, spec, security="securityContext")
        if (account := spec.text("serviceAccountName")) is not None:
            put_account(self._draft, spec.path("serviceAccountName"), account, role=role)
        self._draft.extend("imagePullSecrets", [dict(secret) for secret in spec.mappings("imagePullSecrets")])
        self._resources(role, container.inner("resources"))
        self._container(role, container)
        for fields in (metadata, template, spec, container):
            fields.note_left(self._draft)

    def _container(self, role: str, fields: Fields) -> None:
        put_variables(self._draft, role, fields.path("env"), fields.mappings("env"))
        if sources := fields.mappings("envFrom"):
            _, shared = self._of_both.get("envFrom", {}).get(role, ("", ()))
            of_template = [source for source in shared if source not in sources]
            self._share("envFrom", role, fields.path("envFrom"), [*of_template, *sources])
        self._security(role, "container", fields.inner("securityContext"))
        for given in fields.mappings("volumeMounts"):
            name = str(given.get("name"))
            mount = Fields({**given, "name": None}, f"{fields.path('volumeMounts')}.{name}")
            self.mounts.append(
                Mount(
                    role=role,
                    path=f"{fields.path('volumeMounts')}.{name}",
                    name=name,
                    mount_path=(mount.text("mountPath") or "").rstrip("/"),
                    source={kind: part for kind, part in _named(name, self._volumes).items() if kind != "name"},
                    sub_path=mount.text("subPath") or mount.text("subPathExpr") or "",
                    is_read_only=bool(mount.take("readOnly")),
                )
            )
            mount.note_left(self._draft)
        for config_map in fields.mappings("configMaps"):
            name, mount_path = str(config_map.get("name")), str(config_map.get("path")).rstrip("/")
            path, source = f"{fields.path('configMaps')}.{name}", {"configMap": {"name": config_map.get("name")}}
            self.mounts.append(Mount(role=role, path=path, name=name, mount_path=mount_path, source=source))

    def _pod(self, role: str, fields: Fields, *, security: str) -> None:
        draft = self._draft
        draft.merge(f"{role}.nodeSelector", fields.texts("nodeSelector"))
        tolerations = [
            {key: value for key, value in toleration.items() if key in _TOLERATION and value is not None}
            for toleration in fields.mappings("tolerations")
        ]
        draft.extend(f"{role}.tolerations", tolerations)
        self._affinity(role, fields.inner("affinity"))
        self._security(role, "pod", fields.inner(security))
        self._share(
            "podTemplate.priorityClassName", role, fields.path("priorityClassName"), fields.text("priorityClassName")
        )
        if (scheduler := fields.text("schedulerName")) not in {None, names.SCHEDULER_NAME}:
            draft.note(fields.path("schedulerName"), f"{scheduler}: Boathouse schedules its own pods: remove it")

    def _affinity(self, role: str, affinity: Fields) -> None:
        if affinity.names():  # it replaces that of the template
            self._withdraw("podTemplate.affinity", role)
        node = affinity.inner("nodeAffinity")
        required = node.inner(_REQUIRED)
        path = required.path("nodeSelectorTerms")
        terms = []
        for term in required.mappings("nodeSelectorTerms"):
            if term.get("matchExpressions"):
                terms.append({"matchExpressions": term["matchExpressions"]})
            for field in sorted(key for key, value in term.items() if value and key != "matchExpressions"):
                self._draft.note(
                    f"{path}.{field}", "has no counterpart: use matchExpressions on kubernetes.io/hostname"
                )
        if terms:
            value = {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": terms}}}
            self._share("podTemplate.affinity", role, affinity.path("nodeAffinity"), value)
        for fields in (affinity, node, required):
            fields.note_left(
                self._draft, advice="only required node affinity is converted: see podTemplate.affinity for other pods"
            )

    def _security(self, role: str, level: str, context: Fields) -> None:
        """Convert the context of a pod or of its container, which wins; each replaces that of the template."""
        is_given = bool(context.names())
        ids = {key: context.take(key) for key in ("runAsUser", "runAsGroup", "fsGroup")}
        found: dict[str, Any] = {key: value for key, value in ids.items() if value is not None}
        groups = context.items("supplementalGroups")
        for key in [key for key, value in found.items() if not value]:
            self._draft.note(context.path(key), "pods of a SparkApp do not run as root: remove it")
            del found[key]
        found |= {"supplementalGroups": groups} if groups else {}
        if is_given:
            self._security_of[role, level] = {key: (context.path(key), value) for key, value in found.items()}
            both = self._security_of.get((role, "pod"), {}) | self._security_of.get((role, "container"), {})
            self._withdraw("podTemplate.securityContext", role)
            if both:
                path = next(path for path, _ in both.values())
                self._share("podTemplate.securityContext", role, path, {key: value for key, (_, value) in both.items()})
        for key, value in _RESTRICTED.items():
            given = context.take(key)
            if given is not None and given != value:
                self._draft.note(context.path(key), "pods of a SparkApp keep to Pod Security restricted: remove it")
        context.note_left(self._draft)

    def _resources(self, role: str, resources: Fields) -> None:
        """Convert what Spark does not compute: it ignores CPU and memory of a template."""
        for part in ("limits", "requests"):
            for name, amount in resources.texts(part).items():
                if name == "ephemeral-storage":
                    self._draft.put(f"{role}.ephemeralStorage", amount)
                elif "/" in name:
                    self._draft.merge(f"{role}.extendedResources", {name: amount})
        resources.note_left(self._draft)


def _named(name: str, candidates: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return next((candidate for candidate in candidates if candidate.get("name") == name), {})
