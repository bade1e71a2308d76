"""Where split plans are: posted by setup and kept in memory, or accepted and kept in ConfigMaps.

Whoever may edit a namespace may write ConfigMaps of any name into it, before us or in place of ours. So what they hold
is read only where its digest is known from elsewhere, and is bounded as a posted plan is.
"""

import asyncio
import collections
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors
from boathouse.resources.mrjob import spec
from boathouse.services.mrjob.job.model import Job, JobUid
from boathouse.services.mrjob.splits import posted, shards
from boathouse.services.mrjob.splits.shards import StoredPlan
from boathouse.telemetry import logs

_log = logs.get(__name__)
_PLANS = catalogue.CONFIG_MAPS.untyped()
_LIMIT_BYTES: Final = 32 * 2**20


class Plans:
    """The plans of all jobs that are not finished; of each job, the plan of its current step.

    Args:
        api: The API server.
        limit_bytes: How much JSON the plans of a namespace may have before no more are accepted there.
    """

    def __init__(self, api: client.ApiClient, *, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._api = api
        self._limit_bytes = limit_bytes
        self._posted: dict[JobUid, StoredPlan] = {}
        self._stored: dict[JobUid, tuple[int, StoredPlan]] = {}
        self._absent: dict[JobUid, tuple[int, frozenset[str]]] = {}
        self._sizes: dict[JobUid, tuple[str, int]] = {}
        self._used: collections.Counter[str] = collections.Counter()
        self._reading = asyncio.Lock()  # decoding a large plan takes a second of a core

    def has_room(self, uid: JobUid, namespace: str, kept: StoredPlan) -> bool:
        """Whether a job's plan may be kept beside those of the namespace's other jobs."""
        own = self._sizes.get(uid, ("", 0))[1]
        return self._used[namespace] - own + kept.json_bytes <= self._limit_bytes

    def post(self, uid: JobUid, namespace: str, kept: StoredPlan) -> None:
        """Remember what a setup task posted; a later one replaces it."""
        self._posted[uid] = kept
        self._count(uid, namespace, kept)

    def posted(self, uid: JobUid) -> StoredPlan | None:
        """The posted plan, while this process remembers it."""
        return self._posted.get(uid)

    def held(self, uid: JobUid, step: int) -> StoredPlan | None:
        """The plan of a step that was written or read (`stored`)."""
        known = self._stored.get(uid)
        return known[1] if known is not None and known[0] == step else None

    async def stored(self, job: Job, step: int, digests: Collection[str], *, accepted: bool) -> StoredPlan | None:
        """The plan in the ConfigMaps, if it is complete there; read once, and then remembered.

        Args:
            job: The job.
            step: Its step.
            digests: Of the plan, from the status or from what setup said; the ConfigMaps must hold one of these.
            accepted: Whether the status has it. One that is not accepted yet must find room.
        """
        held = self.held(job.uid, step)
        if held is not None and (held.digest in digests or not digests):
            return held
        sought, in_memory = (step, frozenset(digests)), self._posted.get(job.uid)
        if not digests or self._absent.get(job.uid) == sought:
            return None
        if not accepted and in_memory is not None and in_memory.digest in digests:
            return None  # it is about to be written
        found = await self._read(job, step, sought[1])
        if found is not None and not accepted and not self.has_room(job.uid, job.namespace, found):
            return None
        if found is None:
            self._absent[job.uid] = sought
            return None
        self._keep(job, step, found)
        return found

    async def write(self, job: Job, step: int, check_lead: Callable[[], None]) -> None:
        """Keep the posted plan. Shards of another plan under the same names (of a setup whose operator died) go.

        Args:
            job: The job.
            step: Its step.
            check_lead: Passes only a leader; asked before every write.
        """
        kept = self._posted[job.uid]
        for manifest in shards.manifests(job, step, kept):
            failpoints.hit("before-plan.shard")
            await self._write_shard(job.namespace, manifest, check_lead)
            failpoints.hit("after-plan.shard")
        self._keep(job, step, kept)

    def forget(self, uid: JobUid) -> None:
        """The job is finished or gone."""
        self._posted.pop(uid, None)
        self.forget_stored(uid)

    def forget_stored(self, uid: JobUid) -> None:
        """Read the job's ConfigMaps again when they are next needed."""
        self._stored.pop(uid, None)
        self._absent.pop(uid, None)
        posted_ = self._posted.get(uid)
        namespace, size = self._sizes.pop(uid, ("", 0))
        self._used[namespace] -= size
        if not self._used[namespace]:
            del self._used[namespace]
        if posted_ is not None:
            self._count(uid, namespace, posted_)

    def _keep(self, job: Job, step: int, kept: StoredPlan) -> None:
        self._stored[job.uid] = step, kept
        self._absent.pop(job.uid, None)
        self._count(job.uid, job.namespace, kept)

    def _count(self, uid: JobUid, namespace: str, kept: StoredPlan) -> None:
        before = self._sizes.get(uid, ("", 0))[1]
        self._sizes[uid] = namespace, kept.json_bytes
        self._used[namespace] += kept.json_bytes - before

    async def _read(self, job: Job, step: int, digests: frozenset[str]) -> StoredPlan | None:
        pieces: list[bytes] = []
        try:
            first = await self._get(job, step, 0)
            digest, count = shards.digest_of(first) or "", shards.count_of(first)
            if digest not in digests:
                return None
            for index in range(count):
                found = first if index == 0 else await self._get(job, step, index)
                piece = shards.piece(found, job, digest)
                if piece is None:
                    _log.warning("a ConfigMap is not the plan's that it should hold", job=job.name, index=index)
                    return None
                pieces.append(piece)
        except errors.NotFound:
            return None
        async with self._reading:
            return await asyncio.to_thread(read, pieces, digest)

    async def _get(self, job: Job, step: int, index: int) -> Mapping[str, Any]:
        return await self._api.get(_PLANS, shards.shard_name(job, step, index), job.namespace)

    async def _write_shard(self, namespace: str, manifest: Mapping[str, Any], check_lead: Callable[[], None]) -> None:
        name = manifest["metadata"]["name"]
        check_lead()
        try:
            await self._api.create(_PLANS, manifest, namespace)
        except errors.AlreadyExists:
            found = await self._api.get(_PLANS, name, namespace)
            if shards.same(manifest, found):
                return
            check_lead()
            await self._api.delete(_PLANS, name, namespace, uid=found["metadata"]["uid"])
            check_lead()
            await self._api.create(_PLANS, manifest, namespace)


def read(pieces: Collection[bytes], digest: str) -> StoredPlan | None:
    """Return the plan that the shards' contents hold together; None when it is not the one of that digest."""
    try:
        kept = posted.read(b"".join(pieces), gzipped=True).kept
    except ValueError:
        return None
    return kept if kept.digest == digest and len(kept.plan.splits) <= spec.MAX_MAPS else None
