"""FSPY's evaluation: its setting, its measures and its rows."""

import dataclasses

import numpy as np
import pytest

from boathouse_lab.reproduce import fspy_claims, fspy_oracle, fspy_setting
from boathouse_lab.reproduce.fspy_found import Found, Groups
from boathouse_lab.reproduce.fspy_predicted import Predicted, cases
from boathouse_lab.reproduce.fspy_rcp import Scale
from boathouse_lab.reproduce.fspy_runs import FAIR, FSPY, Case, Run, simulate
from boathouse_lab.reproduce.fspy_setting import Setting
from boathouse_lab.reproduce.fspy_workload import HeldOut
from boathouse_lab.reproduce.study import Form, Scale as Size
from boathouse_sim import fluid
from tests.builders.reproductions import assert_catalogued

SMALL = Setting(data=8 / 600, gaps=0.05, history=5)
SETTING = Setting()


def run_of(policy: str, response_s: list[float], *, segment: int = 0, seed: int = 0, ideal_s: float = 10.0) -> Run:
    return Run(
        case=Case(segment=segment, policy=policy, seed=seed, setting=SETTING),
        load=1.0,
        response_s=tuple(response_s),
        ideal_s=(ideal_s,) * len(response_s),
        uber=(True,) * len(response_s),
        probes=0,
        probing_share=0.0,
    )


def measurements(*runs: Run, group: int = 6, seeds: int = 1) -> Found:
    return Found({run.case: run for run in runs}, SETTING, {group: [0]}, seeds)


def test_the_trace_has_37_segments_that_share_50_jobs():
    places = fspy_setting.segments()
    assert len(places) == 37
    assert set(places[0]) & set(places[1]) == set(range(150, 200))


def test_swims_replay_gives_a_tiny_job_one_block_and_one_reduce():
    tiny = min(fspy_setting.trace(), key=lambda job: job.map_input_bytes + job.reduce_output_bytes)
    replayed = fspy_setting.replay(tiny, Setting(noise=0.0), np.random.default_rng(1))
    assert (replayed.probed.map_input_bytes, replayed.probed.maps, replayed.probed.reduces) == (64 << 20, 1, 1)
    assert fspy_setting.is_uber(replayed)


def test_a_segment_is_the_same_under_every_policy_and_another_with_another_seed():
    first, again, other = (fspy_setting.segment(20, seed, SMALL) for seed in (1, 1, 2))
    assert first == again
    assert first.workload != other.workload


def test_a_job_alone_takes_its_masters_start_and_its_waves():
    spec = next(job for job in fspy_setting.segment(20, 0, SETTING).workload.jobs if job.master is not None)
    maps, reduces = (dataclasses.replace(phase, tasks=62, duration_ms=1000) for phase in spec.phases)
    alone = dataclasses.replace(spec, phases=(maps, reduces))
    assert fspy_setting.ideal_s(alone, SETTING) == 4.0 + 1.0 + 1.0
    more = dataclasses.replace(spec, phases=(dataclasses.replace(maps, tasks=63), reduces))
    assert fspy_setting.ideal_s(more, SETTING) == 4.0 + 2.0 + 1.0


def test_equal_cases_give_equal_runs_and_only_fspy_probes():
    fspy, again, fair = (
        simulate(Case(segment=36, policy=policy, seed=0, setting=SMALL)) for policy in (FSPY, FSPY, FAIR)
    )
    assert fspy == again
    assert fspy.probes > 0 == fair.probes
    assert fspy.ideal_s == fair.ideal_s


def test_measures_compare_job_by_job():
    seen = measurements(run_of(FSPY, [10.0, 20.0, 30.0, 60.0]), run_of(FAIR, [20.0, 20.0, 20.0, 240.0]))
    assert fspy_claims.gain(6, 99)(seen, 0) == 300 / 120
    assert fspy_claims.share_below(FSPY, 6, 40.0)(seen, 0) == 0.75
    assert fspy_claims.share_fair(6, 1.0 + 1e-9)(seen, 0) == 0.75
    assert fspy_claims.most_unfair(6)(seen, 0) == 1.5
    assert fspy_claims.share_slow(FAIR, 6)(seen, 0) == 0.75
    assert fspy_claims.later_but_short(seen, 0) == 1.0


def test_a_row_that_does_not_hold_says_why_and_one_without_segments_has_no_value():
    rows = fspy_claims.judged(measurements(run_of(FSPY, [10.0]), run_of(FAIR, [10.0])), 6, ())
    light = next(row for row in rows if row.claim.startswith("RCP ≤ 3"))
    assert (light.value, light.holds) == (None, False)
    assert light.reason
    ten = next(row for row in rows if row.claim.startswith("Largest gain"))
    assert (ten.value, ten.holds) == (1.0, False)
    assert "what Fair loses" in ten.why


def test_the_mode_is_counted_and_a_wrong_one_has_its_reason():
    groups = Groups(scale=Scale(alpha=1.0, beta=5.0), loads=(1.0,) * 4, tasks=(1, 2, 3, 4), of=(5, 6, 6, 7))
    rows = {row.claim: row for row in fspy_claims.counted(groups, ())}
    assert groups.members(6) == [1, 2]
    assert rows["The group of most segments"].value == 6.0
    assert "5: 1, 6: 2, 7: 1" in rows["The group of most segments"].reason


def test_the_full_form_has_a_row_for_each_claim_of_the_catalogue(monkeypatch):
    first = fspy_setting.trace()[:20]
    monkeypatch.setattr(fspy_setting, "trace", lambda: first)
    of = {3: [0], 6: [1], 10: [2]}
    runs = [run_of(policy, [10.0, 20.0], segment=segment) for policy in (FSPY, FAIR) for segment in range(3)]
    seen = Found({run.case: run for run in runs}, SETTING, of, 1)
    groups = Groups(scale=Scale(alpha=1.0, beta=5.0), loads=(1.0,) * 3, tasks=(1, 2, 3), of=tuple(of))
    pairs = ((1.0, 2.0), (30.0, 40.0))
    held_out = {case: HeldOut(map_s=pairs, reduce_s=pairs, size_gib_s=pairs) for case in cases(Size.of(Form.FULL, 1))}
    rows = [*Predicted(held_out).claims("fspy"), *fspy_claims.counted(groups, ()), *fspy_oracle.claims("fspy")]
    assert_catalogued("fspy", [*rows, *fspy_claims.judged(seen, 10, ())])


def test_both_groups_of_figure_8_have_values_of_their_own():
    runs = [
        run_of(policy, times, segment=segment)
        for policy in (FSPY, FAIR)
        for segment, times in enumerate(([20.0], [90.0]))
    ]
    seen = Found({run.case: run for run in runs}, SETTING, {6: [0], 10: [1]}, 1)
    rows = {row.id: row.value for row in fspy_claims.judged(seen, 10, ())}
    assert (rows["fspy-slowdown-most-caption"], rows["fspy-slowdown-most-text"]) == (2.0, 9.0)


@pytest.mark.parametrize("first", [0, 2000])
def test_the_fair_worlds_order_on_one_fluid_resource_ends_jobs_when_fsp_does(first):
    jobs = fspy_setting.trace()[first : first + 300]
    arrival_s, size_s = fspy_oracle.workload(jobs)
    expected = fluid.finish_s(fluid.Order.FSP, arrival_s, size_s)
    assert fspy_oracle.finish_s(arrival_s, size_s) == pytest.approx(expected)
