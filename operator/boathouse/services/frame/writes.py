"""Write an object of a kind: its status, its finalizer, its events, the deletion of its pods and of itself.

Every write first checks that this process is the leader, and has the UID of its object as a precondition.
"""

import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors, events as event_writer, wire
from boathouse.resources import names
from boathouse.services.frame.kind import Body, KindDefinition, ObjectUid
from boathouse.services.frame.object_store import ObjectStore
from boathouse.services.frame.pod_life import Problem
from boathouse.telemetry import logs

_LONGEST_NOTE: Final = 1000
_log = logs.get(__name__)
_Kind = catalogue.Resource[wire.Manifest]
_GONE = (errors.NotFound, errors.Conflict)
"""What a DELETE with a UID ends with when the object is gone, or another object has its name."""


class ObjectEvents:
    """Events about objects of one kind."""

    def __init__(self, kind: KindDefinition, events: event_writer.EventWriter) -> None:
        self._kind, self._events = kind, events

    def publish(
        self, key: str, uid: ObjectUid, reason: str, note: str, *, action: str = "Reconciling", is_warning: bool = True
    ) -> None:
        """Publish an event about an object."""
        namespace, _, name = key.partition("/")
        self._events.publish(
            event_writer.reference(self._kind.resource, namespace, name, uid),
            type_="Warning" if is_warning else "Normal",
            reason=reason,
            action=action,
            note=note[:_LONGEST_NOTE],
        )

    def not_cleaned_up(self, key: str, uid: ObjectUid, why: str) -> None:
        """Publish that the clean-up of an object failed."""
        _log.warning("an object is not cleaned up", kind=self._kind.resource.kind, object=key, why=why)
        self.publish(key, uid, str(names.Reason.CLEAN_UP_FAILED), why, action="CleaningUp")

    def refused_status(self, key: str, uid: ObjectUid, error: errors.Invalid) -> None:
        """Publish that the API server refused a status, which is then written without its free parts."""
        _log.warning("a status was refused and is written without its counters", object=key, error=error.message)
        note = f"the status is written without counters and last failures: {error.message}"
        self.publish(key, uid, "StatusRefused", note)


class NotLeading(Exception):  # noqa: N818 - a state, after which the process ends
    """This process is no longer the leader and must not write."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """Writes to the API server, each between two failpoints. `objects` stores the responses."""

    kind: KindDefinition
    api: client.ApiClient
    objects: ObjectStore
    may_lead: Callable[[], bool]

    def check_lead(self) -> None:
        """Raise `NotLeading` unless this process is the leader."""
        if not self.may_lead():
            raise NotLeading

    async def status(self, body: Body, status: Mapping[str, Any]) -> None:
        """Patch the status of an object, if it still has the version of `body`: else raises `errors.Conflict`."""
        metadata = body["metadata"]
        with self.attempt("status"):
            precondition = {"resource_version": metadata["resourceVersion"], "uid": metadata["uid"]}
            answer = await self.api.patch_status(
                self.kind.resource, metadata["name"], status, metadata["namespace"], **precondition
            )
        self.objects.put(answer)

    async def delete(self, namespace: str, pods: Iterable[tuple[str, str]]) -> None:
        """Delete pods of an object by name and UID."""
        for name, uid in pods:
            with contextlib.suppress(*_GONE), self.attempt("delete-pod"):
                await self.api.delete(catalogue.PODS, name, namespace, uid=uid)

    async def ensure(self, resource: _Kind, manifest: wire.Manifest, what: str) -> wire.Manifest | None:
        """Create an object of an owner, or of its label `job-uid`; return one of this name that belongs to another."""
        existing = await self._create(resource, manifest, what)
        return None if existing is None or _belongs(existing, manifest) else existing

    async def apply(self, resource: _Kind, manifest: wire.Manifest, what: str) -> wire.Manifest | None:
        """Create an object as `ensure` does, or give the one that exists the spec of the manifest."""
        existing = await self._create(resource, manifest, what)
        if existing is None or not _belongs(existing, manifest):
            return existing
        if existing["spec"] != manifest["spec"]:
            metadata, patch = existing["metadata"], {"spec": manifest["spec"]}
            with self.attempt(what):
                await self.api.patch(resource, metadata["name"], patch, metadata["namespace"], uid=metadata["uid"])
        return None

    async def remove(self, resource: _Kind, manifest: wire.Manifest, what: str) -> None:
        """Delete an object with this name, if it belongs to the same object as the manifest."""
        metadata = manifest["metadata"]
        try:
            existing = await self.api.get(resource, metadata["name"], metadata["namespace"])
        except errors.NotFound:
            return
        if _belongs(existing, manifest):
            uid = existing["metadata"]["uid"]
            with contextlib.suppress(*_GONE), self.attempt(what):
                await self.api.delete(resource, metadata["name"], metadata["namespace"], uid=uid)

    async def _create(self, resource: _Kind, manifest: wire.Manifest, what: str) -> wire.Manifest | None:
        metadata = manifest["metadata"]
        with self.attempt(what):
            try:
                await self.api.create(resource, manifest, metadata["namespace"])
            except errors.AlreadyExists:
                return await self.api.get(resource, metadata["name"], metadata["namespace"])
        return None

    async def finalizer(self, body: Body, *, present: bool) -> None:
        """Add or remove the finalizer if the object has the version of `body`: else raises `errors.Conflict`."""
        metadata, own = body["metadata"], names.FINALIZER
        others = [finalizer for finalizer in metadata.get("finalizers") or () if finalizer != own]
        finalizers, version = [*others, own] if present else others, metadata["resourceVersion"]
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
        with self.attempt("finalizer"):
            answer = await self.api.patch(self.kind.resource, metadata["name"], patch, metadata["namespace"])
        self.objects.put(answer)

    async def expire(self, namespace: str, name: str, uid: ObjectUid) -> None:
        """Delete a finished object; the garbage collector deletes what it owns."""
        with contextlib.suppress(*_GONE), self.attempt("expire"):
            await self.api.delete(self.kind.resource, name, namespace, uid=uid, propagation="Background")
            _log.info("deleted a finished object", kind=self.kind.resource.kind, object=f"{namespace}/{name}")

    @contextlib.contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Run a write of the leader between two failpoints; raises `NotLeading` if another process leads."""
        self.check_lead()
        with failpoints.around(f"{self.kind.resource.kind.lower()}.{name}"):
            yield


async def problem_of(write: Awaitable[wire.Manifest | None], *, refused: str, taken: str, noun: str) -> Problem | None:
    """Await a write; return that it is `refused` by a quota or a policy, that the name is `taken`, or None."""
    try:
        existing = await write
    except (errors.Forbidden, errors.Invalid) as error:
        return Problem(reason=refused, message=error.message)
    if existing is None:
        return None
    kind, name = existing.get("kind", "object"), existing["metadata"]["name"]
    message = f'there is a {kind} "{name}" that does not belong to this {noun}: delete it'
    return Problem(reason=taken, message=message)


def _belongs(existing: wire.Manifest, manifest: wire.Manifest) -> bool:
    owner, label = _owner(manifest), _label(manifest)
    return _owner(existing) == owner and (owner != "" or _label(existing) == label != "")


def _owner(manifest: wire.Manifest) -> str:
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _label(manifest: wire.Manifest) -> str:
    """Return the UID in the label of an object that shall outlive the object it was made for; empty for none."""
    return str((manifest["metadata"].get("labels") or {}).get(names.LABEL_JOB_UID, ""))
