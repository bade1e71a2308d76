"""Whatever goes wrong between us and the API server, each pod is placed once, and nothing is over-committed."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from tests.builders import manifests
from tests.builders.operators.informers import missing
from tests.builders.operators.schedulers import LEASE, Leader, over_committed, scheduling
from tests.wire import fake_api

AMBIGUOUS = [
    {"status": 500, "after_commit": True},
    {"status": 504, "after_commit": True},
    {"reset": True, "after_commit": True},
    {"reset": True},
    {"status": 503},
]


@pytest.mark.parametrize("fault", AMBIGUOUS, ids=str)
async def test_a_create_without_a_clear_answer_is_repeated_and_done_once(api, eventually, fault):
    api.add(manifests.node("n1", cpu="2"))
    api.fail_next("create pods", **fault)
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(lambda: len(w.placed()) == 2 and w.at_rest())
        assert w.scheduler.state.ledger.free("n1")[0] == 0
    assert w.metric("boathouse_creates_total", result="success") == 2


@pytest.mark.parametrize("fault", AMBIGUOUS, ids=str)
async def test_a_bind_without_a_clear_answer_is_repeated_and_done_once(api, eventually, fault):
    api.add(manifests.node("n1", cpu="1"))
    api.fail_next("create pods/binding", **fault)
    async with scheduling(api) as w:
        api.add(manifests.pod("p", cpu="1"))
        await eventually(lambda: w.placed() and w.at_rest())
        assert w.scheduler.state.ledger.free("n1")[0] == 0
    assert w.metric("boathouse_binds_total", result="success") == 1


async def test_a_pod_that_an_earlier_life_created_counts_as_created(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        api.watches.silence("pods")
        mine = {"kind": "MRJob", "name": "wc", "uid": "wc", "controller": True, "apiVersion": "boathouse.dev/v1alpha1"}
        api.add(manifests.pod("wc-00000", node="n1", owner=mine, labels={"boathouse.dev/job-uid": "wc"}))
        w.submit("wc", 1)
        await eventually(lambda: w.metric("boathouse_creates_total", result="success") == 1)
        assert w.scheduler.diagnosis("wc") is None


async def test_a_pod_of_the_tasks_name_that_is_not_ours_is_named_as_the_obstacle(api, eventually):
    api.add(manifests.node("n1"))
    api.add(manifests.pod("wc-00000", node="n1", scheduler="default-scheduler"))
    async with scheduling(api) as w:
        api.fail_next("create pods", status=409, reason="AlreadyExists")
        pods = w.scheduler.state.pods
        pods.lose(pods.get("demo/wc-00000"))
        w.submit("wc", 1)
        await eventually(lambda: (found := w.scheduler.diagnosis("wc")) and found.reason == "NameTaken")
    assert "demo/wc-00000 without a controller has the task's name: delete it" in w.scheduler.diagnosis("wc").message


@pytest.mark.parametrize("is_first", [True, False], ids=["before the task", "after the task"])
async def test_a_pod_of_the_tasks_name_is_scheduled_for_its_owner_and_the_task_after_it(api, eventually, is_first):
    others = manifests.pod("wc-00000")
    if is_first:
        api.add(others)
    async with scheduling(api) as w:
        w.submit("wc", 1)
        if not is_first:
            api.add(others)
        await eventually(lambda: (found := w.scheduler.diagnosis("wc")) and found.reason == "NameTaken")
        api.add(manifests.node("n1"))
        await eventually(lambda: list(w.placed()) == ["demo/wc-00000"])
        api.remove("pods", "demo/wc-00000")
        await eventually(lambda: w.metric("boathouse_creates_total", result="success") == 1)
        await eventually(lambda: w.placed() and w.scheduler.diagnosis("wc") is None)


async def test_a_server_that_asks_for_patience_is_given_it(api, eventually):
    api.add(manifests.node("n1"))
    api.fail_next("create pods", status=429, retry_after_s=2)
    async with scheduling(api) as w:
        w.submit("wc", 1)
        await eventually(w.placed)
    assert w.metric("boathouse_api_write_errors_total", operation="create", code="429") == 1
    assert w.metric("boathouse_pod_scheduling_sli_duration_seconds_sum") >= 2


async def test_an_exceeded_quota_is_reported_and_not_retried_for_half_a_minute(api, eventually):
    def refuse(call, _manifest):
        if call.name == "create pods":
            raise fake_api.Refused(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: small, requested: cpu=1')

    api.add(manifests.node("n1"))
    api.refuse = refuse
    async with scheduling(api) as w:
        w.submit("wc", 1)
        await eventually(lambda: (found := w.scheduler.diagnosis("wc")) and found.reason == "QuotaExceeded")
        assert w.scheduler.state.ledger.free("n1")[0] == 4000
        assert w.now_s + 25 < w.scheduler.state.jobs.refused.next_s() < time.time() + 31
    assert "exceeded quota: small" in w.scheduler.diagnosis("wc").message


async def test_a_pod_that_was_made_anew_under_its_name_is_the_one_that_is_bound(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    api.add(manifests.pod("p", cpu="1"))
    bind = api.hold_next("create pods/binding")
    async with scheduling(api) as w:
        await eventually(lambda: api.called("create pods/binding"))
        api.remove("pods", "demo/p")
        api.add(manifests.pod("p", cpu="1"))
        bind.set()
        await eventually(w.placed)
        await eventually(w.at_rest)
        assert w.scheduler.state.ledger.free("n1")[0] == 0


@pytest.mark.parametrize("mistake", [lambda *_: 1 / 0, lambda *_: manifests.pod("wc-00000", cpu="9")])
async def test_a_job_whose_pods_cannot_be_built_as_decided_says_so_and_others_are_placed(api, eventually, mistake):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.submit("wc", 1, factory=SimpleNamespace(build=mistake))
        w.submit("other", 1)
        await eventually(lambda: w.placed() and w.scheduler.diagnosis("wc"))
    assert w.scheduler.diagnosis("wc").reason == "PodInvalid"
    assert list(w.placed()) == ["demo/other-00000"]


async def test_a_leader_of_an_old_epoch_writes_nothing_and_ends(api, eventually):
    api.add(manifests.node("n1"))
    api.add(manifests.lease(leaseTransitions=2))
    fence_as_the_chart_does(api)
    async with scheduling(api, leader=Leader(epoch=1)) as old:
        old.submit("wc", 1)
        await eventually(lambda: old.fatal)
    assert "another holds the lease with 2" in old.fatal[0]
    assert not api.objects("pods")


async def test_a_leader_that_lost_its_lease_sends_nothing_more(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.leader.leads = False
        w.submit("wc", 1)
        await eventually(lambda: w.fatal)
    assert not api.called("create pods")


async def test_two_leaders_of_different_epochs_do_not_over_commit(api, eventually):
    api.add(manifests.lease(leaseTransitions=2))
    fence_as_the_chart_does(api)
    for i in range(4):
        api.add(manifests.node(f"n{i}", cpu="4"))
    async with scheduling(api, leader=Leader(epoch=1)) as old, scheduling(api, leader=Leader(epoch=2)) as new:
        old.submit("a", 20)
        new.submit("b", 20)
        await eventually(lambda: len(new.placed()) == 16 and old.fatal)
    assert not over_committed(api)


async def test_pods_that_vanished_while_the_watch_was_away_leave_no_ghosts(api, eventually):
    api.add(manifests.node("n1", cpu="2"))
    for name in ("a", "b"):
        api.add(manifests.pod(name, cpu="1", node="n1", phase="Running", scheduler="default-scheduler"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(w.at_rest)
        with missing(api):
            api.remove("pods", "demo/a")
            api.remove("pods", "demo/b")
        await eventually(lambda: len(w.placed()) == 2)


async def test_a_pod_that_came_and_went_unseen_is_found_out(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api) as w:
        api.watches.silence("pods")
        w.submit("wc", 1)
        await eventually(lambda: w.placed() and w.at_rest())
        api.remove("pods", "demo/wc-00000")
        assert w.scheduler.state.ledger.free("n1")[0] == 0
        for row in w.scheduler.state.pods.unconfirmed():
            w.scheduler.intake.read(row, await w.scheduler.state.writer.read(row.id))
        assert w.scheduler.state.ledger.free("n1")[0] == 1000


async def test_a_decision_is_dropped_when_somebody_else_took_the_room_before_it_was_sent(api, eventually):
    api.add(manifests.node("n1", cpu="2"))
    create = api.hold_next("create pods")
    async with scheduling(api, workers=1, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(lambda: api.called("create pods"))
        api.add(manifests.pod("theirs", cpu="1", node="n1", scheduler="default-scheduler", phase="Running"))
        await eventually(lambda: w.parts.pods.get("demo/theirs"))
        create.set()
        await eventually(lambda: "demo/wc-00000" in w.placed() and w.at_rest())
    assert len(api.called("create pods")) == 1
    assert not over_committed(api)


async def test_a_task_whose_node_vanished_is_placed_elsewhere(api, eventually):
    api.add(manifests.node("n1"))
    api.latency_s = 0.05
    async with scheduling(api, workers=1) as w:
        w.submit("wc", 4, cpu="1")
        await eventually(lambda: api.called("create pods"))
        api.remove("nodes", "n1")
        api.add(manifests.node("n2"))
        await eventually(lambda: len(w.placed()) == 4)
    assert list(w.placed().values())[1:].count("n2") >= 2


async def test_a_node_whose_kubelet_refused_a_pod_is_left_alone_by_that_kind(api, eventually, monkeypatch):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(w.placed)
        monkeypatch.setattr(w.scheduler, "cycle", lambda: None)  # the watch that tells of the room may be the first
        api.set_phase("demo/wc-00000", "Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")
        await eventually(lambda: w.metric("boathouse_kubelet_rejections_total", reason="OutOfcpu"))
        monkeypatch.undo()
        w.submit("other", 1)
        await eventually(lambda: len(w.placed()) == 2)
    assert sorted(w.placed()) == ["demo/other-00000", "demo/wc-00000"]


@pytest.mark.parametrize("moment", [1, 7, 20, 39])
async def test_a_crash_in_the_middle_loses_and_doubles_nothing(api, eventually, moment):
    for i in range(4):
        api.add(manifests.node(f"n{i}", cpu="12"))
    api.latency_s = 0.002
    async with scheduling(api, workers=4) as first:
        first.submit("wc", 40, memory="64Mi")
        await eventually(lambda: len(first.placed()) >= moment)
    async with scheduling(api, leader=Leader(epoch=2), workers=4) as second:
        second.submit("wc", 40, memory="64Mi")
        await eventually(lambda: len(second.placed()) == 40 and second.at_rest())
    assert not over_committed(api)
    uids = {pod["metadata"]["uid"] for pod in api.objects("pods").values()}
    assert len(uids) == 40


async def test_a_cache_that_equals_the_server_is_found_equal(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.submit("wc", 3)
        await eventually(lambda: len(w.placed()) == 3 and w.at_rest())
        await eventually(lambda: not w.scheduler.state.pods.unconfirmed())
        assert await w.parts.consistency.compare()
    assert not w.fatal


async def test_drift_that_is_seen_twice_is_counted_and_ends_the_process(api, monkeypatch):
    api.add(manifests.node("n1"))
    api.add(manifests.pod("p", node="n1", phase="Running"))

    async with scheduling(api) as w:
        monkeypatch.setattr(w.parts.consistency, "_sleep", lambda _: asyncio.sleep(0))
        w.scheduler.state.ledger.gone("demo/p")
        assert not await w.parts.consistency.compare()
    assert "demo/p" in w.fatal[0]
    assert w.metric("boathouse_cache_drift_total") == 1
    assert w.metric("boathouse_cache_comparisons_total", result="drift") == 1


async def test_a_watch_that_is_only_behind_is_no_drift(api, monkeypatch):
    async with scheduling(api) as w:
        monkeypatch.setattr(w.parts.consistency, "_sleep", lambda _: asyncio.sleep(0))
        monkeypatch.setattr(w.parts.pods, "sleep", lambda _: asyncio.sleep(0))
        api.watches.silence("pods")
        api.add(manifests.pod("unheard", node="n1", phase="Running"))
        assert await w.parts.consistency.compare()
    assert not w.fatal
    assert w.metric("boathouse_cache_comparisons_total", result="skipped") == 1


async def test_a_watch_that_missed_an_event_is_drift_once_it_was_heard_of_again(api, eventually, monkeypatch):
    async def hear(_):
        bookmarks = watch.stats.bookmarks
        api.watches.bookmark("pods")
        await eventually(lambda: watch.stats.bookmarks > bookmarks)

    api.add(manifests.pod("p", node="n1", phase="Running"))
    async with scheduling(api) as w:
        watch = w.parts.pods
        monkeypatch.setattr(w.parts.consistency, "_sleep", hear)
        monkeypatch.setattr(w.parts.pods, "sleep", lambda _: asyncio.sleep(0))
        del w.parts.pods._reflectors[0].store.objects["demo/p"]
        assert not await w.parts.consistency.compare()
    assert "pods demo/p" in w.fatal[0]


def fence_as_the_chart_does(api) -> None:
    """Refuse pods and bindings of another epoch in the words of the chart's policy."""

    def refuse(call, manifest):
        epoch = (manifest["metadata"].get("annotations") or {}).get("boathouse.dev/epoch")
        current = str(api.get("leases", LEASE)["spec"]["leaseTransitions"])
        if call.name in {"create pods", "create pods/binding"} and epoch != current:
            message = (
                f"ValidatingAdmissionPolicy 'boathouse-fence' with binding 'boathouse-fence' denied: epoch {epoch}"
            )
            raise fake_api.Refused(422, "Invalid", message)

    api.refuse = refuse
