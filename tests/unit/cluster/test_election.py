"""Who leads, since when, and for how long. Time is faked: an hour is an instant."""

from __future__ import annotations

import asyncio
import datetime as dt
import time

import pytest

from boathouse.cluster import election, errors, server_time
from tests.builders.operators import server_clocks
from tests.unit.cluster.leases import Candidate, LeaseServer, candidates

pytestmark = pytest.mark.looptime


async def test_the_first_candidate_leads_with_epoch_one_after_it_has_settled(looptime):
    async with candidates(LeaseServer(), "a") as one:
        assert await one.election.acquired() == 1
        assert one.election.valid()
        assert float(looptime) == pytest.approx(1.0, abs=0.1)


async def test_nobody_writes_while_settling():
    async with candidates(LeaseServer(), "a") as one:
        await asyncio.sleep(0.5)
        assert one.election.epoch == 1
        assert not one.election.valid()


async def test_of_two_candidates_one_leads():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        await asyncio.sleep(600)
        assert (server.lease.metadata.namespace, server.lease.metadata.name) == ("ours", "boathouse")
        assert [a.election.valid(), b.election.valid()].count(True) == 1
        assert a.lost == b.lost == []


async def test_a_dead_leader_is_followed_after_the_lease_duration(looptime):
    server = LeaseServer()
    async with candidates(server, "a") as a:
        await a.election.acquired()
    died_at = float(looptime)
    async with candidates(server, "b") as b:
        assert await b.election.acquired() == 2
        assert 15 <= float(looptime) - died_at <= 15 + 2 * 2.4 + 1


async def test_the_same_holder_leads_again_at_once_and_with_a_new_epoch(looptime):
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
    restarted_at = float(looptime)
    async with candidates(server, "a") as again:
        assert await again.election.acquired() == 2
        assert float(looptime) - restarted_at < 1.5


async def test_a_released_lease_is_taken_at_the_next_try(looptime):
    server = LeaseServer()
    async with candidates(server, "a") as a:
        await a.election.acquired()
        await a.election.release()
        assert not a.election.valid()
    async with candidates(server, "b") as b:
        assert await b.election.acquired() == 2
        assert looptime < 4


@pytest.mark.parametrize("into_a_renewal_s", [0.0, 0.1, 0.3, 0.5])
async def test_a_lease_released_amid_its_renewal_is_free(into_a_renewal_s):
    server = LeaseServer()
    server.latency_s = 0.2
    async with candidates(server, "a") as a:
        await a.election.acquired()
        server.renewing.clear()
        await server.renewing.wait()
        await asyncio.sleep(into_a_renewal_s)
        await a.election.release()
        assert server.lease.spec.holder_identity == ""
        await asyncio.sleep(60)
        assert (server.lease.spec.holder_identity, a.lost) == ("", [])


@pytest.mark.parametrize("into_its_life_s", [0.0, 0.1, 0.3, 1.0])
async def test_a_candidate_that_stops_leaves_the_lease_to_others(into_its_life_s):
    server = LeaseServer()
    server.latency_s = 0.2
    async with candidates(server, "a") as a:
        await asyncio.sleep(into_its_life_s)
        await a.election.release()
        await asyncio.sleep(60)
        assert server.lease is None or server.lease.spec.holder_identity == ""
        assert not a.election.valid()


async def test_a_candidate_that_is_cancelled_while_it_settles_renews_no_more():
    server = LeaseServer()
    candidate = Candidate(server, "a")
    candidate.start()
    await asyncio.sleep(election.SETTLE_S / 2)
    await candidate.stop()
    assert server.writes == 1
    await asyncio.sleep(60)
    assert server.writes == 1


async def test_a_candidate_that_stops_does_not_acquire_a_released_lease():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        await asyncio.sleep(5)
        leader, other = (a, b) if a.election.valid() else (b, a)
        await other.election.release()
        await leader.election.release()
        await asyncio.sleep(60)
        assert server.lease.spec.holder_identity == ""


async def test_a_paused_leader_may_not_write_when_it_wakes():
    async with candidates(LeaseServer(), "a") as one:
        await one.election.acquired()
        one.pause(10)
        assert not one.election.valid()


async def test_a_paused_leader_finds_out_that_it_was_followed():
    server = LeaseServer()
    a = Candidate(server, "a")
    async with candidates(server, "b") as b:
        await b.election.acquired()
        b.task.cancel()  # SIGSTOP: b neither renews nor notices
        a.start()
        assert await a.election.acquired() == 2
        b.pause(60)
        assert not b.election.valid()
        await a.stop()


async def test_a_slow_answer_shortens_the_time_it_grants():
    server = LeaseServer()
    server.latency_s = 3
    async with candidates(server, "a") as one:
        await one.election.acquired()  # sent 4 s ago: 3 s on its way, 1 s settling
        one.pause(6.1)
        assert not one.election.valid()


async def test_a_short_pause_costs_nothing():
    async with candidates(LeaseServer(), "a") as one:
        await one.election.acquired()
        one.pause(5)
        assert one.election.valid()
        await asyncio.sleep(3)
        assert one.election.valid()
        assert one.lost == []


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(errors.ConnectionLost("reset"), id="connection lost"),
        pytest.param(errors.ServerError(500, "", "etcd"), id="server error"),
        pytest.param(errors.Forbidden(403, "Forbidden", "rbac"), id="no right"),
    ],
)
async def test_a_leader_that_cannot_renew_is_lost_at_the_deadline(looptime, failure):
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        began, server.fails = float(looptime), failure
        await one.task
        assert float(looptime) - began <= 10 + 2
        assert "could not be renewed" in one.lost[0]
        assert not one.election.valid()


async def test_a_renewal_without_answer_does_not_hold_the_leader_past_its_deadline(looptime):
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        began, server.hangs = float(looptime), True
        await one.task
        assert float(looptime) - began <= 12


async def test_a_taken_lease_is_noticed_at_the_next_renewal(looptime):
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        thief = Candidate(server, "a")  # the same identity takes at once
        thief.start()
        began = float(looptime)
        await one.task
        assert float(looptime) - began <= 2.5
        assert "a holds the lease with 2" in one.lost[0]
        await thief.stop()


async def test_a_deleted_lease_ends_the_leader():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.lease = None
        await one.task
        assert one.lost == ["the lease was deleted"]


async def test_a_change_of_the_leases_labels_does_not_end_the_leader():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.touch()
        await asyncio.sleep(60)
        assert one.election.valid()


async def test_a_renewal_whose_answer_was_lost_does_not_end_the_leader():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.loses_answers = True
        await asyncio.sleep(3)
        server.loses_answers = False
        await asyncio.sleep(60)
        assert one.election.valid()


async def test_an_acquisition_whose_answer_was_lost_is_made_again_with_a_new_epoch():
    server = LeaseServer()
    server.loses_answers = True
    async with candidates(server, "a") as one:
        await asyncio.sleep(1)
        server.loses_answers = False
        assert await one.election.acquired() == 2


async def test_a_candidate_waits_while_the_server_is_away():
    server = LeaseServer()
    server.fails = errors.ConnectionLost("refused", maybe_done=False)
    async with candidates(server, "a") as one:
        await asyncio.sleep(60)
        server.fails = None
        assert await one.election.acquired() == 1


async def test_two_candidates_never_lead_at_once_whatever_happens():
    server = LeaseServer()
    async with candidates(server, "a", "b") as (a, b):
        for second in range(600):
            server.fails = errors.ServerError(503, "", "") if second // 20 % 3 == 1 else None
            assert not (a.election.valid() and b.election.valid())
            await asyncio.sleep(1)
        assert server.lease.spec.lease_transitions >= 2


async def test_fractions_of_seconds_serve_tests(looptime, monkeypatch):
    monkeypatch.setattr(election, "SETTLE_S", 0.0)
    quick = {"duration_seconds": 0.3, "renew_deadline_seconds": 0.2, "retry_period_seconds": 0.05}
    server = LeaseServer()
    async with candidates(server, "a", **quick) as a:
        await a.election.acquired()
    async with candidates(server, "b", **quick) as b:
        assert await b.election.acquired() == 2
        assert looptime < 0.6


# After a refused write


async def test_a_refused_write_of_the_leader_does_not_end_its_leadership():
    async with candidates(LeaseServer(), "a") as one:
        await one.election.acquired()
        assert await one.election.confirm() is None


async def test_a_refused_write_of_a_former_leader_names_its_successor():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.take_over("b")
        assert await one.election.confirm() == "b holds the lease with 2"


async def test_an_epoch_of_a_former_life_is_not_ours_though_the_holder_is():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.take_over("a")
        assert await one.election.confirm() == "a holds the lease with 2"


async def test_a_lease_that_was_deleted_is_not_ours():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.lease = None
        assert await one.election.confirm() == "the lease was deleted"


async def test_many_refused_writes_share_a_read_and_cause_at_most_one_a_second(looptime):
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        reads, began_at = server.reads, float(looptime)
        for _ in range(10):
            assert await asyncio.gather(*(one.election.confirm() for _ in range(100))) == [None] * 100
        assert server.reads - reads == 10
        assert looptime - began_at >= 9


async def test_a_refused_write_is_judged_by_a_read_that_began_after_it():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        before = asyncio.create_task(one.election.confirm())
        await asyncio.sleep(0.005)  # amid the read
        server.take_over("b")
        after = asyncio.create_task(one.election.confirm())
        await before
        assert await after == "b holds the lease with 2"


async def test_a_lease_that_cannot_be_read_leaves_the_leader_in_doubt_until_it_can():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.fails = errors.ServerError(500, "", "")
        asked = asyncio.create_task(one.election.confirm())
        await asyncio.sleep(3)
        assert one.election.in_doubt
        assert not asked.done()
        server.fails = None
        assert await asked is None
        assert not one.election.in_doubt


async def test_doubt_ends_with_the_leadership_when_the_lease_stays_unreadable():
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()
        server.fails = errors.ServerError(500, "", "")
        assert await one.election.confirm() == "the lease could not be renewed in time"


async def test_a_renewal_ends_the_doubt_too(monkeypatch):
    server = LeaseServer()
    async with candidates(server, "a") as one:
        await one.election.acquired()

        async def fail(*_):
            raise errors.ServerError(500, "", "")

        monkeypatch.setattr(one.election, "_read", fail)
        assert await one.election.confirm() is None
        assert not one.election.in_doubt


@pytest.mark.parametrize("step_s", server_clocks.STEPS_S)
async def test_a_step_of_the_servers_clock_neither_ends_a_leadership_nor_gives_it_away(monkeypatch, step_s):
    server_clocks.known_server(monkeypatch, 0)
    server = LeaseServer()
    async with candidates(server, "a", "b") as both:
        await asyncio.sleep(60)
        (leader,) = [candidate for candidate in both if candidate.election.valid()]
        server_clocks.tell_date(time.time() + step_s)
        for _ in range(60):
            await asyncio.sleep(1)
            assert [candidate for candidate in both if candidate.election.valid()] == [leader]
        renewed = dt.datetime.fromisoformat(server.lease.spec.renew_time)
        assert renewed.timestamp() == pytest.approx(server_time.SERVER_TIME.now_s(), abs=5)
