"""Applications that start whole: one that never can, and many that request more than their quota."""

import re

from boathouse.cluster import catalogue
from boathouse_e2e import hostile
from boathouse_e2e.hostile import pod
from tests.hostile.form import Attack

WHOLE = {"coreRequest": "15", "memory": "512m"}
ALL = {"spark.scheduler.minRegisteredResourcesRatio": "1.0"}
QUOTA_CORES = 20
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    "spec": {"hard": {"requests.cpu": str(QUOTA_CORES), "requests.memory": "64Gi"}},
}
EXECUTOR_CORES = 4
APPLICATIONS = 8
OBSERVED_S = 5
RESERVED = re.compile(r'^boathouse_reservations\{state="expected_task"\} (\S+)', re.MULTILINE)


async def cannot_start(siege):
    """One node is full of a pod that stays: the others are not enough for the application, which needs all four."""
    stays = pod("stays", requests={"cpu": "15900m"}, schedulerName="default-scheduler", nodeName="kwok-0")
    await siege.admin.create(catalogue.PODS.untyped(), stays, hostile.ATTACKER)
    await siege.attacker.create(
        hostile.application("greedy", driver=WHOLE, executor={**WHOLE, "instances": 3}, sparkConf=ALL)
    )

    async def is_known():
        application = await siege.admin.get(hostile.SPARKAPPS, "greedy", hostile.ATTACKER)
        return application.get("status", {}).get("conditions")

    await siege.until(is_known, "the operator has said why the application is pending")


async def keeps_no_node_from_others(siege):
    """Pods of the victim's of which nobody knows how long they run: the nodes are free, so they are bound."""
    for number in range(8):
        plain = pod(f"plain-{number}", requests={"cpu": "2"})
        await siege.admin.create(catalogue.PODS.untyped(), plain, hostile.VICTIM)

    async def are_bound():
        found = [
            pod_view for pod_view in await siege.pods(hostile.VICTIM) if pod_view.metadata.name.startswith("plain-")
        ]
        return all(pod_view.spec.node_name for pod_view in found)

    await siege.until(are_bound, "the pods of the victim have nodes")
    for number in range(8):
        await siege.admin.delete(catalogue.PODS, f"plain-{number}", hostile.VICTIM, grace_period_s=0)


async def promises_more_than_its_quota(siege):
    """Drivers that start with room for an executor, and then create one that fits on no node."""
    await siege.admin.create(hostile.QUOTAS, QUOTA, hostile.ATTACKER)
    executor = {"coreRequest": str(EXECUTOR_CORES), "memory": "512m", "instances": 1}
    for number in range(3):
        made = await siege.driver_pod(hostile.application(f"first-{number}", executor=executor))
        driver = await siege.enter(hostile.driver(siege.lab, made.metadata.name, made.metadata.uid))
        await driver.create(driver.executor(1, nodeSelector={"none": "has-it"}))
    for number in range(APPLICATIONS):
        await siege.attacker.create(hostile.application(f"more-{number}", executor=executor))


async def has_room_for_its_quota_only(siege):
    await siege.until(siege.passes(OBSERVED_S), "drivers had time to start")
    found = RESERVED.search(await siege.metrics())
    assert found is not None
    drivers = await siege.pods(labels="boathouse.dev/task-type=driver")
    cores = EXECUTOR_CORES * float(found[1]) + sum(0.1 for _ in drivers)
    assert cores <= QUOTA_CORES, f"{cores} cores are requested or reserved"


ATTACKS = (
    Attack(
        name="an application that never fits beside a pod that stays",
        act=cannot_start,
        holds=keeps_no_node_from_others,
        most_writes=200,
    ),
    Attack(
        name="drivers that promise executors above their quota",
        act=promises_more_than_its_quota,
        holds=has_room_for_its_quota_only,
        most_writes=400,
        most_events=300,
        most_refused=20,
    ),
)
