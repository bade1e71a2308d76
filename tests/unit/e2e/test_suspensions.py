"""The invariants of suspended tasks find what they are for."""

import datetime as dt

import pytest

from boathouse.suspension.stages import SuspensionRecord
from boathouse_e2e import invariants

NODES = {"n": {"cpu": "2", "memory": "1Gi", "pods": "9"}}
SUSPENDED, FULL = ("1m", "10m"), ("1500m", "2")


def record_text(until_s=100.0):
    return SuspensionRecord(
        cpu_request_milli=1500, cpu_limit_milli=2000, since_s=50.0, until_s=until_s, reason="r", by="user", order="1-1"
    ).text()


def cpu_resources(size):
    return {"requests": {"cpu": size[0]}, "limits": {"cpu": size[1]}}


def pod_change(name="r", size=FULL, shown=None, allocated=None, text="", kind="MODIFIED", phase="Running", reason=""):
    """A change of a task's pod; `shown`: the size in force."""
    status = {"name": "task"}
    if shown is not None:
        status |= {"resources": cpu_resources(shown), "allocatedResources": {"cpu": allocated or shown[0]}}
    annotations = {"boathouse.dev/suspension": text} if text else {}
    conditions = [{"type": "PodResizePending", "reason": reason}] if reason else []
    pod = {
        "metadata": {"name": name, "uid": name, "labels": {"boathouse.dev/job-uid": "u"}, "annotations": annotations},
        "spec": {"nodeName": "n", "containers": [{"name": "task", "resources": cpu_resources(size)}]},
        "status": {"phase": phase, "containerStatuses": [status], "conditions": conditions},
    }
    return {"type": kind, "object": pod}


HELD = [
    (pod_change(size=SUSPENDED), 1),
    (pod_change(size=SUSPENDED, shown=FULL), 1500),
    (pod_change(size=SUSPENDED, shown=SUSPENDED, allocated="1500m"), 1500),
    (pod_change(size=SUSPENDED, shown=("2m", "10m"), allocated="1m"), 2),
    (pod_change(size=FULL, shown=SUSPENDED), 1500),
    (pod_change(size=FULL, shown=SUSPENDED, reason="Deferred"), 1500),
    (pod_change(size=FULL, shown=SUSPENDED, reason="Infeasible"), 1),
]


@pytest.mark.parametrize(("state", "milli"), HELD)
def test_a_pod_holds_the_largest_of_what_is_requested_allocated_and_in_force(state, milli):
    assert invariants.requests(state["object"])["cpu"] == milli


def test_cpu_that_is_lent_before_the_node_has_freed_it_is_found():
    lent = [pod_change(), pod_change(size=SUSPENDED, shown=FULL), pod_change("m", kind="ADDED")]
    free = [
        pod_change(),
        pod_change(size=SUSPENDED, shown=FULL),
        pod_change(size=SUSPENDED, shown=SUSPENDED),
        pod_change("m"),
    ]
    (found,) = invariants.counted_twice(lent, NODES)
    assert (found.invariant, found.what) == ("I14", "n has 2 cpu, asked for 3 by ['m', 'r']")
    assert invariants.counted_twice(free, NODES) == []


def test_room_that_another_scheduler_took_is_not_our_fault_until_we_place_a_task_there():
    foreign = pod_change("f", kind="ADDED")
    foreign["object"]["metadata"]["labels"] = {}
    taken = [pod_change(size=SUSPENDED, shown=SUSPENDED), foreign, pod_change()]
    assert invariants.over_commits(taken, NODES)
    assert invariants.counted_twice(taken, NODES) == []
    assert invariants.counted_twice([*taken, pod_change("m", kind="ADDED")], NODES)


def test_a_suspended_task_without_a_readable_record_is_found():
    states = [
        pod_change(),
        pod_change(size=SUSPENDED, text=record_text()),
        pod_change(size=SUSPENDED),
        pod_change(size=SUSPENDED, text="{"),
    ]
    assert [violation.invariant for violation in invariants.without_record(states)] == ["I13", "I13"]


@pytest.mark.parametrize("states", [
    [pod_change(size=SUSPENDED, kind="ADDED"), pod_change(size=SUSPENDED)],
    [pod_change(), pod_change(size=SUSPENDED, phase="Succeeded")],
    [pod_change(), pod_change(size=("1m", "2"))],
])  # fmt: skip
def test_small_ended_and_continued_tasks_need_no_record(states):
    assert invariants.without_record(states) == []


def pod_write(at_s, verb="patch", subresource="", **body):
    reference = {"resource": "pods", "namespace": "demo", "name": "r", "subresource": subresource}
    time = dt.datetime.fromtimestamp(at_s, dt.UTC).isoformat().replace("+00:00", "Z")
    event = {"stage": "ResponseComplete", "verb": verb, "objectRef": reference, "requestObject": body}
    return event | {"responseStatus": {"code": 200}, "requestURI": "/", "stageTimestamp": time}


def suspension_write(at_s, until_s=100.0):
    annotations = {"boathouse.dev/suspension": record_text(until_s)}
    return pod_write(at_s, subresource="status", metadata={"annotations": annotations})


def resize_write(at_s, size):
    container = {"name": "task", "resources": cpu_resources(size)}
    return pod_write(at_s, subresource="resize", spec={"containers": [container]})


SHRUNK = [suspension_write(51), resize_write(52, SUSPENDED)]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(resize_write(114, ("1m", "2")), id="resumed"),
        pytest.param(pod_write(114, verb="delete"), id="deleted"),
        pytest.param(pod_write(114, subresource="status", status={"phase": "Failed"}), id="failed"),
    ],
)
def test_a_task_that_is_resumed_in_time_or_ends_is_in_order(end):
    assert invariants.too_long([*SHRUNK, end], now_s=500) == []


@pytest.mark.parametrize("end", [[], [resize_write(116, FULL)], [pod_write(300, verb="delete")]])
def test_a_task_that_stays_suspended_after_its_deadline_is_found(end):
    (found,) = invariants.too_long([*SHRUNK, *end], now_s=116)
    assert found.invariant == "I13"


def test_a_task_may_stay_suspended_longer_while_no_operator_leads():
    late = [*SHRUNK, resize_write(150, FULL)]
    assert invariants.too_long(late, 500, invariants.LATE_WITHOUT_OPERATOR_S) == []


def test_a_record_is_of_the_suspension_that_follows_it():
    again = [
        *SHRUNK,
        resize_write(90, FULL),
        suspension_write(200, 300),
        resize_write(201, SUSPENDED),
        resize_write(310, FULL),
    ]
    assert invariants.too_long(again, now_s=310) == []
