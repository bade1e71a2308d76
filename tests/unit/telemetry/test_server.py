"""What a scraper and a kubelet see."""

import asyncio
import contextlib
import dataclasses
import threading

import aiohttp
import pytest
from prometheus_client import exposition

from boathouse.listening import listener
from boathouse.telemetry import health, metrics, server


async def fetch(application, path, **headers):
    async with (
        listener.serve(application, port=0, host="127.0.0.1", limits=server.LIMITS) as served,
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{served.port}{path}", headers=headers) as answer,
    ):
        return answer.status, answer.headers["Content-Type"], await answer.text()


async def test_a_scraper_sees_counters_at_zero_with_all_their_labels():
    _, _, text = await fetch(server.metrics_application(metrics.Metrics(profile="fair").registry), "/metrics")
    assert 'boathouse_schedule_attempts_total{profile="fair",result="scheduled"} 0.0' in text
    assert 'boathouse_api_write_errors_total{code="409",operation="bind"} 0.0' in text


async def test_a_scraper_that_requests_openmetrics_gets_it():
    accept = "application/openmetrics-text; version=1.0.0"
    _, content_type, text = await fetch(
        server.metrics_application(metrics.Metrics().registry), "/metrics", Accept=accept
    )
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith("# EOF\n")


async def test_gauges_are_read_when_they_are_scraped():
    subject, pending = metrics.Metrics(), [3]
    subject.gauges.add(metrics.Gauge(name="boathouse_waiting", documentation="w", read=lambda: {(): pending[0]}))
    pending[0] = 5
    _, _, text = await fetch(server.metrics_application(subject.registry), "/metrics")
    assert "boathouse_waiting 5.0" in text


async def test_a_gauge_that_cannot_be_read_is_left_out_and_counted():
    subject = metrics.Metrics()
    subject.gauges.add(metrics.Gauge(name="boathouse_broken", documentation="b", read=lambda: {}[0]))
    subject.gauges.add(metrics.Gauge(name="boathouse_whole", documentation="w", read=lambda: {(): 1.0}))
    pages = [exposition.generate_latest(subject.registry).decode() for _ in range(2)]
    assert "boathouse_broken" not in pages[0]
    assert "boathouse_whole 1.0" in pages[0]
    assert 'boathouse_gauge_failures_total{gauge="boathouse_broken"} 1.0' in pages[1]


async def test_a_page_is_created_once_however_often_it_is_requested(monkeypatch):
    monkeypatch.setattr(server, "PAGE_S", 3600.0)
    subject, made = metrics.Metrics(), []
    subject.gauges.add(metrics.Gauge(name="boathouse_x", documentation="x", read=lambda: made.append(1) or {(): 1.0}))
    application = server.metrics_application(subject.registry)
    serving = listener.serve(application, port=0, host="127.0.0.1", limits=server.LIMITS)
    async with serving as served, aiohttp.ClientSession() as session:
        for version in ("0.0.1", "1.0.0", "9"):
            headers = {"Accept": f"application/openmetrics-text; version={version}"}
            async with session.get(f"http://127.0.0.1:{served.port}/metrics", headers=headers) as answer:
                assert answer.ok
    assert len(made) == 1


async def test_other_work_has_its_turn_between_two_metrics_of_a_page():
    subject, turns, seen = metrics.Metrics(), [0], []
    for name in ("a", "b"):
        gauge = metrics.Gauge(
            name=f"boathouse_{name}", documentation=name, read=lambda: seen.append(turns[0]) or {(): 1.0}
        )
        subject.gauges.add(gauge)

    async def work():
        while len(seen) < 2:
            turns[0] += 1
            await asyncio.sleep(0)

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(work())
        await fetch(server.metrics_application(subject.registry), "/metrics")
    assert seen[0] < seen[1]


async def test_the_text_of_a_page_is_made_outside_of_the_event_loop(monkeypatch):
    threads = []
    encoder = (lambda _source: threads.append(threading.get_ident()) or b"", "text/plain")
    monkeypatch.setattr(exposition, "choose_encoder", lambda _accepted: encoder)
    await fetch(server.metrics_application(metrics.Metrics().registry), "/metrics")
    assert threads
    assert threading.get_ident() not in threads


async def test_idle_connections_to_a_port_give_way_to_a_probe():
    application, limits = server.health_application(health.Health()), dataclasses.replace(server.LIMITS, most=3)
    async with contextlib.AsyncExitStack() as stack:
        serving = listener.serve(application, port=0, host="127.0.0.1", limits=limits)
        port = (await stack.enter_async_context(serving)).port
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
        session = await stack.enter_async_context(aiohttp.ClientSession())
        async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
            assert answer.ok
        assert await asyncio.wait_for(idle[0][0].read(), 30) == b""  # the oldest was ended
        for _, writer in idle:
            writer.transport.abort()


def test_two_gauges_of_one_name_are_a_mistake():
    subject = metrics.ScrapeGauges()
    gauge = metrics.Gauge(name="boathouse_x", documentation="x", read=lambda: {(): 1.0})
    subject.add(gauge)
    with pytest.raises(ValueError, match="the gauge boathouse_x exists already"):
        subject.add(gauge)


async def test_a_process_without_problems_is_healthy():
    assert (await fetch(server.health_application(health.Health()), "/healthz"))[::2] == (200, "ok\n")


async def test_a_watch_that_fell_silent_makes_the_process_unhealthy_and_says_so():
    state = health.Health()
    state.liveness["watch pods"] = lambda: "silent for 95 s"
    expected = (503, "watch pods: silent for 95 s\n")
    assert (await fetch(server.health_application(state), "/healthz"))[::2] == expected
    assert (await fetch(server.health_application(state), "/readyz"))[::2] == expected


async def test_a_process_that_is_not_ready_is_still_alive():
    state = health.Health()
    state.readiness["cache"] = lambda: "listing pods"
    assert (await fetch(server.health_application(state), "/readyz"))[::2] == (503, "cache: listing pods\n")
    assert (await fetch(server.health_application(state), "/healthz"))[0] == 200


def test_a_loop_is_healthy_until_it_is_silent_for_longer_than_its_limit():
    now = [100.0]
    beat = health.Heartbeat(limit_s=30, clock=lambda: now[0])
    assert beat() is None  # not started
    beat.beat()
    now[0] = 130
    assert beat() is None
    now[0] = 131
    assert beat() == "no progress for 31 s (limit 30 s)"
