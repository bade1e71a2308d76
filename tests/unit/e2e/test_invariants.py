"""The checker of the invariants finds what it is for."""

import json

import pytest

from boathouse_e2e import faults, invariants

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}}}


def pod_change(name, cpu="1500m", phase="Running", kind="MODIFIED", **spec):
    container = {"resources": {"requests": {"cpu": cpu}}}
    pod = {
        "metadata": {"name": name, "uid": name},
        "spec": {"nodeName": "n", "containers": [container], **spec},
        "status": {"phase": phase},
    }
    return {"type": kind, "object": pod}


def audited_write(verb, resource, name, *, subresource="", code=200, epoch=None, body=None, user="us"):
    reference = {"resource": resource, "namespace": "demo", "name": name, "subresource": subresource}
    annotations = {} if epoch is None else {"boathouse.dev/epoch": str(epoch)}
    request = {"metadata": {"name": name, "annotations": annotations}, **(body or {})}
    event = {"stage": "ResponseComplete", "verb": verb, "objectRef": reference, "requestObject": request}
    return event | {"responseStatus": {"code": code}, "user": {"username": user}, "requestURI": "/"}


def status_write(**fields):
    return audited_write("patch", "mrjobs", "wc", subresource="status", body={"status": fields})


@pytest.fixture
def over_commits(tmp_path):
    def of(*changes):
        (log := tmp_path / "log").write_text(
            "\n".join(json.dumps(change, indent=1) for change in changes) + '\n{"type"'
        )
        with log.open() as lines:
            return faults.Recording(lines, [NODE]).over_commits()

    return of


def test_two_pods_that_request_more_than_the_node_has_are_found(over_commits):
    (found,) = over_commits(pod_change("a"), pod_change("b"))
    assert found.what == "n has 2 cpu, asked for 3 by ['a', 'b']"


@pytest.mark.parametrize(
    "end", [pod_change("a", phase="Succeeded"), pod_change("a", kind="DELETED")], ids=["ended", "deleted"]
)
def test_a_pod_that_is_gone_requests_nothing(over_commits, end):
    assert over_commits(pod_change("a"), end, pod_change("b")) == []


def test_too_many_pods_are_found(over_commits):
    (found,) = over_commits(*(pod_change(name, cpu="0") for name in "abc"))
    assert "pods" in found.what


def test_start_up_steps_sidecars_and_overhead_count(over_commits):
    step = {"resources": {"requests": {"cpu": "1900m"}}}
    sidecar = {"resources": {"requests": {"cpu": "200m"}}, "restartPolicy": "Always"}
    assert over_commits(pod_change("a", cpu="1", initContainers=[step, sidecar])) == []
    assert over_commits(pod_change("a", cpu="1", initContainers=[sidecar, step]))
    assert over_commits(pod_change("a", cpu="2", overhead={"cpu": "1m"}))


def test_a_second_bind_and_a_second_pod_of_a_name_are_found():
    once = [audited_write("create", "pods", "p"), audited_write("create", "pods", "p", subresource="binding")]
    assert invariants.bound_twice(once) == []
    assert invariants.bound_twice([*once, audited_write("create", "pods", "p", code=409)]) == []
    assert invariants.bound_twice([*once, audited_write("delete", "pods", "p"), *once]) == []
    assert [violation.what for violation in invariants.bound_twice([*once, *once])] == [
        "demo/p was created twice",
        "demo/p was bound twice",
    ]


def test_a_transient_node_with_the_name_of_an_earlier_one_is_found():
    def created(host, uid, cluster="u-1"):
        labels = {"boathouse.dev/host": host, "boathouse.dev/job-uid": cluster}
        return {"type": "ADDED", "object": {"metadata": {"uid": uid, "labels": labels}}}

    once = [created("t1", "1"), created("t1", "1"), created("t1", "2", "u-2"), created("c1", "3"), created("c1", "4")]
    assert invariants.hosts_used_twice([*once, pod_change("t1")]) == []
    (found,) = invariants.hosts_used_twice([*once, created("t1", "5"), created("t1", "6")])
    assert found.what == "t1 of cluster u-1 was created twice"


def test_a_write_of_a_former_leader_is_found():
    def create(name, epoch):
        return audited_write("create", "pods", name, epoch=epoch)

    assert invariants.stale_epochs([create("a", 1), create("b", 2), create("c", 2)]) == []
    assert invariants.stale_epochs([create("a", 1), create("b", 2), create("c", 1)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"succeededMaps": 3}, {"succeededMaps": 2}),
        ({"observedGeneration": 2}, {"observedGeneration": 1}),
        ({"phase": "Succeeded"}, {"phase": "Running"}),
    ],
)
def test_a_status_that_regresses_is_found(before, after):
    assert invariants.status_went_back([status_write(**before), status_write(**before)]) == []
    assert invariants.status_went_back([status_write(**before), status_write(**after)])


def test_only_writes_that_were_taken_count_for_their_account():
    audit = [
        audited_write("create", "pods", "a"),
        audited_write("create", "pods", "b", code=409),
        audited_write("get", "pods", "a"),
    ]
    assert invariants.writes_of("us", [*audit, audited_write("create", "events", "e")]) == 1


def test_a_secret_in_a_log_is_found():
    assert invariants.leaks("hunter2", {"the log": "key=***"}) == []
    assert [violation.what for violation in invariants.leaks("hunter2", {"the log": "key=hunter2"})] == [
        "the secret stands in the log"
    ]
