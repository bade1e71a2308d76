"""An API server that knows one lease, and a process that can stand still, for tests of the election."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

from msgspec import structs

from boathouse.cluster import election, errors, written
from boathouse.resources.config import LeaseConfig


class LeaseServer:
    """Optimistic concurrency over one Lease; `away` holds the errors that calls meet instead."""

    def __init__(self) -> None:
        self.lease: written.Lease | None = None
        self.fails: errors.ClusterError | None = None
        self.loses_answers = False
        self.hangs = False
        self.latency_s = 0.01
        self.writes = 0
        self.reads = 0
        self.renewing = asyncio.Event()

    async def get(self, _resource, name, _namespace):
        self.reads += 1
        await self._meet_failure()
        if self.lease is None:
            raise errors.NotFound(404, "NotFound", name)
        return self.lease

    async def create(self, _resource, lease, _namespace):
        await self._meet_failure()
        if self.lease is not None:
            raise errors.AlreadyExists(409, "AlreadyExists", "")
        return self._store(lease)

    async def replace(self, _resource, _name, lease, _namespace):
        self.renewing.set()
        await self._meet_failure()
        if self.lease is None:
            raise errors.NotFound(404, "NotFound", "")
        if lease.metadata.resource_version != self.lease.metadata.resource_version:
            raise errors.Conflict(409, "Conflict", "")
        return self._store(lease)

    def touch(self) -> None:
        """Let someone else change the lease's metadata."""
        self._store(self.lease)

    def take_over(self, identity: str) -> None:
        """Let another candidate hold the lease, as after our own expired."""
        spec = structs.replace(
            self.lease.spec, holder_identity=identity, lease_transitions=self.lease.spec.lease_transitions + 1
        )
        self._store(structs.replace(self.lease, spec=spec))

    async def _meet_failure(self) -> None:
        await asyncio.sleep(self.latency_s)
        if self.hangs:
            await asyncio.sleep(3600)
        if self.fails:
            raise self.fails

    def _store(self, lease: written.Lease) -> written.Lease:
        self.writes += 1
        meta = structs.replace(lease.metadata, resource_version=str(self.writes))
        self.lease = structs.replace(lease, metadata=meta)
        if self.loses_answers:
            raise errors.ConnectionLost("the answer was lost")
        return self.lease


class Candidate:
    """A process that wants to lead. `pause_s` moves its clock on as if it had stood still."""

    def __init__(self, server: LeaseServer, identity: str, **timing: float) -> None:
        self.lost: list[str] = []
        self._ahead_s = 0.0
        self.election = election.LeaderElection(
            server,
            namespace="ours",
            identity=identity,
            on_lost=self.lost.append,
            lease=LeaseConfig(**timing),
            monotonic=lambda: asyncio.get_running_loop().time() + self._ahead_s,
        )
        self.task: asyncio.Task[None] | None = None

    def pause(self, seconds: float) -> None:
        """Stand still: nothing of this process runs, its clock does."""
        self._ahead_s += seconds

    def start(self) -> None:
        self.task = asyncio.create_task(self.election.run())

    async def stop(self) -> None:
        if self.task:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task


@asynccontextmanager
async def candidates(server: LeaseServer, *identities: str, **timing: float):
    """Start candidates and stop them at the end."""
    every = [Candidate(server, identity, **timing) for identity in identities]
    for one in every:
        one.start()
    try:
        yield every[0] if len(every) == 1 else every
    finally:
        for one in every:
            await one.stop()
