"""Guards against pressure from one namespace: on leadership, the API server, the workers and the cycles."""

from __future__ import annotations

import asyncio

from prometheus_client import registry

from boathouse import fair
from boathouse.cluster import wire
from boathouse.resources.config import TenantLimits
from boathouse.scheduling import executor, outcomes, refusals, transforms
from boathouse.scheduling.limits import Variety
from boathouse.services.frame import work_queue
from boathouse.services.mrjob import settle
from tests.builders import manifests, mrjobs
from tests.builders.mrjob_reconciler import JobReconciler
from tests.builders.operators.schedulers import scheduling
from tests.wire import fake_api, waiting
from tests.wire.guards import Guard

# Scenarios: each returns what broke


async def a_job_with_the_name_of_the_fence_and_no_such_priority_class(api, _tmp):
    def refuse(call, manifest):
        name = manifest["metadata"]["name"]
        if call.name == "create pods" and name.startswith("boathouse-fence"):
            message = f'pods "{name}" is forbidden: no PriorityClass with name nope was found'
            raise fake_api.Refused(403, "Forbidden", message)

    api.add(manifests.node("n1"))
    api.add(manifests.lease(leaseTransitions=1))
    api.refuse = refuse
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("boathouse-fence", 1)
        w.submit("wc", 1)
        await waiting.eventually(lambda: w.fatal or (w.placed() and w.scheduler.diagnosis("boathouse-fence")))
        return w.fatal


async def many_tasks_behind_a_full_quota(api, _tmp):
    def refuse(call, manifest):
        if call.name == "create pods" and manifest["metadata"]["name"].startswith("wc"):
            raise fake_api.Refused(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: small, requested: cpu=1')

    api.add(manifests.node("n1"))
    api.refuse = refuse
    async with scheduling(api, pending_ahead=0) as w:
        w.submit("wc", 60, cpu="1m", memory="1Mi")
        await waiting.eventually(lambda: w.scheduler.diagnosis("wc") and w.at_rest())
        refused = len(api.called("create pods"))
    return [] if refused <= 3 else [f"{refused} refused creates"]


async def writes_of_one_namespace_that_hang(api, _tmp):
    hang = asyncio.Event()
    slow = fake_api.Fault(released=hang)
    api.chaos = lambda call: slow if (call.name, call.namespace) == ("create pods", "slow") else None
    api.add(manifests.node("n1"))
    async with scheduling(api, pending_ahead=0, workers=4) as w:
        w.submit("a", 20, cpu="1m", memory="1Mi", namespace="slow")
        await waiting.eventually(lambda: len(api.called("create pods")) >= 2)
        w.submit("b", 1, cpu="1m", memory="1Mi", namespace="quick")
        await waiting.eventually(lambda: w.placed() or len(api.called("create pods")) == 4)
        hang.set()
        return [] if "quick/b-00000" in w.placed() else ["one namespace occupies all workers"]


async def pods_of_many_shapes(api, _tmp):
    limits = TenantLimits(max_shapes=5)
    async with scheduling(api, tenant_limits=limits) as w:
        for number in range(20):
            api.add(manifests.pod(f"p{number:02}", cpu=f"{number + 1}m"))
        await waiting.eventually(lambda: all(w.condition(key) for key in w.waiting()) and len(w.waiting()) == 20)
        reasons = [w.condition(key)["reason"] for key in w.waiting()]
        considered = len(w.scheduler.state.queue.sorted_classes().queued)
    return [] if considered == 5 and reasons.count("TooComplex") == 15 else [f"{considered} shapes are considered"]


async def a_pod_with_a_list_of_values_of_a_megabyte(api, _tmp):
    values = [f"{number:063}" for number in range(10_000)]
    term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    api.add(manifests.node("n1"))
    async with scheduling(api) as w:
        api.add(manifests.pod("p", affinity=affinity))
        await waiting.eventually(lambda: w.placed() or w.condition("demo/p"))
        known = w.parts.pods.get("demo/p")
    return [] if known.constraints.affinity is None and not w.placed() else ["the list is kept and evaluated"]


async def a_reconcile_queue_that_one_namespace_fills(_api, _tmp):
    seen = []

    async def reconcile(key):
        seen.append(key)
        await asyncio.sleep(3600 if key.startswith("busy/") else 0)

    queue = work_queue.WorkQueue(reconcile, workers=2, metrics=registry.CollectorRegistry())
    for number in range(10):
        queue.add(f"busy/{number}")
    queue.add("quiet/job")
    running = asyncio.create_task(queue.run())
    await waiting.eventually(lambda: len(seen) >= 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return [] if "quiet/job" in seen else ["the keys of one namespace occupy all workers"]


async def task_pods_that_their_owner_deletes_all_the_time(_api, _tmp):
    jobs = JobReconciler(mrjobs.mrjob(), tenantLimits={"retriesPerSecond": 0.1})
    jobs.ended = {f"demo/wordcount-0a1b2c3d-s0-setup-a{number}" for number in range(1, 100)}
    for _ in range(120):
        await jobs.reconcile()
        jobs.now_s += 1.0
    attempts = len(set(jobs.submitted))
    return [] if attempts <= 20 else [f"{attempts} attempts in two minutes"]


# Guards, and how each is broken


def with_the_text_in_place_of_the_lease(patch):
    whole = outcomes.refusal

    def refusal(error):
        return outcomes.Fenced(message=error.message) if "boathouse-fence" in error.message else whole(error)

    patch.setattr(outcomes, "refusal", refusal)


def with_a_backoff_for_each_task_alone(patch):
    patch.setattr(refusals.Refusals, "refused", lambda *_: False)


def with_workers_in_order_of_arrival(patch):
    patch.setattr(executor, "SLOW_START", 1000)
    patch.setattr(fair, "SHARE", 1000.0)


def with_any_number_of_shapes(patch):
    patch.setattr(Variety, "refusal", lambda *_: None)


def with_any_number_of_constraints(patch):
    patch.setattr(wire, "MOST_CONSTRAINTS", 1 << 30)
    patch.setattr(transforms, "MOST_CONSTRAINT_LENGTH", 1 << 30)


def with_one_line_for_all_keys(patch):
    patch.setattr(work_queue, "namespace_of", lambda _: "")
    patch.setattr(fair, "SHARE", 1000.0)


def with_retries_at_any_rate(patch):
    patch.setattr(fair.Buckets, "take", lambda *_, **__: True)
    patch.setattr(settle, "backoff_s", lambda _: 0.0)


GUARDS = {
    "lease-decides": Guard(
        a_job_with_the_name_of_the_fence_and_no_such_priority_class, with_the_text_in_place_of_the_lease
    ),
    "backoff-by-namespace": Guard(many_tasks_behind_a_full_quota, with_a_backoff_for_each_task_alone),
    "shapes-bounded": Guard(pods_of_many_shapes, with_any_number_of_shapes),
    "constraints-bounded": Guard(a_pod_with_a_list_of_values_of_a_megabyte, with_any_number_of_constraints),
    "reconcile-turns": Guard(a_reconcile_queue_that_one_namespace_fills, with_one_line_for_all_keys),
    "retries-bounded": Guard(task_pods_that_their_owner_deletes_all_the_time, with_retries_at_any_rate),
    "workers-shared": Guard(writes_of_one_namespace_that_hang, with_workers_in_order_of_arrival),
}
