"""Maps where their input is, with less than they asked for if need be."""

import dataclasses
import json

import numpy as np
from hypothesis import given, settings, strategies as st

from boathouse_policies import framework, ikayak, model
from boathouse_policies.ikayak import Shrink
from tests.builders import core
from tests.builders.core_ikayak import IKayakShell

TWO = core.amount(2000, 2)


def shell_with_history(*nodes, share=0.5, **config) -> IKayakShell:
    """Nodes of (millicores, GiB), with a history in which this share of the maps was local."""
    shell = IKayakShell([core.node(f"n{i}", core.amount(*size)) for i, size in enumerate(nodes)], **config)
    shell.book.local, shell.book.remote = round(share * 100), round((1 - share) * 100)
    return shell


def maps_placed(shell, *locations, size=TWO):
    """(node, millicores, GiB) of the maps of a job that a cycle places."""
    shell.submit_stages("mr", map=(len(locations), size), locations=[[name] if name else [] for name in locations])
    return core.sizes_of(shell.cycle())


def test_the_papers_two_maps_share_what_one_asked_for():
    assert maps_placed(shell_with_history((2000, 2)), "n0", "n0") == [("n0", 1000, 1.0)] * 2


def test_without_history_nothing_is_shrunk():
    shell = IKayakShell([core.node("n0", core.amount(2000, 2))])
    assert maps_placed(shell, "n0", "n0") == [("n0", 2000, 2.0)]


def test_no_more_are_accepted_than_the_ratio_allows():
    # ⌊5/(0.8·2)⌋ = 3 maps of 5/3 cores each.
    assert maps_placed(shell_with_history((5000, 16), share=0.8), *["n0"] * 5) == [("n0", 1666, 2.0)] * 3


def test_each_resource_bounds_the_number():
    # CPU for 5 maps at half, memory for ⌊7/(0.5·2)⌋ = 7 of them; the other way round 3.
    assert len(maps_placed(shell_with_history((5000, 7)), *["n0"] * 9)) == 5
    assert len(maps_placed(shell_with_history((9000, 3)), *["n0"] * 9)) == 3


def test_a_map_gets_no_more_than_its_request():
    assert maps_placed(shell_with_history((9000, 3)), "n0", "n0") == [("n0", 2000, 1.5)] * 2


def test_where_all_fit_none_is_shrunk():
    assert maps_placed(shell_with_history((4000, 4)), "n0", "n0") == [("n0", 2000, 2.0)] * 2


def test_the_ratio_has_a_floor():
    assert len(maps_placed(shell_with_history((2000, 2), share=0.1), *["n0"] * 9)) == 2


def test_a_remote_map_is_not_shrunk():
    shell = shell_with_history((1000, 1), (1000, 1))
    shell.submit_stages("mr", map=(2, TWO), locations=[["n1"], ["n1"]])
    plan = shell.cycle()
    assert core.sizes_of(plan) == [("n1", 1000, 1.0)]
    refusals = plan.diagnosis(model.ClassId("mr/map")).refusals
    assert ("node(s) with too little room for a map whose input is elsewhere", 1) in [
        (refusal.reason, refusal.nodes) for refusal in refusals
    ]


def test_a_remote_map_is_not_shrunk_by_the_sizer_alone():
    shell = shell_with_history((1000, 1), (1000, 1))
    shell.profile = dataclasses.replace(shell.profile, filters=shell.profile.filters[:-1])
    shell.submit_stages("mr", map=(2, TWO), locations=[["n1"], ["n1"]])
    assert core.sizes_of(shell.cycle()) == [("n1", 1000, 1.0)]


def test_maps_without_blocks_are_not_shrunk():
    assert maps_placed(shell_with_history((3000, 16)), None, None) == [("n0", 2000, 2.0)]


def test_only_cpu_is_shrunk_where_memory_is_another_policys():
    assert maps_placed(shell_with_history((2000, 4), shrink=Shrink.CPU), "n0", "n0") == [("n0", 1000, 2.0)] * 2
    assert maps_placed(shell_with_history((2000, 2), shrink=Shrink.CPU), "n0", "n0") == [("n0", 2000, 2.0)]


def test_off_means_whole_maps():
    assert maps_placed(shell_with_history((3000, 3), shrink=Shrink.OFF), "n0", "n0") == [("n0", 2000, 2.0)]


def test_reducers_and_executors_get_what_they_ask_for():
    shell = shell_with_history((3000, 3))
    shell.submit_stages("mr", reduce=(2, TWO))
    assert core.sizes_of(shell.cycle()) == [("n0", 2000, 2.0)]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(100, 9000), st.integers(1, 16), st.integers(1, 12), st.floats(0.0, 1.0), st.sampled_from(list(Shrink))
)
def test_what_is_placed_fits_and_is_never_below_the_ratio(cpu, gib, count, share, shrink):
    shell = shell_with_history((cpu, gib), share=share, shrink=shrink)
    found = maps_placed(shell, *["n0"] * count)
    least = (
        max(0.5, shell_with_history((1, 1), share=share).book.local_share()) * 0.98
        if shrink is not Shrink.OFF
        else 0.98
    )
    assert sum(size[1] for size in found) <= cpu
    assert sum(size[2] for size in found) <= gib
    assert all(least * 2000 - 1 <= size[1] <= 2000 for size in found)


# Where maps go first


def test_local_and_whole_before_local_and_shrunk_before_remote():
    shell = shell_with_history((1000, 16), (2000, 2), (9000, 16), share=0.5)
    shell.submit_stages("mr", map=(3, TWO), locations=[["n0", "n1"], ["n0", "n1"], ["n0"]])
    assert core.nodes_of(shell.cycle()) == ["n1", "n1", "n0"]


def test_a_node_whose_tasks_are_taken_is_not_local_any_more():
    shell = shell_with_history((2000, 16), (8000, 16), (2000, 16), share=1.0)
    shell.submit_stages("mr", map=(2, TWO), locations=[["n0", "n1"], ["n2"]])
    assert core.where(shell.cycle()) == [("mr/map-0", "n1"), ("mr/map-1", "n2")]


def test_without_locality_first_the_emptiest_node_wins():
    shell = shell_with_history((2000, 16), (8000, 16), local_first=False, share=1.0)
    shell.submit_stages("mr", map=(1, TWO), locations=[["n0"]])
    assert core.where(shell.cycle()) == [("mr/map-0", "n1")]


# μ


def place_at(shell, *distances, stage="map"):
    """Tasks of a class that were placed so far from their input."""
    of = core.task_class(core.job("mr"), TWO, stage)
    for i, distance in enumerate(distances):
        shell.report_task(model.Placed, core.task(of, 100 + i), resources=TWO, distance=distance)


def shell_with_remote_task(stage="map") -> IKayakShell:
    """A job of one task with its input on n1, which runs on n0."""
    shell = IKayakShell([core.node("n0", core.amount(2000, 2)), core.node("n1", core.amount(100, 1))])
    of = shell.submit_stages("mr", **{stage: (0, TWO)})[stage]
    shell.queue.submit(core.job("mr"), [of], [core.task(of, 0, ["n1"])])
    shell.cycle()
    shell.book.local = shell.book.remote = 0
    return shell


def test_the_ratio_is_the_share_of_local_maps():
    shell = shell_with_remote_task()
    place_at(shell, *[model.Distance.NODE] * 7, *[model.Distance.RACK] * 2, model.Distance.ANYWHERE)
    assert shell.book.local_share() == 0.7


def test_a_map_that_is_placed_away_from_its_input_counts():
    shell = shell_with_remote_task()
    shell.book.local = 1
    place_at(shell, model.Distance.ANYWHERE)
    assert shell.book.local_share() == 0.5


def test_maps_that_have_no_input_anywhere_do_not_count():
    shell = IKayakShell()
    shell.submit_stages("mr", map=(5, TWO))
    place_at(shell, *[model.Distance.ANYWHERE] * 5)
    assert (shell.book.local, shell.book.remote, shell.book.local_share()) == (0, 0, 1.0)


def test_reducers_do_not_count():
    shell = shell_with_remote_task("reduce")
    place_at(shell, *[model.Distance.RACK] * 5, stage="reduce")
    assert shell.book.local_share() == 1.0


def test_the_ratio_survives_a_restart():
    shell, after = shell_with_remote_task(), IKayakShell().book
    place_at(shell, *[model.Distance.NODE] * 3, model.Distance.RACK)
    after.load(json.loads(json.dumps(shell.book.dump())))
    assert after.local_share() == 0.75
    after.load({"local": "x", "remote": -1})
    assert after.local_share() == 0.75


def test_nothing_is_remembered_of_a_job_that_is_over():
    shell = shell_with_remote_task()
    shell.report(model.Ended(now_s=1.0, job=model.JobId("mr"), succeeded=True))
    place_at(shell, *[model.Distance.RACK] * 5)
    assert shell.book.local_share() == 1.0


def test_the_least_size_is_what_filters_may_count_on():
    task_class = core.task_class(core.job("mr"), TWO, stage=model.Stage.MAP)
    shrinking = ikayak.Parts(framework.RunningTasks()).shrinking
    assert shrinking.least(task_class) == core.amount(1000, 1)
    assert shrinking.least(dataclasses.replace(task_class, stage=model.Stage.REDUCE)) is TWO


def test_the_score_of_maps_is_a_vector_over_the_nodes_asked_for():
    shell = shell_with_history((2000, 16), (8000, 16), (2000, 16), share=1.0)
    shell.submit_stages("mr", map=(7, TWO), locations=[["n2"]] * 7)
    plan = shell.plan()
    pending = next(iter(plan.left.values()))
    score = shell.profile.score_of(model.Stage.MAP)
    everything = score.score(pending, pending.state, slice(None))
    some = score.score(pending, pending.state, np.array([2, 0]))
    assert some.tolist() == [everything[2], everything[0]]
