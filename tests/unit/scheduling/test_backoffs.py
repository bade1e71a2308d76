"""Tasks behind a refusal neither wait for room nor take any; one at a time finds out when the API server takes pods."""

from boathouse.cluster import errors
from boathouse.scheduling import refusals
from tests.builders.operators.desks import Desk, foreign_pod, settle, task_pod

QUOTA = errors.Forbidden(403, "Forbidden", "exceeded quota: small")
NO_CLASS = errors.Forbidden(403, "Forbidden", "no PriorityClass with name nope was found")


def tasks(namespace: str, count: int) -> list[str]:
    return [f"{namespace}/t{i:05}" for i in range(count)]


async def refuse_all(desk: Desk, error: errors.ApiError = QUOTA) -> int:
    """Refuse all creates under way, and those that follow; return how many there were."""
    count = 0
    while creates := [what for verb, what in desk.requests if verb == "create"]:
        for what in creates:
            await desk.answer("create", what, error)
            count += 1
    return count


async def test_many_tasks_behind_a_full_quota_cause_a_refused_create_per_half_minute():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.node("n2")
        desk.submit(*tasks("full", 1000), cpu_milli=1)
        refused = 0
        for second in range(300):
            desk.now_s = float(second)
            await desk.decide()
            refused += await refuse_all(desk)
    assert 10 <= refused <= 12


async def test_what_is_held_takes_no_room_from_others():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("full", 100), job_id="a")
        await desk.decide()
        await refuse_all(desk)
        desk.submit(*tasks("b", 4), job_id="b")
        await desk.decide()
        assert desk.scheduler.state.ledger.free("n1")[0] == 0
        assert {row.namespace for row in desk.scheduler.state.pods.of_job("b").values()} == {"b"}
        assert [what for verb, what in desk.requests if verb == "create"] == ["t00000 n1", "t00001 n1"]


async def test_a_job_submitted_while_its_namespace_is_held_says_why_it_is_pending():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("full", 3), job_id="a")
        await desk.decide()
        await refuse_all(desk)
        desk.submit("full/other", job_id="b")
        assert await desk.decide() == []
        found = desk.scheduler.diagnosis("b")
    assert (found.reason, found.message) == ("QuotaExceeded", "exceeded quota: small")


async def test_when_the_quota_has_room_again_all_are_created():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("full", 200), cpu_milli=1)
        await desk.decide()
        await refuse_all(desk)
        desk.now_s = 31.0
        created = []
        for _ in range(200):
            await desk.decide()
            for verb, what in list(desk.requests):
                name = what.split()[0]
                created.append(name)
                await desk.answer(verb, what, task_pod(f"full/{name}", node="n1", revision=len(created)))
        assert sorted(created)[:100] == [name.split("/")[1] for name in tasks("full", 100)]  # the node has 110 pods
        assert len(set(created)) == len(created)


async def test_probes_go_one_at_a_time():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("full", 20), cpu_milli=1)
        await desk.decide()
        await refuse_all(desk)
        desk.now_s = 31.0
        for step in range(5):
            assert len(await desk.decide()) == 1
            verb, what = next(iter(desk.requests))
            await desk.answer(verb, what, task_pod(f"full/{what.split()[0]}", node="n1", revision=step + 1))


async def test_a_pod_that_ends_in_the_namespace_lets_the_next_probe_go_soon():
    async with Desk().writing() as desk:
        desk.node("n1")
        other = task_pod("full/other", node="n1", revision=1)
        desk.show(other)
        desk.submit(*tasks("full", 20), cpu_milli=1)
        await desk.decide()
        await refuse_all(desk)
        desk.now_s = 2.0
        assert await desk.decide() == []
        desk.delete(other)
        assert len(await desk.decide()) == 1


async def test_a_job_that_alone_is_at_fault_does_not_hold_others_of_its_namespace():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("demo", 20), job_id="bad")
        await desk.decide()
        await refuse_all(desk, NO_CLASS)
        desk.submit("demo/good", job_id="good")
        assert await desk.decide() == [("create", "good n1")]


async def test_a_probe_that_finds_no_node_lets_another_job_have_its_turn():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit("full/large", job_id="a", cpu_milli=4000)
        desk.submit("full/small", job_id="b")
        await desk.decide()
        await refuse_all(desk)
        desk.submit("elsewhere/t", job_id="c", cpu_milli=2000)
        await desk.decide()
        await desk.answer("create", "t n1", task_pod("elsewhere/t", node="n1", revision=1))
        for desk.now_s in (31.0, 37.0, 43.0):
            await desk.decide()
        assert sorted(desk.requests) == [("create", "small n1")]


async def test_decisions_that_were_made_before_the_refusal_are_not_sent():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("full", 100), cpu_milli=1)
        await desk.decide()
        assert await refuse_all(desk) == 2
        while (operations := desk.scheduler.executor.operations) or operations.in_flight:
            await settle()
        assert not desk.requests
        assert desk.scheduler.state.ledger.free("n1")[0] == 4000


async def test_a_job_that_is_withdrawn_while_it_is_probed_leaves_nothing_behind():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("full", 3))
        await desk.decide()
        await refuse_all(desk)
        desk.now_s = 31.0
        desk.scheduler.withdraw("j")
        await desk.decide()
        assert len(desk.scheduler.state.jobs.refused) == 0


async def test_foreign_pods_whose_binding_is_refused_are_held():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.show(foreign_pod("u1"))
        await desk.decide()
        await desk.answer("bind", "u1 n1", NO_CLASS)
        assert desk.scheduler.state.jobs.backoff_of(desk.row("demo/p")).scope.verb is refusals.Verb.BIND
        desk.now_s = 1.0
        assert ("bind", "u1 n1") not in await desk.decide()
        desk.now_s = 11.0
        assert ("bind", "u1 n1") in await desk.decide()


async def test_writes_of_one_namespace_that_hang_leave_workers_to_others():
    async with Desk().writing() as desk:
        for name in ("n1", "n2"):
            desk.node(name)
        desk.submit(*tasks("slow", 100), job_id="a", cpu_milli=1)
        await desk.decide()
        desk.submit("quick/t", job_id="b", cpu_milli=1)
        assert ("create", "t n1") in await desk.decide()


async def test_probes_go_through_the_tasks_in_turn():
    async with Desk().writing() as desk:
        desk.node("n1")
        desk.submit(*tasks("full", 5), cpu_milli=1)
        await desk.decide()
        await refuse_all(desk)
        probed = []
        for _ in range(4):
            desk.now_s += 31.0
            probed += [what.split()[0] for _, what in await desk.decide()]
            await refuse_all(desk)
        assert probed == ["t00002", "t00003", "t00004", "t00000"]
