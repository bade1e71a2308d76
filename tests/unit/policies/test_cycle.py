"""What a cycle decides: order, placement, gangs, locality, holding back."""
# ruff: noqa: ARG002  extension points are asked with more than a small one reads

import dataclasses

import numpy as np
import pytest

from boathouse_policies import framework, model, profiles
from tests.builders import core


def codes(plan: framework.Plan) -> dict[str, model.Code]:
    return {diagnosis.task_class: diagnosis.code for diagnosis in plan.diagnoses()}


# Order


def test_fifo_serves_the_job_submitted_first():
    shell = core.Shell(core.nodes(1), profile="fifo")
    shell.submit("late", 4, submitted_s=2.0)
    shell.submit("early", 3, submitted_s=1.0)
    assert core.classes_of(shell.plan()) == ["early/map"] * 3 + ["late/map"]


def test_fair_shares_in_turn():
    shell = core.Shell(core.nodes(1))
    shell.submit("a", 9)
    shell.submit("b", 9)
    assert core.classes_of(shell.plan()) == ["a/map", "b/map"] * 2


def test_fair_counts_what_already_runs():
    shell = core.Shell(core.nodes(1))
    shell.submit("a", 2)
    shell.cycle()
    shell.submit("b", 9, submitted_s=1.0)
    shell.submit("a", 9)
    assert core.classes_of(shell.plan()) == ["b/map"] * 2


def test_fair_compares_dominant_shares():
    shell = core.Shell(core.nodes(1, core.amount(18_000, 36)))
    shell.submit("memory", 9, size=core.amount(2000, 8))
    shell.submit("cpu", 9, size=core.amount(6000, 2))
    assert (
        sorted(core.classes_of(shell.plan())) == ["cpu/map"] * 2 + ["memory/map"] * 3
    )  # the worked example of DRF, 4.1


def test_a_jobs_weight_is_its_part_of_the_share():
    shell = core.Shell(core.nodes(1, core.amount(8000, 8)))
    shell.submit("heavy", 9, weight=3.0)
    shell.submit("light", 9)
    assert sorted(core.classes_of(shell.plan())) == ["heavy/map"] * 6 + ["light/map"] * 2


def test_the_higher_priority_is_first_within_a_queue():
    shell = core.Shell(core.nodes(1))
    shell.submit("usual", 9)
    shell.submit("urgent", 3, priority=10, submitted_s=5.0)
    assert core.classes_of(shell.plan()) == ["urgent/map"] * 3 + ["usual/map"]


def test_queues_share_by_weight_however_many_jobs_they_have():
    shell = core.Shell(core.nodes(1, core.amount(8000, 8)), [core.queue("one"), core.queue("many", weight=3.0)], "fifo")
    shell.submit("solo", 9, queue="one")
    for i in range(5):
        shell.submit(f"job{i}", 9, queue="many")
    assert sorted(core.classes_of(shell.plan())) == ["job0/map"] * 6 + ["solo/map"] * 2


def test_a_queue_without_demand_leaves_its_share_to_others():
    shell = core.Shell(core.nodes(1), [core.queue("busy"), core.queue("idle", weight=9.0)])
    shell.submit(count=9, queue="busy")
    assert len(core.classes_of(shell.plan())) == 4


def test_what_does_not_fit_lets_others_pass():
    shell = core.Shell(core.nodes(1), profile="fifo")
    shell.ledger.observe(core.account("other", size=core.amount(1000, 1)))
    shell.submit("large", 1, size=core.amount(4000, 1))
    shell.submit("small", 9, submitted_s=1.0)
    plan = shell.plan()
    assert core.classes_of(plan) == ["small/map"] * 3
    assert codes(plan) == {"large/map": model.Code.UNSCHEDULABLE, "small/map": model.Code.UNSCHEDULABLE}


def test_the_classes_of_a_job_are_served_in_their_order():
    shell = core.Shell(core.nodes(1))
    job = core.job()
    first, second = core.task_class(job, name="reduce"), core.task_class(job, name="map")
    shell.submit_job(job, [first, second], [*core.tasks(second, 2), *core.tasks(first, 3)])
    assert core.classes_of(shell.plan()) == ["job/reduce"] * 3 + ["job/map"]


# Placement


def test_least_loaded_spreads_and_packed_fills():
    for placement, nodes in (("least-loaded", ["n0", "n1", "n2", "n0"]), ("packed", ["n0"] * 4)):
        shell = core.Shell(core.nodes(3), profile=profiles.build("fifo", placement=placement))
        shell.submit(count=4)
        assert core.nodes_of(shell.plan()) == nodes


def test_a_profile_ranks_nodes_by_the_kind_of_stage():
    class Last(framework.Score):
        def score(self, pending, state, where):
            return np.arange(state.free.shape[1], dtype=np.float64)[where]

    profile = dataclasses.replace(profiles.build("fifo"), scores={model.Stage.REDUCE: Last()})
    shell = core.Shell(core.nodes(3), profile=profile)
    shell.submit("m", stage=model.Stage.MAP)
    shell.submit("r", stage=model.Stage.REDUCE)
    assert core.where(shell.plan()) == [("m/map-0", "n0"), ("r/map-0", "n2")]


def test_a_task_with_a_pod_is_bound_and_one_without_is_created():
    shell = core.Shell(core.nodes(1))
    of = core.task_class(core.job())
    shell.submit_job(core.job(), [of], [core.task(of, 0, pod_uid=model.PodUid("u")), core.task(of, 1)])
    bind, create = shell.plan().decisions
    assert isinstance(bind, model.Bind)
    assert bind.task.pod_uid == "u"
    assert isinstance(create, model.Create)


def test_the_task_whose_input_is_closest_to_the_node_is_picked():
    names = [
        core.node("a", server="s0", rack="r0"),
        core.node("b", server="s0", rack="r0"),
        core.node("c", rack="r0"),
        core.node("d"),
    ]
    shell = core.Shell(names, profile=profiles.build("fifo", placement="packed"))
    task_class = core.task_class(core.job(), core.amount(4000, 1))
    located = [core.task(task_class, i, [n]) for i, n in enumerate("dcba")]
    for count, (index, distance) in enumerate([(3, "NODE"), (2, "SERVER"), (1, "RACK"), (0, "ANYWHERE")]):
        shell.submit_job(core.job(), [task_class], located[: 4 - count])
        (first, *_) = core.placements(shell.plan(offered=[model.NodeName("a")]))
        assert (first.task.index, first.distance.name) == (index, distance)


def test_a_cycle_may_be_offered_one_node_and_one_task_of_it():
    shell = core.Shell(core.nodes(3))
    shell.submit(count=5)
    plan = shell.plan(offered=[model.NodeName("n1")], max_per_node=1)
    assert core.where(plan) == [("job/map-0", "n1")]
    assert codes(plan) == {"job/map": model.Code.NOT_OFFERED}


# Held back


def test_a_queues_limit_holds_its_jobs_and_nobody_else():
    shell = core.Shell(core.nodes(2), [core.queue("small", cpu=2000), core.queue("open")])
    shell.submit("limited", 5, queue="small")
    shell.submit("free", 5, queue="open")
    plan = shell.plan()
    assert sorted(core.classes_of(plan)) == ["free/map"] * 5 + ["limited/map"] * 2
    (diagnosis,) = plan.diagnoses()
    assert (diagnosis.code, diagnosis.scarce, diagnosis.count) == (model.Code.QUEUE_LIMIT, None, 3)
    assert diagnosis.message == "queue 'small' holds 2000 of its limit of 2000 cpu; one task asks for 1000"


def test_a_limit_lets_smaller_tasks_of_the_queue_pass():
    shell = core.Shell(core.nodes(2), [core.queue("q", cpu=2500)])
    shell.submit("large", 2, size=core.amount(2000, 1), queue="q")
    shell.submit("small", 2, size=core.amount(500, 1), queue="q", submitted_s=1.0)
    assert sorted(core.classes_of(shell.plan())) == ["large/map", "small/map"]


def test_tasks_that_go_to_a_node_together_stay_within_the_limit():
    class Together(framework.Sizer):
        def size(self, pending, node, state):
            return framework.Sized(pending.task_class.resources, count=10)

    profile = framework.Profile(name="t", sizer=Together())
    shell = core.Shell([core.node("n0", core.amount(16000, 64))], [core.queue("q", cpu=3000)], profile=profile)
    shell.submit("job", 8, queue="q")
    assert core.classes_of(shell.plan()) == ["job/map"] * 3


def test_an_unknown_queue_is_said_to_be_one():
    shell = core.Shell(core.nodes(1), [core.queue("a"), core.queue("b")])
    shell.submit(queue="c")
    (diagnosis,) = shell.plan().diagnoses()
    assert (diagnosis.code, diagnosis.message) == (
        model.Code.UNKNOWN_QUEUE,
        "queue 'c' is not defined (defined: a, b)",
    )


def test_what_no_node_could_ever_hold_blocks_nobody_and_has_its_own_reason():
    shell = core.Shell(core.nodes(1), profile="fifo")
    shell.submit("huge", size=core.amount(5000, 1))
    shell.submit("usual", submitted_s=1.0)
    plan = shell.plan()
    assert core.classes_of(plan) == ["usual/map"]
    assert codes(plan) == {"huge/map": model.Code.NEVER_FITS}


def test_a_resource_that_nobody_named_before_is_one_that_no_node_has():
    shell = core.Shell(core.nodes(1))
    shell.submit("new", size=core.amount(1000, 1, fpga=1))
    shell.submit("usual", submitted_s=1.0)
    plan = shell.plan()
    assert core.classes_of(plan) == ["usual/map"]
    (diagnosis,) = plan.diagnoses()
    assert (diagnosis.code, diagnosis.scarce) == (model.Code.NEVER_FITS, "example.com/fpga")


def test_a_diagnosis_says_the_same_after_the_plan_was_settled():
    shell = core.Shell(core.nodes(1))
    shell.submit(count=6)
    plan = shell.plan()
    before = plan.diagnoses()
    shell.queue.apply(plan, 0.0)
    assert plan.diagnoses() == before


# Gangs


def test_a_gang_starts_whole_or_not_at_all():
    shell = core.Shell(core.nodes(1))
    shell.submit("gang", 6, gang_min=5)
    shell.submit("other", 9, submitted_s=1.0)
    plan = shell.plan()
    assert core.classes_of(plan) == ["other/map"] * 4
    assert codes(plan)["gang/map"] is model.Code.GANG
    assert next(diagnosis.count for diagnosis in plan.diagnoses() if diagnosis.job == "gang") == 6


def test_a_node_that_a_gang_gives_back_is_offered_to_others_though_each_gets_one_task_of_a_cycle():
    shell = core.Shell(core.nodes(1))
    shell.submit("gang", 2, gang_min=2)
    shell.submit("other", 3, submitted_s=1.0)
    assert core.classes_of(shell.plan(max_per_node=1)) == ["other/map"]


def test_beyond_its_minimum_a_gang_shares_like_others():
    shell = core.Shell(core.nodes(2))
    shell.submit("gang", 9, gang_min=3)
    shell.submit("other", 9, submitted_s=1.0)
    assert core.classes_of(shell.plan()) == ["gang/map"] * 3 + ["other/map"] * 3 + ["gang/map", "other/map"]


def test_running_members_count_towards_the_minimum():
    shell = core.Shell(core.nodes(1))
    shell.submit("gang", 3, gang_min=3)
    shell.cycle()
    shell.end("ns/gang/map-0")
    task_class = core.task_class(core.job("gang"), gang_min=3)
    shell.submit_job(core.job("gang"), [task_class], [core.task(task_class, 3)])
    assert core.classes_of(shell.plan()) == ["gang/map"]


def test_a_gang_waits_for_members_that_are_not_there_yet():
    shell = core.Shell(core.nodes(2))
    shell.submit("gang", 2, gang_min=3)
    (diagnosis,) = shell.plan().diagnoses()
    assert diagnosis.code is model.Code.GANG
    assert diagnosis.message == "gang/map needs 3 tasks together and 2 are there"


@pytest.fixture
def driver_and_executors() -> tuple[model.Job, model.TaskClass, model.TaskClass]:
    """A driver and its executors, a gang of 1 + 2."""
    job = core.job("app")
    driver = core.task_class(job, name="driver", stage=model.Stage.DRIVER, gang_min=1)
    return job, driver, core.task_class(job, name="executor", stage=model.Stage.EXECUTOR, gang_min=2)


def test_a_driver_starts_with_room_for_its_minimum_of_executors_or_not(driver_and_executors):
    job, driver, executor = driver_and_executors
    expected = core.tasks(executor, 2, expected=True)
    for cpu, starts in ((2000, False), (4000, True)):
        shell = core.Shell(core.nodes(1, core.amount(cpu, 8)))
        shell.submit_job(job, [driver, executor], [core.task(driver), *expected])
        plan = shell.plan()
        assert (core.classes_of(plan) == ["app/driver"]) is starts
        held = [decision for decision in plan.decisions if isinstance(decision, model.Reservation)]
        assert len(held) == (2 if starts else 0)


def test_room_for_expected_executors_is_kept_in_every_cycle_until_their_pods_come(driver_and_executors):
    job, driver, executor = driver_and_executors
    shell = core.Shell(core.nodes(1))
    shell.submit_job(job, [driver, executor], [core.task(driver), *core.tasks(executor, 2, expected=True)])
    shell.cycle()
    shell.submit("greedy", 9, submitted_s=-1.0)
    assert core.classes_of(shell.cycle()) == ["greedy/map"]  # 4 CPUs: the driver, two kept, one left
    assert not shell.queue.tick(1.0)  # nothing to do until something happens
    came = [core.task(executor, i, pod_uid=model.PodUid(f"u{i}")) for i in range(2)]
    shell.submit_job(job, [driver, executor], [core.task(driver), *came])
    assert core.classes_of(shell.cycle()) == ["app/executor"] * 2


# Extension points


def test_a_sizer_decides_less_where_less_is_free():
    class Half(framework.Sizer):
        def least(self, task_class):
            return core.amount(1000, 2)

        def size(self, pending, node, state):
            room = state.free[model.MEMORY, node] >= 4 * core.GIB
            return framework.Sized(core.amount(1000, 4) if room else self.least(pending.task_class))

    shell = core.Shell(core.nodes(1, core.amount(4000, 6)), profile=framework.Profile(name="t", sizer=Half()))
    shell.submit(count=3, size=core.amount(1000, 4))
    plan = shell.plan()
    assert [placed.resources.memory_bytes // core.GIB for placed in core.placements(plan)] == [4, 2]
    assert codes(plan) == {"job/map": model.Code.UNSCHEDULABLE}


def test_a_sizer_may_place_several_at_once_but_never_too_many():
    class Ten(framework.Sizer):
        def size(self, pending, node, state):
            return framework.Sized(pending.task_class.resources, count=10)

    shell = core.Shell(core.nodes(2), profile=framework.Profile(name="t", sizer=Ten()))
    shell.submit(count=7)
    assert core.nodes_of(shell.plan()) == ["n0"] * 4 + ["n1"] * 3


def test_a_sizer_that_refuses_every_node_gives_its_own_reason():
    class Never(framework.Sizer):
        def size(self, pending, node, state):
            return model.Verdict(code=model.Code.SIZING, message="it would straggle")

    shell = core.Shell(core.nodes(2), profile=framework.Profile(name="t", sizer=Never()))
    shell.submit()
    (diagnosis,) = shell.plan().diagnoses()
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

    shell = core.Shell(core.nodes(2), profile=framework.Profile(name="t", patience=Wait()))
    shell.submit(count=2)
    assert codes(shell.cycle()) == {"job/map": model.Code.PATIENCE}
    assert (shell.queue.next_wake_s(), shell.queue.tick(4.9), shell.queue.tick(5.0)) == (5.0, False, True)
    shell.now_s = 5.0
    assert len(core.classes_of(shell.cycle())) == 2


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

    shell = core.Shell(core.nodes(1), profile=framework.Profile(name="t", reserve=KeepFirst()))
    shell.ledger.observe(core.account("other"))
    shell.submit("large", size=core.amount(4000, 1))
    shell.submit("small", submitted_s=1.0)
    plan = shell.plan()
    assert core.classes_of(plan) == []
    assert codes(plan) == {"large/map": model.Code.UNSCHEDULABLE, "small/map": model.Code.JOB_ORDER}


def test_controllers_are_asked_first():
    class Grow:
        def advise(self, queue, view):
            return [model.Scale(job=model.JobId("cluster"), workers=len(queue), reason="tasks wait")]

    shell = core.Shell(core.nodes(1), profile=framework.Profile(name="t", controllers=(Grow(),)))
    shell.submit(count=2)
    assert shell.plan().decisions[0] == model.Scale(job=model.JobId("cluster"), workers=2, reason="tasks wait")


def test_a_filter_of_a_profile_has_its_say_in_the_diagnosis():
    class Even(framework.Filter):
        def mask(self, pending, state, where):
            return (np.arange(state.free.shape[1]) % 2 == 0)[where]

        def refusals(self, pending, state, among):
            return [model.Refusal(reason="node(s) were odd", nodes=int(among[1::2].sum()))]

    profile = framework.Profile(name="t", filters=(*framework.PREDICATES, Even()))
    shell = core.Shell(core.nodes(3), profile=profile)
    shell.submit(count=9)
    plan = shell.plan()
    assert {node for _, node in core.where(plan)} == {"n0", "n2"}
    assert plan.diagnoses()[0].message == "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) were odd."


@pytest.mark.parametrize("offered", [None, ["n0"]])
def test_a_filter_is_asked_only_about_the_classes_that_it_concerns(offered):
    class Absent(framework.Filter):
        def concerns(self, pending):
            return False

        def mask(self, pending, state, where):
            raise KeyError(pending.task_class.id)

    shell = core.Shell(core.nodes(2), profile=framework.Profile(name="t", filters=(*framework.PREDICATES, Absent())))
    shell.submit(count=9)
    assert shell.plan(offered=offered).diagnoses()[0].count


def test_an_unknown_profile_or_placement_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"choose one of: .*capacity.*fair, fifo"):
        profiles.build("best")
    with pytest.raises(ValueError, match="choose one of: least-loaded, packed"):
        profiles.build("fair", placement="best")
