"""Pods that pretend to be a job's tasks, or to be where they are not."""

import uuid

import pytest

from boathouse.cluster import catalogue, errors
from boathouse_e2e import hostile
from boathouse_e2e.hostile import pod
from tests.hostile.form import Attack

FORGED = {
    "boathouse.dev/job-uid": str(uuid.uuid4()),
    "boathouse.dev/kind": "MRJob",
    "boathouse.dev/step": "0",
    "boathouse.dev/task-type": "map",
    "boathouse.dev/task-index": "0",
    "boathouse.dev/attempt": "1",
}
OURS = "are written by Boathouse only"


def owner(uid):
    return {
        "apiVersion": "boathouse.dev/v1alpha1",
        "kind": "MRJob",
        "name": "victim",
        "uid": uid,
        "controller": True,
    }


def template(name, labels):
    return pod(name, metadata={"labels": {"app": "x", **labels}}, schedulerName="other", nodeName="kwok-1")


def replica_set(labels, replicas=5):
    made = template("t", labels)
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]},
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "copies"}, "spec": spec}


def batch_job(labels, parallelism=5):
    made = template("t", labels)
    spec = {
        "parallelism": parallelism,
        "completions": parallelism,
        "template": {
            "metadata": {"labels": made["metadata"]["labels"]},
            "spec": made["spec"] | {"restartPolicy": "Never"},
        },
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "copies"}, "spec": spec}


def copied_by_a_controller(manifest):
    """A template with a task's labels, which a controller copies; its pods are refused, and it is told so."""

    async def act(siege):
        await siege.attacker.create(manifest)
        resource = hostile.REPLICA_SETS if manifest["kind"] == "ReplicaSet" else hostile.JOBS

        async def tried():
            if await siege.pods():
                return True
            events = await siege.admin.list(catalogue.EVENTS, hostile.ATTACKER, fields="reason=FailedCreate")
            return any(OURS in event["note"] for event in events.items)

        await siege.until(tried, f"the controller of {resource.kind} has tried to make the pods")

    return act


async def makes_no_task(siege):
    assert await siege.pods(labels="boathouse.dev/job-uid") == ()


async def takes_a_task_over(siege):
    """Labels and owners of a pod that is already there cannot be changed either."""
    await siege.attacker.create(pod("plain", schedulerName="other"))
    for metadata in ({"labels": FORGED}, {"ownerReferences": [owner(str(uuid.uuid4()))]}):
        with pytest.raises(errors.ApiError, match="Boathouse only"):
            await siege.attacker.api.patch(catalogue.PODS, "plain", {"metadata": metadata}, hostile.ATTACKER)


def ghosts():
    """Pods of every node's CPUs many times over, charged to the queue of everybody, on nodes that do not exist."""
    for number in range(20):
        metadata = {"labels": {"boathouse.dev/queue": "default"}}
        yield pod(
            f"ghost-{number}",
            requests={"cpu": "1000", "memory": "1Ti"},
            metadata=metadata,
            schedulerName="other",
            nodeName=f"no-such-node-{number}",
        )


ATTACKS = (
    Attack(
        name="pods with a task's labels",
        objects=lambda: [
            pod("forged", metadata={"labels": FORGED}),
            pod("annotated", metadata={"annotations": {"boathouse.dev/epoch": "99"}}, schedulerName="other"),
        ],
        refused=OURS,
    ),
    Attack(
        name="pods that a job of another namespace owns",
        objects=lambda: [pod("owned", metadata={"ownerReferences": [owner(str(uuid.uuid4()))]}, schedulerName="other")],
        refused="are made by Boathouse only",
    ),
    Attack(name="labels and owners given to a pod later", act=takes_a_task_over, long=True),
    Attack(
        name="a ReplicaSet whose pods have a task's labels",
        act=copied_by_a_controller(replica_set(FORGED)),
        holds=makes_no_task,
    ),
    Attack(
        name="a Job whose pods have a task's labels",
        act=copied_by_a_controller(batch_job(FORGED)),
        holds=makes_no_task,
        long=True,
    ),
    Attack(name="pods on nodes that do not exist", objects=ghosts),
)
