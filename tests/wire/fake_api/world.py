"""The objects of the fake API server, their revisions, and who watches them. No HTTP here."""

from __future__ import annotations

import copy
import dataclasses
import json
import uuid
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from tests.wire.fake_api import merging

if TYPE_CHECKING:
    from collections.abc import Callable

Manifest = dict[str, Any]

PLURALS = {
    "Pod": "pods",
    "Node": "nodes",
    "ConfigMap": "configmaps",
    "Lease": "leases",
    "Event": "events",
    "NetworkPolicy": "networkpolicies",
    "DeviceClass": "deviceclasses",
}
_NOW = "2026-01-01T00:00:00Z"


class Refused(Exception):  # noqa: N818 - it is an answer
    """The API server's no."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One change in the history of a kind."""

    revision: int
    before: Manifest | None
    after: Manifest | None


@dataclasses.dataclass(eq=False, slots=True, kw_only=True)
class Watcher:
    """A watch: what it selects, and where its lines go."""

    plural: str
    namespace: str | None
    labels: str
    fields: str
    send: Callable[[bytes], None]

    def selects(self, manifest: Manifest | None) -> bool:
        """Say whether an object is in the selection."""
        return (
            manifest is not None
            and self.namespace in {None, manifest["metadata"].get("namespace")}
            and merging.matches_labels(manifest, self.labels)
            and merging.matches_fields(manifest, self.fields)
        )

    def line(self, step: Step) -> bytes | None:
        """Return the event that this watch gets for a step; an object that leaves the selection is DELETED."""
        was, is_now = self.selects(step.before), self.selects(step.after)
        if not was and not is_now:
            return None
        if is_now:
            return event_line("MODIFIED" if was else "ADDED", step.after or {})
        last = copy.deepcopy(step.before or {})
        last["metadata"]["resourceVersion"] = str(step.revision)
        return event_line("DELETED", last)


def event_line(kind: str, manifest: Manifest) -> bytes:
    """Return a line of a WATCH."""
    return json.dumps({"type": kind, "object": manifest}).encode() + b"\n"


def key_of(manifest: Manifest) -> str:
    """Return `namespace/name`."""
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]


class World:
    """Every object, by plural and key. Manifests handed out are the stored ones: read, do not write.

    Attributes:
        date: What the server takes for now.
        changes: How many changes there were, by plural.
    """

    def __init__(self) -> None:
        self.date = _NOW
        self.revision = 100
        self.compacted = 0
        self.watchers: list[Watcher] = []
        self.histories: dict[str, list[Step]] = defaultdict(list)
        self.changes: Counter[str] = Counter()
        self._objects: dict[str, dict[str, Manifest]] = defaultdict(dict)
        self._uids = 0

    def objects(self, plural: str) -> dict[str, Manifest]:
        """Return the objects of a kind, by `namespace/name`."""
        return self._objects[plural]

    def find(self, plural: str, key: str) -> Manifest:
        """Return an object or refuse with 404."""
        try:
            return self._objects[plural][key]
        except KeyError:
            raise Refused(404, "NotFound", f'{plural} "{key}" not found') from None

    def create(self, plural: str, manifest: Manifest) -> Manifest:
        """Store a new object with a UID, a revision and the defaults that matter here."""
        new = copy.deepcopy(manifest)
        metadata = new["metadata"]
        if "name" not in metadata:
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        key = key_of(new)
        if key in self._objects[plural]:
            raise Refused(409, "AlreadyExists", f'{plural} "{metadata["name"]}" already exists')
        self._uids += 1
        metadata |= {"uid": f"uid-{self._uids:06}", "creationTimestamp": self.date, "generation": 1}
        if plural == "pods":
            _default_pod(new)
        return self._store(plural, key, None, new)

    def update(self, plural: str, key: str, new: Manifest) -> Manifest:
        """Replace an object, if the new one's uid and resourceVersion, where given, are the stored one's."""
        old = self.find(plural, key)
        wanted, actual = new["metadata"], old["metadata"]
        for name in ("uid", "resourceVersion"):
            if wanted.get(name) and wanted[name] != actual[name]:
                raise Refused(409, "Conflict", f"Precondition failed: {name} {wanted[name]}, not {actual[name]}")
        new = copy.deepcopy(new)
        new["metadata"] |= {name: actual[name] for name in ("uid", "creationTimestamp", "generation")}
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        stored = self._store(plural, key, old, new)
        if (
            plural != "pods"
            and stored["metadata"].get("deletionTimestamp")
            and not stored["metadata"].get("finalizers")
        ):
            self.delete(plural, key)
        return stored

    def begin_deletion(self, plural: str, key: str, uid: str | None = None) -> Manifest:
        """Remove an object, or mark it as being deleted while it has finalizers."""
        old = self.find(plural, key)
        if not old["metadata"].get("finalizers"):
            return self.delete(plural, key, uid)
        marked = copy.deepcopy(old)
        marked["metadata"].setdefault("deletionTimestamp", self.date)
        return self.update(plural, key, marked)

    def delete(self, plural: str, key: str, uid: str | None = None) -> Manifest:
        """Remove an object at once."""
        old = self.find(plural, key)
        if uid and uid != old["metadata"]["uid"]:
            raise Refused(409, "Conflict", f"Precondition failed: UID {uid}, not {old['metadata']['uid']}")
        self.revision += 1
        del self._objects[plural][key]
        self._tell(plural, Step(self.revision, old, None))
        return old

    def backup(self) -> tuple[int, dict[str, dict[str, Manifest]]]:
        """Return all objects as they are, for `restore`."""
        return self.revision, copy.deepcopy(dict(self._objects))

    def restore(self, backup: tuple[int, dict[str, dict[str, Manifest]]]) -> None:
        """Be what a backup held, at its revision; watches that stand at a later one cannot go on."""
        self.revision, objects = backup
        self._objects = defaultdict(dict, copy.deepcopy(objects))
        self.histories.clear()

    def compact(self, keep: int) -> None:
        """Forget the history before the last changes, as etcd's compaction: it cannot be watched any more."""
        self.compacted = max(self.compacted, self.revision - keep)
        for plural, steps in self.histories.items():
            self.histories[plural] = [step for step in steps if step.revision > self.compacted]

    def selected(self, watcher: Watcher) -> list[Manifest]:
        """Return what a selection holds now, by name."""
        return [manifest for _, manifest in sorted(self._objects[watcher.plural].items()) if watcher.selects(manifest)]

    def _store(self, plural: str, key: str, old: Manifest | None, new: Manifest) -> Manifest:
        self.revision += 1
        new["metadata"]["resourceVersion"] = str(self.revision)
        self._objects[plural][key] = new
        self._tell(plural, Step(self.revision, old, new))
        return new

    def _tell(self, plural: str, step: Step) -> None:
        self.histories[plural].append(step)
        self.changes[plural] += 1
        for watcher in self.watchers:
            if watcher.plural == plural and (line := watcher.line(step)):
                watcher.send(line)


def _default_pod(pod: Manifest) -> None:
    pod.setdefault("status", {}).setdefault("phase", "Pending")
    spec = pod["spec"]
    spec.setdefault("schedulerName", "default-scheduler")
    for container in spec.get("containers", []) + spec.get("initContainers", []):
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    pod["status"].setdefault("qosClass", merging.qos_class(spec))
