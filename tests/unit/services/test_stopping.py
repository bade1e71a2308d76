"""The end of a process that leads: it saves what it learned, releases its lease, then stops everything else."""

import asyncio

import pytest

from boathouse import main, options
from boathouse.resources.config import OperatorConfig
from boathouse.telemetry import health, metrics
from tests.unit.cluster.leases import LeaseServer

pytestmark = pytest.mark.looptime


@pytest.fixture
def deaths(monkeypatch):
    reasons: list[str] = []
    monkeypatch.setattr(main, "die", reasons.append)
    return reasons


class Learner:
    """Notes who holds the lease at each save."""

    def __init__(self, server: LeaseServer) -> None:
        self.server = server
        self.holders: list[str | None] = []

    async def save_learned(self) -> None:
        lease = self.server.lease
        self.holders.append(lease and lease.spec.holder_identity)


class Life(main._Life):
    """A life whose work is the election, and a writer that checks before every write whether it leads."""

    def __init__(self, server: LeaseServer) -> None:
        parsed = options.Options(config=OperatorConfig(), identity="a")
        self.stop = asyncio.Event()
        super().__init__(parsed, None, server, health.Health(), metrics.Metrics(), self.stop)

    async def _work(self) -> None:
        electing = asyncio.create_task(self._election.run())
        await self._election.acquired()
        await self.stop.wait()
        await asyncio.sleep(0.001)
        if not self._election.valid():
            self._fatal("leadership was lost while a write was in flight")
        await electing


async def test_a_busy_leader_that_is_stopped_releases_its_lease(deaths):
    server = LeaseServer()
    life = Life(server)
    running = asyncio.create_task(life.run())
    await asyncio.sleep(5)
    life.stop.set()
    assert await running == 0
    assert (deaths, server.lease.spec.holder_identity) == ([], "")


async def test_a_leader_that_is_stopped_saves_what_it_learned_while_it_leads(deaths):
    server = LeaseServer()
    life = Life(server)
    life._leader = learner = Learner(server)
    running = asyncio.create_task(life.run())
    await asyncio.sleep(5)
    life.stop.set()
    assert await running == 0
    assert (deaths, learner.holders) == ([], ["a"])


async def test_a_leader_of_which_a_part_failed_saves_nothing(deaths, monkeypatch):
    server = LeaseServer()
    life = Life(server)
    life._leader = learner = Learner(server)
    monkeypatch.setattr(life, "_work", lambda: asyncio.sleep(1))
    assert await life.run() == main.EXIT_FAILED
    assert (deaths, learner.holders) == ([], [])


async def test_a_leader_that_lost_its_lease_ends_at_once(deaths):
    server = LeaseServer()
    life = Life(server)
    running = asyncio.create_task(life.run())
    await asyncio.sleep(5)
    server.lease = None
    await asyncio.sleep(5)
    running.cancel()
    assert deaths
