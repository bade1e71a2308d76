"""Where split plans are: posted by setup and kept in memory, or accepted and kept in ConfigMaps."""

from collections.abc import Mapping
from typing import Any

from boathouse import failpoints
from boathouse.cluster import catalogue, client, errors
from boathouse.services.mrjob import shards
from boathouse.services.mrjob.model import Job, JobUid
from boathouse.services.mrjob.shards import KeptPlan
from boathouse_task import contract

_PLANS = catalogue.CONFIG_MAPS.untyped()


class Plans:
    """The plans of all jobs that are not finished."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = api
        self._posted: dict[JobUid, KeptPlan] = {}
        self._stored: dict[JobUid, KeptPlan] = {}
        self._absent: set[JobUid] = set()

    def post(self, uid: JobUid, plan: contract.Plan) -> KeptPlan:
        """Remember what a setup task posted; a later one replaces it."""
        kept = self._posted[uid] = shards.keep(plan)
        return kept

    def posted(self, uid: JobUid) -> KeptPlan | None:
        """The posted plan, while this process remembers it."""
        return self._posted.get(uid)

    async def stored(self, job: Job) -> KeptPlan | None:
        """The plan in the ConfigMaps, if it is complete there; read once, because only this process writes it."""
        if job.uid not in self._stored and job.uid not in self._absent:
            found = await self._read(job)
            if found is None:
                self._absent.add(job.uid)
            else:
                self._stored[job.uid] = found
        return self._stored.get(job.uid)

    async def write(self, job: Job) -> None:
        """Keep the posted plan. Shards of another plan under the same names (of a setup whose operator died) go."""
        kept = self._posted[job.uid]
        for manifest in shards.manifests(job, kept):
            failpoints.hit("before-plan.shard")
            await self._write_shard(job.namespace, manifest)
            failpoints.hit("after-plan.shard")
        self._stored[job.uid] = kept

    def forget(self, uid: JobUid) -> None:
        """The job is finished or gone."""
        self._posted.pop(uid, None)
        self._stored.pop(uid, None)
        self._absent.discard(uid)

    async def _read(self, job: Job) -> KeptPlan | None:
        try:
            first = await self._api.get(_PLANS, shards.shard_name(job, 0), job.namespace)
            rest = [
                await self._api.get(_PLANS, shards.shard_name(job, index), job.namespace)
                for index in range(1, shards.count_of(first))
            ]
        except errors.NotFound:
            return None
        return shards.read([first, *rest])

    async def _write_shard(self, namespace: str, manifest: Mapping[str, Any]) -> None:
        name = manifest["metadata"]["name"]
        try:
            await self._api.create(_PLANS, manifest, namespace)
        except errors.AlreadyExists:
            found = await self._api.get(_PLANS, name, namespace)
            if shards.same(manifest, found):
                return
            await self._api.delete(_PLANS, name, namespace, uid=found["metadata"]["uid"])
            await self._api.create(_PLANS, manifest, namespace)
