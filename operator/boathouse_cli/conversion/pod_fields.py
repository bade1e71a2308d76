"""Fields of pods, of either origin, as fields of a SparkApp."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from boathouse.resources.sparkapp.names import ACCOUNT, ACCOUNT_PATTERN
from boathouse.resources.sparkapp.spec import RESERVED_VARIABLES
from boathouse_cli.conversion import volumes
from boathouse_cli.conversion.draft import EXECUTOR, ROLES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_cli.conversion.draft import Draft

HADOOP_CONF: Final = "/mnt/hadoop-conf"
MAX_NAME: Final = 52
"""Room for a suffix of the API server's, and for those of pods."""
_LABEL: Final = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_OURS: Final = ("boathouse.dev/", "app.kubernetes.io/")
_REFERENCES: Final = ("secretKeyRef", "configMapKeyRef")


def object_name(text: str) -> str:
    """Return a name for an object: that of an application may have spaces and capitals."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name[:MAX_NAME].rstrip("-") or "spark"


def put_images(draft: Draft, path: str, image: str | None, by_role: Mapping[str, str]) -> None:
    """Set the image; driver and executors have the same."""
    found = dict.fromkeys([*([image] if image else []), *by_role.values()])
    chosen = by_role.get(f"{EXECUTOR}.") or image or next(iter(found), None)
    if chosen is None:
        return
    draft.put("image", chosen)
    if len(found) > 1:
        draft.note(path, f"driver and executors run the same image: {chosen} is taken, of {', '.join(found)}")


def put_driver_account(draft: Draft, path: str, account: str) -> None:
    """Set the driver's account, if it is one that a driver may have."""
    if re.fullmatch(ACCOUNT_PATTERN.strip("^$"), account) is None:
        draft.note(
            path,
            f"drivers do not run as {account}: allow them in the namespace by `boathouse enable-spark`, which creates "
            f"the account {ACCOUNT}; executors have spec.serviceAccountName, and not the driver's account as in Spark",
        )
    elif account != ACCOUNT:
        draft.put("driver.serviceAccountName", account)


def put_executor_account(draft: Draft, path: str, account: str) -> None:
    """Set the executors' account, unless it has a driver's rights."""
    if account.startswith(ACCOUNT):
        draft.note(path, "executors may not have a driver's rights: they run as default, or set serviceAccountName")
    elif account != "default":
        draft.put("serviceAccountName", account)


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
    for key in given:
        if known.get(key, given[key]) != given[key]:
            draft.note(path, f"{key}: is given twice, and this one is taken: remove the other")
        if key.startswith(_OURS):
            draft.note(path, f"{what} that begin with {' or '.join(_OURS)} belong to Boathouse: choose other names")
    draft.merge(f"{role}.{what}", {key: str(value) for key, value in given.items() if not key.startswith(_OURS)})


def put_variables(draft: Draft, role: str, path: str, given: Sequence[Mapping[str, Any]]) -> None:
    """Add environment variables to a role; of two with a name the last one counts, as in a container."""
    found: dict[str, dict[str, Any]] = {}
    for each in given:
        name, value_from = str(each.get("name", "")), each.get("valueFrom")
        source: Mapping[str, Any] = value_from if isinstance(value_from, dict) else {}
        reference = next((kind for kind in _REFERENCES if isinstance(source.get(kind), dict)), None)
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
            value = each.get("value")
            _replace(draft, path, found, {"name": name, "value": "" if value is None else str(value)})
    known = {each["name"]: each for each in draft.get(f"{role}.env") or ()}
    for variable in found.values():
        _replace(draft, path, known, variable)
    draft.extend(f"{role}.env", list(found.values()))


def _replace(draft: Draft, path: str, known: dict[str, dict[str, Any]], variable: dict[str, Any]) -> None:
    name = variable["name"]
    if known.get(name, variable) != variable:
        draft.note(path, f"{name}: is given twice, and the last one is taken: remove the other")
    known[name] = variable


def put_hadoop_config_map(draft: Draft, path: str, name: str) -> None:
    """Mount a ConfigMap with Hadoop's files, and name its folder to Hadoop."""
    source = {"configMap": {"name": name}}
    mounts = [
        volumes.Mount(role=role, path=path, name="hadoop-conf", mount_path=HADOOP_CONF, source=source) for role in ROLES
    ]
    volumes.convert(draft, mounts)
    draft.extend("env", [{"name": "HADOOP_CONF_DIR", "value": HADOOP_CONF}])
