"""Fields of pods, of either origin, as fields of a SparkApp, and where the files of an application are in its pods."""

import dataclasses
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.resources.sparkapp.names import ACCOUNT, ACCOUNT_PATTERN
from boathouse.resources.sparkapp.program import SCHEMES, TAKEN_FOLDERS
from boathouse.resources.sparkapp.spec import RESERVED_VARIABLES
from boathouse_cli.conversion.draft import CARRIED_PATH, EXECUTOR, ROLES, Draft, Unconvertible

_URI: Final = re.compile(rf"(?:{'|'.join(SCHEMES)})://[^, ]+")
EMPTY_SIZE: Final = "10Gi"
"""Of an emptyDir that has no limit: a SparkApp needs one."""
DEFAULT_MOUNT: Final = "/data"
_PATH: Final = re.compile(r"(?:/[-._a-zA-Z0-9]+)+")
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
_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_OURS: Final = ("boathouse.dev/", "app.kubernetes.io/")


def is_loadable(uri: str) -> bool:
    """Return whether the API server accepts a URI, apart from `file:` URIs outside of mounts."""
    is_path_absolute = not uri.startswith(("local:", "file:")) or re.match(r"\w+:///[^/]", uri) is not None
    return _URI.fullmatch(uri) is not None and is_path_absolute and uri.isprintable()


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
    is_path = _PATH.fullmatch(path) is not None and "/." not in path
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


def put_images(draft: Draft, path: str, by_role: Mapping[str, str]) -> None:
    """Set the image; driver and executors have the same."""
    found = dict.fromkeys(by_role.values())
    chosen = by_role.get(f"{EXECUTOR}.") or next(iter(found))
    draft.put("image", chosen)
    if len(found) > 1:
        draft.note(path, f"driver and executors run the same image: {chosen} is taken, of {', '.join(found)}")


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
    if re.fullmatch(_LABEL, name) is None:
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
