"""A part of the profile that does harm to a program says so on its jobs."""

import time

from boathouse.services.mrjob import routes
from boathouse_policies.profiles import guard
from tests.builders.operators.leaders import leading
from tests.builders.operators.mrjobs import KEY, mrjob


async def test_the_author_of_a_job_sees_that_a_part_is_off(api, eventually):
    api.add(mrjob())

    def condition():
        status = api.get("mrjobs", KEY).get("status") or {}
        found = [one for one in status.get("conditions") or () if one["type"] == "PoliciesActive"]
        return (found[0]["status"], found[0]["reason"]) if found else ()

    async with leading(api, (routes.ENTRY,), profile="boathouse", now=time.time) as leader:
        jobs, found = leader.scheduling.scheduler.state.jobs, guard.guard_of(leader.profile)
        await eventually(lambda: list(jobs.entries()))
        key = guard.key_of(guard.Part.MEMORY, next(iter(jobs.entries())).job)
        for _ in range(20):
            found.ended(key, 1.0, 1.0, 10.0, time.time())
        leader.controllers.mark(api.get("mrjobs", KEY)["metadata"]["uid"])
        await eventually(lambda: condition() == ("False", "Harmful"))
        await eventually(lambda: any(one["reason"] == "PolicyOff" for one in api.objects("events").values()))
