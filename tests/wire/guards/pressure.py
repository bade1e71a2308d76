"""Guards against pressure from one namespace: on leadership, the API server, the workers and the cycles."""

from __future__ import annotations

import asyncio

from boathouse import fair
from boathouse.scheduling import carrier, outcomes, refusals
from tests.wire import fake_api, waiting
from tests.wire.guards import Guard
from tests.wire.scheduling_world import world

# Scenarios: each returns what broke


async def a_job_with_the_name_of_the_fence_and_no_such_priority_class(api, _tmp):
    def refuse(call, manifest):
        name = manifest["metadata"]["name"]
        if call.name == "create pods" and name.startswith("boathouse-fence"):
            message = f'pods "{name}" is forbidden: no PriorityClass with name nope was found'
            raise fake_api.Refused(403, "Forbidden", message)

    api.add(fake_api.node("n1"))
    api.add(fake_api.lease(leaseTransitions=1))
    api.refuse = refuse
    async with world(api, pending_ahead=0) as w:
        w.submit("boathouse-fence", 1)
        w.submit("wc", 1)
        await waiting.eventually(lambda: w.fatal or (w.placed() and w.scheduler.diagnosis("boathouse-fence")))
        return w.fatal


async def many_tasks_behind_a_full_quota(api, _tmp):
    def refuse(call, manifest):
        if call.name == "create pods" and manifest["metadata"]["name"].startswith("wc"):
            raise fake_api.Refused(403, "Forbidden", 'pods "x" is forbidden: exceeded quota: small, requested: cpu=1')

    api.add(fake_api.node("n1"))
    api.refuse = refuse
    async with world(api, pending_ahead=0) as w:
        w.submit("wc", 60, cpu="1m", memory="1Mi")
        await waiting.eventually(lambda: w.scheduler.diagnosis("wc") and w.at_rest())
        refused = len(api.called("create pods"))
    return [] if refused <= 3 else [f"{refused} refused creates"]


async def writes_of_one_namespace_that_hang(api, _tmp):
    hang = asyncio.Event()
    slow = fake_api.Fault(released=hang)
    api.chaos = lambda call: slow if (call.name, call.namespace) == ("create pods", "slow") else None
    api.add(fake_api.node("n1"))
    async with world(api, pending_ahead=0, workers=4) as w:
        w.submit("a", 20, cpu="1m", memory="1Mi", namespace="slow")
        await waiting.eventually(lambda: len(api.called("create pods")) >= 2)
        w.submit("b", 1, cpu="1m", memory="1Mi", namespace="quick")
        await waiting.eventually(lambda: w.placed() or len(api.called("create pods")) == 4)
        hang.set()
        return [] if "quick/b-00000" in w.placed() else ["one namespace occupies all workers"]


# Guards, and how each is broken


def with_the_text_in_place_of_the_lease(patch):
    whole = outcomes.refusal

    def refusal(error):
        return outcomes.Fenced(message=error.message) if "boathouse-fence" in error.message else whole(error)

    patch.setattr(outcomes, "refusal", refusal)


def with_a_backoff_for_each_task_alone(patch):
    patch.setattr(refusals.Refusals, "refused", lambda *_: False)


def with_workers_for_whoever_comes_first(patch):
    patch.setattr(carrier, "SLOW_START", 1000)
    patch.setattr(fair.FairQueue, "_most", lambda *_: 1000)


GUARDS = {
    "lease-decides": Guard(
        a_job_with_the_name_of_the_fence_and_no_such_priority_class, with_the_text_in_place_of_the_lease
    ),
    "backoff-by-namespace": Guard(many_tasks_behind_a_full_quota, with_a_backoff_for_each_task_alone),
    "workers-shared": Guard(writes_of_one_namespace_that_hang, with_workers_for_whoever_comes_first),
}
