"""Where split plans are: posted by setup and kept in memory, or accepted and kept in ConfigMaps.

Whoever may edit a namespace may write ConfigMaps of any name into it, before us or in place of ours. So what they hold
is read only where its digest is known from elsewhere, and is bounded as a posted plan is.
"""

import asyncio
import dataclasses
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


@dataclasses.dataclass(slots=True)
class _Plans:
    """The plans of a job.

    Attributes:
        posted: By its setup task.
        stored: The plan in ConfigMaps, behind its step.
        absent: The step and the digests for which the ConfigMaps hold no plan.
        size_bytes: Of the JSON of the latest plan.
    """

    namespace: str
    posted: StoredPlan | None = None
    stored: tuple[int, StoredPlan] | None = None
    absent: tuple[int, frozenset[str]] | None = None
    size_bytes: int = 0


class Plans:
    """The plans of all jobs that are not finished; of each job, the plan of its current step.

    Args:
        api: The API server.
        limit_bytes: How much JSON the plans of a namespace may have before no more are accepted there.
    """

    def __init__(self, api: client.ApiClient, *, limit_bytes: int = _LIMIT_BYTES) -> None:
        self._api = api
        self._limit_bytes = limit_bytes
        self._jobs: dict[JobUid, _Plans] = {}
        self._reading = asyncio.Lock()  # decoding a large plan takes a second of a core

    def has_room(self, uid: JobUid, namespace: str, kept: StoredPlan) -> bool:
        """Whether a job's plan may be kept beside those of the namespace's other jobs."""
        others = (each.size_bytes for job, each in self._jobs.items() if each.namespace == namespace and job != uid)
        return sum(others) + kept.json_bytes <= self._limit_bytes

    def post(self, uid: JobUid, namespace: str, kept: StoredPlan) -> None:
        """Remember what a setup task posted; a later one replaces it."""
        plans = self._of(uid, namespace)
        plans.posted, plans.size_bytes = kept, kept.json_bytes

    def posted(self, uid: JobUid) -> StoredPlan | None:
        """The posted plan, while this process remembers it."""
        plans = self._jobs.get(uid)
        return plans.posted if plans is not None else None

    def held(self, uid: JobUid, step: int) -> StoredPlan | None:
        """The plan of a step that was written or read (`stored`)."""
        plans = self._jobs.get(uid)
        stored = plans.stored if plans is not None else None
        return stored[1] if stored is not None and stored[0] == step else None

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
        sought, plans = (step, frozenset(digests)), self._of(job.uid, job.namespace)
        if not digests or plans.absent == sought:
            return None
        if not accepted and plans.posted is not None and plans.posted.digest in digests:
            return None  # it is about to be written
        found = await self._read(job, step, sought[1])
        if found is None:
            plans.absent = sought
        elif accepted or self.has_room(job.uid, job.namespace, found):
            self._keep(job, step, found)
            return found
        return None

    async def write(self, job: Job, step: int, check_lead: Callable[[], None]) -> None:
        """Keep the posted plan. Shards of another plan under the same names (of a setup whose operator died) go.

        Args:
            job: The job.
            step: Its step.
            check_lead: Passes only a leader; asked before every write.
        """
        kept = self._jobs[job.uid].posted
        assert kept is not None
        for manifest in shards.manifests(job, step, kept):
            failpoints.hit("before-plan.shard")
            await self._write_shard(job.namespace, manifest, check_lead)
            failpoints.hit("after-plan.shard")
        self._keep(job, step, kept)

    def forget(self, uid: JobUid) -> None:
        """The job is finished or gone."""
        self._jobs.pop(uid, None)

    def forget_stored(self, uid: JobUid) -> None:
        """Read the job's ConfigMaps again when they are next needed."""
        plans = self._jobs.get(uid)
        if plans is not None:
            plans.stored = plans.absent = None

    def _of(self, uid: JobUid, namespace: str) -> _Plans:
        return self._jobs.setdefault(uid, _Plans(namespace))

    def _keep(self, job: Job, step: int, kept: StoredPlan) -> None:
        plans = self._of(job.uid, job.namespace)
        plans.stored, plans.absent, plans.size_bytes = (step, kept), None, kept.json_bytes

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
        kept, _ = posted.read(b"".join(pieces), gzipped=True)
    except ValueError:
        return None
    return kept if kept.digest == digest and len(kept.plan.splits) <= spec.MAX_MAPS else None
