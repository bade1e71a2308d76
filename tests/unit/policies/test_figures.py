"""Figures that explain placements and pending classes."""

import json
import math

import pytest

from boathouse_policies import framework, fspy, profiles, yarn_me
from boathouse_policies.ikayak.placement import Executors
from tests.builders import core
from tests.builders.core_elastic import ElasticShell

AGED_S = fspy.Config().ageing_s + 1.0


def figures(decision) -> dict[str, float]:
    return dict(decision.figures)


def figures_of_placement(plan) -> dict[str, float]:
    (placement,) = core.placements(plan)
    return figures(placement)


def test_a_placement_has_the_rank_of_its_job_and_the_predicted_slowdown():
    shell = ElasticShell(slowdown=1.5)
    shell.submit()
    found = figures_of_placement(shell.cycle())
    assert found == {"group": fspy.Group.SIZED, "virtualMemorySeconds": 100 * 2 * core.GIB, "slowdown": 1.5}


def test_beside_others_a_placement_has_the_threshold_that_it_met():
    shell = ElasticShell(slowdown=1.5)
    shell.submit("first")
    shell.cycle()
    shell.submit("second")
    found = figures_of_placement(shell.cycle())
    assert found["slowdown"] == 1.5
    assert found["threshold"] >= 2.0


def of_policy(shell) -> dict[str, list[float]]:
    found = {}
    for policy in shell.profile.figures:
        found |= policy.of_policy()
    return found


def test_a_policy_says_what_it_accepts_where_tasks_run_and_how_wrong_its_model_is():
    shell = ElasticShell(*core.nodes(3), slowdown=1.5)
    shell.submit()
    shell.cycle()
    found = of_policy(shell)
    assert found["interferenceError"] == [0.12]
    assert found["interferenceThreshold"] == [2.12]  # who comes to the idle nodes meets nobody


def test_a_policy_that_has_not_decided_says_no_thresholds():
    assert of_policy(ElasticShell()) == {"interferenceError": [0.12], "interferenceThreshold": []}


def test_a_job_of_unknown_size_has_the_size_that_is_assumed():
    shell = ElasticShell(slowdown=1.0)
    shell.submit(seconds=None)
    found = figures_of_placement(shell.cycle())
    assert "virtualMemorySeconds" not in found
    assert (found["group"], found["assumedMemorySeconds"]) == (fspy.Group.SIZED, 10 * 2 * core.GIB)


@pytest.mark.parametrize("profile", ["boathouse", "yarn-me"])
def test_less_memory_says_what_it_costs(profile):
    shell = ElasticShell(profile=profile, slowdown=1.0)
    shell.leave("n0", cpu=4000, gib=1)
    shell.submit(count=4)
    found = figures(core.placements(shell.cycle())[0])
    assert (found["idealBytes"], found["idealSeconds"], found["seconds"]) == (2 * core.GIB, 100, 120)
    assert "diskShare" not in found  # nothing is known of the disk


def test_less_memory_says_which_part_of_the_disk_budget_it_takes():
    shell = ElasticShell(profile="yarn-me")
    shell.observer(yarn_me.Disks).load({"namespaces": {"": 1e9}})
    shell.leave("n0", cpu=4000, gib=1)
    shell.submit(count=4)
    assert figures(core.placements(shell.cycle())[0])["diskShare"] == 0.0  # a map that is not known to spill


@pytest.mark.parametrize("profile", ["boathouse", "ikayak"])
def test_less_cpu_says_which_share(profile):
    shell = ElasticShell(profile=profile, slowdown=1.0)
    shell.leave("n0", cpu=980, gib=8)
    shell.submit(locations=["n0"])
    assert figures_of_placement(shell.cycle())["cpuShare"] == 0.98


def pending_figures(shell, task_class) -> dict[str, float]:
    return dict(shell.cycle().diagnosis(task_class.id).figures)


def test_a_pending_class_says_how_many_jobs_go_before_it():
    shell = ElasticShell(slowdown=1.0)
    shell.leave("n0", cpu=100, gib=8)
    jobs = [shell.submit(f"job{i}", count=i + 1) for i in range(3)]
    plan = shell.cycle()
    ahead = [dict(plan.diagnosis(job.id).figures)["jobsAhead"] for job in jobs]
    assert ahead == [0, 1, 2]


def test_a_class_that_neighbours_keep_out_says_the_least_slowdown_and_what_is_allowed():
    shell = ElasticShell(slowdown=9.0)
    shell.submit("first")
    shell.cycle()
    second = shell.submit("second")
    shell.measured(second)
    found = pending_figures(shell, second)
    assert found["slowdown"] == 9.0 > found["threshold"] >= 2.0
    assert (found["gainSeconds"], found["costSeconds"]) == (100.0, 0.0)


@pytest.mark.parametrize("profile", ["boathouse", "ikayak"])
def test_an_executor_says_how_long_nodes_are_reserved_and_how_long_it_will_wait(profile):
    shell = ElasticShell(profile=profile, slowdown=1.0)
    shell.submit("maps", 3)
    shell.cycle()
    spark = shell.submit_spark()
    shell.cycle()
    shell.advance(40.0)
    found = pending_figures(shell, spark)
    assert found["reservedForSeconds"] == 40.0
    assert 0.0 < found["predictedWaitSeconds"] < math.inf
    (reserved,) = shell.profile.reserve.reservations()
    assert (reserved.node, reserved.task_class, reserved.since_s) == ("n0", spark.id, 0.0)


@pytest.mark.parametrize("profile", ["boathouse", "ikayak"])
def test_an_executor_on_a_reserved_node_says_how_long_that_was_reserved(profile):
    shell = ElasticShell(profile=profile, slowdown=1.0)
    shell.submit("maps", 3)
    maps = core.placements(shell.cycle())
    shell.submit_spark()
    shell.cycle()
    shell.now_s = 40.0
    for placement in maps:
        shell.end(placement.task.id)
    found = figures_of_placement(shell.cycle())
    assert found["reservedForSeconds"] == 40.0
    assert 0.0 < found["predictedWaitSeconds"] < math.inf


@pytest.mark.parametrize("profile", ["boathouse", "fspy", "yarn-me"])
def test_a_task_says_how_long_a_node_is_reserved_for_it_while_it_is_pending_and_when_it_is_placed(profile):
    shell = ElasticShell(profile=profile)
    shell.leave("n0", cpu=1000, gib=8)
    large = shell.submit("large", size=core.amount(4000, 8), seconds=None)
    for now_s in (0.0, AGED_S, AGED_S + 100.0):  # what has waited for so long has a node reserved, if not before
        shell.advance(now_s)
        waiting = pending_figures(shell, large)
    assert waiting["reservedForSeconds"] >= 100.0
    shell.end("ns/pod-n0")
    assert figures_of_placement(shell.cycle())["reservedForSeconds"] == waiting["reservedForSeconds"]


def test_an_executor_on_a_node_that_nobody_reserved_says_nothing_of_reservations():
    shell = ElasticShell(profile="ikayak")
    shell.submit_spark()
    assert "reservedForSeconds" not in figures_of_placement(shell.cycle())


def test_reservations_end_with_their_owner():
    shell = ElasticShell(profile="ikayak")
    shell.submit("maps", 3)
    shell.cycle()
    spark = shell.submit_spark()
    shell.cycle()
    shell.queue.withdraw(spark.job)
    shell.submit("more")
    shell.cycle()
    executors = next(hook for hook in shell.profile.hooks if isinstance(hook, Executors))
    assert not executors.reservations()
    assert not executors._wait_s


@pytest.mark.parametrize("name", profiles.names())
def test_figures_are_finite_numbers_in_json_of_bounded_length(name):
    shell = ElasticShell(*core.nodes(3), profile=name)
    shell.leave("n0", cpu=1000, gib=1)
    classes = [shell.submit(f"job{i}", count=9, seconds=None if i % 2 else 50.0, locations=["n0"]) for i in range(4)]
    plan = shell.cycle()
    explained = [*plan.decisions, *(plan.diagnosis(task_class.id) for task_class in classes)]
    for explanation in explained:
        text = json.dumps(dict(getattr(explanation, "figures", ())), allow_nan=False)
        assert len(text) <= 512


def test_profiles_without_figures_decide_without():
    shell = core.Shell(core.nodes(1), profile="fair")
    shell.submit("a", 1)
    (decision,) = core.placements(shell.plan())
    assert decision.figures == ()
    assert framework.Figures().of_pending(None, None) == ()
