"""An informer follows the server through everything a watch can suffer, and never keeps a ghost."""

from __future__ import annotations

import asyncio
import time
from unittest import mock

import pytest

from boathouse.cluster import boundary, catalogue, informer, wire
from tests.builders import manifests
from tests.builders.operators.informers import cached, following, missing, stored


async def test_it_lists_then_watches(api, client, eventually):
    api.add(manifests.pod("a"))
    async with following(api, client) as (followed, follower):
        assert (follower.fresh(), followed.lag_s) == (["Added a"], 0.0)
        api.add(manifests.pod("b"))
        api.set_phase("demo/a", "Running")
        api.remove("pods", "demo/b")
        await eventually(lambda: len(follower.reported) == 3)
        assert follower.fresh() == ["Added b", "Modified a", "Deleted b"]
        assert cached(followed) == stored(api)


async def test_a_pod_that_ends_leaves_the_selection_as_deleted(api, client, eventually):
    api.add(manifests.pod("a", node="n1", phase="Running"))
    async with following(api, client, fields=catalogue.PODS_THAT_HOLD_RESOURCES) as (followed, follower):
        api.end_pod("demo/a")
        await eventually(lambda: follower.reported == ["Added a", "Deleted a"])
        assert followed.objects == {}


async def test_another_informer_reports_how_our_own_pods_ended(api, client, eventually):
    api.add(manifests.pod("a", labels={"boathouse.dev/job-uid": "j"}, phase="Running"))
    api.add(manifests.pod("foreign", phase="Running"))
    ended = following(api, client, labels="boathouse.dev/job-uid", fields=catalogue.PODS_THAT_ENDED)
    async with ended as (followed, follower):
        assert follower.fresh() == []
        api.end_pod("demo/foreign")
        api.end_pod("demo/a", exit_code=3, message="{}")
        await eventually(lambda: follower.reported == ["Added a"])
        terminated = followed.objects.get("demo/a").status.container_statuses[0].state.terminated
        assert (terminated.exit_code, terminated.message) == (3, "{}")


async def test_a_pod_made_anew_under_its_name_is_deleted_and_added(api, client, eventually):
    api.add(manifests.pod("a"))
    async with following(api, client) as (followed, follower):
        with missing(api):
            api.remove("pods", "demo/a")
            api.add(manifests.pod("a"))
        await eventually(lambda: follower.reported == ["Added a", "Deleted a", "Added a"])
        assert cached(followed) == stored(api)


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(lambda w: w.cut("pods", mid_line=True, abort=True), id="broken in the middle of a line"),
        pytest.param(lambda w: w.cut("pods", mid_line=False, abort=True), id="broken between two lines"),
        pytest.param(lambda w: w.cut("pods", mid_line=True, abort=False), id="ended in the middle of a line"),
        pytest.param(lambda w: w.expire("pods"), id="410 in the stream, which is then ended"),
    ],
)
async def test_a_pod_deleted_while_the_watch_was_lost_does_not_stay_as_a_ghost(api, client, eventually, lose):
    api.add(manifests.pod("ghost"))
    api.add(manifests.pod("kept"))
    async with following(api, client) as (followed, follower):
        follower.fresh()
        api.watches.silence("pods")
        api.remove("pods", "demo/ghost")
        api.watches.speak("pods")
        lose(api.watches)
        await eventually(lambda: "Deleted ghost" in follower.reported)
        assert follower.fresh() == ["Deleted ghost"]
        assert cached(followed) == stored(api)
        assert followed.stats.lists == 2


async def test_a_deletion_found_by_a_list_has_no_final_state(api, client, eventually):
    api.add(manifests.pod("ghost"))
    async with following(api, client) as (_, follower):
        with missing(api):
            api.remove("pods", "demo/ghost")
        await eventually(lambda: len(follower.changes) == 2)
        assert follower.changes[-1].final is None


async def test_a_watch_that_stands_still_is_given_up(api, client, eventually):
    api.add(manifests.pod("ghost"))
    async with following(api, client, stall_s=0.1) as (followed, follower):
        api.watches.silence("pods")
        api.remove("pods", "demo/ghost")
        await eventually(lambda: follower.reported == ["Added ghost", "Deleted ghost"])
        assert followed.stats.failures >= 1


async def test_a_watch_whose_time_is_up_resumes_without_a_list(api, client, eventually):
    async with following(api, client) as (followed, follower):
        api.add(manifests.pod("a"))
        await eventually(lambda: follower.reported)
        api.watches.end("pods")
        api.add(manifests.pod("b"))
        await eventually(lambda: follower.reported == ["Added a", "Added b"])
        assert followed.stats.lists == 1


async def test_a_watch_that_ends_at_once_again_and_again_is_not_tried_in_a_hurry(api, client, eventually):
    async with following(api, client) as (followed, _):
        for number in range(1, 4):
            await eventually(lambda n=number: len(api.called("watch pods")) == n and api.watches.count("pods"))
            api.watches.end("pods")
        await eventually(lambda: followed.stats.lists >= 3)
        assert followed.stats.failures >= 2


async def test_a_watch_refused_as_too_old_leads_to_a_list(api, client, eventually):
    async with following(api, client) as (followed, follower):
        api.fail_next("watch pods", status=410, reason="Expired")
        api.add(manifests.pod("a"))
        api.watches.cut("pods")
        await eventually(lambda: cached(followed) == stored(api))
        assert follower.reported == ["Added a"]


async def test_stale_and_repeated_events_are_not_reported(api, client, eventually):
    async with following(api, client) as (_, follower):
        api.add(manifests.pod("a"))
        api.set_phase("demo/a", "Running")
        api.remove("pods", "demo/a")
        await eventually(lambda: len(follower.reported) == 3)
        api.watches.replay("pods", last=3)
        api.add(manifests.pod("end"))
        await eventually(lambda: "Added end" in follower.reported)
        assert follower.reported == ["Added a", "Modified a", "Deleted a", "Added end"]


async def test_stale_events_after_a_list_do_not_bring_back_what_it_lacks(api, client, eventually):
    api.add(manifests.pod("ghost"))
    async with following(api, client) as (followed, follower):
        with missing(api):
            api.remove("pods", "demo/ghost")
        await eventually(lambda: api.watches.count("pods") == 1 and followed.stats.lists == 2)
        api.watches.replay("pods", last=2)
        api.add(manifests.pod("end"))
        await eventually(lambda: "Added end" in follower.reported)
        assert follower.reported == ["Added ghost", "Deleted ghost", "Added end"]


async def test_bookmarks_keep_it_fresh_and_move_the_start_of_the_next_watch(api, client, eventually):
    async with following(api, client) as (followed, _):
        api.add(manifests.node("n1"))  # moves the revision, not the pods
        sent_s = time.monotonic()
        api.watches.bookmark("pods")
        await eventually(lambda: followed.stats.bookmarks == 1)
        assert followed.freshness_s() <= time.monotonic() - sent_s
        api.watches.cut("pods", mid_line=False, abort=False)
        await eventually(lambda: len(api.called("watch pods")) == 2)
        assert api.called("watch pods")[1].query["resourceVersion"] == str(api.world.revision)


async def test_a_list_in_pages_whose_token_expires_begins_anew(api, client, eventually, monkeypatch):
    monkeypatch.setattr(informer, "log", log := mock.Mock())
    for number in range(1001):
        api.add(manifests.pod(f"p{number:04}"))
    api.fail_next("list pods", delay_s=0.02)
    async with following(api, client) as (followed, follower):
        api.chaos = expires_second_pages(api)
        with missing(api):
            api.remove("pods", "demo/p0000")
        await eventually(lambda: "Deleted p0000" in follower.reported)
        assert cached(followed) == stored(api)
        assert "continue parameter is too old" in str(log.warning.call_args)


@pytest.mark.parametrize("status", [429, 500, 503, 403])
async def test_a_list_that_fails_is_tried_again(api, client, status):
    api.add(manifests.pod("a"))
    api.fail_next("list pods", times=3, status=status)
    async with following(api, client) as (followed, follower):
        assert follower.reported == ["Added a"]
        assert followed.stats.failures == 3


async def test_a_list_that_fails_is_tried_again_in_shorter_pages(api, client):
    api.add(manifests.pod("a"))
    api.fail_next("list pods", times=2, status=503)
    async with following(api, client):
        assert [call.query["limit"] for call in api.called("list pods")] == ["500", "250", "125"]


async def test_retry_after_is_honoured(api, client):
    waited_s = []

    async def sleep(delay_s):
        waited_s.append(delay_s)

    api.fail_next("list pods", status=429, retry_after_s=2)
    async with following(api, client, sleep=sleep):
        assert 2.0 <= waited_s[0] <= 2.2


async def test_it_follows_some_namespaces_only(api, client, eventually):
    api.add(manifests.pod("a", namespace="one"))
    api.add(manifests.pod("b", namespace="two"))
    api.add(manifests.pod("c", namespace="three"))
    async with following(api, client, namespaces=["one", "two"]) as (followed, follower):
        api.add(manifests.pod("d", namespace="two"))
        api.add(manifests.pod("e", namespace="three"))
        await eventually(lambda: "Added d" in follower.reported)
        assert followed.objects.keys() == {"one/a", "two/b", "two/d"}
        assert followed.objects.get("two/d").metadata.namespace == "two"


async def test_a_line_of_many_kilobytes_is_read(api, client, eventually):
    async with following(api, client, catalogue.NODES) as (followed, follower):
        api.add(manifests.node("n1", labels={f"label-{n}": "x" * 60 for n in range(20_000)}))
        await eventually(lambda: follower.reported == ["Added n1"])
        assert len(followed.objects.get("n1").metadata.labels) == 20_001


async def test_a_line_that_is_no_event_leads_to_a_list(api, client, eventually, monkeypatch):
    monkeypatch.setattr(informer, "log", log := mock.Mock())
    async with following(api, client) as (followed, _):
        api.watches.send_line("pods", b"<html>proxy</html>\n")
        await eventually(lambda: followed.stats.lists == 2)
        assert "not a watch event" in str(log.warning.call_args)


async def test_what_the_callback_raises_sets_the_object_aside_once(api, client, eventually):
    taken, aside = [], boundary.Boundary()

    def on_change(change):
        if change.key == "demo/a":
            raise RuntimeError(change.key)
        taken.append(change.key)

    api.add(manifests.pod("a"))
    running = asyncio.create_task(informer.Informer(client, catalogue.PODS, on_change=on_change, aside=aside).run())
    await eventually(lambda: api.watches.count("pods"))
    api.set_phase("demo/a", "Running")
    api.add(manifests.pod("b"))
    await eventually(lambda: taken == ["demo/b"])
    running.cancel()
    assert aside.counts == {("Pod", boundary.Reason.HANDLING): 1}


UNREADABLE = {"priority": "high"}


async def test_an_object_of_a_list_that_cannot_be_decoded_is_set_aside(api, client):
    aside = boundary.Boundary()
    api.add(manifests.pod("a"))
    api.add(manifests.pod("poison", node="n1", **UNREADABLE))
    async with following(api, client, aside=aside) as (followed, _):
        assert cached(followed) == stored(api)
        stand_in = followed.objects.get("demo/poison")
        assert (type(stand_in), stand_in.spec.node_name) == (wire.UnreadablePod, "n1")
        assert type(followed.objects.get("demo/a")) is wire.PodView
        assert not await followed.compare(settle_s=0)
    assert aside.counts == {("Pod", boundary.Reason.DECODING): 1}


async def test_an_object_of_a_watch_that_cannot_be_decoded_is_set_aside_until_it_is_deleted(api, client, eventually):
    async with following(api, client) as (followed, follower):
        api.add(manifests.pod("poison", **UNREADABLE))
        api.add(manifests.pod("a"))
        await eventually(lambda: cached(followed) == stored(api))
        api.remove("pods", "demo/poison")
        await eventually(lambda: cached(followed) == stored(api))
        assert follower.fresh() == ["Added poison", "Added a", "Deleted poison"]
        assert followed.stats.lists == 1


async def test_a_comparison_finds_nothing_when_all_is_well(api, client):
    for number in range(600):
        api.add(manifests.pod(f"p{number}"))
    async with following(api, client) as (followed, _):
        assert not await followed.compare(settle_s=0)


async def test_a_comparison_finds_ghosts_and_gaps(api, client):
    api.add(manifests.pod("ghost"))
    async with following(api, client) as (followed, _):
        api.watches.silence("pods")
        api.remove("pods", "demo/ghost")
        api.add(manifests.pod("missing"))
        assert await followed.compare(settle_s=0) == {"demo/ghost", "demo/missing"}


async def test_a_comparison_forgives_a_stream_that_is_only_behind(api, client, eventually):
    async def catch_up(_):
        await eventually(lambda: follower.reported == ["Added late"])

    async with following(api, client, sleep=catch_up) as (followed, follower):
        api.add(manifests.pod("late"))
        assert not await followed.compare()


async def test_a_comparison_forgives_an_object_that_changed_between_its_two_looks(api, client, eventually):
    async def changes(_):
        api.watches.speak("pods")
        api.set_phase("demo/a", "Running")
        await eventually(lambda: follower.reported == ["Added a", "Modified a"])
        api.watches.silence("pods")
        api.set_phase("demo/a", "Succeeded")

    api.add(manifests.pod("a"))
    async with following(api, client, sleep=changes) as (followed, follower):
        api.watches.silence("pods")
        api.set_phase("demo/a", "Unknown")
        assert not await followed.compare()


async def test_a_comparison_finds_an_object_that_stays_outdated(api, client):
    api.add(manifests.pod("a"))
    async with following(api, client) as (followed, _):
        api.watches.silence("pods")
        api.set_phase("demo/a", "Running")
        assert await followed.compare(settle_s=0) == {"demo/a"}


def expires_second_pages(api):
    """Forget the continue token of the first LIST that goes on to a second page."""
    done = []

    def chaos(call):
        if call.query.get("continue") and not done:
            done.append(call)
            api.expire_pages()

    return chaos
