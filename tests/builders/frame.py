"""The reconciler's frame: a kind that only its tests have, an API server with one object of it, and conditions."""

from __future__ import annotations

from typing import Any

from boathouse.cluster import catalogue, errors, wire
from boathouse.services.frame.kind import KindDefinition
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.frame.writes import Writes

NOT_FOUND = errors.NotFound(404, "NotFound", "")
CONFLICT = errors.Conflict(409, "Conflict", "")
ALREADY_EXISTS = errors.AlreadyExists(409, "AlreadyExists", "")

BOAT = KindDefinition(
    resource=catalogue.Resource(group="example.org", plural="boats", kind="Boat", view=wire.Manifest),
    noun="boat",
    phases=("Pending", "Succeeded", "Failed"),
    terminal_phases=frozenset({"Succeeded", "Failed"}),
    urgent_fields=("berth",),
)
KEY = "demo/wc"


def boat(revision: int | str = 1, uid: str = "u1", name: str = "wc", **metadata: Any) -> dict[str, Any]:
    """Return an object as the API server has it."""
    own = {"namespace": "demo", "name": name, "uid": uid, "resourceVersion": str(revision)}
    return {"metadata": own | metadata}


def unfinished_boat(
    name: str, revision: int = 1, created: str = "2026-01-01T00:00:00Z", **status: Any
) -> dict[str, Any]:
    """Return an object that has this status."""
    return boat(revision, f"uid-{name}", name, creationTimestamp=created) | {"status": status}


def condition_of(state: Any, condition_type: str) -> tuple[str, str] | None:
    """Return the status and the reason of a condition of the state of any kind."""
    found = state.condition(condition_type)
    return (found.status, found.reason) if found else None


class BoatServer:
    """An API server that holds a boat, and records what is written.

    Attributes:
        check: Raises an error for a status that the server refuses.
        leads: Whether the process leads.
        others: Objects that exist, by name.
    """

    def __init__(self) -> None:
        self.statuses, self.patches, self.deleted = [], [], []
        self.revision, self.leads = 1, True
        self.check = lambda _status: None
        self.others = {}
        self.objects = ObjectStore(BOAT, lambda _: None)
        self.objects.on_object(boat())
        self.writes = Writes(kind=BOAT, api=self, objects=self.objects, may_lead=lambda: self.leads)

    def _response(self, **metadata):
        self.revision += 1
        return boat(self.revision, **metadata) | {"spec": {}}

    async def patch_status(self, resource, _name, status, _namespace, *, resource_version, uid):
        self.check(status)
        self.statuses.append((resource.kind, uid, resource_version, status))
        return self._response()

    async def patch(self, _resource, name, patch, _namespace, *, uid=""):
        if name in self.others:
            assert uid == self.others[name]["metadata"]["uid"]
            self.others[name] |= patch
            return self.others[name]
        self.patches.append(patch["metadata"])
        return self._response(finalizers=patch["metadata"]["finalizers"])

    async def create(self, _resource, manifest, _namespace):
        if manifest["metadata"]["name"] in self.others:
            raise ALREADY_EXISTS
        self.others[manifest["metadata"]["name"]] = manifest

    async def get(self, _resource, name, _namespace):
        if name not in self.others:
            raise NOT_FOUND
        return self.others[name]

    async def delete(self, resource, name, _namespace, *, uid, propagation=None):
        if name == "gone":
            raise NOT_FOUND
        self.deleted.append((resource.kind, name, uid, propagation))
