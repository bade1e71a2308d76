"""Reading workloads: what is wrong is named, with its place."""

import json
from pathlib import Path

import pytest

from boathouse_sim import neutral, simulation, swim
from boathouse_sim.workload import WorkloadError
from tests.builders import simulations

DATA = Path(__file__).resolve().parents[3] / "data"
PHASE = {"kind": "map", "tasks": 2, "duration_ms": 1000, "mem_ideal_mb": 500}
GOOD = {
    "format": "neutral-cluster-workload/1",
    "cluster": {"nodes": 2, "node_mem_mb": 1000, "node_cores": 4},
    "jobs": [{"id": 0, "submit_ms": 5, "phases": [PHASE]}],
}

MACHINES = [
    {"name": "a", "cores": 3.92, "mem_mb": 2000, "rack": "r0", "site": "z0"},
    {"name": "b", "cores": 2, "mem_mb": 1000},
]


def read_workload(tmp_path, **changed):
    file = tmp_path / "work.json"
    file.write_text(json.dumps(GOOD | changed))
    return neutral.read_neutral(file)


def test_a_workload_has_the_values_of_its_file(tmp_path):
    read_back = read_workload(tmp_path)
    assert (read_back.name, read_back.cluster.nodes, read_back.tasks) == ("work", 2, 2)
    assert read_back.jobs == (simulations.job("0", simulations.phase(2, 1.0, 500), at_s=0.005),)


def test_a_job_has_the_namespace_of_its_file(tmp_path):
    job = GOOD["jobs"][0]
    read_back = read_workload(tmp_path, jobs=[job, job | {"id": 1, "namespace": "ant"}])
    assert [job.namespace for job in read_back.jobs] == ["", "ant"]


def test_a_namespace_of_the_file_shares_the_queue(tmp_path):
    long, short = ([PHASE | {"tasks": tasks}] for tasks in (40, 4))
    jobs = [{"id": 0, "submit_ms": 0, "phases": long}, {"id": 1, "submit_ms": 1, "phases": short}]
    alone = simulation.simulate(read_workload(tmp_path, jobs=jobs), "fifo")
    jobs[1]["namespace"] = "ant"
    shared = simulation.simulate(read_workload(tmp_path, jobs=jobs), "fifo")
    assert shared.job_times_s[1] < alone.job_times_s[1]


def whole(tmp_path, **changed):
    """A workload that has all of the format."""
    first = PHASE | {"durations_ms": [500, 1500], "cores": 0.5, "input_bytes": 7, "counters": {"cpu_s": 0.5}}
    last = PHASE | {"kind": "reduce", "when_ended": True, "penalty": {"model": "step", "factor": 2.0}}
    job = {"id": "j", "submit_ms": 5, "namespace": "ant", "queue": "q", "program": "p", "phases": [first, last]}
    queues = [{"name": "q", "weight": 2.0, "limits": {"cpu_milli": 1500}}]
    given = {"cluster": {"machines": MACHINES}, "queues": queues, "jobs": [job], "run_times": "learned"}
    return read_workload(tmp_path, **(given | changed))


def test_a_workload_that_is_written_reads_as_it_was(tmp_path):
    given = whole(tmp_path)
    written = neutral.encode(given, {"profile": "fair"})
    assert neutral.decode(json.loads(json.dumps(written)), "written.json") == given


def test_tasks_have_their_own_run_times_and_the_next_phase_waits_for_their_end(tmp_path):
    for run_times in ("exact", "learned"):
        # The queue's 1.5 CPUs hold both maps: 1.5 s until the later ends. Then come two reducers of 1 CPU in turn.
        found = simulation.simulate(whole(tmp_path, run_times=run_times), "fair")
        assert found.job_times_s == (3.5,)


def test_fields_of_other_simulators_and_comments_are_accepted(tmp_path):
    assert read_workload(tmp_path, about="a test", units={}, timing={"reservations": True}).tasks == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"job": []}, r'work.json: unknown field "job": choose from format, name, cluster, timing, queues, '),
        ({"cluster": GOOD["cluster"] | {"rack": 2}}, r'work.json: cluster: unknown field "rack": choose from nodes, '),
        ({"timing": {"heartbeat_ms": 2}}, r'timing: unknown field "heartbeat_ms": choose from node_heartbeat_ms, '),
        (
            {"jobs": [GOOD["jobs"][0] | {"tenant": "a"}]},
            r'jobs\[0\]: unknown field "tenant": choose from id, namespace, ',
        ),
        (
            {"jobs": [GOOD["jobs"][0] | {"phases": [PHASE | {"core": 2}]}]},
            r'jobs\[0\]: phases\[0\]: unknown field "core": choose from kind, tasks, ',
        ),
        (
            {"jobs": [GOOD["jobs"][0] | {"phases": [PHASE | {"penalty": {"model": "step", "by": 2}}]}]},
            r'penalty: unknown field "by": choose from model, factor$',
        ),
    ],
    ids=["workload", "cluster", "timing", "job", "phase", "penalty"],
)
def test_an_unknown_field_is_refused_with_the_fields_that_exist(tmp_path, changed, message):
    with pytest.raises(WorkloadError, match=message):
        read_workload(tmp_path, **changed)


def test_the_shared_workloads_can_be_read():
    files = sorted((DATA / "workloads").glob("table2-*.json"))
    assert [neutral.read_neutral(file).tasks for file in files] == [3269, 3191]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"format": "other/1"}, r'"format" must be "neutral', id="another format"),
        pytest.param({"jobs": []}, "holds no jobs", id="no jobs"),
        pytest.param({"jobs": {}}, "jobs: must be a list", id="jobs are no list"),
        pytest.param(
            {"cluster": {"nodes": 1, "node_mem_mb": 9}}, r'cluster: "node_cores" is missing', id="a field missing"
        ),
        pytest.param({"jobs": [{"id": 0, "phases": [PHASE]}]}, r"jobs\[0\]: needs \"submit_ms\"", id="no submission"),
        pytest.param(
            {"jobs": [{"id": 0, "submit_ms": 0, "phases": [PHASE | {"tasks": 0}]}]},
            r"phases\[0\]: tasks: must be a whole number of at least 1, not 0",
            id="no tasks",
        ),
        pytest.param(
            {"jobs": [{"id": 0, "submit_ms": 0, "phases": [PHASE | {"penalty": {"model": "cliff"}}]}]},
            "'cliff' is not known; choose one of: step, sawtooth",
            id="an unknown penalty",
        ),
        pytest.param(
            {"jobs": [{"id": 0, "submit_ms": 0, "phases": [PHASE | {"mem_ideal_mb": 1001}]}]},
            "asks for 1001 MB .* it never fits",
            id="a task larger than a node",
        ),
        pytest.param(
            {"jobs": [{"id": 0, "after": 0, "phases": [PHASE]}]},
            "would never start: 0 after 0",
            id="a job after itself",
        ),
        pytest.param(
            {"cluster": GOOD["cluster"] | {"machines": MACHINES}},
            r'cluster: "machines" excludes "node_cores"',
            id="machines and equal nodes",
        ),
        pytest.param({"cluster": {"machines": MACHINES[:1] * 2}}, "names are not unique", id="machines of one name"),
        pytest.param({"run_times": "guessed"}, "'guessed' is not known", id="unknown knowledge of run times"),
        pytest.param({"queues": [{"name": "a", "weight": 0}]}, "weight: must be above 0", id="a queue without weight"),
        pytest.param(
            {"jobs": [GOOD["jobs"][0] | {"phases": [PHASE | {"durations_ms": [1]}]}]},
            "must be a list of 2 run times",
            id="a run time too few",
        ),
        pytest.param(
            {"jobs": [GOOD["jobs"][0] | {"phases": [PHASE | {"cores": -1}]}]}, "cores: must be between 0", id="cores"
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path, changed, message):
    with pytest.raises(WorkloadError, match=message):
        read_workload(tmp_path, **changed)


def test_what_is_no_json_is_named(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(WorkloadError, match=r"bad.json: not JSON"):
        neutral.read_neutral(tmp_path / "bad.json")


def test_a_step_costs_the_same_however_little_memory_there_is():
    penalty = simulations.phase(model="step", factor=1.5).penalty
    assert [penalty.run_time_ms(1000, given, 1000) for given in (100, 999, 1000, 2000)] == [1500, 1500, 1000, 1000]


def test_a_sawtooth_costs_what_is_spilled():
    penalty = simulations.phase(model="sawtooth", factor=2.0).penalty
    # Half of the ideal: one spill of half the input. 99 %: one spill of 99 %. A third: two of 33 %.
    assert [penalty.run_time_ms(1000, given, 1000) for given in (500, 990, 330, 1000)] == [1500, 1990, 1990, 1000]


def test_a_swim_trace_becomes_maps_by_splits_and_reduces_by_shuffle():
    trace = swim.SwimJob(
        name="j", submit_s=2, map_input_bytes=600_000_000, shuffle_bytes=1, reduce_output_bytes=40_000_000
    )
    model = swim.SwimModel.load()
    (found,) = swim.workload("t", [trace], model).jobs
    assert [(phase.kind, phase.tasks, phase.duration_ms) for phase in found.phases] == [
        ("map", 3, 9667),
        ("reduce", 1, 5000),
    ]


def test_a_model_with_a_field_too_few_is_named(tmp_path):
    (tmp_path / "model.json").write_text('{"nodes": 3}')
    with pytest.raises(WorkloadError, match=r"model.json: missing or not known: map_mb_per_s, .*split_mb"):
        swim.SwimModel.load(tmp_path / "model.json")
