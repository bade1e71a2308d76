"""Reduces are suspended while others take what they will need again, or while they or their node are lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal

import pytest

from boathouse.cluster import catalogue
from boathouse.resources import names, quantity
from boathouse_e2e import invariants, kwok, lab, model_kubelet
from boathouse_e2e.kubelets import Pod, Shape
from boathouse_task.pausing import Ended
from tests.faults import suspending, test_sparkapps, test_two_leaders
from tests.faults.suspending import SHRUNK

pytestmark = pytest.mark.apiserver

SHAPE = Shape(maps=3, reduces=2, polls=True, slow_start_percent=0)
CPU_MILLI = 900
WHOLE = (CPU_MILLI, CPU_MILLI + 1)  # a limit that the job does not set is just above the request
CONTINUED = (1, CPU_MILLI + 1)
LONG_S = 900
QUOTAS = catalogue.Resource(plural="resourcequotas", kind="ResourceQuota", view=dict)
LIMIT_RANGES = catalogue.Resource(plural="limitranges", kind="LimitRange", view=dict)
RUNS = 20
_EVICTED_WITHIN_S = 300


def have(trial, *sizes):
    """Whether all reduces run, and have one of these sizes."""

    async def holds():
        found = await suspending.sizes(trial)
        return len(found) == SHAPE.reduces and set(found) <= {*sizes}

    return holds


async def suspended(trial, operator, for_s=LONG_S, **of_job):
    """Start a job, and suspend its reduces while its maps run."""
    trial.late_s = invariants.LATE_S
    operator.start()
    await trial.submit(SHAPE, is_suspended=False, **of_job)
    trial.ledger.held = True
    await trial.until(have(trial, WHOLE), "the reduces run")
    await trial.until(trial.running(SHAPE.tasks), "the maps run")
    await suspending.suspend(trial, for_s)

    async def lend_their_cpu():
        return {invariants.requests(pod)["cpu"] for pod in await suspending.reduces(trial)} == {SHRUNK[0]}

    await trial.until(lend_their_cpu, "the reduces are suspended, and their nodes have freed their CPU")


async def finish(trial):
    """Let the maps end, and judge the job."""
    trial.ledger.held = False
    await trial.judge()


@contextlib.asynccontextmanager
async def applied(trial, resource, name, spec):
    """An object that exists until the end of the block."""
    manifest = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    await trial.api.create(resource, manifest, lab.NAMESPACE)
    try:
        yield
    finally:
        await trial.api.delete(resource, name, lab.NAMESPACE, grace_period_s=0)


@contextlib.asynccontextmanager
async def used_up_quota(trial, counted):
    """A quota without room for anything more."""

    async def status():
        return (await trial.api.get(QUOTAS, "q", lab.NAMESPACE)).get("status") or {}

    async def is_counted():
        return (await status()).get("used", {}).get(counted)

    async with applied(trial, QUOTAS, "q", {"hard": {counted: "100"}}):
        await trial.until(is_counted, "the quota counts")
        used = await is_counted()
        await trial.api.patch(QUOTAS, "q", {"spec": {"hard": {counted: used}}}, lab.NAMESPACE)

        async def is_used_up():
            return (await status())["hard"][counted] == used

        await trial.until(is_used_up, "the quota is used up")
        yield


def condition(trial, reason):
    """Whether the job's condition says this of its suspended reduces."""

    async def holds():
        conditions = (await trial.status()).get("conditions") or ()
        return any(
            (one["type"], one["reason"]) == (names.ConditionType.REDUCERS_SUSPENDED, reason) for one in conditions
        )

    return holds


def counted(trial, number):
    """Whether the job's status counts so many suspended reduces."""

    async def holds():
        return ((await trial.status()).get("reduces") or {}).get("suspended") == number

    return holds


def refused(trial):
    """Whether an event of a reduce says that the API server refused to resume it."""

    async def holds():
        pods = {pod["metadata"]["name"] for pod in await suspending.reduces(trial)}
        events = (await trial.api.list(catalogue.EVENTS, lab.NAMESPACE)).items
        return any(one.get("reason") == "ResumeRefused" and one["regarding"]["name"] in pods for one in events)

    return holds


async def test_reduces_continue_without_their_request_where_a_quota_is_used_up_meanwhile(trial):
    with trial.operator() as operator:
        await suspended(trial, operator)
        async with used_up_quota(trial, "requests.cpu"):
            await suspending.resume(trial)
            await trial.until(have(trial, CONTINUED), "the reduces continue")
            await trial.until(condition(trial, "RequestOwed"), "the condition says that their request is owed")
            await finish(trial)


@pytest.mark.long
async def test_reduces_continue_at_their_deadline_where_a_quota_refuses_even_their_limit(trial):
    with trial.operator() as operator:
        await suspended(trial, operator, for_s=20)
        async with used_up_quota(trial, "limits.cpu"):
            await trial.until(refused(trial), "an event says that they could not be resumed")
            assert set(await suspending.sizes(trial)) == {SHRUNK}
            await finish(trial)
    assert trial.kubelets.paused.ended == {Ended.DEADLINE: SHAPE.reduces}


@pytest.mark.long
@pytest.mark.parametrize("limit", [{"min": {"cpu": "100m"}}, {"maxLimitRequestRatio": {"cpu": "20"}}], ids=str)
async def test_reduces_get_request_and_limit_at_once_where_a_limit_range_refuses_the_limit_alone(trial, limit):
    with trial.operator() as operator:
        await suspended(trial, operator)
        async with applied(trial, LIMIT_RANGES, "l", {"limits": [{"type": "Container", **limit}]}):
            await suspending.resume(trial)
            await trial.until(have(trial, WHOLE), "the reduces have their CPU again")
            await finish(trial)


async def free_milli(trial, node):
    """Return the CPU of a node that no pod holds."""
    pods = [dict(pod) for pod in (await trial.api.list(catalogue.PODS.untyped(), None)).items]
    held = [invariants.requests(pod)["cpu"] for pod in pods if pod["spec"].get("nodeName") == node]
    return quantity.milli(trial.lab.nodes[node]["cpu"]) - sum(held)


@contextlib.asynccontextmanager
async def room_taken(trial, node):
    """A pod that kube-scheduler puts into all free CPU of a node."""
    name = f"taker-{node}"
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": f"{await free_milli(trial, node)}m"}}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}

    async def is_bound():
        return (await trial.api.get(catalogue.PODS, name, lab.NAMESPACE)).spec.node_name == node

    async with applied(trial, catalogue.PODS.untyped(), name, spec):
        await trial.until(is_bound, "kube-scheduler has placed a pod")
        yield


async def test_reduces_continue_without_their_request_where_kube_scheduler_took_the_room(trial):
    with trial.operator() as operator:
        await suspended(trial, operator)
        async with contextlib.AsyncExitStack() as takers:
            for node in {pod["spec"]["nodeName"] for pod in await suspending.reduces(trial)}:
                await takers.enter_async_context(room_taken(trial, node))
            await suspending.resume(trial)
            await trial.until(condition(trial, "RequestOwed"), "the condition says that their request is owed")
            assert set(await suspending.sizes(trial)) == {CONTINUED}
        await trial.until(have(trial, WHOLE), "the reduces have their request again, once there is room")
        await finish(trial)


@pytest.mark.long
async def test_a_request_that_the_node_defers_is_taken_back(trial):
    kubelet = model_kubelet.ModelKubelet(trial.api, trial.lab.nodes)
    async with model_kubelet.running(kubelet):
        with trial.operator() as operator:
            await suspended(trial, operator, pod_annotations={kwok.RESIZE_ANNOTATION: kwok.BY_HAND})
            kubelet.allocations.verdict = _deferred_growth
            await suspending.resume(trial)
            await trial.until(have(trial, WHOLE), "the reduces request their CPU again")
            await trial.until(have(trial, CONTINUED), "the operator has taken the requests back")
            await finish(trial)
    assert not kubelet.allocations.counted_twice


def _deferred_growth(pod):
    request = quantity.milli(pod.spec.containers[0].resources.requests["cpu"])
    return "Deferred" if request == CPU_MILLI else None


@pytest.mark.long
async def test_a_suspended_reduce_whose_runtime_is_killed_is_followed_by_another_attempt(trial):
    with trial.operator() as operator:
        await suspended(trial, operator)
        killed = (await suspending.reduces(trial))[0]["metadata"]["name"]
        pod = await trial.api.get(catalogue.PODS.viewed_as(Pod), killed, lab.NAMESPACE)
        assert await trial.kubelets.end(pod, "", 128 + signal.SIGKILL)

        async def is_followed():
            names_now = [reduce_pod["metadata"]["name"] for reduce_pod in await suspending.reduces(trial)]
            return len(names_now) == SHAPE.reduces and killed not in names_now

        await trial.until(is_followed, "another attempt runs")
        await suspending.resume(trial)
        await finish(trial)


@pytest.mark.long
async def test_a_suspended_reduce_whose_node_is_lost_is_followed_by_another_attempt(trial):
    with trial.operator() as operator:
        await suspended(trial, operator)
        await trial.until(counted(trial, SHAPE.reduces), "the job counts its suspended reduces")
        node = (await suspending.reduces(trial))[0]["spec"]["nodeName"]
        kept = trial.lab.cluster.get("node", node)
        await asyncio.to_thread(trial.lab.cluster.run, "delete", "node", node)
        try:

            async def has_left():
                found = [reduce_pod["spec"]["nodeName"] for reduce_pod in await suspending.reduces(trial)]
                return len(found) == SHAPE.reduces and node not in found

            await trial.until(has_left, "all reduces run elsewhere", patience_s=_EVICTED_WITHIN_S)
            await suspending.resume(trial)
            await finish(trial)
        finally:
            trial.lab.cluster.apply(test_sparkapps.without_identity(kept))


@pytest.mark.long
async def test_suspended_reduces_continue_at_their_deadline_without_an_operator(trial):
    with trial.operator() as operator:
        await suspended(trial, operator, for_s=10)
        operator.kill()
        trial.late_s = invariants.LATE_WITHOUT_OPERATOR_S
        trial.ledger.held = False
        await trial.until(lambda: trial.ledger.committed("r") == SHAPE.reduces, "the reduces have committed")
        assert trial.kubelets.paused.ended == {Ended.DEADLINE: SHAPE.reduces}
        operator.start()
        await trial.judge()


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed == 0 else pytest.mark.long) for seed in range(RUNS)]
)
async def test_a_leader_that_stands_still_while_it_shrinks_a_reduce_changes_nothing_when_it_wakes(trial, seed):
    rng = random.Random(seed)
    first, second = lab.IDENTITIES
    timing = test_two_leaders.SHORT_LEASE
    with trial.operator(first, **timing) as paused, trial.operator(second, **timing) as successor:
        paused.start()
        await trial.submit(SHAPE, is_suspended=False)
        trial.ledger.held = True
        await trial.until(have(trial, WHOLE), "the reduces run")
        epoch = await trial.epoch()
        await suspending.suspend(trial, LONG_S)
        await trial.kubelets.paused.begun.wait()
        await asyncio.sleep(rng.uniform(0, 0.1))
        paused.send(signal.SIGSTOP)
        await suspending.resume(trial)
        successor.start()

        async def succeeded():
            return await trial.epoch() > epoch

        await trial.until(succeeded, "the successor leads")
        trial.let_end(paused)
        paused.send(signal.SIGCONT)
        await trial.until(have(trial, WHOLE), "the reduces have their CPU")
        await finish(trial)
        await trial.until(lambda: not paused.lives, "the former leader has ended")
        assert "Traceback" not in paused.log.read_text()
