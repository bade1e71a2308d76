"""Volumes of drivers and executors, which a SparkApp mounts in both."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from boathouse.resources.sparkapp.volumes import TAKEN_FOLDERS
from boathouse_cli.conversion.draft import ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_cli.conversion.draft import Draft

EMPTY_SIZE: Final = "10Gi"
"""Of an emptyDir that has no limit: a SparkApp needs one."""
DEFAULT_MOUNT: Final = "/data"
_LOCAL: Final = "spark-local-dir-"
_OWN: Final = ("boathouse-", "spark-")
_PATH: Final = re.compile(r"(?:/[-._a-zA-Z0-9]+)+")
_MAX_NAME: Final = 58
"""Room for a number; names of objects are longer than those of volumes, and have dots."""
_SHARED_TAKEN: Final = ("work", "tmp", "files", "var", "opt")
_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "persistentVolumeClaim": ("claimName", "claimName"),
    "configMap": ("name", "configMapName"),
    "secret": ("secretName", "secretName"),
}
"""Kinds of volumes, with the field that names the object: Kubernetes', and a SparkApp's."""
_DEFAULT_MODES: Final = (None, 0o644)
_READ: Final = ("items", "optional", "defaultMode", "readOnly")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A volume at a path of one role.

    Attributes:
        path: Where it is said, for notes.
        source: Kubernetes' kind of volume, such as `configMap`, with its fields.
    """

    role: str
    path: str
    name: str
    mount_path: str
    source: Mapping[str, Any]
    sub_path: str = ""
    is_read_only: bool = False


def convert(draft: Draft, mounts: list[Mount]) -> None:
    """Add volumes to a draft; those of one role only are then in both."""
    present = {each["mountPath"] for each in draft.get("volumes") or ()}
    volumes: dict[str, dict[str, Any]] = {}
    roles: dict[str, set[str]] = {}
    for mount in mounts:
        volume = _volume(draft, mount)
        if volume is None:
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
    claims = [each for each in volumes if "claimName" in each and "readOnly" not in each]
    if (
        len(claims) == 1
        and draft.get("storage.volume") is None
        and claims[0]["mountPath"].split("/")[1] not in _SHARED_TAKEN
    ):
        volumes.remove(claims[0])
        at = {} if claims[0]["mountPath"] == DEFAULT_MOUNT else {"mountPath": claims[0]["mountPath"]}
        draft.put("storage.volume", {"claimName": claims[0]["claimName"], **at})
    taken = {each["name"] for each in draft.get("volumes") or ()}
    for each in volumes:
        each["name"] = _free_name(each["name"], taken)
        taken.add(each["name"])
    draft.extend("volumes", volumes)


def _free_name(wanted: str, taken: set[str]) -> str:
    label = re.sub(r"[^a-z0-9]+", "-", wanted.lower()).strip("-")[:_MAX_NAME].rstrip("-") or "volume"
    base = f"v-{label}" if label.startswith(_OWN) else label
    numbered = (base if number == 1 else f"{base}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)


def _volume(draft: Draft, mount: Mount) -> dict[str, Any] | None:
    if mount.name.startswith(_LOCAL):
        draft.note(
            mount.path,
            "Boathouse mounts an emptyDir for Spark's local files: remove it, and set driver.ephemeralStorage or "
            "executor.ephemeralStorage",
        )
        return None
    if mount.sub_path:
        draft.note(mount.path, "subPath has no counterpart: mount the whole volume at a folder of its own")
        return None
    if (problem := _problem_of_path(mount.mount_path)) is not None:
        draft.note(mount.path, f"{problem}: mount it at another folder, such as /mnt/{mount.name}")
        return None
    source = _source(draft, mount)
    if source is None:
        return None
    given = next(iter(mount.source.values()), None)
    is_read_only = mount.is_read_only or (isinstance(given, dict) and given.get("readOnly") in {True, "true"})
    read_only = {"readOnly": True} if is_read_only else {}
    return {"name": mount.name, "mountPath": mount.mount_path, **read_only, **source}


def _problem_of_path(path: str) -> str | None:
    if _PATH.fullmatch(path) is None or "/." in path:
        return f"{path} is no path that a SparkApp takes"
    is_taken = any(path == f"/{taken}" or path.startswith(f"/{taken}/") for taken in TAKEN_FOLDERS)
    return f"{path} is taken in the pods of a SparkApp" if is_taken else None


def _source(draft: Draft, mount: Mount) -> dict[str, Any] | None:
    kind, given = next(iter(mount.source.items()), ("", None))
    fields: Mapping[str, Any] = given if isinstance(given, dict) else {}
    if kind == "emptyDir":
        return _empty(draft, mount, fields)
    theirs, ours = _SOURCES.get(kind, ("", ""))
    if not ours or not fields.get(theirs):
        draft.note(
            mount.path,
            f"volumes of type {kind or 'unknown'} have no counterpart: use a PersistentVolumeClaim, a ConfigMap, a "
            "Secret or an emptyDir",
        )
        return None
    if fields[theirs] == "OnDemand":
        draft.note(mount.path, "drivers may not create claims: create one, and name it")
        return None
    if fields.get("items") or fields.get("optional"):
        draft.note(mount.path, "items and optional have no counterpart: all keys are mounted, and it must exist")
    if fields.get("defaultMode") not in _DEFAULT_MODES:
        draft.note(mount.path, "defaultMode has no counterpart: files have the mode 0644")
    for key, value in fields.items():
        if value and key not in {theirs, *_READ}:
            draft.note(mount.path, f"{key} of the volume has no counterpart: remove it")
    return {ours: str(fields[theirs])}


def _empty(draft: Draft, mount: Mount, fields: Mapping[str, Any]) -> dict[str, Any]:
    if fields.get("medium"):
        draft.note(mount.path, "an emptyDir in memory has no counterpart: it is on the node's disk")
    if not fields.get("sizeLimit"):
        draft.note(mount.path, f"an emptyDir needs a size: {EMPTY_SIZE} is written, correct it")
    return {"emptyDirSize": fields.get("sizeLimit") or EMPTY_SIZE}
