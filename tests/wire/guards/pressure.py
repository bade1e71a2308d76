"""Guards against pressure from one namespace: on leadership, the API server, the workers and the cycles."""

from __future__ import annotations

from boathouse.scheduling import outcomes
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


# Guards, and how each is broken


def with_the_text_in_place_of_the_lease(patch):
    whole = outcomes.refusal

    def refusal(error):
        return outcomes.Fenced(message=error.message) if "boathouse-fence" in error.message else whole(error)

    patch.setattr(outcomes, "refusal", refusal)


GUARDS = {
    "lease-decides": Guard(
        a_job_with_the_name_of_the_fence_and_no_such_priority_class, with_the_text_in_place_of_the_lease
    ),
}
