"""The end of a process that leads: first the lease, then everything else."""

import asyncio

import pytest

from boathouse import main, options
from boathouse.resources.config import OperatorConfig
from boathouse.telemetry import health, metrics
from tests.unit.cluster.leases import LeaseServer

pytestmark = pytest.mark.looptime


@pytest.fixture
def died(monkeypatch):
    reasons: list[str] = []
    monkeypatch.setattr(main, "die", reasons.append)
    return reasons


class Life(main._Life):
    """A life whose work is the election, and a writer that asks before every write whether it leads."""

    def __init__(self, server: LeaseServer) -> None:
        asked = options.Options(config=OperatorConfig(), identity="a")
        self.stop = asyncio.Event()
        super().__init__(asked, None, server, health.Health(), metrics.Metrics(), self.stop)

    async def _work(self) -> None:
        electing = asyncio.create_task(self._election.run())
        await self._election.acquired()
        await self.stop.wait()
        await asyncio.sleep(0.001)
        if not self._election.valid():
            self._fatal("leadership was lost while a write was under way")
        await electing


async def test_a_busy_leader_that_is_told_to_stop_gives_its_lease_away(died):
    server = LeaseServer()
    life = Life(server)
    running = asyncio.create_task(life.run())
    await asyncio.sleep(5)
    life.stop.set()
    assert await running == 0
    assert (died, server.lease.spec.holder_identity) == ([], "")


async def test_a_leader_that_lost_its_lease_ends_at_once(died):
    server = LeaseServer()
    life = Life(server)
    running = asyncio.create_task(life.run())
    await asyncio.sleep(5)
    server.lease = None
    await asyncio.sleep(5)
    running.cancel()
    assert died
