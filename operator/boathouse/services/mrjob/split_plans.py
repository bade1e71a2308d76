"""Receive and store split plans: posted plans in memory, accepted plans in ConfigMaps.

Posts are received few at a time, each with a timeout, and decoded outside of the event loop.

Every user who may edit a namespace can write ConfigMaps of any name there, before the operator or in place of its own.
A plan is therefore read only with a digest that is known from elsewhere, and within the limits of a posted plan.
"""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from aiohttp import StreamReader

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors
from boathouse.fair import ALL, Buckets
from boathouse.listening.connections import Places
from boathouse.services.mrjob import splits
from boathouse.services.mrjob.model import Job, JobUid
from boathouse.services.progress.limits import Reason, Rejected, receive
from boathouse.telemetry import logs
from boathouse_task import contract

POSTS, POSTS_OF_NAMESPACE = 4, 1
"""Plans received concurrently, in total and per namespace: at most 32 MiB. They are decoded one by one."""
READ_S: Final = 3.0
READ_BYTES_A_S: Final = 512 * 1024  # minimum rate of a body after `READ_S`: the largest body may take 19 s
RATE_BYTES, BURST_BYTES = 8 * 2**20, 96 * 2**20
"""Bytes of JSON decoded per second: a third of a core, as 24 MiB take up to 1 s of CPU time."""
NAMESPACE_RATE_BYTES, NAMESPACE_BURST_BYTES = 2 * 2**20, 72 * 2**20
_log = logs.get(__name__)
_PLANS = catalogue.CONFIG_MAPS.untyped()
_LIMIT_BYTES: Final = 32 * 2**20


class PlanIntake:
    """Receives and decodes posted plans."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = Places(in_all=POSTS, per_key=POSTS_OF_NAMESPACE)
        self._budget = Buckets(rate_per_s=RATE_BYTES, burst=BURST_BYTES, clock=clock)
        self._budgets = Buckets(rate_per_s=NAMESPACE_RATE_BYTES, burst=NAMESPACE_BURST_BYTES, clock=clock)
        self._decoding = asyncio.Lock()

    def check(self, namespace: str) -> None:
        """Raise `Rejected` if the budget of a namespace or of all namespaces is exhausted: it may post no plan."""
        if self._budget.level(ALL) <= 0 or self._budgets.level(namespace) <= 0:
            raise Rejected(Reason.TOO_MANY_POSTS)

    async def read(
        self, namespace: str, stream: StreamReader, length: int | None, *, gzipped: bool
    ) -> splits.StoredPlan:
        """Receive and decode a plan, of `length` bytes or None; raises `Rejected` beyond limits, or if it is none."""
        with self._places.place(namespace) as free:
            if not free:
                raise Rejected(Reason.TOO_MANY_POSTS)
            most_bytes = contract.PLAN_POST_MAX_BYTES
            within_s = READ_S + (most_bytes if length is None else length) / READ_BYTES_A_S
            content = await receive(stream, most_bytes=most_bytes, within_s=within_s)
            return await self._decode(namespace, content, gzipped=gzipped)

    async def _decode(self, namespace: str, content: bytes, *, gzipped: bool) -> splits.StoredPlan:
        """Decode in a thread, one plan at a time. An invalid plan is charged to the budgets like the largest plan."""
        cost = contract.PLAN_MAX_BYTES
        try:
            async with self._decoding:
                plan, cost = await asyncio.to_thread(splits.read_posted, content, gzipped=gzipped)
        except splits.TooLargeError as error:
            raise Rejected(Reason.TOO_LARGE, str(error)) from error
        except ValueError as error:
            raise Rejected(Reason.MALFORMED, str(error)) from error
        finally:
            self._budget.charge(ALL, cost)
            self._budgets.charge(namespace, cost)
        return plan


@dataclasses.dataclass(slots=True)
class _Plans:
    """Plans of a job: `stored` for a step in ConfigMaps, which have none for the step and the digests `absent`."""

    namespace: str
    posted: splits.StoredPlan | None = None
    stored: tuple[int, splits.StoredPlan] | None = None
    absent: tuple[int, frozenset[str]] | None = None
    size_bytes: int = 0


_NOTHING: Final = _Plans(namespace="")


class Plans:
    """Plans of the current steps of all unfinished jobs."""

    def __init__(self, api: client.ApiClient, *, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._api, self._limit_bytes = api, limit_bytes
        self._jobs: dict[JobUid, _Plans] = {}
        self._reading = asyncio.Lock()  # decoding a large plan takes a second of CPU time

    def has_room(self, uid: JobUid, namespace: str, plan: splits.StoredPlan) -> bool:
        """Return whether a job's plan fits into the namespace's limit."""
        others = (plans for job, plans in self._jobs.items() if plans.namespace == namespace and job != uid)
        return sum(plans.size_bytes for plans in others) + plan.json_bytes <= self._limit_bytes

    def post(self, uid: JobUid, namespace: str, plan: splits.StoredPlan) -> None:
        """Store the plan that a setup task posted, in place of an earlier one."""
        plans = self._of(uid, namespace)
        plans.posted, plans.size_bytes = plan, plan.json_bytes

    def posted(self, uid: JobUid) -> splits.StoredPlan | None:
        """Return the plan that was posted to this process, or None."""
        return self._jobs.get(uid, _NOTHING).posted

    def plan(self, uid: JobUid, step: int) -> contract.Plan | None:
        """Return the plan of a step if this process has written or read it."""
        held = self._held(uid, step)
        return held.plan if held is not None else None

    def _held(self, uid: JobUid, step: int) -> splits.StoredPlan | None:
        stored = self._jobs.get(uid, _NOTHING).stored
        return stored[1] if stored is not None and stored[0] == step else None

    async def stored(
        self, job: Job, step: int, digests: Collection[str], *, accepted: bool
    ) -> splits.StoredPlan | None:
        """Return the complete plan in the ConfigMaps, or None. It is read once and then cached.

        The plan must have one of the digests, which are those of the status or of setup's result. A plan that is not
        accepted, which means in the status, must fit into the namespace's limit.
        """
        held = self._held(job.uid, step)
        if held is not None and (held.digest in digests or not digests):
            return held
        sought, plans = (step, frozenset(digests)), self._of(job.uid, job.namespace)
        if not digests or plans.absent == sought:
            return None
        if not accepted and plans.posted is not None and plans.posted.digest in digests:
            return None  # it will be written next
        plan = await self._read(job, step, sought[1])
        if plan is None:
            plans.absent = sought
        elif accepted or self.has_room(job.uid, job.namespace, plan):
            self._keep(job, step, plan)
            return plan
        return None

    async def write(self, job: Job, step: int, check_lead: Callable[[], None]) -> None:
        """Write the posted plan to ConfigMaps, in place of another plan. `check_lead` is called before every write."""
        plan = self._jobs[job.uid].posted
        assert plan is not None
        for manifest in splits.config_maps(job, step, plan):
            with failpoints.around("plan.shard"):
                await self._write_shard(job.namespace, manifest, check_lead)
        self._keep(job, step, plan)

    def forget(self, uid: JobUid) -> None:
        """Drop the plans of a finished or deleted job."""
        self._jobs.pop(uid, None)

    def forget_stored(self, uid: JobUid) -> None:
        """Drop the cached plan, so that the job's ConfigMaps are read again."""
        if (plans := self._jobs.get(uid)) is not None:
            plans.stored = plans.absent = None

    def _of(self, uid: JobUid, namespace: str) -> _Plans:
        return self._jobs.setdefault(uid, _Plans(namespace))

    def _keep(self, job: Job, step: int, plan: splits.StoredPlan) -> None:
        plans = self._of(job.uid, job.namespace)
        plans.stored, plans.absent, plans.size_bytes = (step, plan), None, plan.json_bytes

    async def _read(self, job: Job, step: int, digests: frozenset[str]) -> splits.StoredPlan | None:
        pieces: list[bytes] = []
        try:
            first = await self._get(job, step, 0)
            digest, count = splits.digest_of(first) or "", splits.count_of(first)
            if digest not in digests:
                return None
            for index in range(count):
                piece = splits.piece(await self._get(job, step, index) if index else first, job, digest)
                if piece is None:
                    _log.warning("a ConfigMap is not a shard of the expected plan", job=job.name, index=index)
                    return None
                pieces.append(piece)
        except errors.NotFound:
            return None
        async with self._reading:
            return await asyncio.to_thread(splits.read_stored, pieces, digest)

    async def _get(self, job: Job, step: int, index: int) -> Mapping[str, Any]:
        return await self._api.get(_PLANS, splits.shard_name(job, step, index), job.namespace)

    async def _write_shard(self, namespace: str, manifest: Mapping[str, Any], check_lead: Callable[[], None]) -> None:
        name = manifest["metadata"]["name"]
        check_lead()
        try:
            await self._api.create(_PLANS, manifest, namespace)
        except errors.AlreadyExists:
            existing = await self._api.get(_PLANS, name, namespace)
            if splits.same(manifest, existing):
                return
            check_lead()
            await self._api.delete(_PLANS, name, namespace, uid=existing["metadata"]["uid"])
            check_lead()
            await self._api.create(_PLANS, manifest, namespace)
