"""The queues: probing and production, fair and size-based, ageing, and what a restart keeps."""

import json
import math

import hypothesis
import pytest
from hypothesis import strategies as st

from boathouse_policies import framework, fspy, model
from boathouse_policies.framework.queue import unschedulable
from boathouse_policies.fspy import Group, order as orders
from tests.builders import core, core_fspy
from tests.builders.core_fspy import features, map_stage, reduce_stage


def group_of(shell: core_fspy.FspyShell, name: str) -> Group:
    state = framework.CycleState(shell.view())
    shell.order.begins(shell.queue, state)
    return shell.order.group(shell.runs[name].job, state)


def placed_at(shell: core_fspy.FspyShell, at_s: float) -> list[str]:
    return sorted(name for when, name in shell.placed if when == at_s)


# Size-based sub-queue


def test_the_job_of_least_virtual_size_is_first():
    shell = core_fspy.slots_shell()
    for name, tasks in (("large", 9), ("small", 2), ("middle", 4)):
        shell.submit_at(name, 0.0, map_stage(tasks))
    assert shell.run() == {"small": 2, "middle": 6, "large": 15}


def test_sizes_are_in_memory_seconds():
    shell = core_fspy.FspyShell(core.nodes(1, core.amount(9000, 4)))
    shell.submit_at("fat", 0.0, map_stage(1, 10, size=core.amount(100, 4)))
    shell.submit_at("long", 0.0, map_stage(1, 30, size=core.amount(9000, 1)))
    assert shell.run() == {"long": 30, "fat": 40}


def test_a_job_that_finished_virtually_is_before_all_of_larger_virtual_size():
    shell = core_fspy.slots_shell(2)
    shell.submit_at("blocks", 0.0, map_stage(2, 30.0, stated=False))
    shell.submit_at("first", 1.0, map_stage(2, 1.0))
    shell.submit_at("second", 2.0, map_stage(1, 0.5))
    shell.submit_at("tiny", 29.5, map_stage(2, 0.4))
    shell.run(until_s=29.5)
    assert [group_of(shell, name) for name in ("first", "second", "tiny")] == [Group.LATE, Group.LATE, Group.SIZED]
    shell.run()
    assert [name for _, name in shell.placed[2:]] == ["second", "first", "first", "tiny", "tiny"]


@pytest.mark.parametrize(("late_first", "first"), [(True, "large"), (False, "tiny")])
def test_a_job_that_finished_virtually_may_be_ranked_by_the_work_that_is_left(late_first, first):
    shell = core_fspy.slots_shell(2, fspy.Config(late_first=late_first))
    shell.submit_at("blocks", 0.0, map_stage(2, 30.0, stated=False))
    shell.submit_at("large", 1.0, map_stage(20, 1.0))
    shell.submit_at("tiny", 29.5, map_stage(2, 0.4))
    shell.run()
    assert shell.placed[2][1] == first


# Fair sub-queue


def test_jobs_of_unknown_size_hold_as_much_as_in_the_fair_world():
    shell = core_fspy.slots_shell(4)
    shell.submit_at("unknown", 0.0, map_stage(40, stated=False))
    shell.submit_at("known", 0.0, map_stage(8))
    shell.run(until_s=0.0)
    assert placed_at(shell, 0.0) == ["known"] * 2 + ["unknown"] * 2


def test_they_share_among_themselves_by_memory_held():
    shell = core_fspy.slots_shell(6)
    for name in ("a", "b", "c"):
        shell.submit_at(name, 0.0, map_stage(40, stated=False))
    shell.run(until_s=0.0)
    assert placed_at(shell, 0.0) == ["a", "a", "b", "b", "c", "c"]


def test_many_jobs_of_unknown_size_have_the_bounds_they_need():
    shell = core_fspy.slots_shell(10)
    for i in range(5):
        shell.submit_at(f"unknown{i}", 0.0, map_stage(1, 50.0, stated=False))
    shell.submit_at("known", 0.0, map_stage(400))
    shell.submit_at("known2", 0.0, map_stage(400))
    shell.run(until_s=0.0)
    (world,) = shell.order.worlds.pending()
    share = sum(job.share[1] for job in world.queue if job.size == math.inf) / core.GIB
    assert share == pytest.approx(5)
    assert len([name for name in placed_at(shell, 0.0) if name.startswith("unknown")]) == 5


def test_the_border_between_sub_queues_moves_within_a_cycle():
    shell = core_fspy.slots_shell(3)
    for i in range(3):
        shell.submit_at(f"unknown{i}", 0.0, map_stage(9, stated=False, size=core.amount(1000, 1)))
    for i in range(3):
        shell.submit_at(f"known{i}", 0.0, map_stage(9))
    shell.run(until_s=0.0)
    assert placed_at(shell, 0.0) == [
        "known0",
        "unknown0",
        "unknown1",
    ]  # 1.5 of 3 slots: the second goes over, a third not


@pytest.mark.parametrize(("assumed_task_s", "first"), [(None, "unknown"), (10.0, "known"), (1.0, "unknown")])
def test_a_job_of_unknown_size_may_be_ranked_as_one_whose_tasks_take_an_assumed_time(assumed_task_s, first):
    shell = core_fspy.slots_shell(1, fspy.Config(assumed_task_s=assumed_task_s, probed_from=2.0))
    shell.submit_at("unknown", 0.0, map_stage(1, stated=False))
    shell.submit_at("known", 0.0, map_stage(1, 5.0))
    shell.run(until_s=0.0)
    assert placed_at(shell, 0.0) == [first]


def test_the_first_task_of_a_large_job_with_an_assumed_size_goes_first_and_its_others_do_not():
    shell = core_fspy.slots_shell(3, fspy.Config(assumed_task_s=10.0, probed_from=1.0))
    shell.submit_at("unknown", 0.0, map_stage(9, stated=False))
    shell.submit_at("known", 0.0, map_stage(9, 1.0))
    shell.run(until_s=0.0)
    assert placed_at(shell, 0.0) == ["known", "known", "unknown"]


def test_a_job_with_an_assumed_size_that_has_had_nothing_for_long_goes_first():
    config = fspy.Config(assumed_task_s=10.0, ageing_s=30.0, probed_from=10.0)
    shell = core_fspy.slots_shell(1, config)
    shell.submit_at("unknown", 0.0, map_stage(9, stated=False))
    for start_s in range(0, 40, 5):
        shell.submit_at(f"known{start_s}", float(start_s), map_stage(1, 5.0))
    shell.run(until_s=30.0)
    assert "unknown" in placed_at(shell, 30.0)


def test_what_one_sub_queue_cannot_use_the_other_takes():
    shell = core_fspy.slots_shell(4)
    shell.submit_at("unknown", 0.0, map_stage(40, stated=False))
    shell.submit_at("known", 0.0, map_stage(1))
    shell.run(until_s=0.0)
    assert placed_at(shell, 0.0) == ["known"] + ["unknown"] * 3


def test_a_job_that_no_event_announced_is_served_last_and_by_memory():
    shell = core.Shell(core.nodes(1), profile=fspy.build())
    shell.submit("a", 9)
    shell.submit("b", 9)
    assert [name for name, _ in core.where(shell.plan())] == ["a/map-0", "b/map-0", "a/map-1", "b/map-1"]


# Probing queue


def train(shell: core_fspy.FspyShell) -> None:
    for job in core_fspy.many_features(1, 40):
        shell.order.predictor.learn(job, core_fspy.total_times(job))


def map_reduce(maps: int = 6) -> tuple[core_fspy.Stage, core_fspy.Stage]:
    return map_stage(maps, 5.0, stated=False), reduce_stage(2, 5.0, stated=False)


def test_a_probe_gives_its_job_a_size_and_moves_it_to_the_size_based_queue():
    shell, probed = core_fspy.slots_shell(4), features()
    train(shell)
    shell.submit_at("job", 0.0, *map_reduce(), probed=probed)
    shell.run(until_s=1.0)
    assert (group_of(shell, "job"), shell.order.needs_probe(model.JobId("job"))) == (Group.SHORT, True)
    shell.run(until_s=2.0)
    job = shell.order.worlds.jobs.get(model.JobId("job"))
    times = shell.order.predictor.predict(probed._replace(maps=6, reduces=2))
    assert job.size == pytest.approx((times.map_s + times.reduce_s) * core.GIB)
    assert (group_of(shell, "job"), shell.order.needs_probe(job.id)) == (Group.SIZED, False)


@pytest.mark.parametrize(("maps", "probes"), [(1, False), (6, True)])
def test_only_a_large_job_is_worth_a_probe_where_the_config_says_so(maps, probes):
    shell = core_fspy.slots_shell(4, fspy.Config(probed_from=0.5))
    train(shell)
    shell.submit_at("job", 0.0, *map_reduce(maps), probed=features())
    shell.run(until_s=1.0)
    assert shell.order.needs_probe(model.JobId("job")) is probes


def test_what_a_job_used_up_while_it_was_probed_counts():
    shell = core_fspy.slots_shell(4)
    train(shell)
    shell.submit_at("job", 0.0, *map_reduce(), probed=features())
    shell.run(until_s=2.0)
    job = shell.order.worlds.jobs.get(model.JobId("job"))
    assert job.size_left(2.0) == pytest.approx(job.size - 4 * core.GIB * 2.0)


def test_the_next_job_of_the_program_needs_no_probe():
    shell = core_fspy.slots_shell(4, fspy.Config(use_estimates=False))
    train(shell)
    shell.submit_at("first", 0.0, *map_reduce(), probed=features(), kind="sort")
    shell.submit_at("second", 3.0, map_stage(6, 5.0), reduce_stage(2, 5.0), kind="sort")
    shell.submit_at("third", 3.0, map_stage(6, 5.0), reduce_stage(2, 5.0), kind="grep")
    shell.run(until_s=3.0)
    sized = {str(job.id): job.size < math.inf for job in shell.order.worlds.jobs.values()}
    assert sized == {"first": True, "second": True, "third": False}


def test_a_prediction_says_the_size_and_what_it_is_from():
    shell = core_fspy.slots_shell(4)
    train(shell)
    shell.submit_at("probed", 0.0, *map_reduce(), probed=features(), kind="sort")
    shell.submit_at("stated", 0.0, map_stage(6, 5.0), reduce_stage(2, 7.0))
    shell.run(until_s=1.0)
    assert shell.order.prediction(model.JobId("probed")) is None
    shell.run(until_s=2.0)
    probed, stated = (shell.order.prediction(model.JobId(name)) for name in ("probed", "stated"))
    assert (probed.source, sum(probed.seconds.values()) * core.GIB) == ("Probe", pytest.approx(probed.byte_seconds))
    assert stated == fspy.Prediction(
        seconds={model.Stage.MAP: 30, model.Stage.REDUCE: 14}, byte_seconds=44 * core.GIB, source=fspy.Source.STATED
    )


def test_a_restart_keeps_that_a_job_was_probed():
    shell, again = core_fspy.slots_shell(4), fspy.SizeBased(fspy.Config())
    train(shell)
    shell.submit_at("job", 0.0, *map_reduce(), probed=features())
    shell.run(until_s=2.0)
    again.load(json.loads(json.dumps(shell.order.dump())))
    record = shell.order._jobs[model.JobId("job")]
    classes = [class_record.task_class for class_record in record.classes.values()]
    again.observe(core.submitted(record.job, *classes, now_s=3.0, tasks={}))
    assert again.prediction(record.job.id) == shell.order.prediction(record.job.id)


def test_without_the_switch_no_job_needs_a_probe():
    shell = core_fspy.slots_shell(4, fspy.Config(probes=False))
    train(shell)
    shell.submit_at("job", 0.0, *map_reduce())
    shell.run(until_s=1.0)
    assert not shell.order.needs_probe(model.JobId("job"))


def test_a_job_that_ended_teaches_the_models():
    shell = core_fspy.slots_shell(4)
    probed = features()
    shell.submit_at("job", 0.0, *map_reduce(), probed=probed)
    shell.run()
    state = shell.order.predictor.dump()
    assert (state["maps"]["seen"], state["reduces"]["seen"]) == (1, 1)
    assert state["maps"]["products"][0] == pytest.approx(6 * 5.0 / 6)  # SE_m, weighted by 1 / N_m
    assert state["reduces"]["products"][0] == pytest.approx(2 * 5.0 / 2)


def test_probing_jobs_go_first_within_their_share_and_last_beyond_it():
    shell = core_fspy.slots_shell(10, fspy.Config(probing_share=0.2))
    shell.submit_at("work", 0.0, map_stage(100, 50.0))
    for i in range(4):
        shell.submit_at(f"p{i}", 0.0, map_stage(5, 50.0, stated=False), probed=features())
    shell.run(until_s=0.0)
    probes = [name for name in placed_at(shell, 0.0) if name.endswith("probe")]
    assert probes == ["p0-probe", "p1-probe"]
    assert group_of(shell, "p2-probe") is Group.OVER


def test_an_idle_cluster_gives_probing_jobs_more_than_their_share():
    shell = core_fspy.slots_shell(10)
    for i in range(4):
        shell.submit_at(f"p{i}", 0.0, map_stage(1, 50.0, stated=False), probed=features())
    shell.run(until_s=0.0)
    assert len([name for name in placed_at(shell, 0.0) if name.endswith("probe")]) == 4


def test_an_uber_job_has_the_mean_of_those_before_it():
    shell = core_fspy.slots_shell(4)
    uber = core_fspy.Stage(tasks=1, task_s=8.0, kind=model.Stage.UBER)
    shell.submit_at("first", 0.0, uber)
    shell.submit_at("second", 10.0, uber)
    shell.run(until_s=10.0)
    second = shell.order.worlds.jobs.get(model.JobId("second"))
    assert second.size == 8.0 * core.GIB


def application_stages(executors, task_s):
    driver = core_fspy.Stage(tasks=1, task_s=1.0, kind=model.Stage.DRIVER)
    return driver, core_fspy.Stage(tasks=executors, task_s=task_s, kind=model.Stage.EXECUTOR, size=core.amount(1000, 2))


def test_an_application_has_the_memory_seconds_of_its_program():
    shell = core_fspy.slots_shell(9)
    shell.submit_at("first", 0.0, *application_stages(2, 30.0), kind="team/pagerank")
    shell.submit_at("second", 50.0, *application_stages(4, 15.0), kind="team/pagerank")
    shell.submit_at("other", 50.0, *application_stages(4, 15.0), kind="team/other")
    shell.run(until_s=51.0)
    second, other = (shell.order.worlds.jobs[model.JobId(name)] for name in ("second", "other"))
    assert (second.size, other.size) == (2 * 2 * 30 * core.GIB, math.inf)
    assert shell.order.prediction(second.id).source is fspy.Source.HISTORY


def test_a_driver_is_a_master_and_counts_for_no_size():
    shell = core_fspy.slots_shell(9)
    driver = core_fspy.Stage(tasks=1, task_s=5.0, kind=model.Stage.DRIVER)
    shell.submit_at("job", 0.0, driver, map_stage(4, 5.0))
    shell.run(until_s=0.0)
    job = shell.order.worlds.jobs.get(model.JobId("job"))
    assert (job.size, job.share[1], job.rate) == (20 * core.GIB, 5 * core.GIB, 4 * core.GIB)


def test_setup_and_commit_count_for_no_size():
    shell = core_fspy.slots_shell(9)
    aside = [core_fspy.Stage(tasks=1, task_s=5.0, kind=kind) for kind in (model.Stage.SETUP, model.Stage.COMMIT)]
    shell.submit_at("job", 0.0, aside[0], map_stage(4, 5.0), aside[1])
    shell.run(until_s=0.0)
    assert shell.order.worlds.jobs.get(model.JobId("job")).size == 20 * core.GIB


# Real ends


def test_a_job_of_unknown_size_leaves_the_fair_world_when_it_ends():
    shell = core_fspy.slots_shell(4)
    shell.submit_at("unknown", 0.0, map_stage(2, stated=False))
    shell.submit_at("known", 0.0, map_stage(20))
    shell.run(until_s=1.0)
    assert [str(job.id) for world in shell.order.worlds.pending() for job in world.queue] == ["known"]


def test_a_job_of_known_size_stays_in_the_fair_world_until_it_ends_there():
    shell = core_fspy.slots_shell()
    shell.submit_at("small", 0.0, map_stage(2))
    shell.submit_at("large", 0.0, map_stage(9))
    shell.run(until_s=3.0)
    assert shell.ends_s == {"small": 2}
    assert [str(job.id) for world in shell.order.worlds.pending() for job in world.queue] == ["large", "small"]
    shell.run(until_s=5.0)
    assert [str(job.id) for world in shell.order.worlds.pending() for job in world.queue] == ["large"]


# Backfill and ageing


def test_small_jobs_pass_one_that_does_not_fit():
    shell = core_fspy.slots_shell(4)
    shell.submit_at("holds", 0.0, map_stage(1, 10.0))
    shell.submit_at("wide", 1.0, map_stage(1, 1.0, size=core.amount(4000, 4)))
    shell.submit_at("passes", 2.0, map_stage(6, 2.0))
    assert shell.run() == {"holds": 10, "wide": 11, "passes": 6}


def test_a_job_that_can_never_fit_leaves_the_line_with_its_own_reason():
    shell = core_fspy.slots_shell()
    shell.submit_at("giant", 0.0, map_stage(1, 1.0, size=core.amount(4000, 4)))
    shell.submit_at("small", 0.0, map_stage(1))
    shell.run(until_s=100.0)
    assert shell.ends_s == {"small": 1}
    assert [verdict.code for verdict in shell.queue.unschedulable().values()] == [model.Code.NEVER_FITS]


def stream(shell: core_fspy.FspyShell, until_s: int) -> None:
    """Two tasks of 3 s every 2 s on four slots: never four of them free at once, never all full."""
    for i in range(until_s // 2):
        shell.submit_at(f"s{i:04}", 2.0 * i, map_stage(2, 3.0))


def test_a_wide_job_does_not_starve_behind_a_stream_of_narrow_ones():
    shell = core_fspy.slots_shell(4, fspy.Config(ageing_s=60.0))
    stream(shell, 400)
    shell.submit_at("wide", 1.0, map_stage(1, 1.0, size=core.amount(4000, 4)))
    assert shell.run()["wide"] < 60 + unschedulable.FLUSH_S + 10  # aged, looked at again, the node drained
    assert len(shell.ends_s) == 201


def test_without_ageing_it_would():
    shell = core_fspy.slots_shell(4, fspy.Config(ageing_s=1e9))
    stream(shell, 400)
    shell.submit_at("wide", 1.0, map_stage(1, 1.0, size=core.amount(4000, 4)))
    assert shell.run()["wide"] > 400


def test_a_job_of_known_size_is_not_aged_before_it_finishes_virtually():
    shell = core_fspy.slots_shell(1, fspy.Config(ageing_s=5.0))
    shell.submit_at("large", 0.0, map_stage(50))
    for i in range(30):
        shell.submit_at(f"s{i:02}", float(i), map_stage(1))
    shell.run(until_s=29.0)
    assert "large" not in [name for _, name in shell.placed]


def test_a_job_that_runs_is_not_aged():
    shell = core_fspy.slots_shell(2, fspy.Config(ageing_s=5.0))
    shell.submit_at("long", 0.0, map_stage(9, 100.0, stated=False))
    shell.run(until_s=0.0)
    shell.now_s = 50.0
    assert group_of(shell, "long") is not Group.AGED


def test_the_node_that_lacks_least_is_kept_for_an_aged_job():
    shell = core_fspy.FspyShell(core.nodes(3, core.amount(4000, 4)), fspy.Config(ageing_s=5.0))
    for on, cores in (("n0", 3), ("n1", 1), ("n2", 2)):
        shell.ledger.observe(core.account(f"other-{on}", on=on, size=core.amount(1000 * cores, cores)))
    shell.submit_at("wide", 0.0, map_stage(1, 1.0, size=core.amount(4000, 4), stated=False))
    shell.run(until_s=70.0)
    assert shell.queue.reserved == {"n1": "wide/0-map"}


def test_an_aged_job_is_before_new_jobs_of_unknown_size():
    """All of the fair world belongs to a stream of jobs of unknown size: one that it has finished waits on and on."""
    shell = core_fspy.slots_shell(1, fspy.Config(ageing_s=20.0))
    shell.submit_at("overdue", 0.5, map_stage(3, 0.5))
    for i in range(200):
        shell.submit_at(f"s{i:03}", float(i), map_stage(1, stated=False))
    ends = shell.run()
    assert ends["overdue"] < 90
    assert len(ends) == 201


mixes = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(1, 9), st.sampled_from([0.5, 3.0, 20.0]), st.integers(1, 4), st.booleans()
    ),
    min_size=1,
    max_size=12,
)


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(mixes)
def test_every_job_ends(mix):
    shell = core_fspy.slots_shell(4, fspy.Config(ageing_s=30.0))
    for i, (at_s, tasks, task_s, gib, stated) in enumerate(mix):
        size = core.amount(1000, gib)
        shell.submit_at(f"j{i:02}", float(at_s), map_stage(tasks, task_s, size=size, stated=stated))
    assert len(shell.run()) == len(mix)
    shell.order.worlds.resize((1.0, 1.0), {}, 1e9)
    assert not list(shell.order.worlds.pending())  # nor does anything stay behind in the fair world


def test_equal_courses_give_equal_decisions():
    outcomes = []
    for _ in range(2):
        shell = core_fspy.slots_shell(4)
        train(shell)
        for i, probed in enumerate(core_fspy.many_features(4, 12)):
            shell.submit_at(f"j{i:02}", float(i // 2), *map_reduce(), probed=probed)
        shell.run()
        outcomes.append((shell.placed, json.dumps(shell.order.dump())))
    assert outcomes[0] == outcomes[1]


def test_planning_twice_gives_the_same_plan():
    shell = core_fspy.slots_shell(4)
    shell.submit_at("unknown", 0.0, map_stage(40, stated=False))
    shell.submit_at("known", 0.0, map_stage(8))
    shell.run(until_s=0.0)
    shell.end("ns/known/0-map-0")
    assert core.where(shell.plan()) == core.where(shell.plan()) != []


# Keys


def test_groups_come_before_values_and_values_keep_their_digits():
    keys = [orders._key(group, value) for group in Group for value in (0.0, 1e-9, 1e9, 1e9 + 1e-6, 1e22)]
    assert keys == sorted(set(keys))


# Restart


def test_a_restart_keeps_sizes_features_and_what_was_used_up():
    shell = core_fspy.slots_shell(4)
    train(shell)
    shell.submit_at("job", 0.0, *map_reduce(), probed=features())
    shell.submit_at("other", 0.0, map_stage(90))
    shell.run(until_s=4.0)
    state = json.loads(json.dumps(shell.order.dump()))

    after = core_fspy.slots_shell(4)
    after.order.load(state)
    for name in ("job", "other"):
        run = shell.runs[name]
        job = run.job
        after.report(core.submitted(job, *run.classes, now_s=4.0))  # the rest was placed before the restart
        before, now = shell.order.worlds.jobs.get(job.id), after.order.worlds.jobs.get(job.id)
        assert (now.size, now.used) == (pytest.approx(before.size), before.used)


def test_a_dump_is_bounded():
    shell = core_fspy.slots_shell(4, fspy.Config(jobs_dumped=3))
    for i in range(9):
        shell.submit_at(f"j{i}", 0.0, map_stage(20 + i))
    shell.run(until_s=0.0)
    assert len(shell.order.dump()["jobs"]) == 3


@pytest.mark.parametrize("bad", [{"probing_share": 0}, {"ageing_s": 0}, {"forgetting": 1.5}, {"sampled_splits": 0}])
def test_constants_without_meaning_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        fspy.Config(**bad)


def test_a_task_that_failed_counts_once_when_it_is_pending_again():
    shell, job = core_fspy.slots_shell(), core.job()
    of = core.task_class(job, core.amount(1000, 1))
    shell.report(core.submitted(job, of, count=2))
    for kind in (model.Placed, model.Failed):
        shell.report_task(kind, core.task(of, 0))
    shell.report(core.submitted(job, of, count=2))
    assert shell.order._jobs[job.id].classes[of.id].total == 2
