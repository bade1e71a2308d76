"""What a job or a pod names to get more than its namespace has: accounts, classes, queues, and the names of others."""

import json

from boathouse.cluster import catalogue
from boathouse_e2e import hostile, kubelets
from boathouse_e2e.hostile import job, pod
from tests.hostile.form import Attack

ROBOT = "robot"
SMALL = kubelets.Shape(maps=2, reduces=0, cpu="50m")
GREEDY = kubelets.Shape(maps=600, reduces=0, cpu="2")
WHOLE_CLUSTER = kubelets.Shape(maps=4, reduces=0, cpu="15500m")


async def has_an_account(siege):
    await siege.attacker.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ROBOT, "namespace": hostile.ATTACKER}}
    )


async def names_an_account(siege):
    await has_an_account(siege)
    await siege.submit(job("named", maps=SMALL.maps, serviceAccountName=ROBOT), SMALL)


async def is_granted_the_account(siege):
    """An administrator of the namespace lets jobs use the account."""
    await has_an_account(siege)
    metadata = {"name": "jobs-use-robot", "namespace": hostile.ATTACKER}
    rule = {"apiGroups": ["boathouse.dev"], "resources": ["accounts"], "resourceNames": [ROBOT], "verbs": ["use"]}
    rbac = "rbac.authorization.k8s.io"
    siege.lab.cluster.apply(
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": ROBOT, "namespace": hostile.ATTACKER}],
        },
    )
    await siege.submit(job("named", maps=SMALL.maps, serviceAccountName=ROBOT), SMALL)


async def names_the_missing_right(siege):
    """The job's status names the account and the right."""

    async def is_explained():
        text = json.dumps(await siege.status("named"))
        return ROBOT in text and "boathouse-run-as" in text

    await siege.until(is_explained, "the job's status says which right is missing")


async def succeeds(siege):
    await siege.until(lambda: siege.has_ended("named"), "the job whose account is granted ends")
    status = await siege.status("named")
    assert status["phase"] == "Succeeded", status
    siege.lab.cluster.run("delete", "role,rolebinding", "jobs-use-robot", "-n", hostile.ATTACKER)


HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1_000_000,
    "preemptionPolicy": "Never",
}


async def takes_the_highest_class(siege):
    """More tasks than the cluster holds at once, each before the victim's by its class."""
    siege.lab.cluster.apply(HIGH)
    await siege.submit(
        job("greedy", maps=GREEDY.maps, podTemplate={"priorityClassName": "high"}, **greedy_stage()), GREEDY
    )
    await siege.until(lambda: siege.pods(labels="boathouse.dev/task-type=map"), "the attacker's maps run")


def greedy_stage():
    return {"mapper": {"command": ["cat"], "resources": {"requests": {"cpu": GREEDY.cpu, "memory": "300Mi"}}}}


async def has_not_gone_first(siege):
    """The victim's job has ended while the attacker's maps are still being placed."""
    made = len(await siege.pods(labels="boathouse.dev/task-type=map"))
    assert made < GREEDY.maps, "the victim's job ended after all of the attacker's maps had been placed"


async def waits_behind_the_victim(siege):
    """The victim's job holds the whole cluster, and the attacker's waits."""
    name, ledger = await siege.victim_begins(WHOLE_CLUSTER, held=True)

    async def running():
        pods = await siege.pods(hostile.VICTIM, "boathouse.dev/task-type=map")
        return len(pods) == WHOLE_CLUSTER.maps

    await siege.until(running, "the victim's maps hold the cluster")
    stage = {"command": ["cat"], "resources": {"requests": {"cpu": "14", "memory": "300Mi"}}}
    await siege.submit(job("curious", mapper=stage), kubelets.Shape(maps=1, reduces=0))
    await siege.attacker.create(pod("curious", requests={"cpu": "14"}))

    async def waits():
        conditions = (await siege.status("curious")).get("conditions") or ()
        return any(
            condition["type"] == "Scheduled"
            and condition["status"] == "False"
            and "cpu" in condition["message"].lower()
            for condition in conditions
        )

    await siege.until(waits, "the attacker's job says why it waits")
    everything = json.dumps(await siege.status("curious"))
    events = await siege.admin.list(catalogue.EVENTS, hostile.ATTACKER)
    everything += json.dumps(events.items) + str(await siege.pods())
    assert name not in everything
    assert hostile.VICTIM not in everything
    ledger.held = False


ATTACKS = (
    Attack(
        name="a job that names a service account without a grant",
        act=names_an_account,
        holds=names_the_missing_right,
        most_refused=10,
    ),
    Attack(name="a job that names a service account with a grant", act=is_granted_the_account, holds=succeeds),
    Attack(
        name="a pod of the class system-cluster-critical",
        objects=lambda: [pod("critical", priorityClassName="system-cluster-critical")],
        refused="system-",
    ),
    Attack(
        name="a job of the class system-node-critical",
        objects=lambda: [job("critical", podTemplate={"priorityClassName": "system-node-critical"})],
        refused="system-",
    ),
    Attack(
        name="tasks of the highest priority class",
        act=takes_the_highest_class,
        holds=has_not_gone_first,
        most_writes=4_000,
        most_events=4_000,
    ),
    Attack(
        name="a job in a queue of others",
        objects=lambda: [job("intruder", queue="victims")],
        refused="does not accept this namespace",
    ),
    Attack(name="a job that asks who holds what it waits for", act=waits_behind_the_victim),
)
