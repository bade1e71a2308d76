"""Events are for people: few, short, and never in the way."""

from __future__ import annotations

import asyncio
import datetime as dt
from contextlib import asynccontextmanager, suppress

import pytest

from boathouse.cluster import catalogue, errors, events as event_writer, server_time

pytestmark = pytest.mark.looptime

POD = event_writer.reference(catalogue.PODS, "demo", "p", "u1")


class EventServer:
    """Remembers the events it was given."""

    def __init__(self) -> None:
        self.created, self.patched, self.fails = [], [], []

    async def create(self, _resource, event, _namespace):
        await self._meet_failure()
        self.created.append(event)

    async def patch(self, _resource, name, patch, _namespace):
        await self._meet_failure()
        self.patched.append((name, patch["series"]["count"]))

    async def _meet_failure(self):
        await asyncio.sleep(0.01)
        if self.fails:
            raise self.fails.pop(0)


@asynccontextmanager
async def recording(server, **options):
    loop = asyncio.get_running_loop()
    events = event_writer.EventWriter(
        server,
        controller="boathouse.dev/scheduler",
        instance="me",
        monotonic=loop.time,
        **options,
    )
    task = asyncio.create_task(events.run())
    try:
        yield events
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def waits(events, note="no room", about=POD):
    events.publish(about, type_="Warning", reason="FailedScheduling", action="Scheduling", note=note)


async def test_an_event_says_what_happened_to_whom(monkeypatch):
    monkeypatch.setattr(server_time.SERVER_TIME, "now", lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    server = EventServer()
    async with recording(server) as events:
        events.publish(POD, type_="Normal", reason="Scheduled", action="Binding", note="Assigned demo/p to n1")
        await events.drain(5)
    (event,) = server.created
    assert (event["regarding"].uid, event["reason"], event["note"]) == ("u1", "Scheduled", "Assigned demo/p to n1")
    assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"


async def test_a_repeated_note_is_written_once_a_minute_with_its_count():
    server = EventServer()
    async with recording(server) as events:
        for _ in range(100):
            waits(events)
            await asyncio.sleep(1)
        await events.drain(5)
    assert len(server.created) == 1
    assert server.patched == [(server.created[0]["metadata"]["name"], 61)]


async def test_a_new_note_is_written_at_once():
    server = EventServer()
    async with recording(server) as events:
        waits(events, "0/2 nodes")
        waits(events, "0/3 nodes")
        await events.drain(5)
    assert [event["note"] for event in server.created] == ["0/2 nodes", "0/3 nodes"]


async def test_another_object_is_another_event():
    server = EventServer()
    async with recording(server) as events:
        waits(events)
        waits(events, about=event_writer.reference(catalogue.PODS, "demo", "q", "u2"))
        await events.drain(5)
    assert len({event["metadata"]["name"] for event in server.created}) == 2


async def test_a_series_whose_event_has_expired_begins_anew():
    server = EventServer()
    async with recording(server) as events:
        waits(events)
        await asyncio.sleep(61)
        server.fails = [errors.NotFound(404, "NotFound", "")]
        waits(events)
        await events.drain(5)
    assert len(server.created) == 2


async def test_a_long_note_is_cut_where_a_letter_ends():
    server = EventServer()
    async with recording(server) as events:
        waits(events, "ü" * 2000)
        await events.drain(5)
    note = server.created[0]["note"]
    assert len(note.encode()) <= 1024
    assert note.endswith("ü...")


async def test_an_event_that_cannot_be_encoded_costs_no_other_event():
    server = EventServer()
    async with recording(server) as events:
        server.fails = [TypeError("no such type")]
        waits(events, "first")
        waits(events, "second")
        await events.drain(5)
    assert [event["note"] for event in server.created] == ["second"]


async def test_a_full_queue_drops_and_never_waits():
    events = event_writer.EventWriter(EventServer(), controller="c", instance="me", queue_size=10)
    for number in range(25):
        waits(events, f"note {number}")
    assert events._queue.qsize() == 10


async def test_a_lost_answer_is_no_second_event():
    server = EventServer()
    server.fails = [errors.ConnectionLost("reset"), errors.AlreadyExists(409, "AlreadyExists", "")]
    async with recording(server) as events:
        waits(events)
        await events.drain(5)
    assert server.fails == server.created == []


async def test_an_event_that_is_refused_keeps_no_other_from_being_written(monkeypatch):
    monkeypatch.setattr(event_writer, "WRITERS", 1)
    server = EventServer()
    server.fails = [errors.Forbidden(403, "Forbidden", "the namespace is being terminated")]
    async with recording(server) as events:
        waits(events, "one")
        waits(events, "two")
        await events.drain(5)
    assert [event["note"] for event in server.created] == ["two"]


async def test_draining_gives_up_in_time(looptime):
    server = EventServer()
    async with recording(server) as events:
        server.fails = [errors.ServerError(500, "", "")] * 100
        waits(events)
        await events.drain(0.5)
    assert float(looptime) == pytest.approx(0.5, abs=0.01)


async def test_draining_ends_as_soon_as_all_events_are_written(looptime):
    async with recording(EventServer()) as events:
        waits(events)
        await events.drain(5)
        assert looptime < 0.1


async def test_of_many_events_the_oldest_are_forgotten_first(monkeypatch):
    monkeypatch.setattr(event_writer, "_REMEMBERED", 2)
    server = EventServer()
    abouts = [event_writer.reference(catalogue.PODS, "demo", name, name) for name in "abc"]
    async with recording(server) as events:
        for about in [*abouts, abouts[2], abouts[1], abouts[0]]:
            waits(events, about=about)
        await events.drain(5)
    assert [event["regarding"].name for event in server.created] == ["a", "b", "c", "a"]


async def test_events_of_one_namespace_do_not_crowd_out_those_of_others():
    server = EventServer()
    async with recording(server, rate_per_s=1) as events:
        for number in range(1000):
            waits(events, about=event_writer.reference(catalogue.PODS, "busy", f"p{number}", f"u{number}"))
        waits(events, about=event_writer.reference(catalogue.PODS, "quiet", "p", "u"))
        await asyncio.sleep(10)
    assert [event["metadata"]["namespace"] for event in server.created].count("busy") == 50
    assert [event["metadata"]["namespace"] for event in server.created].count("quiet") == 1
    assert events.limited == 950
