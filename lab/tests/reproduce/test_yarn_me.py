"""YARN-ME's study: what its simulations measure, and what its rows make of given measurements."""

import dataclasses
import json

import pytest

from boathouse_lab.reproduce import study as frame
from boathouse_lab.reproduce.yarn_me import case as cases, disk, models, peers, spilling, table1, table2_cases, wrong
from boathouse_lab.reproduce.yarn_me.cluster import Cluster
from boathouse_lab.reproduce.yarn_me.cluster_cases import VARIANTS
from boathouse_lab.reproduce.yarn_me.experiment import Experiment
from boathouse_lab.reproduce.yarn_me.scaling import Scaling
from boathouse_lab.reproduce.yarn_me.study import YarnMe
from boathouse_lab.reproduce.yarn_me.sweep import Sweep
from boathouse_lab.table2 import Law
from tests.builders import reproductions, simulations

# What a simulation measures


@dataclasses.dataclass(frozen=True)
class Given:
    """A recipe for a test: two maps of 4,000 MB, then a reducer of 8,000 MB, on one node of 10,000 MB."""

    tasks_about = 3

    def draw(self, seed):  # noqa: ARG002  nothing is drawn
        phases = (
            simulations.phase(tasks=2, mb=4000, seconds=10),
            simulations.phase(kind="reduce", mb=8000, seconds=20),
        )
        return simulations.workload(simulations.job("wa", *phases))


def watched_run(profile="yarn"):
    return cases.simulate(cases.Case(recipe=Given(), seed=0, profile=profile, watched=True)).watched


def test_a_phase_lasts_from_its_request_to_its_last_end():
    found = {span.kind: (span.start_s, span.end_s) for span in watched_run().spans}
    assert found == {"map": (0.0, 10.0), "reduce": (0.0, 30.0)}  # reducers are asked for when the last map is placed


def test_an_application_runs_from_its_first_request_to_its_last_end():
    assert watched_run().run_times_s() == {"w": 30.0}


def test_memory_over_time_is_what_was_given_out():
    memory = watched_run().memory
    assert memory[0] == pytest.approx(0.8)
    assert sum(memory) / len(memory) == pytest.approx((2 * 4000 * 10 + 8000 * 20) / (10_000 * 30))


def test_elastic_tasks_are_counted_while_they_run():
    found = cases.simulate(cases.Case(recipe=models.Three(), seed=0, profile="yarn-me", watched=True))
    assert found.elastic_share == 0.75
    assert max(found.watched.elastic) == pytest.approx(3.0)


@pytest.mark.parametrize("profile", ["yarn", "yarn-no-reservations", "meganode", "yarn-me"])
def test_every_profile_of_the_study_runs_by_heartbeats_too(profile):
    at_once, beating = (
        cases.simulate(cases.Case(recipe=Given(), seed=0, profile=profile, heartbeat_s=beat)) for beat in (None, 1.0)
    )
    assert at_once.mean_job_time_s < beating.mean_job_time_s


def test_a_disk_without_bandwidth_leaves_no_elastic_task():
    free, starved = (
        cases.simulate(cases.Case(recipe=models.Three(), seed=0, profile="yarn-me", disk_bytes_per_s=rate))
        for rate in (None, 1.0)
    )
    assert (free.elastic_share, starved.elastic_share) == (0.75, 0)


# What is simulated


def test_the_mix_is_five_runs_at_once_and_one_every_five_minutes():
    starts = [start_s for _, start_s in table1.mixed().starts]
    names = [name for name, _ in table1.mixed().starts]
    assert starts == [0] * 5 + [300 * i for i in range(1, 10)]
    assert [names.count(name) for name in table1.TABLE1] == [3, 8, 3]


def test_the_second_job_of_an_application_waits_for_the_first():
    jobs = table1.alike(table1.RECOMMENDER, 2).draw(0).jobs
    assert [(job.id, job.submit_ms, job.after) for job in jobs] == [
        ("r00a", 0, None),
        ("r00b", None, "r00a"),
        ("r01a", 120_000, None),
        ("r01b", None, "r01a"),
    ]


def test_tasks_take_their_input_over_the_assumed_rates():
    rates = table1.Rates(map_mb_per_s=20, reduce_mb_per_s=5)
    phases = table1.Runs(starts=((table1.WORDCOUNT, 0),), rates=rates).draw(0).jobs[0].phases
    assert [phase.duration_ms for phase in phases] == [round(540 * 1024e3 / 2130 / 20), round(5400 * 0.7 / 5 * 1000)]


def test_two_levels_are_the_ends_of_the_ranges_and_the_middle():
    found = table2_cases.combinations(Law.EXPONENTIAL, 3.0, 2)
    assert len(found) == 9
    assert {recipe.tasks[1] for recipe in found} == {20, 120, 220}


def test_without_elasticity_both_penalties_are_one_simulation():
    low, high = (table2_cases.cases(table2_cases.middle(Law.UNIFORM, p), "yarn", size=2, seeds=1) for p in (1.5, 3.0))
    assert low == high


def test_a_penalty_that_is_estimated_too_high_is_truly_lower():
    assert wrong.errors("penalty", (0.0, 0.5)).penalty == pytest.approx((1 / 1.5 - 1, 0.0))
    assert wrong.errors("duration", (-0.5, 0.0)).duration == (-0.5, 0.0)


def test_wrong_estimates_are_judged_under_heartbeats_and_reported_without():
    cases = set(wrong.Wrong(traces=1, jobs=2, nodes=2, fewer=()).cases())
    beating = {case.errors for case in cases if case.heartbeat_s == 1.0}
    assert {wrong.errors(kind, span) for kind in wrong.KINDS for span in wrong.SPANS} < beating
    assert {case.errors for case in cases} - beating == {wrong.errors("duration", wrong.HARDLY)}


# Models


def test_the_model_predicts_the_papers_wordcount():
    found = models._wordcount()
    assert found.holds
    assert found.value > 0.03  # it is no tautology: the formula is off by most of what the paper allows


def test_well_sized_reducers_spill_nothing():
    drawn = spilling.Reducer.drawn(spilling.Framework.HADOOP, 1.9, models.np.random.default_rng(0))
    whole, less = (drawn.run(share, 0.0, models.np.random.default_rng(0)) for share in (1.0, 0.48))
    assert whole.duration_s == pytest.approx(drawn.ideal_s)
    assert less.spilled_bytes == pytest.approx(less.input_bytes, rel=0.1)  # two buffers of 48 % each


def test_one_reducer_has_the_disk_to_itself():
    assert disk.slowdown(1, 1.9, disk.HDD) == pytest.approx(1.0)


def test_reducers_slow_down_in_proportion_once_the_disk_is_full():
    four, eight = (disk.slowdown(n, 3.0, 2.0) for n in (4, 8))
    assert eight == pytest.approx(2 * four, rel=0.02)


# Rows, from measurements that are given


def seen_by(part: Experiment, times: dict[str, float]):
    """Every simulation of a part, each profile with its own mean job time."""
    return {case: seen_in(case, times[case.profile]) for case in part.cases()}


def seen_in(case, seconds):
    spans = [
        cases.Span(job=f"{letter}00a", kind=k, start_s=0.0, end_s=seconds)
        for letter in "pwr"
        for k in ("map", "reduce")
    ]
    zeros = (0.0,) * cases.BINS
    watch = cases.Watched(spans=tuple(spans), time_s=zeros, memory=zeros, elastic=zeros) if case.watched else None
    used = 0.3 if case.profile == "yarn" else 0.9
    return cases.Seen(
        mean_job_time_s=seconds, makespan_s=seconds, memory_utilisation=used, elastic_share=0.5, watched=watch
    )


TIMES = {"yarn": 100.0, "yarn-no-reservations": 80.0, "meganode": 50.0, "yarn-me": 40.0}
PARTS = [
    Cluster(seeds=2, counts=(1, 3), variants=VARIANTS),
    Sweep(size=4, seeds=2, levels=2),
    Scaling(seeds=((4, 2), (8, 1))),
    wrong.Wrong(traces=2, jobs=4, nodes=4, fewer=(2,)),
    peers.Peers(names=peers.NAMES[:1]),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_every_row_names_its_place_and_can_be_written(part):
    found = part.findings(seen_by(part, TIMES))
    rows = json.loads(json.dumps([claim.as_json() for claim in found.claims]))
    assert rows
    assert all(row["figure"] and row["claim"] for row in rows)
    assert all(figure.panels for figure in found.figures)


def test_the_full_form_has_a_row_for_each_claim_of_the_catalogue():
    parts = YarnMe.experiments(frame.Scale.of(frame.Form.FULL, 2))
    reproductions.assert_catalogued(
        "yarn-me", [row for part in parts for row in part.findings(seen_by(part, TIMES)).claims]
    )


def test_phases_are_watched_where_application_masters_run_too():
    part = Cluster(seeds=1, counts=(1,), variants=VARIANTS, part=0.1)
    case = next(case for case in part.cases() if case.watched and case.heartbeat_s)
    assert {span.kind for span in cases.simulate(case).watched.spans} == {"map", "reduce"}


def seen_with(part, **changed):
    """Measurements of a part, with other times of some profiles."""
    return seen_by(part, TIMES | {name.replace("_", "-"): seconds for name, seconds in changed.items()})


def row_with(part, words, **changed):
    return reproductions.row(part, seen_with(part, **changed), words)


def test_a_gain_is_one_less_the_ratio():
    found = row_with(PARTS[0], "Mix of Table 1: lower mean job run time")
    assert (found.value, found.interval, found.baseline) == (pytest.approx(0.6), pytest.approx((0.6, 0.6)), 100.0)


def test_assumptions_say_how_the_row_moves():
    found = row_with(PARTS[0], "Mix of Table 1: lower mean job run time")
    assert {assumption.name for assumption in found.assumptions} == {variant.name for variant in VARIANTS}
    assert all("60 %" in assumption.effect for assumption in found.assumptions)


def test_a_row_fails_when_the_gain_is_small():
    assert not row_with(PARTS[0], "Mix of Table 1: lower mean job run time", yarn_me=50.0).holds


def test_configurations_are_counted_by_their_ratio():
    words = "configurations whose mean job time is at most 0.7"
    assert row_with(PARTS[1], words).value == 1.0
    assert row_with(PARTS[1], words, yarn_me=71.0).value == 0.0


def test_beating_meganode_everywhere_is_more_than_the_paper_says():
    found = row_with(PARTS[1], "Uniform, 1.5x penalty: traces where YARN-ME beats Meganode")
    assert (found.value, found.holds) == (1.0, False)


def test_the_worst_trace_at_low_load_decides():
    assert row_with(PARTS[1], "Never worse than YARN").holds
    assert not row_with(PARTS[1], "Never worse than YARN", yarn_me=101.0).holds


def test_larger_clusters_must_gain_as_much_as_the_first():
    found = row_with(PARTS[2], "Benefits hold with 8 jobs")
    assert (found.relation.value, found.paper_value) == ("ge", pytest.approx(0.55))


def test_equal_gains_are_no_loss():
    assert {
        claim.value
        for claim in reproductions.rows(PARTS[3], seen_with(PARTS[3])).values()
        if "mean loss" in claim.claim
    } == {0.0}


def test_agreement_is_judged_within_five_per_cent_of_dss():
    yarn = peers.dss(peers.NAMES[0])["YARN"]["mean_job_time_s"]
    words = "mean job time of yarn agrees"
    assert row_with(PARTS[4], words, yarn=yarn * 1.049).holds
    assert not row_with(PARTS[4], words, yarn=yarn * 1.051).holds


# The study


def test_results_do_not_depend_on_the_number_of_workers():
    *_, case = Scaling(seeds=((2, 1),)).cases()
    found = []
    for workers in (1, 2):
        with frame.Runner(workers=workers) as runner:
            found.append(runner.map("x", cases.simulate, [case]))
    assert found[0] == found[1]


def test_the_quick_form_is_much_smaller():
    quick, full = (
        sum(cases.dearest(case) for part in YarnMe.experiments(frame.Scale.of(form)) for case in part.cases())
        for form in (frame.Form.QUICK, frame.Form.FULL)
    )
    assert quick < full / 20
