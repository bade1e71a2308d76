"""An API server that holds one object of the tests' kind."""

from boathouse.cluster import errors
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.frame.writes import Writes
from tests.unit.services.frame.kinds import KIND, body

GONE = errors.NotFound(404, "NotFound", "")
TAKEN = errors.AlreadyExists(409, "AlreadyExists", "")


class Api:
    """Records what is written.

    Attributes:
        refuses: Raises an error for a status that the server refuses.
        leads: Whether the process leads.
        others: Objects that exist, by name.
    """

    def __init__(self) -> None:
        self.statuses, self.patches, self.deleted = [], [], []
        self.revision, self.leads = 1, True
        self.refuses = lambda _status: None
        self.others = {}
        self.objects = ObjectStore(KIND, lambda _: None)
        self.objects.on_object(body())
        self.writes = Writes(kind=KIND, api=self, objects=self.objects, may_lead=lambda: self.leads)

    def _answer(self, **metadata):
        self.revision += 1
        return body(self.revision, **metadata) | {"spec": {}}

    async def patch_status(self, resource, _name, status, _namespace, *, resource_version, uid):
        self.refuses(status)
        self.statuses.append((resource.kind, uid, resource_version, status))
        return self._answer()

    async def patch(self, _resource, name, patch, _namespace, *, uid=""):
        if name in self.others:
            assert uid == self.others[name]["metadata"]["uid"]
            self.others[name] |= patch
            return self.others[name]
        self.patches.append(patch["metadata"])
        return self._answer(finalizers=patch["metadata"]["finalizers"])

    async def create(self, _resource, manifest, _namespace):
        if manifest["metadata"]["name"] in self.others:
            raise TAKEN
        self.others[manifest["metadata"]["name"]] = manifest

    async def get(self, _resource, name, _namespace):
        if name not in self.others:
            raise GONE
        return self.others[name]

    async def delete(self, resource, name, _namespace, *, uid, propagation=None):
        if name == "gone":
            raise GONE
        self.deleted.append((resource.kind, name, uid, propagation))
