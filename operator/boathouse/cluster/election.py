"""Leader election by a Lease, with an epoch that grows at every acquisition.

::

    WAITING ──lease free, or unchanged for its duration──▶ SETTLING ──settle_s──▶ LEADING
       ▲ ─────────────── PUT lost (409) ───────────────┘      │                      │
                                                              └──── renewal late or lease taken ────▶ LOST (final)

* The epoch is `leaseTransitions`. Unlike client-go it also grows when the same holder acquires the lease again, so
  that requests in flight of a previous container of this pod have an old epoch.
* No clock of another process is trusted: a lease has expired when this process observed it unchanged for its duration,
  on its monotonic clock. A leader counts from before it sent its last successful renewal. Times in the Lease are only
  informational.
* A lease cannot stop a process that is paused and resumes. The process calls `valid()` before every write, and the
  chart's policy compares each write's epoch with the Lease on the server.
* A refused write may be the policy's response to an old epoch. The text of a refusal contains names that tenants
  choose, so only the Lease itself shows the leader: `confirm()` reads it.
* Not supported: deleting the Lease object manually while a leader is paused, because the epoch then restarts.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable

from msgspec import structs

from boathouse.cluster import catalogue, errors, retries, written
from boathouse.cluster.client import ApiClient
from boathouse.resources.config import LeaseConfig

log = logging.getLogger(__name__)
SETTLE_S = 1.0
"""Delay of a new leader's first write, until the API server's policies have its epoch."""
_LEASE = LeaseConfig()
CONFIRM_DISTANCE_S = 1.0
"""Minimum time between two reads by `confirm`, since tenants can cause refused writes at any rate."""


class LeaderElection:
    """A candidate for a lease. Start `run`, await `acquired`, and call `valid` before every write.

    A candidate takes over a lease of its own identity, which is unique among running processes, at once. `on_lost` must
    end the process. The clock must advance while the process is paused. It is `in_doubt` whether this process leads if
    a write was refused and the Lease could not be read since.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        namespace: str,
        identity: str,
        on_lost: Callable[[str], None],
        lease: LeaseConfig = _LEASE,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.epoch: int | None = None
        self.in_doubt = self._lost = False
        self._client, self._namespace, self._identity, self._on_lost = client, namespace, identity, on_lost
        self._name, self._retry_s = lease.name, lease.retry_period_seconds
        self._duration_s, self._renew_deadline_s = lease.duration_seconds, lease.renew_deadline_seconds
        self._written_s = math.ceil(lease.duration_seconds)  # the Lease has whole seconds
        self._monotonic, self._sleep = monotonic, sleep
        self._lease: written.Lease | None = None
        self._observed: written.LeaseSpec | None = None
        self._observed_at = self._renewed_at = self._confirmed_at = -math.inf
        self._leading = asyncio.Event()
        self._confirmation: asyncio.Task[str | None] | None = None
        self._writing = asyncio.Lock()  # a release must not overlap with an acquisition or a renewal in flight

    def valid(self) -> bool:
        """Return whether this process is the leader now; call it before every write."""
        return self._leading.is_set() and not self._lost and self._left_s() > 0

    def _left_s(self) -> float:
        return self._renewed_at + self._renew_deadline_s - self._monotonic()

    async def confirm(self) -> str | None:
        """Read the Lease after a refused write; return the current leader, or None if it is this process.

        Concurrent callers share one read, which begins after their call. While the Lease cannot be read this waits,
        `in_doubt`, until a read or a renewal succeeds, or until leadership has lapsed.
        """
        if self._confirmation is None:
            self._confirmation = asyncio.create_task(self._confirm())
        return await asyncio.shield(self._confirmation)

    async def acquired(self) -> int:
        """Wait until this process leads and has settled; return the epoch."""
        await self._leading.wait()
        assert self.epoch is not None
        return self.epoch

    async def run(self) -> None:
        """Acquire and renew the lease; return when it is lost (after `on_lost`). After a release, only wait."""
        while not await self._tried_to_acquire():
            await self._sleep(self._retry_s * retries.JITTER.uniform(1.0, 1.2))  # candidates do not try in step
        log.info("became leader with epoch %s as %s", self.epoch, self._identity)
        renewing = asyncio.create_task(self._renew_until_lost())
        try:
            await self._sleep(SETTLE_S)
            self._leading.set()
            reason = await renewing
        finally:
            renewing.cancel()
        self._lost = True
        log.error("leadership lost: %s", reason)
        self._on_lost(reason)

    async def release(self) -> None:
        """Release the lease if this process holds it, so that a standby takes over at once. Stop writing before."""
        if self._lost:
            return
        self._lost = True
        try:
            async with asyncio.timeout(self._retry_s):
                await self._writing.acquire()  # never released: no acquisition or renewal may follow
                lease = await self._read() if self.epoch is not None else None
                if lease is not None and self._is_ours(lease):
                    now = written.micro_time()
                    spec = structs.replace(lease.spec, holder_identity="", lease_duration_seconds=1, renew_time=now)
                    await self._put(lease, spec)
        except (errors.ClusterError, TimeoutError) as error:
            log.warning("the lease was not released, the next leader waits %s s: %s", self._written_s, error)

    # Standby

    async def _tried_to_acquire(self) -> bool:
        try:
            async with asyncio.timeout(self._renew_deadline_s), self._writing:
                return await self._acquire()
        except errors.Conflict:
            return False  # another candidate was faster; the next read returns its record
        except (errors.ClusterError, TimeoutError) as error:
            log.warning("cannot try for lease %s/%s: %s", self._namespace, self._name, error or "no answer in time")
            return False

    async def _acquire(self) -> bool:
        if (lease := await self._read()) is not None and not self._may_take(lease.spec):
            return False
        sent_at, now = self._monotonic(), written.micro_time()
        epoch = (lease.spec.lease_transitions if lease else 0) + 1
        spec = written.LeaseSpec(
            holder_identity=self._identity,
            lease_duration_seconds=self._written_s,
            acquire_time=now,
            renew_time=now,
            lease_transitions=epoch,
        )
        self._lease = await self._put(lease, spec)
        self._renewed_at, self.epoch = sent_at, epoch
        return True

    async def _read(self) -> written.Lease | None:
        try:
            return await self._client.get(catalogue.LEASES, self._name, self._namespace)
        except errors.NotFound:
            return None

    def _may_take(self, spec: written.LeaseSpec) -> bool:
        if spec != self._observed:
            self._observed, self._observed_at = spec, self._monotonic()
        if not spec.holder_identity or spec.holder_identity == self._identity:
            return True
        written_s = spec.lease_duration_seconds or self._written_s
        duration_s = self._duration_s if written_s == self._written_s else written_s
        return self._monotonic() >= self._observed_at + duration_s

    # Leading

    async def _renew_until_lost(self) -> str:
        while True:
            await self._sleep(self._retry_s)
            async with self._writing:
                if (left_s := self._left_s()) <= 0:
                    return f"the lease could not be renewed for {self._renew_deadline_s} s"
                try:
                    async with asyncio.timeout(left_s):
                        if taken := await self._renew():
                            return taken
                except (errors.ClusterError, TimeoutError) as error:
                    log.warning("the lease was not renewed: %s", error or "no answer in time")

    async def _renew(self) -> str | None:
        assert self._lease is not None
        sent_at = self._monotonic()
        spec = structs.replace(self._lease.spec, renew_time=written.micro_time())
        try:
            self._lease = await self._put(self._lease, spec)
            self._renewed_at = sent_at
        except (errors.Conflict, errors.NotFound):
            lease = await self._read()
            if lease is None or not self._is_ours(lease):
                return _other_holder(lease)
            self._lease = lease  # still this process's lease: its metadata changed, or the last response was lost
        return None

    async def _confirm(self) -> str | None:
        await self._sleep(max(0.0, self._confirmed_at + CONFIRM_DISTANCE_S - self._monotonic()))
        self._confirmation = None  # callers from here on need a later read
        began_at = self._monotonic()
        while self.valid():
            self._confirmed_at = self._monotonic()
            try:
                async with asyncio.timeout(self._retry_s):
                    lease = await self._read()
            except (errors.ClusterError, TimeoutError) as error:
                self.in_doubt = True
                log.warning("the lease was not read after a refused write: %s", error or "no answer in time")
            else:
                self.in_doubt = False
                return None if lease is not None and self._is_ours(lease) else _other_holder(lease)
            await self._sleep(self._retry_s)
            if self._renewed_at > began_at:  # a renewal proves the leadership like a read
                self.in_doubt = False
                return None
        return "the lease could not be renewed in time"

    def _is_ours(self, lease: written.Lease) -> bool:
        return (lease.spec.holder_identity, lease.spec.lease_transitions) == (self._identity, self.epoch)

    async def _put(self, old: written.Lease | None, spec: written.LeaseSpec) -> written.Lease:
        if old is None:
            meta = written.WrittenMeta(name=self._name, namespace=self._namespace)
            lease = written.Lease(api_version=catalogue.LEASES.api_version, metadata=meta, spec=spec)
            return await self._client.create(catalogue.LEASES, lease, self._namespace)
        lease = structs.replace(old, spec=spec)
        return await self._client.replace(catalogue.LEASES, self._name, lease, self._namespace)


def _other_holder(lease: written.Lease | None) -> str:
    if lease is None:
        return "the lease was deleted"
    return f"{lease.spec.holder_identity or 'nobody'} holds the lease with {lease.spec.lease_transitions}"
