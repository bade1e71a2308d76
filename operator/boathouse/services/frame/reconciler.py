"""Reconcile the objects of one kind, and count them by phase.

The order of a reconcile is that of `Desired`: effects before the status, the status, effects after it, deletions of
pods, other effects. A status that changed only in numbers is written at most once a second, and less often if only
messages changed (`status_writer`). Deletions of pods and the end of an object follow the write, except of messages.
"""

import collections
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic

from prometheus_client import registry

from boathouse.cluster import boundary, client, errors, events as event_writer, server_time, wire
from boathouse.resources import names
from boathouse.services.frame import object_store, status_codec, status_writer, writes
from boathouse.services.frame.kind import Body, KindDefinition, ObjectUid, Refusal, is_deleted, namespace_of, revision
from boathouse.services.frame.protocols import Desired, Effect, Kind, M, O, S, V
from boathouse.telemetry import logs, metrics

_DURATIONS_S = (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200)
_log = logs.get(__name__)
RESYNC_S: Final = 300.0
DELETING_REQUEUE_S: Final = 2.0
MAX_REQUEUE_S: Final = 3600.0
"""The longest time until the next reconcile of an object that is due at a later time, in case a clock changes."""
CONFLICTS_AT_ONCE: Final = 1
"""Conflicts in a row after which an object is reconciled at once: most are races with one write of another client."""


class ObjectMetrics:
    """Metrics of the objects of one kind; the number in each phase is read at scrape from `phases`, by key."""

    def __init__(self, kind: KindDefinition, target: registry.CollectorRegistry, scrape: metrics.ScrapeGauges) -> None:
        self._kind = kind
        self.phases: dict[str, str] = {}
        prefix, objects = f"{kind.resource.kind.lower()}", f"{kind.noun.capitalize()}s"
        results = [phase.lower() for phase in sorted(kind.terminal_phases)]
        self._finished = metrics.counter(target, f"{prefix}s_finished", f"{objects} that ended", result=results)
        name, lasting = f"{prefix}_duration_seconds", f"From the {kind.noun}'s creation to its end"
        self._duration_s = metrics.histogram(target, name, lasting, _DURATIONS_S, result=results)
        scrape.add(metrics.Gauge(f"{metrics.PREFIX}_{prefix}s", objects, self._by_phase, ("phase",)))

    def ended(self, phase: str, duration_s: float | None) -> None:
        """Count an object that has just entered a terminal phase."""
        self._finished(phase.lower())
        if duration_s is not None:
            self._duration_s[phase.lower(),].observe(max(0.0, duration_s))

    def _by_phase(self) -> metrics.Reading:
        count = collections.Counter(self.phases.values())
        return {(phase,): float(count[phase]) for phase in self._kind.phases}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Services and clocks of the reconcilers of all kinds. `may_lead` is called before every write."""

    api: client.ApiClient
    events: event_writer.EventWriter
    statuses: status_writer.StatusShare
    may_lead: Callable[[], bool]
    now: Callable[[], float] = server_time.SERVER_TIME.now_s
    monotonic: Callable[[], float] = time.monotonic
    aside: boundary.Boundary = dataclasses.field(default_factory=boundary.Boundary)


class Reconciler(Generic[O, S, V, M]):
    """Reconciles the objects of one kind, one at a time."""

    def __init__(
        self, kind: Kind[O, S, V, M], context: Context, objects: object_store.ObjectStore, counts: ObjectMetrics
    ) -> None:
        self._kind, self._context, self._objects, self._metrics = kind, context, objects, counts
        self._resource = kind.definition.resource
        self._memories: dict[str, M] = {}
        self._uids: dict[str, ObjectUid] = {}
        self._conflicts: dict[str, int] = {}
        self._events = writes.ObjectEvents(kind.definition, context.events)
        self._writes = writes.Writes(kind=kind.definition, api=context.api, objects=objects, may_lead=context.may_lead)
        self._status_writer: status_writer.StatusWriter[S] = status_writer.StatusWriter(
            kind.status_format,
            self._writes,
            context.statuses,
            on_refused=self._events.refused_status,
            clock=context.monotonic,
        )

    async def reconcile(self, key: str) -> float | None:
        """Reconcile an object; returns the delay until its next reconcile in seconds, or None."""
        body, definition = self._objects.get(key), self._kind.definition
        if body is None or self._uids.get(key, body["metadata"]["uid"]) != body["metadata"]["uid"]:
            self._forget(key)
        if body is None or (is_deleted(body) and not definition.has_finalizer(body)):
            self._forget(key)
            return None
        try:
            again_s = await self._reconcile_object(key, body)
        except (errors.Conflict, errors.NotFound) as error:
            return await self._retry(key, body, error)
        except (errors.Forbidden, errors.Invalid) as error:  # a quota or a policy, which users can correct
            note = f"the API server refuses a write for this {definition.noun}, which is retried: {error.message}"
            self._events.publish(key, body["metadata"]["uid"], "WriteRefused", note)
            raise
        except (errors.ClusterError, writes.NotLeading, TimeoutError, OSError):
            raise
        except Exception as error:
            await self._set_aside(key, body, error)
            raise
        self._conflicts.pop(key, None)
        return again_s

    async def _retry(self, key: str, body: Body, error: errors.ApiError) -> float | None:
        """Read an object again after a conflict; returns 0, None if it was deleted, or raises the error."""
        stored = self._objects.get(key)
        try:
            current = await self._read(key)
        except errors.NotFound:
            _log.info("the object is gone", kind=self._resource.kind, object=key)
            if stored is not None:
                self._objects.on_deleted(stored)
            self._forget(key)
            return None
        self._memories.pop(key, None)
        if isinstance(error, errors.NotFound) and current["metadata"]["uid"] == body["metadata"]["uid"]:
            raise error  # another object was not found
        conflicts = self._conflicts[key] = self._conflicts.get(key, 0) + 1
        if conflicts > CONFLICTS_AT_ONCE:
            raise error  # not a race: another client writes all the time
        return 0.0

    async def _read(self, key: str) -> Body:
        namespace, _, name = key.partition("/")
        began = self._objects.begin()
        body = await self._context.api.get(self._resource, name, namespace)
        self._objects.put(body, began)
        return body

    async def _set_aside(self, key: str, body: Body, error: Exception) -> None:
        """Report in an event, a metric and a condition that an object cannot be processed. Others are not affected."""
        namespace, _, name = key.partition("/")
        subject = wire.ObjectMeta(name=name, namespace=namespace, uid=body["metadata"]["uid"])
        self._context.aside.set_aside(self._resource, subject, boundary.Reason.RECONCILING, error)
        what = boundary.describe(error)
        if is_deleted(body):
            await self._release(key, what)
            return
        message = f"the operator cannot process this {self._kind.definition.noun} and retries: {what}"
        try:
            await self._refuse(key, body, Refusal(reason=names.Reason.SET_ASIDE, message=message))
        except Exception as second:  # noqa: BLE001 - the first error is the one to report
            _log.warning("cannot write the condition of an object that was set aside", object=key, error=str(second))

    async def _reconcile_object(self, key: str, body: Body) -> float | None:
        if not is_deleted(body) and not self._objects.admits(key):
            refusal = _too_many(self._kind.definition, key, *self._objects.limits)
            return await self._refuse(key, body, refusal, again_s=MAX_REQUEUE_S)
        if "spec" not in body:  # it is not kept
            uid, body = body["metadata"]["uid"], await self._read(key)
            if body["metadata"]["uid"] != uid:
                raise errors.Conflict(409, "Conflict", "the object was replaced during the reconcile")
        obj = self._kind.parse(body)
        if isinstance(obj, Refusal):
            if is_deleted(body):
                await self._release(key, obj.message)
                return None
            return await self._refuse(key, body, obj)
        return await self._carry_out(key, body, obj, self._memory(key, body, obj))

    def _memory(self, key: str, body: Body, obj: O) -> M:
        memory = self._memories.get(key)
        if memory is not None and memory.revision > revision(body):
            self._kind.restored(memory.uid)  # etcd was restored from a backup, which may lack recent writes
            memory = None
        if memory is None:
            status, uid = body.get("status") or {}, ObjectUid(body["metadata"]["uid"])
            memory = self._kind.remember(uid, self._kind.load(status, obj), status_codec.stripped(status))
            self._memories[key], self._uids[key] = memory, uid
        memory.revision = revision(body)
        return memory

    async def _carry_out(self, key: str, body: Body, obj: O, memory: M) -> float | None:
        wants_finalizer, stored = self._kind.life(obj).wants_finalizer, self._objects.get(key)
        has_finalizer = stored is not None and self._kind.definition.has_finalizer(stored)
        if stored is not None and not is_deleted(stored) and wants_finalizer != has_finalizer:
            await self._writes.finalizer(stored, present=wants_finalizer)  # before a pod writes anything
        desired = self._kind.plan(await self._kind.observe(obj, memory), memory)
        again = await self._run(desired.before_status)
        before, memory.state = memory.state, desired.state
        self._report(key, memory.uid, obj, before, desired.state)
        delay_s = await self._status_writer.write(key, memory)
        again += await self._run(desired.after_status)
        if delay_s is None:
            await self._writes.delete(namespace_of(key), desired.delete)
        again += await self._run(desired.after)
        if (self._has_ended(desired.state) or is_deleted(body)) and not desired.holds_deletion:
            return await self._finish(key, body, obj, desired) if delay_s is None else delay_s
        if desired.is_at_rest and delay_s is None and memory.message_delay_s == math.inf:
            self._memories.pop(key, None)  # suspended objects are many, as finished ones
        again.append(min(RESYNC_S, memory.message_delay_s) if delay_s is None else delay_s)
        if desired.recheck_at_s is not None:
            again.append(max(0.0, desired.recheck_at_s - self._context.now()))
        return min(again)

    def _has_ended(self, state: S) -> bool:
        return state.phase in self._kind.definition.terminal_phases

    async def _run(self, effects: Sequence[Effect]) -> list[float]:
        due_s = [await effect(self._writes) for effect in effects]
        return [wait_s for wait_s in due_s if wait_s is not None]

    def _report(self, key: str, uid: ObjectUid, obj: O, before: S, after: S) -> None:
        self._metrics.phases[key] = after.phase
        if after.phase == before.phase:
            return
        change = {"phase": after.phase, "before": before.phase, "reason": after.reason}
        _log.info("phase", kind=self._resource.kind, object=key, uid=uid, **change)
        if self._has_ended(after):
            end_s, created_s = after.completion_s, self._kind.life(obj).created_s
            self._metrics.ended(after.phase, None if end_s is None else end_s - created_s)
        named = self._kind.definition.phase_events.get(after.phase, after.phase)
        reason = "Resumed" if before.phase == "Suspended" else named
        self._events.publish(key, uid, reason, self._kind.note(obj, after), is_warning=after.phase == "Failed")

    async def _refuse(self, key: str, body: Body, refusal: Refusal, *, again_s: float = RESYNC_S) -> float:
        """Write why an object is refused. It is requeued, because the cause may be corrected in another object."""
        metadata, memory = body["metadata"], self._memories.get(key)
        state: S = memory.state if memory else self._kind.load(body.get("status") or {}, None)
        refused = self._kind.refuse(state, refusal, metadata.get("generation", 1), self._context.now())
        if refused != state:
            if (wait_s := self._context.statuses.take(key, is_urgent=False)) > 0:
                return wait_s
            refused, wire = await self._status_writer.patch(key, metadata["uid"], refused)
            if memory is not None:
                memory.state, memory.written = refused, wire
        self._metrics.phases[key] = refused.phase
        return again_s

    async def _release(self, key: str, why: str = "") -> None:
        """Remove the finalizer of a deleted object; `why` is the cause if its clean-up failed."""
        body = self._objects.get(key)
        if body is not None and why:
            self._events.not_cleaned_up(key, body["metadata"]["uid"], why)
        if body is not None:
            await self._writes.finalizer(body, present=False)
        self._forget(key)

    async def _finish(self, key: str, body: Body, obj: O, desired: Desired[S]) -> float | None:
        """Delete a finished object after its TTL, or remove a deleted object's finalizer, once its pods are deleted."""
        self._memories.pop(key, None)  # finished objects are many, and their status is all that is needed
        if desired.delete:
            return DELETING_REQUEUE_S
        if is_deleted(body):
            await self._release(key)
            return None
        ttl_s, end_s = self._kind.life(obj).ttl_s, desired.state.completion_s
        if ttl_s is None or end_s is None:
            return None
        left_s = end_s + ttl_s - self._context.now()
        if left_s > 0:
            return min(left_s, MAX_REQUEUE_S)
        await self._writes.expire(namespace_of(key), key.partition("/")[2], body["metadata"]["uid"])
        return None

    def _forget(self, key: str) -> None:
        self._memories.pop(key, None)
        self._conflicts.pop(key, None)
        self._context.statuses.forget(key)
        self._metrics.phases.pop(key, None)
        uid = self._uids.pop(key, None)
        if uid is not None:
            self._kind.forget(uid, namespace_of(key))


def _too_many(kind: KindDefinition, key: str, limit: int, limit_bytes: int) -> Refusal:
    """Return the refusal. Its message has no number that changes while the object is pending: each costs a write."""
    message = (
        f"the unfinished {kind.resource.kind}s of namespace {namespace_of(key)} exceed {limit} objects or "
        f"{limit_bytes >> 20} MiB (chart values tenantLimits.maxUnfinishedJobs and maxJobMebibytes): this one is "
        "admitted, in the order of creation, when others end; delete those that are not needed"
    )
    return Refusal(reason=names.Reason.TOO_MANY_JOBS, message=message)
