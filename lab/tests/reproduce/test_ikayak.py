"""iKayak's study: its load, what its simulations measure, and what its rows make of given measurements."""

import dataclasses
import json

import pytest

from boathouse_lab.reproduce import study as frame
from boathouse_lab.reproduce.ikayak import alone, case, rows, setting, variants
from boathouse_lab.reproduce.ikayak.adjusting import Adjusting
from boathouse_lab.reproduce.ikayak.main import Main
from boathouse_lab.reproduce.ikayak.placing import Placing
from boathouse_lab.reproduce.ikayak.predicting import Accuracy
from boathouse_lab.reproduce.ikayak.remaining import Remaining
from boathouse_lab.reproduce.ikayak.runs import Run, Runs
from boathouse_lab.reproduce.ikayak.setting import Setting
from boathouse_lab.reproduce.ikayak.study import IKayak
from boathouse_lab.reproduce.ikayak.variants import IKAYAK, IN_CLIENT, PLACING, STOCK, Variant
from boathouse_policies import ikayak, model
from boathouse_policies.baselines.plain import FairShare, Fifo
from boathouse_policies.ikayak.remaining import Bank, History
from boathouse_sim import simulation
from boathouse_sim.live import Live, MapReduce, Spark
from tests.builders import reproductions, simulations

SMALL = Setting(pairs=3, size=0.25)

# The load


def test_each_mapreduce_job_is_paired_with_a_spark_application():
    apps = Setting(pairs=6).workload(0).apps
    assert sum(isinstance(app, MapReduce) for app in apps) == sum(isinstance(app, Spark) for app in apps) == 6


def test_containers_are_those_of_the_papers_tables():
    apps = {app.program: app for app in Setting(pairs=3).workload(0).apps}
    sizes = {name: (app.executor.cores, app.executor.mem_mb) for name, app in apps.items() if isinstance(app, Spark)}
    assert sizes == {"k-means": (4, 4096), "pagerank": (2, 8192), "index": (4, 6144)}
    maps = {name: (app.map.cores, app.map.mem_mb) for name, app in apps.items() if isinstance(app, MapReduce)}
    assert maps == {"wordcount": (1, 1024), "grep": (1, 2048), "terasort": (1, 2048)}


def test_a_seed_is_a_load():
    assert SMALL.workload(1) == SMALL.workload(1)
    assert SMALL.workload(1) != SMALL.workload(2)


def test_more_reducers_share_the_same_work():
    def reduce_ms(reducing):
        apps = dataclasses.replace(SMALL, reducing=reducing, size=1.0).workload(0).apps
        return sum(app.reduces * app.reduce.segments[2].cpu_ms for app in apps if isinstance(app, MapReduce))

    assert reduce_ms(0.5) == pytest.approx(reduce_ms(1.0), rel=0.01)


# What a simulation measures


def simulate_small(variant=STOCK, **changes):
    return case.simulate(case.Case(setting=dataclasses.replace(SMALL, **changes), variant=variant, seed=0))


def test_each_program_is_measured():
    found = simulate_small()
    assert sorted(found.spark_s) == sorted(found.reservation_s) == ["index", "k-means", "pagerank"]
    assert sorted(found.mapreduce_s) == sorted(found.local_maps) == ["grep", "terasort", "wordcount"]
    assert 0 < found.cpu[""] < found.held < 1


def test_an_executors_reservation_begins_when_its_driver_is_up():
    workload = SMALL.workload(0)
    world = simulations.run(Live(workload, variants.build(STOCK), seed=0))
    waits = [wait_s for _, wait_s in case.reservations(workload, world.records)]
    executors = sum(app.executors for app in workload.apps if isinstance(app, Spark))
    assert len(waits) == executors
    assert min(waits) == 0.0


def test_busy_cpus_are_the_work_over_the_time():
    # All of the work is done before the last submission, which is far behind.
    workload = dataclasses.replace(SMALL, pairs=1).workload(0)
    late = dataclasses.replace(workload.apps[0], id="late", maps=1, reduces=0, submit_ms=1_000_000)
    workload = dataclasses.replace(workload, apps=(*workload.apps, late))
    world = simulations.run(Live(workload, variants.build(STOCK), seed=0))
    found = case.measure(workload, world.finished(), world.records)
    core_ms = world.tally.busy_core_ms - late.map.segments[0].cpu_ms
    assert found.cpu[""] == pytest.approx(core_ms / 188 / 1_000_000, rel=1e-6)


def test_yarn_client_has_no_drivers_in_the_cluster():
    workload = simulation.with_drivers_outside(SMALL.workload(0))
    assert all(app.driver is None for app in workload.apps if isinstance(app, Spark))


def test_dynamic_allocation_begins_with_few_executors():
    apps = dataclasses.replace(SMALL, dynamic=True).workload(0).apps
    assert {app.executors for app in apps if isinstance(app, Spark)} == {2}
    assert simulate_small(dynamic=True).spark_s


@pytest.mark.parametrize(
    ("node", "kind"), [("w00", "T110"), ("w04", "T420"), ("w05", "T320"), ("w07", "T620"), ("w14", "Desktop")]
)
def test_the_kind_of_a_machine_is_known_by_its_name(node, kind):
    assert case.kind_of(node) == kind


# Schedulers


def test_parts_of_ikayak_leave_the_rest_to_yarn():
    stock, placing = variants.build(STOCK), variants.build(PLACING)
    adjusting = variants.build(variants.ADJUSTING)
    assert not placing.controllers
    assert adjusting.controllers
    executor = model.Stage.EXECUTOR
    assert type(adjusting.score_of(executor)) is type(stock.score_of(executor))
    assert type(placing.score_of(executor)) is not type(stock.score_of(executor))


def test_stock_yarn_serves_jobs_as_they_come_as_hadoops_default_does():
    assert isinstance(variants.build(STOCK).order, Fifo)
    assert isinstance(variants.build(IKAYAK).order, Fifo)
    assert isinstance(variants.build(dataclasses.replace(STOCK, fair=True)).order, FairShare)


def test_wrong_predictions_have_the_mean_of_the_right_ones():
    bank = variants.Erring(ikayak.Config(), 0.35, seed=1)
    right = Bank(ikayak.Config())
    sample = _sample()
    wrong = bank.left_s(["x"] * 4000, [sample] * 4000)
    true = right.left_s(["x"], [sample])[0]
    assert wrong.mean() == pytest.approx(true, rel=0.05)
    assert wrong.std() / wrong.mean() == pytest.approx(0.35, rel=0.1)


def _sample():
    history = History(0.0)
    for second in range(5, 50, 5):
        history.report(float(second), second / 100, 1.0, 1e8)
    return history.now


def test_delay_scheduling_of_maps_makes_more_of_them_local():
    load = {"pairs": 4, "size": 0.5, "gap_s": 5.0}
    with_it = simulate_small(Variant(delay=True), **load)
    assert case.local_maps(with_it) > case.local_maps(simulate_small(**load))


# One map


def test_a_map_with_less_is_slower_and_so_is_a_remote_one():
    whole, less, remote = alone.times_s(setting.GREP, Setting())
    assert whole < less
    assert whole < remote


def test_an_io_bound_map_runs_faster_local_with_less_than_remote_with_all():
    _, less, remote = alone.times_s(setting.TERASORT, Setting())
    assert less < remote
    _, less, remote = alone.times_s(setting.TERASORT, Setting(rack=1.0))
    assert less > remote


# Rows, from given measurements


def measurement(**fields):
    """A measurement; what a test does not name is 100 or a half."""
    found = {
        "spark_s": dict.fromkeys(setting.APPLICATIONS, 100.0),
        "mapreduce_s": dict.fromkeys(setting.PROGRAMS, 100.0),
        "reservation_s": dict.fromkeys(setting.APPLICATIONS, 100.0),
        "cpu": {"": 0.5, **dict.fromkeys(case.MACHINES, 0.5)},
        "local_maps": dict.fromkeys(setting.PROGRAMS, 0.5),
    }
    plain = dict.fromkeys(("held", "local_tasks", "local", "shrunk"), 0.5)
    times = dict.fromkeys(("makespan_s", "maps_per_minute", "map_s", "reduce_s", "suspended_s"), 100.0)
    return case.Seen(**{**found, **plain, **times, "suspensions": 1, **fields})


SWEEP = rows.Sweep(varied=(), base=SMALL, seeds=1)


def findings(part, by_variant):
    """The rows of a part, by claim, with what each variant is given."""
    cases = [case for run in part.runs() for case in run.cases()]
    runs = Runs({case: by_variant.get(case.variant, measurement()) for case in cases})
    return part.findings(runs)


def main_experiment():
    return Main(setting=SMALL, seeds=1, sweep=SWEEP)


def halved(names):
    return dict.fromkeys(names, 50.0)


def row_of(found, words):
    return next(row for row in found.claims if words in row.claim)


def test_half_the_time_is_a_gain_of_a_half():
    found = findings(main_experiment(), {IKAYAK: measurement(spark_s=halved(setting.APPLICATIONS))})
    row = row_of(found, "Spark applications: mean completion time lower than under YARN-client")
    assert (row.value, row.baseline, row.holds) == (0.5, 100.0, True)


def test_a_tie_is_no_gain():
    row = row_of(findings(main_experiment(), {}), "MapReduce jobs: mean completion time lower than under YARN-cluster")
    assert (row.value, row.holds) == (0.0, False)


def test_the_implied_ratio_is_of_yarn_cluster_over_yarn_client():
    found = findings(main_experiment(), {STOCK: measurement(spark_s=dict.fromkeys(setting.APPLICATIONS, 71.0))})
    row = row_of(found, "mean Spark completion time over YARN-client's")
    assert (row.value, row.holds) == (pytest.approx(0.71), True)


def test_up_to_means_the_program_that_gains_most():
    part = Placing(setting=SMALL, seeds=1, sweep=SWEEP, errors=(), few=1)
    found = findings(part, {PLACING: measurement(reservation_s={"k-means": 90.0, "pagerank": 40.0, "index": 95.0})})
    row = row_of(found, "reservation time lower than under SpreadOut")
    assert row.value == pytest.approx(0.6)
    assert "pagerank" in row.claim


def test_a_u_shape_has_its_best_between_the_ends():
    part = Adjusting(
        setting=SMALL,
        seeds=1,
        sweep=SWEEP,
        small=SMALL,
        few=1,
        weights=(0.5, 1.0, 4.0),
        overheads=(0.0, 0.15, 1.0),
        starts=(0.05, 0.9),
    )
    deep = findings(part, {IKAYAK: measurement(mapreduce_s=dict.fromkeys(setting.PROGRAMS, 80.0))})
    assert row_of(deep, "U-shape in v").value == pytest.approx(0.25)
    assert not row_of(
        findings(part, {IKAYAK: measurement(mapreduce_s=dict.fromkeys(setting.PROGRAMS, 120.0))}), "in v"
    ).holds


def test_assumptions_say_what_varying_them_did():
    order = "order of jobs, of all schedulers"
    varied = (rows.Varied(name=order, value="by dominant share", fair=True),)
    sweep = rows.Sweep(varied=varied, base=SMALL, seeds=1)
    runs = {case: measurement() for run in sweep.runs() for case in run.cases()}
    fair = dataclasses.replace(IKAYAK, fair=True)
    runs[Run(setting=SMALL, variant=fair, seeds=1).cases()[0]] = measurement(spark_s=halved(setting.APPLICATIONS))
    assumptions = {
        assumption.name: assumption for assumption in sweep.lower(Runs(runs), IKAYAK, IN_CLIENT, case.spark_s)
    }
    assert assumptions[order].effect == "by dominant share: +50 %"


# The whole


def test_every_seed_of_every_experiment_is_its_own_case():
    parts = IKayak.experiments(frame.Scale.of(frame.Form.FULL))
    cases = {case for part in parts for run in part.runs() for case in run.cases()}
    assert len(cases) > 300
    assert {case.setting.pairs for case in cases} == {24, 44}


def test_the_quick_form_is_small():
    parts = IKayak.experiments(frame.Scale.of(frame.Form.QUICK))
    assert len({case for part in parts for run in part.runs() for case in run.cases()}) <= 60


def test_rows_can_be_written_as_json():
    claims = findings(main_experiment(), {}).claims
    assert [row["paper"] for row in json.loads(json.dumps([row.as_json() for row in claims]))] == ["ikayak"] * len(
        claims
    )


@pytest.fixture(scope="module")
def claims_of_full_form():
    """The rows of all experiments of the full form, from equal measurements."""
    parts = IKayak.experiments(frame.Scale.of(frame.Form.FULL, 1))
    return [row for part in parts for row in findings(part, {}).claims]


def test_in_the_full_form_every_assumption_is_varied(claims_of_full_form):
    effects = [assumption.effect for row in claims_of_full_form for assumption in row.assumptions]
    assert len(claims_of_full_form) > 40
    assert effects
    assert not [effect for effect in effects if "full form" in effect]


def test_the_full_form_has_a_row_for_each_claim_of_the_catalogue(claims_of_full_form):
    accuracy = Accuracy(fuzzy=0.1, linear=0.2, mean=0.2, half=0.1, reducers=1, samples=1, points=((1.0, 1.0),))
    learnt = Remaining(seeds=1, jobs=1).findings(reproductions.Given(accuracy)).claims
    reproductions.assert_catalogued("ikayak", [*claims_of_full_form, *learnt])


def test_what_is_claimed_of_a_figure_has_its_picture():
    parts = IKayak.experiments(frame.Scale.of(frame.Form.QUICK, 1))
    names = {figure.name for part in parts for figure in findings(part, {}).figures}
    assert names == {f"Figure {number}" for number in ("6", "7", "8", "9b", "10", "11", "12", "13a", "13b")}
