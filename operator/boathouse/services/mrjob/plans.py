"""Where split plans are: posted by setup and kept in memory, or accepted and kept in ConfigMaps."""

from collections.abc import Callable, Mapping
from typing import Any

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors
from boathouse.services.mrjob import shards
from boathouse.services.mrjob.model import Job, JobUid
from boathouse.services.mrjob.shards import KeptPlan

_PLANS = catalogue.CONFIG_MAPS.untyped()


class Plans:
    """The plans of all jobs that are not finished; of each, that of the step at hand."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api
        self._posted: dict[JobUid, KeptPlan] = {}
        self._stored: dict[tuple[JobUid, int], KeptPlan] = {}
        self._absent: set[tuple[JobUid, int]] = set()

    def post(self, uid: JobUid, kept: KeptPlan) -> None:
        """Remember what a setup task posted; a later one replaces it."""
        self._posted[uid] = kept

    def posted(self, uid: JobUid) -> KeptPlan | None:
        """The posted plan, while this process remembers it."""
        return self._posted.get(uid)

    async def stored(self, job: Job, step: int) -> KeptPlan | None:
        """The plan in the ConfigMaps, if it is complete there; read once, because only this process writes it."""
        key = job.uid, step
        if key not in self._stored and key not in self._absent:
            found = await self._read(job, step)
            if found is None:
                self._absent.add(key)
            else:
                self._stored[key] = found
        return self._stored.get(key)

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
        self._stored[job.uid, step] = kept

    def forget(self, uid: JobUid) -> None:
        """The job is finished or gone."""
        self._posted.pop(uid, None)
        self.forget_stored(uid)

    def forget_stored(self, uid: JobUid) -> None:
        """Read the job's ConfigMaps again when they are next needed."""
        for key in [each for each in self._stored if each[0] == uid]:
            del self._stored[key]
        self._absent = {each for each in self._absent if each[0] != uid}

    async def _read(self, job: Job, step: int) -> KeptPlan | None:
        try:
            first = await self._api.get(_PLANS, shards.shard_name(job, step, 0), job.namespace)
            rest = [
                await self._api.get(_PLANS, shards.shard_name(job, step, index), job.namespace)
                for index in range(1, shards.count_of(first))
            ]
        except errors.NotFound:
            return None
        return shards.read([first, *rest])

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
