"""ILA's study: its setting, what a simulation measures, and what its rows make of given measurements."""

import collections
import itertools

import numpy as np
import pytest

from boathouse_lab.reproduce import studies, study as frame
from boathouse_lab.reproduce.ila import (
    benefits,
    exact,
    modelling,
    models,
    oracle,
    placing,
    programs,
    schedulers,
    setting,
    stream,
    thresholds,
    training,
)
from boathouse_lab.reproduce.ila.case import Case, Seen, simulate
from boathouse_lab.reproduce.ila.study import Ila
from boathouse_policies import ila
from boathouse_policies.ila import profiling
from boathouse_sim.live import Live
from boathouse_sim.workload import Workload
from tests.builders import core_ila, reproductions, simulations

# The setting


def ila_workload(which=setting.Load.STREAM, seed=0, **options) -> Workload:
    return setting.workload(which, seed, assumed=programs.PAPER, **options)


def test_the_stream_is_table_4s_25_jobs_and_2690_maps_in_253_s():
    apps = ila_workload().apps
    assert (len(apps), sum(app.maps for app in apps)) == (25, 2690)
    assert collections.Counter(programs.kind_of(app.id) for app in apps)["TeraSort(2)"] == 6
    assert [apps[0].submit_ms, apps[-1].submit_ms] == [0, 253_000]
    assert sum(app.maps for app in apps if app.program != "WCount") == 2440  # what the text says


def test_seeds_change_the_order_and_the_gaps():
    assert [app.id for app in ila_workload(seed=1).apps] != [app.id for app in ila_workload(seed=2).apps]
    assert ila_workload(seed=1).apps == ila_workload(seed=1).apps


def test_a_virtual_machine_has_slots_for_two_maps_and_one_reducer():
    machine = ila_workload().cluster.machines[0]
    assert machine.cores == 2
    assert 2 * programs.MAP_MB + programs.REDUCE_MB <= machine.mem_mb < 2 * programs.REDUCE_MB


def test_maps_of_cpu_bound_programs_read_less_than_a_hundredth_of_a_block():
    for program in programs.ALL:
        assert program.io_bound or program.read_mb < 0.01 * programs.BLOCK_MB


def test_the_jobs_of_figure_10_are_not_in_each_others_way():
    found = simulate(Case(load=setting.Load.CALM, scheduler="lao", seed=0, part=0.3))
    assert found.at_most(1.2) > 0.95


def test_for_the_capacity_scheduler_jobs_have_queues_by_kind():
    by_queue = {app.queue for app in ila_workload(queues=True).apps if app.program == "TeraSort"}
    assert by_queue == {setting.IO_QUEUE}


# What a simulation measures


@pytest.mark.parametrize("name", [*schedulers.ALL, schedulers.SEEING, oracle.NAME])
def test_each_scheduler_runs_all_maps(name):
    found = simulate(Case(load=setting.Load.MIX, scheduler=name, seed=0, part=0.08, trained=False))
    assert found.maps == 3 * 20 + 3 * 32
    assert len(found.slowdowns) == found.maps
    assert found.slowdowns == tuple(sorted(found.slowdowns))


def test_a_scheduler_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="no profile 'nobody'"):
        schedulers.build("nobody")


def test_baselines_do_not_know_of_hosts_and_ila_does():
    seeing = {name: schedulers.build(name).sees_hosts for name in (*schedulers.ALL, schedulers.SEEING)}
    assert [name for name, sees in seeing.items() if sees] == ["lao", "ila", schedulers.SEEING]


def test_the_oracle_puts_no_more_on_a_host_than_it_takes_unslowed():
    io, cpu = oracle.caps(programs.PAPER)
    driver = Live(ila_workload(setting.Load.MIX, part=0.2), schedulers.build(oracle.NAME), seed=0)
    most = collections.Counter()

    def watch(world):
        now = collections.Counter((pod.machine.server, pod.run.job.kind) for pod in world.pods.values())
        for (_, kind), count in now.items():
            most[kind] = max(most[kind], count)

    simulations.run(driver, watch)
    assert most == {"TeraGen": io, "Matrix": cpu}


@pytest.fixture
def short_training(monkeypatch):
    """Few combinations are watched; the memo of the full training stays empty."""
    monkeypatch.setattr(training, "JOBS", 20)
    monkeypatch.setattr(training, "_seen", training._seen.__wrapped__)


@pytest.mark.usefixtures("short_training")
def test_training_leaves_a_model_of_this_truth():
    profile = schedulers.build("ila")
    learner = profile.observers[0].learners.first
    before = learner.model.dump()
    training.train(profile, programs.PAPER)
    assert learner.model.dump() != before
    assert isinstance(profile.observers[0], ila.Interference)


def test_schedulers_without_a_model_need_no_training():
    training.train(schedulers.build("fair"), programs.PAPER)


# Rows from given measurements

LOCAL = {"oracle": 1.0, "ila": 0.9, "lao": 0.9, "delay": 0.74}
SPEED = {"ila": 1.0, "iao": 0.7, "oracle": 1.0}


def seen_as_in_paper(case: Case) -> Seen:
    """As the paper saw it: oblivious schedulers are 2.5 times slower, IAO 1.4 times."""
    slower = 1 / SPEED.get(case.scheduler, 0.4)
    kinds = {programs.kind_of(app.id) for app in setting.workload(case.load, 0, assumed=case.assumed).apps}
    local = 0.34 if case.load is setting.Load.STREAM else 0.5
    return Seen(
        job_times_s=dict.fromkeys(kinds, (10 * slower, 11 * slower)),
        makespan_s=100 * slower,
        maps=1000,
        slowdowns=tuple(slower for _ in range(100)),
        local=dict.fromkeys(kinds, LOCAL.get(case.scheduler, local)),
        held_slots=100.0,
        seconds=0,
    )


def rows_as_in_paper(part):
    return reproductions.rows(part, {case: seen_as_in_paper(case) for case in dict.fromkeys(part.cases())})


def test_rows_of_the_stream_hold_for_what_the_paper_saw():
    found = rows_as_in_paper(stream.Stream(seeds=2))
    held = [claim for claim, row in found.items() if row.holds]
    assert "Job time under PureFair over that under ILA, mean over the ten types [×]" in held
    assert "Job time under IAO over that under ILA, mean over the ten types [×]" in held
    assert "Throughput under ILA over that under the worst of the oblivious schedulers [×]" in held
    assert "Maps of I/O-bound jobs with local input under ILA, mean over types" in held
    assert "By how much more maps of I/O-bound jobs have local input under ILA than under Delay" in held
    assert "Maps under ILA that are not slowed down" in held


def test_a_sweep_says_how_a_claim_moves():
    found = rows_as_in_paper(stream.Stream(seeds=1, swept=1))
    moves = found["Maps of I/O-bound jobs with local input under ILA, mean over types"].assumptions
    assert {assumption.name for assumption in moves} >= {"replicas of a block", "CPU seconds of a CPU-bound map"}
    assert "1: 0.90; 2: 0.90" in {assumption.name: assumption for assumption in moves}["replicas of a block"].effect


def test_figure_9_compares_jobs_of_each_program():
    found = rows_as_in_paper(benefits.Isolated(seeds=2, part=1.0))
    assert found["Time of Matrix jobs under PureFair over that under ILA [×]"].value == pytest.approx(2.5)
    assert found["How far times of TeraGen jobs under ILA lie apart"].value == pytest.approx(0.1)


def test_figure_10_compares_shares_and_times():
    found = rows_as_in_paper(benefits.Calm(seeds=2, part=1.0, replicas=(1,)))
    assert found["MGrep: maps with local input under PureFair"].holds
    assert found["MGrep: maps with local input under PureFair"].assumptions[0].effect == "1: 50 %"
    assert found["Time of MGrep jobs under PureFair over that under ILA [×]"].value == pytest.approx(2.5)


def test_figure_12_finds_the_best_and_the_worst_threshold():
    found = rows_as_in_paper(thresholds.Thresholds(seeds=2, part=1.0))
    assert found["pure CPU: throughput with the dynamic threshold over that with the best other [×]"].holds
    assert found["pure CPU: what H = 1 loses of the dynamic threshold's throughput"].value == pytest.approx(0.6)


def test_the_papers_own_numbers_of_equations_5_and_6_come_of_rounding():
    found = exact.Exact(seeds=2).findings({}).claims
    assert all(row.holds for row in found)
    assert [round(row.value, 2) for row in found] == [6.23, 5.99, 6.29, 5.86, 5.66]


def test_models_are_judged_by_kind():
    accuracy = modelling.Accuracy(r2=0.9, error=0.12, deviation=0.1, samples=100)
    found = dict.fromkeys(itertools.product(("exponential", "linear", "quadratic"), models.KINDS), accuracy)
    claims = models.Models(seeds=2, jobs=10).findings([found, found]).claims
    assert [row.claim for row in claims if row.holds and row.figure == "Figure 11"] == [
        "Mean error |y - ŷ| / y of the exponential model, overall",
        "Mean error |y - ŷ| / y of the exponential model, I/O-bound",
        "Mean error |y - ŷ| / y of the exponential model, CPU-bound",
    ]


def test_the_full_form_has_a_row_for_each_claim_of_the_catalogue():
    claims = [
        row for part in Ila.experiments(frame.Scale.of(frame.Form.FULL, 1)) for row in rows_as_in_paper(part).values()
    ]
    accuracy = modelling.Accuracy(r2=0.9, error=0.12, deviation=0.1, samples=100)
    found = dict.fromkeys(itertools.product(("exponential", "linear", "quadratic"), models.KINDS), accuracy)
    claims += models.Models(seeds=1, jobs=10).findings([found]).claims
    claims.append(placing.claim(placing.Size(hosts=1, jobs=1), 1000.0))
    reproductions.assert_catalogued("ila", claims)


def test_a_reason_is_said_only_where_a_claim_does_not_hold():
    held = placing.claim(placing.Size(hosts=1, jobs=1), 1000.0)
    assert held.holds
    assert not held.reason
    assert not placing.claim(placing.Size(hosts=1, jobs=1), 100.0).holds


def test_placing_counts_all_tasks():
    assert placing.placed_a_second(placing.Size(hosts=10, jobs=1)) > 0


# The study


def test_both_forms_ask_for_each_figure_and_quick_is_smaller():
    quick, full = (Ila.experiments(frame.Scale.of(form)) for form in frame.Form)
    sizes = [sum(len(set(part.cases())) for part in parts) for parts in (quick, full)]
    assert len(quick) == len(full)
    assert sizes[0] * 4 < sizes[1]


def test_it_is_on_the_list():
    assert "ila" in studies.names()
    assert studies.chosen("ila")[0].title.startswith("Bu, Rao and Xu")


def test_offline_training_takes_the_place_of_what_stood_for_it():
    learner, some = ila.Learner(ila.Config()), core_ila.samples(count=500)
    training.teach(learner, some)
    assert core_ila.mean_error(learner.model, core_ila.samples(seed=3)) < 0.02
    more = core_ila.samples(count=100, seed=4)
    for row in np.concatenate([more.rows, more.slowdown[None]]).T.tolist():
        learner.observe(row[: profiling.SYSTEM], profiling.Demand(*row[profiling.SYSTEM : profiling.ALL]), row[-1])
    assert core_ila.mean_error(learner.model, core_ila.samples(seed=5)) < 0.03
    training.teach(learner, some.of(np.arange(3)))  # too few
    assert core_ila.mean_error(learner.model, core_ila.samples(seed=5)) < 0.03
