"""The states that a pod has on its node: watch events, as the API server sends them, lead into and out of each."""

import json

import msgspec
import pytest

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.suspension.stages import Stage
from boathouse_policies import framework, model
from tests.builders import manifests
from tests.builders.operators.pod_tables import NODES, PodWorld, record_of

SMALL = {"cpu": "1m", "memory": "1Gi"}
ONE = {"cpu": "1", "memory": "1Gi"}
TWO = {"cpu": "2", "memory": "1Gi"}
LIMITS = {"1m": "10m", "1": "1500m", "2": "2500m"}
RECORD = record_of(1000, 1500)
IN_PROGRESS = {"type": "PodResizeInProgress", "status": "True"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "Node lacks cpu"}
INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "Node never had it"}


class Watched:
    """A task's pod, of which a watch shows one version after another."""

    def __init__(self):
        self.world = PodWorld()
        self.former = None
        self.revision = 100

    def shows(self, desired=ONE, actuated=None, *, allocated=None, conditions=(), node="n0", **more):
        """Deliver a version; return the state of the pod, and the CPU that it holds of its node."""
        self.revision += 1
        pod = self._decoded(desired, actuated or desired, allocated or actuated or desired, conditions, node, more)
        self.world.table.observe(pod, self.former)
        self.former = pod
        return self._found()

    def leaves(self):
        self.world.table.left(self.former)
        return self._found()

    def _found(self):
        self.world.check()
        return self.world.state(), NODES[0].allocatable.cpu_milli - self.world.ledger.free(NODES[0].name)[0]

    def _decoded(self, desired, actuated, allocated, conditions, node, more):
        record, limit = more.pop("record", None), more.pop("limit", LIMITS[desired["cpu"]])
        limits = {"cpu": limit, "memory": "1Gi"}
        owner = {"apiVersion": names.API_VERSION, "kind": "MRJob", "name": "wc", "uid": "job", "controller": True}
        metadata = {
            "name": "p0",
            "namespace": "demo",
            "uid": "uid-0",
            "resourceVersion": str(self.revision),
            "labels": {names.LABEL_JOB_UID: "job"},
            "ownerReferences": [owner],
            "annotations": {names.ANNOTATION_SUSPENSION: record.text()} if record else {},
        }
        container = {"name": names.CONTAINER, "resources": {"requests": desired, "limits": limits}}
        status = {
            "name": names.CONTAINER,
            "ready": True,
            "state": {"running": {"startedAt": "2026-01-01T12:00:00Z"}},
            "allocatedResources": allocated,
            "resources": {"requests": actuated, "limits": limits},
        }
        spec = {"schedulerName": names.SCHEDULER_NAME, "containers": [container]} | ({"nodeName": node} if node else {})
        running = {"phase": "Running", "conditions": list(conditions), "containerStatuses": [status]}
        manifest = {
            "metadata": metadata | more,
            "spec": spec,
            "status": running if node else {"phase": "Pending"},
        }
        return manifests.TRANSFORM_POD(msgspec.json.decode(json.dumps(manifest).encode(), type=wire.PodView))


@pytest.fixture
def watched():
    return Watched()


def test_a_pod_that_grows_counts_with_its_new_size_until_its_node_has_given_it(watched):
    assert watched.shows() == ("confirmed", 1000)
    assert watched.shows(TWO, ONE) == ("resizing", 2000)
    assert watched.shows(TWO, ONE, conditions=[DEFERRED]) == ("resizing", 2000)
    assert watched.shows(TWO, ONE, allocated=TWO, conditions=[IN_PROGRESS]) == ("resizing", 2000)
    assert watched.shows(TWO) == ("confirmed", 2000)


def test_a_pod_that_shrinks_counts_with_its_old_size_until_its_node_has_taken_the_rest(watched):
    assert watched.shows(TWO) == ("confirmed", 2000)
    assert watched.shows(ONE, TWO) == ("resizing", 2000)
    assert watched.shows(ONE, TWO, allocated=ONE, conditions=[IN_PROGRESS]) == ("resizing", 2000)
    assert watched.shows(ONE) == ("confirmed", 1000)


def test_a_pod_whose_resize_was_taken_back_is_confirmed(watched):
    watched.shows(TWO, ONE, conditions=[DEFERRED])
    assert watched.shows() == ("confirmed", 1000)


def test_a_resize_that_the_node_can_never_do_is_none(watched):
    assert watched.shows(TWO, ONE, conditions=[INFEASIBLE]) == ("confirmed", 1000)


def test_equal_sizes_that_are_written_differently_are_no_resize(watched):
    assert watched.shows(ONE, {"cpu": "1000m", "memory": "1024Mi"}) == ("confirmed", 1000)


def test_a_resize_of_the_whole_pod_is_a_resize():
    level, given = (wire.ResourceRequirements(requests={"cpu": cpu}) for cpu in ("2", "1"))
    pod = manifests.pod_view(node="n0", resources=level)
    status = msgspec.structs.replace(pod.status, resources=given, allocated_resources={"cpu": "1"})
    assert manifests.TRANSFORM_POD(msgspec.structs.replace(pod, status=status)).is_resizing
    assert not manifests.TRANSFORM_POD(pod).is_resizing


def test_a_task_is_suspended_while_it_has_the_cpu_of_one(watched):
    watched.shows(record=RECORD)
    assert watched.shows(SMALL, ONE, record=RECORD) == ("resizing", 1000)
    assert watched.shows(SMALL, record=RECORD) == ("confirmed", 1)
    assert watched.world.row().suspension.stage is Stage.SUSPENDED
    assert watched.shows(SMALL, {"cpu": "2m", "memory": "1Gi"}, record=RECORD) == ("confirmed", 2)
    assert watched.world.row().suspension.stage is Stage.SUSPENDED
    assert watched.shows(ONE, SMALL, conditions=[DEFERRED], record=RECORD) == ("resizing", 1000)
    assert watched.shows(record=RECORD) == ("confirmed", 1000)
    assert watched.world.row().suspension is None


def test_a_task_that_continues_is_charged_what_it_is_owed(watched):
    watched.shows(SMALL, record=RECORD)
    assert watched.shows(SMALL, limit="1500m", record=RECORD) == ("confirmed", 1000)
    assert watched.shows(ONE, SMALL, record=RECORD) == ("resizing", 1000)
    assert watched.shows(SMALL, limit="1500m", record=RECORD) == ("confirmed", 1000)
    assert watched.shows(SMALL, limit="20m", record=RECORD) == ("confirmed", 1)  # another writer resized it


def test_a_task_whose_resume_has_begun_is_charged_what_it_is_owed(watched):
    watched.shows(SMALL, record=RECORD)
    watched.world.table.charge_at_least(watched.world.row(), model.Resources(cpu_milli=1000, memory_bytes=1 << 30))
    assert watched.shows(SMALL, record=RECORD, deletionTimestamp="2026-01-01T12:00:30Z") == ("ending", 1000)


def test_a_suspended_task_may_end(watched):
    watched.shows(SMALL, record=RECORD)
    assert [row.id for row in watched.world.table.suspensions()] == ["demo/p0"]
    assert watched.leaves() == (None, 0)
    assert not watched.world.table.suspensions()


def test_a_task_that_asks_for_the_cpu_of_a_suspended_one_is_not_suspended(watched):
    assert watched.shows(SMALL, record=msgspec.structs.replace(RECORD, cpu_request_milli=1, cpu_limit_milli=10)) == (
        "confirmed",
        1,
    )


def test_another_controllers_pod_of_that_size_is_not_suspended(watched):
    assert watched.shows(SMALL, ownerReferences=[], record=RECORD) == ("confirmed", 1)


def test_a_pod_counts_until_its_deletion_is_over(watched):
    watched.world.submit(0)
    watched.shows()
    assert watched.shows(deletionTimestamp="2026-01-01T12:00:30Z") == ("ending", 1000)
    assert watched.shows(TWO, ONE, deletionTimestamp="2026-01-01T12:00:30Z") == ("ending", 2000)
    assert watched.leaves() == ("gone", 0)


def test_a_pod_without_a_node_that_is_deleted_stays_pending_and_takes_no_node(watched):
    watched.world.submit(0)
    assert watched.shows(node="", deletionTimestamp="2026-01-01T12:00:30Z") == ("pending", 0)
    assert not watched.world.row().may_be_placed


@pytest.mark.parametrize(
    ("state", "version"),
    [
        ("confirmed", {}),
        ("resizing", {"desired": TWO, "actuated": ONE}),
        ("confirmed", {"desired": SMALL, "record": RECORD}),
        ("ending", {"deletionTimestamp": "2026-01-01T12:00:30Z"}),
    ],
)
def test_a_pod_in_any_state_on_its_node_is_one_placed_pod(watched, state, version):
    watched.world.submit(0)
    operation = watched.world.decide()
    assert watched.shows(**version)[0] == state
    assert not operation.is_current
    assert watched.world.counted() is framework.State.CONFIRMED
    assert watched.world.row().is_on_node
    assert watched.world.table.counts()[state] == 1
    watched.world.table.remove_node(NODES[0].name)
    assert not watched.world.table.holders.top("pods", "demo").named
    assert watched.world.state() == state


@pytest.mark.parametrize(
    "version", [{"desired": TWO, "actuated": ONE}, {"deletionTimestamp": "2026-01-01T12:00:30Z"}], ids=str
)
def test_another_users_pod_is_counted_on_its_node_while_it_is_resized_and_while_it_ends(watched, version):
    watched.shows(labels={}, ownerReferences=[], **version)
    account = watched.world.table.ledger.account(watched.world.row().id)
    assert account.node == NODES[0].name
    assert account.resources.cpu_milli == (2000 if "desired" in version else 1000)
