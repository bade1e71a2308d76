"""Admission may inject containers that outlive a pod's own: the own container decides how the pod ended."""

import msgspec
import pytest

from boathouse.cluster import errors, store, wire
from boathouse.resources import names
from boathouse.scheduling import outlived, transforms
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import attempt_pods
from boathouse.services.mrjob.hadoop import observation
from boathouse.services.sparkapp.observation import driver_pod, of_executor
from boathouse_task import contract

TRANSFORM = transforms.pods(
    names.SCHEDULER_NAME,
    labels=frozenset({"boathouse.dev/attempt", "boathouse.dev/task-index", "spark-role"}),
    containers=frozenset({"task", "spark-kubernetes-driver", "spark-kubernetes-executor"}),
)
RUNNING, KILLED = {"running": {}}, {"terminated": {"exitCode": 137}}
ENDED_BY_US = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than specified deadline"}
DONE = msgspec.json.encode(contract.TaskResult(outcome="succeeded", winner_attempt=1)).decode()
OWN = {"driver": "spark-kubernetes-driver", "executor": "spark-kubernetes-executor"}


def pod(
    kind,
    own,
    *,
    proxy=RUNNING,
    phase="Running",
    is_ended=False,
    restart="Never",
    deleted=None,
    by="boathouse",
    **status,
):
    """Return a pod with a proxy beside its own container."""
    api, owner = ("v1", "Pod") if kind == "executor" else (names.API_VERSION, "Job")
    labels = {"boathouse.dev/job-uid": "j", "boathouse.dev/task-type": kind, "boathouse.dev/attempt": "1"}
    manifest = {
        "metadata": {
            "name": "p",
            "namespace": "demo",
            "uid": "u",
            "ownerReferences": [{"apiVersion": api, "kind": owner, "uid": "j", "controller": True}],
            "labels": labels | {"boathouse.dev/task-index": "0", "spark-role": kind},
            "annotations": {names.ANNOTATION_EXIT_CODE: "0"} if is_ended else {},
            **({"deletionTimestamp": deleted} if deleted else {}),
        },
        "spec": {"nodeName": "n1", "restartPolicy": restart, "schedulerName": by},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": OWN.get(kind, "task"), "state": own}, {"name": "proxy", "state": proxy}],
        }
        | status,
    }
    return TRANSFORM(msgspec.convert(manifest, wire.PodView))


def ended(code=0, message=""):
    return {"terminated": {"exitCode": code, "message": message, "finishedAt": "2026-01-01T00:01:00Z"}}


def read(kind, *args, **more):
    found = pod(kind, *args, **more)
    return {"driver": driver_pod, "client": observation.read_client}.get(kind, attempt_pods.task_pod)(found)


TASKS = ("setup", "map", "reduce", "commit", "cleanup", "uber", "probe")


@pytest.mark.parametrize("kind", [*TASKS, "driver", "client"])
def test_a_pod_whose_container_failed_has_failed_though_a_proxy_runs_on(kind):
    found = read(kind, ended(3))
    assert (found.state, found.ending.exit_code) == (PodLife.FAILED, 3)


@pytest.mark.parametrize("kind", [*TASKS, "driver", "client"])
@pytest.mark.parametrize(
    "beside", [{}, {"proxy": KILLED, "phase": "Failed"}, {"is_ended": True, "phase": "Failed", **ENDED_BY_US}]
)
def test_a_pod_whose_container_succeeded_has_succeeded_whatever_becomes_of_a_proxy(kind, beside):
    assert read(kind, ended(0, DONE if kind in TASKS else ""), **beside).state is PodLife.SUCCEEDED


@pytest.mark.parametrize("kind", ["map", "driver", "client"])
def test_a_failure_keeps_its_exit_code_after_the_operator_ended_the_pod(kind):
    before = read(kind, ended(3, "Traceback"))
    after = read(kind, ended(3, "Traceback"), is_ended=True, phase="Failed", proxy=KILLED, **ENDED_BY_US)
    assert before == after


@pytest.mark.parametrize(
    "disrupted", [{"phase": "Failed", "reason": "Evicted"}, {"deleted": "2026-01-01T00:00:00Z", "phase": "Failed"}]
)
def test_a_driver_that_was_stopped_and_ended_with_0_has_not_succeeded(disrupted):
    found = read("driver", ended(0), **disrupted)
    assert (found.state, found.ending.is_infrastructure) == (PodLife.FAILED, True)


def test_a_driver_runs_while_its_proxy_cannot_start():
    assert read("driver", RUNNING, proxy={"waiting": {"reason": "ErrImagePull"}}, phase="Pending").state.is_live


@pytest.mark.parametrize(("code", "state"), [(0, PodLife.SUCCEEDED), (1, PodLife.FAILED)])
def test_an_executor_beside_a_proxy_counts_as_its_own_container_ended(code, state):
    assert of_executor(pod("executor", ended(code))).state is state


def test_an_executor_that_the_operator_ended_after_exit_code_0_has_not_failed():
    assert of_executor(pod("executor", ended(0), is_ended=True, phase="Failed")).state is PodLife.SUCCEEDED


# Pods are ended


class Api:
    def __init__(self, error=None):
        self.ended, self._error = [], error

    async def end_pod(self, namespace, name, annotations, *, uid):
        self.ended.append((f"{namespace}/{name}", uid, annotations))
        if self._error:
            raise self._error


class Desk:
    """What ends pods, and a clock."""

    def __init__(self, error=None, *, leads=True):
        self.now_s, self.api, self._leads = 0.0, Api(error), leads
        self.outlived = outlived.OutlivedPods(self.api, self, lambda: self.now_s)

    def valid(self):
        return self._leads

    def shows(self, *pods):
        for one in pods:
            self.outlived.on_pod(store.Modified(key=one.metadata.key, old=one, new=one))

    async def after(self, seconds):
        self.now_s += seconds
        await self.outlived.end_due()
        return len(self.api.ended)


@pytest.mark.parametrize("kind", ["map", "driver", "client", "executor"])
async def test_a_pod_that_its_container_has_left_is_ended_with_its_exit_code(kind):
    desk = Desk()
    desk.shows(pod(kind, ended(3)))
    assert await desk.after(outlived.PATIENCE_S - 1) == 0
    await desk.after(1)
    assert desk.api.ended == [("demo/p", "u", {names.ANNOTATION_EXIT_CODE: "3"})]


@pytest.mark.parametrize(
    "found",
    [
        pod("map", RUNNING),
        pod("map", ended(), proxy=ended()),
        pod("map", ended(), restart="Always"),
        pod("executor", ended(), by="default-scheduler"),
        pod("map", ended(), is_ended=True),
        pod("map", ended(), deleted="2026-01-01T00:00:00Z"),
        pod("map", {"waiting": {}}, proxy=ended()),
    ],
)
async def test_other_pods_are_left_alone(found):
    desk = Desk()
    desk.shows(found)
    assert await desk.after(outlived.PATIENCE_S) == 0


async def test_a_proxy_that_ends_by_itself_in_time_leaves_the_pod_succeeded():
    desk = Desk()
    desk.shows(pod("map", ended()))
    gone = pod("map", ended(), proxy=ended(), phase="Succeeded")
    desk.outlived.on_pod(store.Deleted(key="demo/p", old=gone, final=gone))
    assert await desk.after(outlived.PATIENCE_S) == 0


@pytest.mark.parametrize(
    ("error", "requests"), [(errors.Forbidden(403, "Forbidden", ""), 2), (errors.NotFound(404, "NotFound", ""), 1)]
)
async def test_a_pod_that_could_not_be_ended_is_tried_again_unless_it_is_gone(error, requests):
    desk = Desk(error)
    desk.shows(pod("map", ended()))
    await desk.after(outlived.PATIENCE_S)
    assert await desk.after(1.0) == 1
    assert await desk.after(outlived.RETRY_S) == requests


async def test_a_former_leader_ends_no_pods():
    desk = Desk(leads=False)
    desk.shows(pod("map", ended()))
    assert await desk.after(outlived.PATIENCE_S) == 0


async def test_a_namespace_with_many_such_pods_leaves_requests_to_others():
    desk = Desk()
    many = [
        msgspec.structs.replace(pod("map", ended()), metadata=wire.ObjectMeta(namespace="a", name="x", uid=str(n)))
        for n in range(200)
    ]
    desk.shows(*many)
    desk.now_s = 0.1
    desk.shows(pod("map", ended()))
    assert await desk.after(outlived.PATIENCE_S) == outlived.PER_NAMESPACE + 1
