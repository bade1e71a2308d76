"""Write an object of a kind: its status, its finalizer, the deletion of its pods and of itself.

Every write first checks that this process is the leader, and has the UID of its object as a precondition.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors, wire
from boathouse.resources import names
from boathouse.services.frame.kind import Body, KindDefinition, ObjectUid
from boathouse.services.frame.object_store import ObjectStore
from boathouse.telemetry import logs

_log = logs.get(__name__)
_GONE = (errors.NotFound, errors.Conflict)
"""What a DELETE with a UID ends with when the object is gone, or another object has its name."""


class NotLeading(Exception):  # noqa: N818 - a state, after which the process ends
    """This process is no longer the leader and must not write."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Writes to the API server, each between two failpoints.

    Attributes:
        objects: Stores the responses.
        may_lead: Returns whether this process is still the leader.
    """

    kind: KindDefinition
    api: client.ApiClient
    objects: ObjectStore
    may_lead: Callable[[], bool]

    def check_lead(self) -> None:
        """Raise an error unless this process is the leader.

        Raises:
            NotLeading: Another process is the leader.
        """
        if not self.may_lead():
            raise NotLeading

    async def status(self, body: Body, status: Mapping[str, Any]) -> None:
        """Patch the status of an object, if it still has the version of `body`.

        Raises:
            errors.Conflict: The object was changed since.
        """
        metadata = body["metadata"]
        with self._write("status"):
            answer = await self.api.patch_status(
                self.kind.resource,
                metadata["name"],
                status,
                metadata["namespace"],
                resource_version=metadata["resourceVersion"],
                uid=metadata["uid"],
            )
        self.objects.put(answer)

    async def delete(self, namespace: str, pods: Iterable[tuple[str, str]]) -> None:
        """Delete pods of an object by name and UID."""
        for name, uid in pods:
            with contextlib.suppress(*_GONE), self._write("delete-pod"):
                await self.api.delete(catalogue.PODS, name, namespace, uid=uid)

    async def ensure(
        self, resource: catalogue.Resource[wire.Manifest], manifest: wire.Manifest, what: str
    ) -> wire.Manifest | None:
        """Create an object that is owned by an object of the kind, unless it exists.

        Args:
            resource: Its kind.
            manifest: The object, with its namespace, its owner first.
            what: The name of its failpoints.

        Returns:
            An object of this name with another owner; None if there is none.
        """
        metadata = manifest["metadata"]
        with self._write(what):
            try:
                await self.api.create(resource, manifest, metadata["namespace"])
            except errors.AlreadyExists:
                found = await self.api.get(resource, metadata["name"], metadata["namespace"])
                return None if _owner(found) == _owner(manifest) else found
        return None

    async def finalizer(self, body: Body, *, present: bool) -> None:
        """Add or remove the finalizer of an object if it still has the version of `body`.

        Raises:
            errors.Conflict: The object was changed since.
        """
        metadata, own = body["metadata"], names.FINALIZER
        others = [finalizer for finalizer in metadata.get("finalizers") or () if finalizer != own]
        patch = {
            "finalizers": [*others, own] if present else others,
            "resourceVersion": metadata["resourceVersion"],
        }
        with self._write("finalizer"):
            answer = await self.api.patch(
                self.kind.resource, metadata["name"], {"metadata": patch}, metadata["namespace"]
            )
        self.objects.put(answer)

    async def expire(self, namespace: str, name: str, uid: ObjectUid) -> None:
        """Delete a finished object; the garbage collector deletes what it owns."""
        with contextlib.suppress(*_GONE), self._write("expire"):
            await self.api.delete(self.kind.resource, name, namespace, uid=uid, propagation="Background")
            _log.info("deleted a finished object", kind=self.kind.resource.kind, object=f"{namespace}/{name}")

    @contextlib.contextmanager
    def _write(self, name: str) -> Iterator[None]:
        """Run a write between two failpoints. The second applies only after success."""
        self.check_lead()
        failpoints.hit(f"before-{self.kind.resource.kind.lower()}.{name}")
        yield
        failpoints.hit(f"after-{self.kind.resource.kind.lower()}.{name}")


def _owner(manifest: wire.Manifest) -> str:
    """Return the UID of the controller of an object; empty for none."""
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")
