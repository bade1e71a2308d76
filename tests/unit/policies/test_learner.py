"""Estimates from what tasks did with their memory."""

import json
import math

import numpy as np
import pytest

from boathouse_policies import model, run_times
from boathouse_policies.run_times import MemoryUse, learner
from boathouse_policies.yarn_me.penalty import Elastic, Mapper, Reducer

MIB = 1 << 20
IDEAL, INPUT = 1072 * MIB, 384 * MIB
BUFFER = 384 * MIB  # of (1072 - 48) MiB 37.5 %


def stage(kind=model.Stage.REDUCE, job="job", program="team/sort", least=100 * MIB) -> run_times.Stage:
    return run_times.Stage(
        job=model.JobId(job),
        program=program,
        step=0,
        stage=kind,
        ideal_bytes=IDEAL,
        least_bytes=least,
        slowdown=1.5,
    )


def learner_after(of: run_times.Stage, *runs) -> run_times.Learner:
    """A learner after runs of (seconds, memory in MiB, figures)."""
    found = run_times.Learner()
    for seconds, memory, figures in runs:
        used = MemoryUse(memory_bytes=memory * MIB, **figures)
        found.learn(of, seconds=seconds, input_bytes=INPUT, less=memory * MIB < IDEAL, used=used)
    return found


def estimated_s(found: run_times.Learner, of: run_times.Stage, memory: int) -> float:
    return found.estimates(of, INPUT).run(memory * MIB)[0]


def test_a_reduce_pays_for_what_it_spills_at_the_measured_rate():
    found = learner_after(stage(), (10.0, 1072, {"spill_bytes_per_s": 100.0 * MIB}))
    # A buffer of 192 MiB spills as much once, and of 96 MiB three times; each byte is written and read.
    assert (estimated_s(found, stage(), 560), estimated_s(found, stage(), 304)) == (
        pytest.approx(10 + 2 * 1.92, rel=0.1),
        pytest.approx(10 + 2 * 2.88, rel=0.1),
    )


def test_a_reduce_whose_spills_were_never_measured_pays_the_stated_slowdown():
    found = learner_after(stage(), (10.0, 1072, {}))
    assert estimated_s(found, stage(), 560) == estimated_s(found, stage(), 304) == 15.0


@pytest.mark.parametrize("forged", [1.0, 1e300])
def test_a_forged_rate_of_spills_changes_no_estimate_of_another_namespace(forged):
    found = learner_after(stage(), (10.0, 1072, {"spill_bytes_per_s": 100.0 * MIB}))
    before = estimated_s(found, stage(), 560)
    forger = stage(program="forger/sort")
    found.learn(forger, seconds=9.0, input_bytes=INPUT, less=False, used=MemoryUse(spill_bytes_per_s=forged))
    assert estimated_s(found, stage(), 560) == before
    assert math.isfinite(estimated_s(found, forger, 560))


def test_rates_of_spills_of_so_many_namespaces_are_kept():
    found = run_times.Learner()
    for i in range(100):
        used = MemoryUse(spill_bytes_per_s=1.0 * MIB)
        found.learn(stage(program=f"n{i}/sort"), seconds=9.0, input_bytes=INPUT, less=False, used=used)
    assert list(found.dump()["rates"]) == [f"n{i}" for i in range(100 - learner.NAMESPACES_KEPT, 100)]


def test_after_a_few_runs_with_less_memory_a_program_has_its_own_rate():
    figures = {"spilled_bytes": 200.0 * MIB, "spill_bytes_per_s": 1000.0 * MIB}
    short = [(30.0, 560, figures)] * learner.LEAST_RUNS
    before, after = (learner_after(stage(), (10.0, 1072, {}), *short[:n]) for n in (-1, None))
    assert estimated_s(before, stage(), 560) < 11
    assert estimated_s(after, stage(), 560) == pytest.approx(10 + 192 / 10, rel=0.1)


def test_a_reduce_that_spills_with_all_its_memory_is_not_charged_twice():
    figures = {"spill_bytes_per_s": 200.0 * MIB}
    found = run_times.Learner()
    found.learn(stage(), seconds=20.0, input_bytes=800 * MIB, less=False, used=MemoryUse(**figures))
    assert found.estimates(stage(), 800 * MIB).run(IDEAL)[0] == pytest.approx(20.0, rel=0.02)


def test_a_map_pays_the_measured_step_and_spills_what_it_did():
    of = stage(model.Stage.MAP)
    found = learner_after(of, (10.0, 1072, {}), (14.0, 500, {"spilled_bytes": 70.0 * MIB}))
    known = found.estimates(of, INPUT)
    assert isinstance(known.run_time, Mapper)
    assert (known.run(500 * MIB)[0], known.run(300 * MIB)[0]) == (14.0, 14.0)
    assert known.disk_bytes_per_s(500 * MIB) == pytest.approx(2 * 70 * MIB / 14, rel=0.1)


def test_the_error_of_estimates_is_kept():
    found = learner_after(stage(), (10.0, 1072, {}))
    assert found.error is None
    found.learn(stage(), seconds=20.0, input_bytes=INPUT, less=True, used=MemoryUse(memory_bytes=560 * MIB))
    assert found.error == 0.25


# The least memory


def test_nobody_gets_less_memory_than_the_command_used():
    found = learner_after(stage(), (10.0, 1072, {"peak_bytes": 200.0 * MIB}), (10.0, 1072, {"peak_bytes": 90.0 * MIB}))
    assert found.estimates(stage(), INPUT).least_bytes == 496 * MIB  # 48 + 2.2 * 200, in steps of 16


def test_a_command_that_used_half_of_the_memory_gets_all():
    found = learner_after(stage(), (10.0, 1072, {"peak_bytes": 500.0 * MIB}))
    assert isinstance(found.estimates(stage(), INPUT), model.Fixed)


def test_later_jobs_of_a_program_get_more_memory_than_a_task_that_was_killed_had():
    found = learner_after(stage(), (10.0, 1072, {}))
    found.out_of_memory(stage(), 400 * MIB)
    found.out_of_memory(stage(), 300 * MIB)
    assert isinstance(found.estimates(stage(), INPUT), model.Fixed)
    assert found.estimates(stage(job="later"), INPUT).least_bytes == 464 * MIB
    assert not isinstance(found.estimates(stage(program="team/other"), INPUT), Elastic)


def test_a_restart_keeps_rates_peaks_and_floors():
    found, after = run_times.Learner(), run_times.Learner()
    figures = {"spilled_bytes": 5.0 * MIB, "spill_bytes_per_s": 9.0 * MIB, "peak_bytes": 7.0 * MIB}
    found = learner_after(stage(), (10.0, 1072, figures), (12.0, 560, figures))
    found.out_of_memory(stage(), 400 * MIB)
    after.load(json.loads(json.dumps(found.dump())))
    assert after.dump() == found.dump()
    later = stage(job="later")
    assert estimated_s(after, later, 560) == estimated_s(found, later, 560)


def test_what_is_valid_in_a_dump_of_an_earlier_version_or_with_nonsense_is_loaded():
    found = run_times.Learner()
    key = stage().key
    wrong = {"floors": {key: -1, "x": 5}, "peaks": 7, "rate": 5.0, "rates": {"ns": "fast"}, "error": None}
    found.load({"full": {key: [1, 10.0, 0.0]}, **wrong})
    assert found.estimates(stage(), 0.0).duration_s(model.Resources(memory_bytes=IDEAL)) == 10.0


def test_floors_are_bounded():
    found = run_times.Learner()
    for i in range(300):
        found.out_of_memory(stage(program=f"n{i % 10}/{i}"), MIB)
    assert len(found.dump()["floors"]) == run_times.PROGRAMS_KEPT


def test_fixed_memory_moves_the_teeth_of_the_sawtooth():
    plain = Reducer(ideal_s=1.0, input_bytes=INPUT, disk_bytes_per_s=1.0, buffer_share=0.375)
    fixed = Reducer(ideal_s=1.0, input_bytes=INPUT, disk_bytes_per_s=1.0, buffer_share=0.375, fixed_bytes=48 * MIB)
    memory = np.array([300.0, 500.0, 900.0]) * MIB
    assert (fixed.spilled_bytes(memory + 48 * MIB) == plain.spilled_bytes(memory)).all()
    assert fixed.ideal_bytes == plain.ideal_bytes + 48 * MIB
    for step, other in zip(fixed.steps(memory + 48 * MIB), plain.steps(memory), strict=True):
        assert step == pytest.approx(other + 48 * MIB)
    assert fixed.spilled_bytes(np.array(MIB * 1.0)) == pytest.approx(INPUT, rel=0.01)
