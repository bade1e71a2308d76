"""Tasks and pods get their nodes."""

import dataclasses
import json
import time

import msgspec
import pytest

from boathouse_policies import framework, model, profiles
from boathouse_policies.ikayak.book import Book
from tests.builders import manifests
from tests.builders.operators.pod_tables import record_of
from tests.builders.operators.schedulers import scheduling


async def test_tasks_of_a_job_are_created_with_their_node_in_one_write(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    async with scheduling(api) as w:
        w.submit("wc", 3)
        await eventually(lambda: len(w.placed()) == 3)
    assert set(w.placed().values()) == {"n1"}
    assert len(api.called("create pods")) == 3
    assert not api.called("create pods/binding")


async def test_every_created_pod_carries_the_leaders_epoch(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.submit("wc", 1)
        await eventually(w.placed)
    assert api.get("pods", "demo/wc-00000")["metadata"]["annotations"]["boathouse.dev/epoch"] == "1"


async def test_no_more_pods_are_created_than_fit(api, eventually):
    api.add(manifests.node("n1", cpu="2"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 5)
        await eventually(lambda: len(w.placed()) == 2)
        await eventually(w.at_rest)
    assert len(api.objects("pods")) == 2


async def test_the_next_task_follows_when_one_ends(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 3)
        for i in range(3):
            await eventually(lambda i=i: f"demo/wc-{i:05}" in w.placed())
            api.end_pod(f"demo/wc-{i:05}")
    assert len(api.called("create pods")) == 3


async def test_somebody_elses_pod_that_names_us_is_bound(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        api.add(manifests.pod("executor"))
        await eventually(lambda: w.placed() == {"demo/executor": "n1"})
    (binding,) = api.called("create pods/binding")
    assert binding.body["metadata"]["uid"] == api.get("pods", "demo/executor")["metadata"]["uid"]
    assert api.get("pods", "demo/executor")["metadata"]["annotations"]["boathouse.dev/epoch"] == "1"


async def test_pods_of_other_schedulers_and_of_other_namespaces_are_left_alone(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api, namespaces=frozenset({"demo"})) as w:
        api.add(manifests.pod("theirs", scheduler="default-scheduler"))
        api.add(manifests.pod("elsewhere", namespace="other"))
        api.add(manifests.pod("ours"))
        await eventually(w.placed)
    assert w.placed() == {"demo/ours": "n1"}


async def test_pods_of_all_schedulers_are_counted(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    api.add(manifests.pod("theirs", cpu="3", node="n1", scheduler="default-scheduler", phase="Running"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(w.at_rest)
    assert sorted(w.placed()) == ["demo/theirs", "demo/wc-00000"]


async def test_a_pod_that_is_being_deleted_still_counts(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    leaving = manifests.pod("leaving", node="n1", cpu="1", phase="Running")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    api.add(leaving)
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 1)
        await eventually(w.at_rest)
        assert list(w.placed()) == ["demo/leaving"]
        assert w.metric("boathouse_pods", state="ending") == 1
        api.remove("pods", "demo/leaving")
        await eventually(lambda: list(w.placed()) == ["demo/wc-00000"])


async def test_the_cpu_of_a_suspended_task_is_free_once_its_node_shows_that_and_counts_again_when_it_resumes(
    api, eventually
):
    api.add(manifests.node("n1", cpu="2"))
    first, times = "demo/wc-00000", {"since_s": time.time(), "until_s": time.time() + 600, "by": "fair"}
    noted = {"boathouse.dev/suspension": msgspec.structs.replace(record_of(1000, 2000), **times).text()}

    def ask_for(**sizes):
        containers = [{"name": "task", "resources": sizes}]
        api.change("pods", first, {"metadata": {"annotations": noted}, "spec": {"containers": containers}})

    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 3, cpu="1")
        await eventually(lambda: len(w.placed()) == 2)
        api.set_phase(first, "Running")
        api.actuate_resize(first)
        ask_for(requests={"cpu": "1m"}, limits={"cpu": "10m"})
        await eventually(lambda: w.metric("boathouse_pods", state="resizing") == 1)
        assert len(w.placed()) == 2
        api.actuate_resize(first)
        await eventually(lambda: w.metric("boathouse_pods", state="suspended") == 1)
        await eventually(lambda: w.scheduler.state.ledger.account(first).resources.cpu_milli == 1)
        api.remove("pods", "demo/wc-00001")
        await eventually(lambda: "demo/wc-00002" in w.placed())
        ask_for(requests={"cpu": "1"}, limits={"cpu": "2"})
        await eventually(lambda: w.scheduler.state.ledger.account(first).resources.cpu_milli == 1000)
        assert w.metric("boathouse_pods", state="resizing") == 1
        api.actuate_resize(first)
        await eventually(lambda: w.metric("boathouse_pods", state="confirmed") == 2)


async def test_a_gated_pod_waits_until_its_gate_is_removed(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        api.add(manifests.pod("gated", schedulingGates=[{"name": "quota"}]))
        api.add(manifests.pod("free"))
        await eventually(lambda: list(w.placed()) == ["demo/free"])
        api.change("pods", "demo/gated", {"spec": {"schedulingGates": []}})
        await eventually(lambda: "demo/gated" in w.placed())


async def test_room_nominated_for_another_schedulers_pod_is_left_to_it(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    theirs = manifests.pod("theirs", cpu="3", scheduler="default-scheduler")
    theirs["status"]["nominatedNodeName"] = "n1"
    api.add(theirs)
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(w.at_rest)
        assert list(w.placed()) == ["demo/wc-00000"]
        api.remove("pods", "demo/theirs")
        await eventually(lambda: len(w.placed()) == 2)


async def test_pending_pods_are_placed_on_a_new_node(api, eventually):
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 2)
        await eventually(w.at_rest)
        api.add(manifests.node("n1"))
        await eventually(lambda: len(w.placed()) == 2)


async def test_a_job_that_is_withdrawn_may_create_pods_until_its_writes_are_over(api, eventually):
    api.add(manifests.node("n1"))
    go_on = api.hold_next("create pods")
    async with scheduling(api) as w:
        w.submit("wc", 1)
        await eventually(lambda: api.called("create pods"))
        w.scheduler.withdraw("wc")
        assert w.scheduler.may_create("wc")
        assert not w.scheduler.may_create("another")
        go_on.set()
        await eventually(lambda: not w.scheduler.may_create("wc"))
        assert len(w.placed()) == 1


async def test_a_job_that_is_withdrawn_gets_no_more_pods(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 3)
        await eventually(w.placed)
        w.scheduler.withdraw("wc")
        api.end_pod("demo/wc-00000")
        w.submit("next", 1)
        await eventually(lambda: "demo/next-00000" in w.placed())
    assert sorted(w.placed()) == ["demo/next-00000", "demo/wc-00000"]


async def test_a_placement_is_reported_by_an_event_in_the_words_of_kube_scheduler(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        w.submit("wc", 1)
        await eventually(lambda: w.events("Scheduled"))
    (event,) = w.events("Scheduled")
    assert event["note"] == "Successfully assigned demo/wc-00000 to n1"
    assert (event["type"], event["action"], event["regarding"]["name"]) == ("Normal", "Binding", "wc-00000")


async def test_a_task_is_expected_from_its_decision_until_the_watch_shows_it(api, eventually):
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        api.watches.silence("pods")
        (task,) = w.submit("wc", 1)
        await eventually(w.placed)
        assert task.id in [row.id for row in w.scheduler.state.pods.assumed()]
    async with scheduling(api) as w:
        assert not list(w.scheduler.state.pods.assumed())


async def test_a_pod_made_ahead_that_is_being_deleted_is_left_alone(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    api.add(manifests.pod("hog", node="n1", cpu="1", scheduler="default-scheduler"))
    async with scheduling(api, pending_ahead=1) as w:
        w.submit("wc", 1)
        await eventually(w.waiting)
        api.change("pods", "demo/wc-00000", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
        api.remove("pods", "demo/hog")
        api.add(manifests.pod("next", cpu="1"))
        await eventually(w.placed)
    assert w.placed() == {"demo/next": "n1"}
    assert w.waiting() == ["demo/wc-00000"]


async def test_a_task_that_was_decided_smaller_is_resized_before_it_is_bound(api, eventually):
    half = model.Resources(cpu_milli=500, memory_bytes=1 << 29)
    api.add(manifests.node("n1", cpu="1"))
    profile = dataclasses.replace(profiles.build("fair"), sizer=Halving(half))
    async with scheduling(api, profile=profile, pending_ahead=1) as w:
        w.submit("wc", 3)
        await eventually(lambda: len(w.placed()) == 2 and w.waiting())
        api.end_pod("demo/wc-00000")
        await eventually(lambda: "demo/wc-00002" in w.placed())
        assert w.scheduler.state.ledger.account("demo/wc-00002").resources == half
    (resize,) = api.called("patch pods/resize")
    assert resize.key == "demo/wc-00002"
    assert api.get("pods", "demo/wc-00002")["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"


async def test_usage_of_a_queue_is_known_again_after_a_restart(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    api.add(manifests.pod("p", cpu="1"))
    async with scheduling(api) as first:
        await eventually(first.placed)
    async with scheduling(api) as second:
        assert second.scheduler.state.ledger.snapshot(0).queue_usage("default")[model.CPU] == 1000


@dataclasses.dataclass(frozen=True)
class Halving(framework.Sizer):
    """Decides one size for all."""

    size_: model.Resources

    def least(self, _task_class):
        return self.size_

    def size(self, _want, _node, _scratch):
        return framework.Sized(self.size_)


@pytest.mark.parametrize("name", ["boathouse", "ikayak"])
async def test_maps_get_less_cpu_on_the_node_of_their_input_only(api, eventually, name):
    profile = profiles.build(name)
    book = next(one for one in profile.observers if isinstance(one, Book))
    book.local, book.remote = 1, 1
    api.add(manifests.node("n1", cpu="1600m"))
    api.add(manifests.node("n2", cpu="900m"))
    async with scheduling(api, profile=profile) as w:
        w.submit("wc", 4, stage=model.Stage.MAP, near=["n1"])
        await eventually(lambda: len(w.placed()) == 3)
        await eventually(w.at_rest)
    assert len(w.placed()) == 3  # the fourth is pending: all of it fits nowhere, and less of it not on the other node
    assert set(w.placed().values()) == {"n1"}
    for key in w.placed():
        pod = api.get("pods", key)
        assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "533m"
        assert json.loads(pod["metadata"]["annotations"]["boathouse.dev/figures"])["cpuShare"] == 0.533


class Thresholds(framework.Figures):
    """A policy that accepts another slowdown on each node."""

    def of_policy(self):
        return {"interferenceError": [0.125], "interferenceThreshold": [3.0, 2.0, 7.0]}


async def test_what_a_policy_says_of_itself_is_a_metric_whatever_the_number_of_nodes(api):
    async with scheduling(api, profile=dataclasses.replace(profiles.build("fair"), figures=(Thresholds(),))) as w:
        assert w.metric("boathouse_interference_error") == 0.125
        for statistic, value in {"min": 2.0, "median": 3.0, "max": 7.0}.items():
            assert w.metric("boathouse_interference_threshold", statistic=statistic) == value


async def test_the_age_of_the_last_message_of_each_watch_is_a_metric(api):
    async with scheduling(api) as w:
        for watch in ("pods", "nodes"):
            age_s = w.figures.registry.get_sample_value("boathouse_watch_freshness_seconds", {"watch": watch})
            assert 0 <= age_s < 60


async def test_a_profile_without_a_model_of_interference_has_no_samples_of_one(api):
    async with scheduling(api) as w:
        assert w.figures.registry.get_sample_value("boathouse_interference_error") is None
        assert w.metric("boathouse_interference_threshold", statistic="max") == 0.0


async def test_a_pod_of_higher_priority_waits_and_evicts_nothing(api, eventually):
    api.add(manifests.node("n1", cpu="1"))
    async with scheduling(api) as w:
        api.add(manifests.pod("low", cpu="1"))
        await eventually(lambda: "demo/low" in w.placed())
        api.add(manifests.pod("high", cpu="1", priority=1000))
        await eventually(lambda: w.condition("demo/high"))
        await eventually(w.at_rest)
        assert "deletionTimestamp" not in api.get("pods", "demo/low")["metadata"]
        api.end_pod("demo/low")
        await eventually(lambda: "demo/high" in w.placed())


async def test_room_that_is_nominated_may_be_taken_by_a_higher_priority_and_by_the_nominee(api, eventually):
    api.add(manifests.node("n1", cpu="4"))
    theirs = manifests.pod("theirs", cpu="3", scheduler="default-scheduler", priority=5)
    ours = manifests.pod("ours", cpu="1", priority=5)
    for pod in (theirs, ours):
        pod["status"]["nominatedNodeName"] = "n1"
        api.add(pod)
    async with scheduling(api) as w:
        api.add(manifests.pod("equal", cpu="1", priority=5))
        await eventually(lambda: "demo/ours" in w.placed())
        await eventually(lambda: w.condition("demo/equal"))
        assert w.condition("demo/equal")["message"] == "0/1 nodes are available: 1 Insufficient cpu."
        api.add(manifests.pod("higher", cpu="1", priority=6))
        await eventually(lambda: "demo/higher" in w.placed())
        assert "demo/equal" not in w.placed()
