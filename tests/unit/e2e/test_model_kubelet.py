"""The model of a kubelet that actuates resizes."""

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse_e2e import kwok
from boathouse_e2e.model_kubelet import Allocations, answer
from boathouse_e2e.spec import ClusterSpec

DELAY_S = 0.1


def pod_view(name="r", cpu="1500m", *, phase="Running", node="n", shown=None, by_hand=True):
    """A pod of one container; `shown`: the request in force, by default that of the spec."""
    annotations = {kwok.RESIZE_ANNOTATION: kwok.BY_HAND} if by_hand else {}
    status = {"name": "task", "resources": cpu_resources(shown or cpu), "allocatedResources": {"cpu": shown or cpu}}
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name, "annotations": annotations},
            "spec": {"nodeName": node, "containers": [{"name": "task", "resources": cpu_resources(cpu)}]},
            "status": {"phase": phase, "containerStatuses": [status]},
        },
        wire.PodView,
    )


def cpu_resources(cpu):
    return {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}


@pytest.fixture
def kubelet():
    return Allocations({"n": 2000}, DELAY_S)


def verdicts_on_resize(kubelet, cpu, at_s=0.0, shown="1500m", **fields):
    """Resize a pod; return what its kubelet decides after the delay."""
    changed = pod_view(cpu=cpu, shown=shown, **fields)
    kubelet.update(changed, at_s)
    assert kubelet.due(at_s) == []
    return [verdict for _, verdict in kubelet.due(at_s + DELAY_S)]


def test_a_decrease_is_allocated_after_the_delay_and_frees_cpu(kubelet):
    kubelet.update(pod_view(), 0)
    assert verdicts_on_resize(kubelet, "1m") == ["Allocated"]
    kubelet.update(pod_view("m"), 0)
    assert kubelet.counted_twice == []


def test_a_placement_before_the_decrease_is_allocated_counts_cpu_twice(kubelet):
    kubelet.update(pod_view(), 0)
    kubelet.update(pod_view(cpu="1m", shown="1500m"), 0)
    kubelet.update(pod_view("m"), 0)
    (found,) = kubelet.counted_twice
    assert (found.invariant, found.what) == ("I14", "n has 2000m CPU, its kubelet had to allocate 3000m to ['m', 'r']")


def test_an_increase_without_room_is_deferred_until_another_pod_ends(kubelet):
    kubelet.update(pod_view(cpu="1m"), 0)
    kubelet.update(pod_view("m"), 0)
    assert verdicts_on_resize(kubelet, "1500m", shown="1m") == ["Deferred"]
    kubelet.update(pod_view("m", phase="Succeeded"), 1)
    assert [verdict for _, verdict in kubelet.due(1)] == ["Allocated"]
    assert kubelet.counted_twice == []


def test_a_deferred_resize_that_is_taken_back_is_over(kubelet):
    kubelet.update(pod_view(cpu="1m"), 0)
    kubelet.update(pod_view("m"), 0)
    verdicts_on_resize(kubelet, "1500m", shown="1m")
    kubelet.update(pod_view(cpu="1m"), 1)
    assert kubelet.due(2) == []


def test_a_resize_beyond_the_node_is_infeasible(kubelet):
    kubelet.update(pod_view(), 0)
    assert verdicts_on_resize(kubelet, "2001m") == ["Infeasible"]


@pytest.mark.parametrize("verdict", ["Deferred", "Infeasible", "Silent"])
def test_tests_decide_otherwise(kubelet, verdict):
    kubelet.verdict = lambda resized: verdict if resized.metadata.name == "r" else None
    kubelet.update(pod_view(), 0)
    assert verdicts_on_resize(kubelet, "1m") == [verdict]


def test_a_resize_before_the_model_began_is_actuated(kubelet):
    assert verdicts_on_resize(kubelet, "1m") == ["Allocated"]


def test_what_is_in_force_is_not_actuated_again(kubelet):
    kubelet.update(pod_view(), 0)
    verdicts_on_resize(kubelet, "1m")
    kubelet.update(pod_view(cpu="1m"), 1)
    assert kubelet.due(2) == []


@pytest.mark.parametrize("fields", [{"by_hand": False}, {"phase": "Pending"}, {"node": "other"}])
def test_pods_of_others_pods_that_do_not_run_and_other_nodes_are_left_alone(kubelet, fields):
    kubelet.update(pod_view(**fields), 0)
    assert verdicts_on_resize(kubelet, "1m", **fields) == []


def test_resizes_that_kwok_actuates_are_in_the_account(kubelet):
    kubelet.update(pod_view(by_hand=False), 0)
    kubelet.update(pod_view(cpu="1m", by_hand=False), 0)
    kubelet.update(pod_view("m"), 0)
    assert kubelet.counted_twice == []


def test_an_answer_shows_the_size_in_force_or_the_reason_why_not():
    allocated, deferred = (answer(pod_view(cpu="1m"), verdict) for verdict in ("Allocated", "Deferred"))
    shown = {"name": "task", "resources": cpu_resources("1m"), "allocatedResources": {"cpu": "1m"}}
    assert allocated["containerStatuses"] == [shown]
    (condition,) = deferred["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodResizePending", "Deferred")
    assert "containerStatuses" not in deferred


def test_the_stage_of_resizes_is_loaded_where_it_is_wanted(tmp_path):
    spec = kwok_spec(kwok_resizes=True)
    arguments = kwok.arguments(spec, tmp_path, network="n", lease_duration_s=1)
    assert [f"--config={path}" for path in (kwok.STAGES, kwok.RESIZE_STAGE)] == list(arguments[1:3])
    assert f"--config={kwok.RESIZE_STAGE}" not in kwok.arguments(kwok_spec(), tmp_path, network="n", lease_duration_s=1)
    assert kwok.BY_HAND in kwok.RESIZE_STAGE.read_text()


def kwok_spec(**fields):
    return ClusterSpec(nodes=0, kwok_nodes=1, **fields)
