"""What a cycle decides: order, placement, gangs, locality, holding back."""
# ruff: noqa: ARG002  extension points are asked with more than a small one reads

import dataclasses

import numpy as np
import pytest

from boathouse_policies import framework, model, profiles

from . import builders as make


def queue(name: str, weight: float = 1.0, **limits: int) -> model.Queue:
    return model.Queue.of(model.QueueName(name), weight=weight, limits=limits)


def codes(plan: framework.Plan) -> dict[str, model.Code]:
    return {diagnosis.task_class: diagnosis.code for diagnosis in plan.diagnoses()}


def placed(plan: framework.Plan) -> list[str]:
    return [one.task_class.id for one in make.placements(plan)]


# Order


def test_fifo_serves_the_job_submitted_first():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit("late", 4, submitted_s=2.0)
    world.submit("early", 3, submitted_s=1.0)
    assert placed(world.plan()) == ["early/map"] * 3 + ["late/map"]


def test_fair_shares_in_turn():
    world = make.World(make.nodes(1))
    world.submit("a", 9)
    world.submit("b", 9)
    assert placed(world.plan()) == ["a/map", "b/map"] * 2


def test_fair_counts_what_already_runs():
    world = make.World(make.nodes(1))
    world.submit("a", 2)
    world.cycle()
    world.submit("b", 9, submitted_s=1.0)
    world.submit("a", 9)
    assert placed(world.plan()) == ["b/map"] * 2


def test_fair_compares_dominant_shares():
    world = make.World([make.node(allocatable=make.amount(18_000, 36))])
    world.submit("memory", 9, size=make.amount(2000, 8))
    world.submit("cpu", 9, size=make.amount(6000, 2))
    assert sorted(placed(world.plan())) == ["cpu/map"] * 2 + ["memory/map"] * 3  # the worked example of DRF, 4.1


def test_a_jobs_weight_is_its_part_of_the_share():
    world = make.World([make.node(allocatable=make.amount(8000, 8))])
    world.submit("heavy", 9, weight=3.0)
    world.submit("light", 9)
    assert sorted(placed(world.plan())) == ["heavy/map"] * 6 + ["light/map"] * 2


def test_the_higher_priority_goes_first_within_a_queue():
    world = make.World(make.nodes(1))
    world.submit("usual", 9)
    world.submit("urgent", 3, priority=10, submitted_s=5.0)
    assert placed(world.plan()) == ["urgent/map"] * 3 + ["usual/map"]


def test_queues_share_by_weight_however_many_jobs_they_have():
    world = make.World(
        [make.node(allocatable=make.amount(8000, 8))], [queue("one"), queue("many", weight=3.0)], profiles.build("fifo")
    )
    world.submit("solo", 9, queue="one")
    for i in range(5):
        world.submit(f"job{i}", 9, queue="many")
    assert sorted(placed(world.plan())) == ["job0/map"] * 6 + ["solo/map"] * 2


def test_a_queue_without_demand_leaves_its_share_to_others():
    world = make.World(make.nodes(1), [queue("busy"), queue("idle", weight=9.0)])
    world.submit(count=9, queue="busy")
    assert len(placed(world.plan())) == 4


def test_what_does_not_fit_lets_others_pass():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.ledger.observe(make.pod("other", size=make.amount(1000, 1)))
    world.submit("large", 1, size=make.amount(4000, 1))
    world.submit("small", 9, submitted_s=1.0)
    plan = world.plan()
    assert placed(plan) == ["small/map"] * 3
    assert codes(plan) == {"large/map": model.Code.UNSCHEDULABLE, "small/map": model.Code.UNSCHEDULABLE}


def test_the_classes_of_a_job_are_served_in_their_order():
    world = make.World(make.nodes(1))
    job = make.job()
    first, second = make.task_class(job, name="reduce"), make.task_class(job, name="map")
    world.room.submit(job, [first, second], [*make.tasks(second, 2), *make.tasks(first, 3)])
    assert placed(world.plan()) == ["job/reduce"] * 3 + ["job/map"]


# Placement


def test_least_loaded_spreads_and_packed_fills():
    assert [n for _, n in spread("least-loaded")] == ["n0", "n1", "n2", "n0"]
    assert [n for _, n in spread("packed")] == ["n0", "n0", "n0", "n0"]


def spread(placement: str) -> list[tuple[str, str]]:
    world = make.World(make.nodes(3), profile=profiles.build("fifo", placement=placement))
    world.submit(count=4)
    return make.where(world.plan())


def test_a_profile_ranks_nodes_by_the_kind_of_stage():
    class Last(framework.Score):
        def score(self, pending, state, where):
            return np.arange(state.free.shape[1], dtype=np.float64)[where]

    profile = dataclasses.replace(profiles.build("fifo"), scores={model.Stage.REDUCE: Last()})
    world = make.World(make.nodes(3), profile=profile)
    world.submit("m", stage=model.Stage.MAP)
    world.submit("r", stage=model.Stage.REDUCE)
    assert make.where(world.plan()) == [("m/map-0", "n0"), ("r/map-0", "n2")]


def test_a_task_with_a_pod_is_bound_and_one_without_is_created():
    world = make.World(make.nodes(1))
    one = make.task_class(make.job())
    with_pod = make.task(one, 0, pod_uid=model.PodUid("u"))
    world.room.submit(make.job(), [one], [with_pod, make.task(one, 1)])
    bind, create = world.plan().decisions
    assert isinstance(bind, model.Bind)
    assert bind.task.pod_uid == "u"
    assert isinstance(create, model.Create)


def test_the_task_whose_input_is_closest_to_the_node_is_picked():
    names = [
        make.node("a", server="s0", rack="r0"),
        make.node("b", server="s0", rack="r0"),
        make.node("c", rack="r0"),
        make.node("d"),
    ]
    world = make.World(names, profile=profiles.build("fifo", placement="packed"))
    one = make.task_class(make.job(), make.amount(4000, 1))
    located = [make.task(one, i, locations=(model.NodeName(n),)) for i, n in enumerate("dcba")]
    for count, (index, distance) in enumerate([(3, "NODE"), (2, "SERVER"), (1, "RACK"), (0, "ANYWHERE")]):
        world.room.submit(make.job(), [one], located[: 4 - count])
        (first, *_) = make.placements(world.plan(offered=[model.NodeName("a")]))
        assert (first.task.index, first.distance.name) == (index, distance)


def test_a_cycle_may_be_offered_one_node_and_one_task_of_it():
    world = make.World(make.nodes(3))
    world.submit(count=5)
    plan = world.plan(offered=[model.NodeName("n1")], max_per_node=1)
    assert make.where(plan) == [("job/map-0", "n1")]
    assert codes(plan) == {"job/map": model.Code.NOT_OFFERED}


# Held back


def test_a_queues_limit_holds_its_jobs_and_nobody_else():
    world = make.World(make.nodes(2), [queue("small", cpu=2000), queue("open")])
    world.submit("limited", 5, queue="small")
    world.submit("free", 5, queue="open")
    plan = world.plan()
    assert sorted(placed(plan)) == ["free/map"] * 5 + ["limited/map"] * 2
    (diagnosis,) = plan.diagnoses()
    assert (diagnosis.code, diagnosis.scarce, diagnosis.count) == (model.Code.QUEUE_LIMIT, None, 3)
    assert diagnosis.message == "queue 'small' holds 2000 of its limit of 2000 cpu; one task asks for 1000"


def test_a_limit_lets_smaller_tasks_of_the_queue_pass():
    world = make.World(make.nodes(2), [queue("q", cpu=2500)])
    world.submit("large", 2, size=make.amount(2000, 1), queue="q")
    world.submit("small", 2, size=make.amount(500, 1), queue="q", submitted_s=1.0)
    assert sorted(placed(world.plan())) == ["large/map", "small/map"]


def test_an_unknown_queue_is_said_to_be_one():
    world = make.World(make.nodes(1), [queue("a"), queue("b")])
    world.submit(queue="c")
    (diagnosis,) = world.plan().diagnoses()
    assert (diagnosis.code, diagnosis.message) == (
        model.Code.UNKNOWN_QUEUE,
        "queue 'c' is not defined (defined: a, b)",
    )


def test_what_no_node_could_ever_hold_blocks_nobody_and_has_its_own_reason():
    world = make.World(make.nodes(1), profile=profiles.build("fifo"))
    world.submit("huge", size=make.amount(5000, 1))
    world.submit("usual", submitted_s=1.0)
    plan = world.plan()
    assert placed(plan) == ["usual/map"]
    assert codes(plan) == {"huge/map": model.Code.NEVER_FITS}


def test_a_resource_that_nobody_named_before_is_one_that_no_node_has():
    world = make.World(make.nodes(1))
    world.submit("new", size=make.amount(1000, 1, fpga=1))
    world.submit("usual", submitted_s=1.0)
    plan = framework.run_cycle(world.room, world.profile, world.view())
    assert placed(plan) == ["usual/map"]
    (diagnosis,) = plan.diagnoses()
    assert (diagnosis.code, diagnosis.scarce) == (model.Code.NEVER_FITS, "example.com/fpga")


def test_a_diagnosis_says_the_same_after_the_plan_was_settled():
    world = make.World(make.nodes(1))
    world.submit(count=6)
    plan = world.plan()
    before = plan.diagnoses()
    world.room.apply(plan, 0.0)
    assert plan.diagnoses() == before


# Gangs


def test_a_gang_starts_whole_or_not_at_all():
    world = make.World(make.nodes(1))
    world.submit("gang", 6, gang_min=5)
    world.submit("other", 9, submitted_s=1.0)
    plan = world.plan()
    assert placed(plan) == ["other/map"] * 4
    assert codes(plan)["gang/map"] is model.Code.GANG
    assert next(one.count for one in plan.diagnoses() if one.job == "gang") == 6


def test_beyond_its_minimum_a_gang_shares_like_others():
    world = make.World(make.nodes(2))
    world.submit("gang", 9, gang_min=3)
    world.submit("other", 9, submitted_s=1.0)
    assert placed(world.plan()) == ["gang/map"] * 3 + ["other/map"] * 3 + ["gang/map", "other/map"]


def test_running_members_count_towards_the_minimum():
    world = make.World(make.nodes(1))
    world.submit("gang", 3, gang_min=3)
    world.cycle()
    world.end("ns/gang/map-0")
    one = make.task_class(make.job("gang"), gang_min=3)
    world.room.submit(make.job("gang"), [one], [make.task(one, 3)], placed=world.ledger)
    assert placed(world.plan()) == ["gang/map"]


def test_a_gang_waits_for_members_that_are_not_there_yet():
    world = make.World(make.nodes(2))
    world.submit("gang", 2, gang_min=3)
    (diagnosis,) = world.plan().diagnoses()
    assert diagnosis.code is model.Code.GANG
    assert diagnosis.message == "gang/map needs 3 tasks together and 2 are there"


@pytest.fixture
def application() -> tuple[model.Job, model.TaskClass, model.TaskClass]:
    """A driver and its executors, a gang of 1 + 2."""
    job = make.job("app")
    driver = make.task_class(job, name="driver", stage=model.Stage.DRIVER, gang_min=1)
    return job, driver, make.task_class(job, name="executor", stage=model.Stage.EXECUTOR, gang_min=2)


def test_a_driver_starts_with_room_for_its_minimum_of_executors_or_not(application):
    job, driver, executor = application
    expected = make.tasks(executor, 2, expected=True)
    for size, starts in ((make.nodes(1, make.amount(2000, 8)), False), (make.nodes(1), True)):
        world = make.World(size)
        world.room.submit(job, [driver, executor], [make.task(driver), *expected])
        plan = world.plan()
        assert (placed(plan) == ["app/driver"]) is starts
        assert len([one for one in plan.decisions if isinstance(one, model.Reservation | model.Wait)]) == (
            2 if starts else 0
        )


def test_room_for_expected_executors_is_kept_in_every_cycle_until_their_pods_come(application):
    job, driver, executor = application
    world = make.World(make.nodes(1))
    world.room.submit(job, [driver, executor], [make.task(driver), *make.tasks(executor, 2, expected=True)])
    world.cycle()
    world.submit("greedy", 9, submitted_s=-1.0)
    assert placed(world.cycle()) == ["greedy/map"]  # 4 CPUs: the driver, two kept, one left
    assert not world.room.tick(1.0)  # nothing to do until something happens
    came = [make.task(executor, i, pod_uid=model.PodUid(f"u{i}")) for i in range(2)]
    world.room.submit(job, [driver, executor], [make.task(driver), *came], placed=world.ledger)
    assert placed(world.cycle()) == ["app/executor"] * 2


# Extension points


def test_a_sizer_decides_less_where_less_is_free():
    class Half(framework.Sizer):
        def least(self, task_class):
            return make.amount(1000, 2)

        def size(self, pending, node, state):
            room = state.free[model.MEMORY, node] >= 4 * make.GIB
            return framework.Sized(make.amount(1000, 4) if room else self.least(pending.task_class))

    world = make.World([make.node(allocatable=make.amount(4000, 6))], profile=framework.Profile(name="t", sizer=Half()))
    world.submit(count=3, size=make.amount(1000, 4))
    plan = world.plan()
    assert [one.resources.memory_bytes // make.GIB for one in make.placements(plan)] == [4, 2]
    assert codes(plan) == {"job/map": model.Code.UNSCHEDULABLE}


def test_a_sizer_may_place_several_at_once_but_never_too_many():
    class Ten(framework.Sizer):
        def size(self, pending, node, state):
            return framework.Sized(pending.task_class.resources, count=10)

    world = make.World(make.nodes(2), profile=framework.Profile(name="t", sizer=Ten()))
    world.submit(count=7)
    assert [n for _, n in make.where(world.plan())] == ["n0"] * 4 + ["n1"] * 3


def test_a_sizer_that_refuses_every_node_gives_its_own_reason():
    class Never(framework.Sizer):
        def size(self, pending, node, state):
            return model.Verdict(code=model.Code.SIZING, message="it would straggle")

    world = make.World(make.nodes(2), profile=framework.Profile(name="t", sizer=Never()))
    world.submit()
    (diagnosis,) = world.plan().diagnoses()
    assert (diagnosis.code, diagnosis.message) == (model.Code.SIZING, "it would straggle")


def test_patience_holds_a_class_until_a_time():
    class Wait(framework.Patience):
        def wait(self, pending, node, state):
            verdict = model.Verdict(code=model.Code.PATIENCE, message="a closer node may come free")
            late = state.view.now_s >= 5.0
            return (
                None
                if late
                else model.Wait(task_class=pending.task_class, job=pending.job, verdict=verdict, until_s=5.0)
            )

    world = make.World(make.nodes(2), profile=framework.Profile(name="t", patience=Wait()))
    world.submit(count=2)
    assert codes(world.cycle()) == {"job/map": model.Code.PATIENCE}
    assert (world.room.next_wake_s(), world.room.tick(4.9), world.room.tick(5.0)) == (5.0, False, True)
    world.now_s = 5.0
    assert len(placed(world.cycle())) == 2


def test_a_kept_node_is_passed_by_nobody_else():
    class KeepFirst(framework.Reserve):
        def mask(self, pending, state, where):
            mask = np.ones(state.free.shape[1], np.bool_)
            for node, owner in state.reserved.items():
                mask[node] = owner == pending.task_class.id
            return mask[where]

        def reserve(self, pending, state):
            verdict = model.Verdict(code=model.Code.UNSCHEDULABLE, message="n0 is kept")
            return [
                model.Reservation(
                    task_class=pending.task_class, job=pending.job, verdict=verdict, node=model.NodeName("n0")
                )
            ]

    world = make.World(make.nodes(1), profile=framework.Profile(name="t", reserve=KeepFirst()))
    world.ledger.observe(make.pod("other"))
    world.submit("large", size=make.amount(4000, 1))
    world.submit("small", submitted_s=1.0)
    plan = world.plan()
    assert placed(plan) == []
    assert codes(plan) == {"large/map": model.Code.UNSCHEDULABLE, "small/map": model.Code.JOB_ORDER}


def test_controllers_are_asked_first():
    class Grow:
        def advise(self, queue, view):
            return [model.Scale(job=model.JobId("cluster"), workers=len(queue), reason="tasks wait")]

    world = make.World(make.nodes(1), profile=framework.Profile(name="t", controllers=(Grow(),)))
    world.submit(count=2)
    assert world.plan().decisions[0] == model.Scale(job=model.JobId("cluster"), workers=2, reason="tasks wait")


def test_a_filter_of_a_profile_has_its_say_in_the_diagnosis():
    class Even(framework.Filter):
        def mask(self, pending, state, where):
            return (np.arange(state.free.shape[1]) % 2 == 0)[where]

        def refusals(self, pending, state, among):
            return [model.Refusal(reason="node(s) were odd", nodes=int(among[1::2].sum()))]

    profile = framework.Profile(name="t", filters=(*framework.PREDICATES, Even()))
    world = make.World(make.nodes(3), profile=profile)
    world.submit(count=9)
    plan = world.plan()
    assert {node for _, node in make.where(plan)} == {"n0", "n2"}
    assert plan.diagnoses()[0].message == "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were odd."


def test_an_unknown_profile_or_placement_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"choose one of: .*capacity.*fair, fifo"):
        profiles.build("best")
    with pytest.raises(ValueError, match="choose one of: least-loaded, packed"):
        profiles.build("fair", placement="best")
