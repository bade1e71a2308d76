"""`boathouse record`: what becomes a line, what is kept of a hostile cluster, and what becomes of the lines."""

import json

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands, kinds, record_keeping, record_lines, record_workload
from boathouse_cli.errors import CommandError
from tests.builders import cli, manifests, recordings
from tests.builders.recordings import START_S, begin, job, mark, node, pod

# Lines


def test_a_pod_is_its_size_its_node_and_its_times():
    raw = cli.ended_task_pod(cli.bound_pod(cli.task_pod("map", 7), at_s=5), ("read", 6, 30))
    raw["status"]["conditions"] = cli.bound_pod(raw, at_s=5)["status"]["conditions"]
    raw["metadata"]["labels"] |= {"boathouse.dev/job-uid": "u-1", "secret": "s3cr3t"}
    raw["metadata"]["ownerReferences"] = [{"uid": "u-1", "kind": "MRJob", "name": "wc", "controller": True}]
    raw["spec"]["containers"] = [{"name": "task", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]
    found = record_lines.pod(raw, now_s=0)
    assert (found.owner, found.type, found.index, found.node) == ("u-1", "map", 7, "node-0")
    assert (found.cpu_milli, found.memory_bytes, found.succeeded) == (500, 1 << 30, True)
    assert (found.placed_s - cli.START_S, found.ended_s - cli.START_S) == (5, 30)
    assert "s3cr3t" not in str(found)


def test_a_pod_without_a_node_has_no_line():
    assert record_lines.pod(cli.task_pod(node=None), now_s=0) is None


def test_the_program_of_a_job_is_a_hash_of_its_commands():
    jobs = [cli.mrjob() for _ in range(3)]
    for raw, command in zip(jobs, ("password=1", "password=1", "cat"), strict=True):
        raw["spec"]["mapper"] = {"command": [command]}
    found = [record_lines.job(kinds.MRJOB, raw, now_s=0) for raw in jobs]
    assert found[0].program == found[1].program != found[2].program
    assert "password" not in str(found)


HOSTILE = [
    pytest.param({"metadata": {"uid": "x" * 300}}, id="a UID that is too long"),
    pytest.param({"metadata": {"labels": {"boathouse.dev/job-uid": 1}}}, id="a label that is no text"),
    pytest.param(
        {"spec": {"nodeName": "n", "containers": [{"name": "task", "resources": {"requests": {"cpu": "many"}}}]}},
        id="CPU",
    ),
    pytest.param({"spec": {"nodeName": "n", "resources": {"requests": {"memory": "9E"}}}}, id="more than any memory"),
    pytest.param({"status": {"conditions": [{"type": "PodScheduled"}]}}, id="half a condition"),
    pytest.param({"metadata": {"creationTimestamp": None}}, id="no time"),
    pytest.param({"metadata": "none"}, id="no metadata"),
    pytest.param(
        {
            "status": {
                "containerStatuses": [
                    {
                        "name": "task",
                        "state": {
                            "terminated": {
                                "message": '{"outcome":"succeeded","counters":{"g":{"Bytes Read":1' + "0" * 400 + "}}}"
                            }
                        },
                    }
                ]
            }
        },
        id="a count beyond all numbers",
    ),
]


def changed(raw, change):
    """An object with other fields in its parts."""
    return {
        key: value | change[key] if isinstance(change.get(key), dict) else change.get(key, value)
        for key, value in raw.items()
    }


@pytest.mark.parametrize("change", HOSTILE)
def test_a_pod_that_cannot_be_read_is_refused(change):
    with pytest.raises(record_lines.UNREADABLE):
        record_lines.pod(changed(cli.task_pod(), change), now_s=0)


@pytest.mark.parametrize(
    "status",
    [
        {"maps": {"total": -1}},
        {"maps": {"total": "many"}},
        {"maps": 3},
        {"lastFailures": [{}]},
        {"phase": ["Succeeded"]},
        {"completionTime": "tomorrow"},
        {"queue": "q" * 1000},
    ],
)
def test_a_job_with_a_strange_status_is_refused(status):
    with pytest.raises(record_lines.UNREADABLE):
        record_lines.job(kinds.MRJOB, cli.mrjob(**status), now_s=0)


# Keeping


@pytest.fixture
def file(tmp_path):
    return tmp_path / "week.jsonl"


def kept(file, *sights, max_bytes=1 << 20):
    """A recorder after it has seen (plural, object, whether it is gone), one after the other."""
    with record_keeping.appending(file) as appender:
        recorder = record_keeping.Recorder(appender, max_bytes, lambda: START_S + 500.0)
        for line, length in record_keeping.read_lines(file):
            recorder.load(line, length)
        recorder.begin(begin())
        for plural, raw, is_gone in sights:
            recorder.observe(plural, raw, is_gone=is_gone)
        recorder.mark()
    return recorder


def owned(file, kind=record_lines.Pod):
    return [line for line in recordings.lines_of(file) if isinstance(line, kind)]


def test_a_pod_has_a_line_when_it_is_placed_and_when_it_has_ended(file):
    running = cli.running_pod(cli.task_pod(), since_s=1)
    ended = cli.terminated_pod(cli.task_pod(), start_s=1, end_s=9)
    kept(file, *(("pods", raw, False) for raw in (cli.task_pod(node=None), running, running, ended, ended)))
    assert [line.ended_s for line in owned(file)] == [None, cli.START_S + 9]


def test_after_a_stop_nothing_is_written_twice(file):
    running = cli.running_pod(cli.task_pod(), since_s=1)
    ended = cli.terminated_pod(cli.task_pod(index=1), start_s=1, end_s=9)
    sights = [("pods", running, False), ("pods", ended, True), ("mrjobs", cli.mrjob(), False)]
    kept(file, *sights)
    recorder = kept(file, *sights[::2])
    assert len(owned(file)) == 2
    assert len(owned(file, record_lines.Job)) == 1
    assert (recorder.pods, recorder.jobs) == (2, 1)


def test_what_went_while_nobody_looked_has_no_known_end(file):
    kept(file, ("pods", cli.running_pod(cli.task_pod(), since_s=1), False), ("mrjobs", cli.mrjob(), False))
    with record_keeping.appending(file) as appender:
        recorder = record_keeping.Recorder(appender, 1 << 20, lambda: START_S + 900.0)
        for line, length in record_keeping.read_lines(file):
            recorder.load(line, length)
        recorder.synced("pods", set())
        recorder.synced("mrjobs", set())
    assert owned(file)[-1].end_is_known is False
    assert owned(file, record_lines.Job)[-1].phase == "Deleted"


def test_what_cannot_be_read_is_counted_once_whatever_it_sends(file):
    raw = changed(cli.task_pod(), HOSTILE[2].values[0])
    recorder = kept(file, *[("pods", raw, False)] * 3, ("pods", raw, True))
    assert recorder.aside == {"pods that cannot be read": 1}
    assert owned(file, record_lines.Mark)[-1].aside == {"pods that cannot be read": 1}


def test_a_namespace_does_not_fill_the_file_alone(file):
    pods = []
    for index in range(100):
        raw = cli.running_pod(cli.task_pod(index=index), since_s=1)
        pods.append(changed(raw, {"metadata": {"uid": f"uid-{index}", "namespace": "flood"}}))
    other = cli.running_pod(cli.task_pod(), since_s=1)
    recorder = kept(file, *(("pods", raw, False) for raw in (*pods, *pods, other)), max_bytes=10_000)
    written = [line.namespace for line in owned(file)]
    assert written[-1] == "demo"
    assert file.stat().st_size < 6000
    assert recorder.aside == {"pods beyond its namespace's part of the file": 101 - len(written)}


def test_a_job_that_writes_its_status_for_ever_has_two_lines(file):
    phases = [{"phase": f"P{i}", "maps": {"total": i}} for i in range(50)]
    phases.append({"phase": "Succeeded", "completionTime": cli.time(9)})
    kept(file, *(("mrjobs", cli.mrjob(**status), False) for status in phases * 2))
    assert [line.phase for line in owned(file, record_lines.Job)] == ["P0", "Succeeded"]


def test_a_node_has_a_line_when_it_changes(file):
    usable, cordoned = manifests.node(), manifests.node(unschedulable=True)
    kept(
        file, *(("nodes", raw, False) for raw in (usable, usable, cordoned, cordoned, usable)), ("nodes", usable, True)
    )
    assert [line.usable for line in owned(file, record_lines.Node)] == [True, False, True, False]


def test_half_a_line_is_skipped_and_what_is_no_recording_is_refused(file, tmp_path):
    kept(file, ("mrjobs", cli.mrjob(), False))
    with file.open("a") as opened:
        opened.write('{"line":"po')
    kept(file)
    assert len(owned(file, record_lines.Begin)) == 2
    assert file.stat().st_mode & 0o077 == 0
    (tmp_path / "other.txt").write_text("a\nb\n")
    with pytest.raises(CommandError, match="is no recording of `boathouse record`"):
        recordings.lines_of(tmp_path / "other.txt")


# The workload


def built(*lines, **options):
    return record_workload.build([begin(), node(), *lines, mark()], "week", **options)


def phases(*lines):
    (one,) = built(*lines).workload.jobs
    return one.phases


def test_tasks_of_a_stage_are_a_phase_with_their_run_times():
    found = phases(job(), pod(end_s=50), pod(index=1, end_s=40))
    assert [(one.kind, one.tasks, one.durations_ms, one.duration_ms) for one in found] == [
        ("map", 2, (30_000, 20_000), 25_000)
    ]


def test_a_stage_waits_for_the_end_of_the_one_before_if_it_did():
    maps = [pod(end_s=50), pod(index=1, placed_s=30, end_s=60)]
    after = phases(job(), *maps, pod("reduce", placed_s=60, end_s=70))
    assert (after[1].when_ended, after[1].duration_ms) == (True, 10_000)
    # Placed at 25 s, before the last map at 30 s: the simulator places it no sooner than that.
    early = phases(job(), *maps, pod("reduce", placed_s=25, end_s=70))
    assert (early[1].when_ended, early[1].duration_ms) == (False, 40_000)


def test_the_attempts_of_a_task_add_up_and_those_at_one_time_count_once():
    again = pod(uid="again", placed_s=60, end_s=80)
    second = pod(uid="second", index=1, placed_s=30, end_s=45)
    found = phases(job(), pod(succeeded=False), again, pod(index=1, placed_s=20, end_s=50), second)
    assert found[0].durations_ms == (50_000, 30_000)


def test_executors_and_their_driver_are_an_application():
    app = job("a", kind="sparkapp")
    driver = pod("driver", uid="d", owner="a", placed_s=12, end_s=99)
    executors = [pod("executor", uid=f"e{i}", owner="d", placed_s=15, end_s=99) for i in range(3)]
    found = phases(app, driver, *executors)
    assert [(one.kind, one.tasks, one.when_ended) for one in found] == [("driver", 1, True), ("executor", 3, False)]


def test_a_task_with_less_memory_shows_what_that_costs():
    short = pod(index=1, end_s=65, memory_bytes=recordings.GIB // 2, ideal_bytes=recordings.GIB)
    (found,) = phases(job(), pod(), short)
    assert (found.mem_ideal_mb, found.penalty.factor, found.duration_ms) == (1024, 1.5, 30_000)


@pytest.mark.parametrize(
    ("why", "lines"),
    [
        ("had not ended", [job("x", end_s=None), pod(owner="x", end_s=None)]),
        ("came before the recording", [job("x", -5), pod(owner="x")]),
        ("run on an MRCluster", [job("x", on_cluster=True), pod(owner="x")]),
        ("had no tasks", [job("x")]),
        ("were not seen whole", [job("x", maps=2), pod(owner="x")]),
        ("were not seen whole", [job("x"), pod(owner="x", end_is_known=False)]),
        ("larger than every node", [job("x"), pod(owner="x", cpu_milli=64_000)]),
        ("had no tasks", [job("x"), pod(owner="x", namespace="elsewhere")]),
        ("had impossible times", [job("x"), pod(owner="x", end_s=1e9)]),
        ("had impossible times", [job("x", 900), pod(owner="x")]),
    ],
)
def test_a_job_that_is_not_known_whole_is_left_out_with_a_count(why, lines):
    found = built(job(), pod(), *lines)
    assert [one.id for one in found.workload.jobs] == ["mrjob/demo/j"]
    assert found.left_out == {why: 1}


def test_a_job_that_ends_after_a_stop_is_whole_if_its_tasks_are_counted():
    lines = [job(end_s=1500, maps=1), pod(), mark(100), begin(1400), mark(1600)]
    assert record_workload.build([begin(), node(), *lines], "week").job_times_s == (1490,)
    with pytest.raises(record_workload.NothingRecordedError, match="1 were not seen whole"):
        record_workload.build([begin(), node(), job(end_s=1500), *lines[1:]], "week")


def test_a_node_is_what_pods_of_no_job_leave_of_it():
    daemon = pod("", uid="daemon", owner="ds", placed_s=0, end_s=None, cpu_milli=500)
    for_half_of_the_time = pod("", uid="web", owner="rs", placed_s=500, end_s=None, cpu_milli=1000)
    (machine,) = built(job(), pod(), daemon, for_half_of_the_time).workload.cluster.machines
    assert (machine.cores, machine.mem_mb) == (3.0, 8192 - 1024 - 512)


def test_a_tenants_task_that_never_ends_is_room_that_others_lack():
    endless = [job("x", end_s=None), pod(owner="x", placed_s=0, end_s=None, cpu_milli=2000)]
    assert built(job(), pod(), *endless).workload.cluster.machines[0].cores == 2.0


def test_a_pod_that_asks_for_more_than_its_node_has_does_not_take_the_node_away():
    monster = pod("", uid="monster", owner="rs", placed_s=0, end_s=100, cpu_milli=10**9)
    assert built(job(), pod(), monster).workload.cluster.machines[0].cores == 3.6


def test_a_node_that_came_and_went_is_left_out():
    spot = [node("spot", 100), node("spot", 300, usable=False)]
    assert [one.name for one in built(job(), pod(), *spot).workload.cluster.machines] == ["n1"]


def test_without_names_equal_names_are_equal_hashes_that_nobody_can_repeat():
    jobs = [job("first", name="a"), pod(owner="first"), job("last", 11, name="a"), pod(owner="last")]
    one, other = (built(*jobs, salt=salt).workload for salt in (b"1", b"2"))
    first, last = one.jobs
    assert (first.namespace, first.queue, first.program) == (last.namespace, last.queue, last.program)
    assert last.id == f"{first.id}#2"
    assert not {first.id, first.namespace, first.queue} & {other.jobs[0].id, other.jobs[0].namespace}
    assert not any(name in repr(one) for name in ("demo", "mrjob/", "n1"))


# The command


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--anonymous"], "--anonymous requires --write"),
        (["--for", "1 week"], '"1 week" is not a time: write it as 30m, 12h or 7d'),
        (["--write", "week.jsonl"], "is the recording: choose another file"),
        (["--write", "work.json"], "week.jsonl cannot be read: No such file"),
    ],
)
def test_what_is_wrong_with_a_command_is_named(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(commands.app, ["record", "week.jsonl", *words])
    assert message in str(result.exception)
    assert result.exception.code == 2


def test_a_workload_that_is_written_says_what_it_is_of(file, tmp_path):
    with record_keeping.appending(file) as appender:
        for line in (
            begin(profile="fair", unread=("nodes",)),
            job(),
            pod(),
            mark(aside={"pods that cannot be read": 2}),
        ):
            appender.write(line)
    result = CliRunner().invoke(commands.app, ["record", str(file), "--write", str(tmp_path / "work.json")])
    assert result.exit_code == 0, cli.said(result)
    assert (
        "1 jobs with 1 tasks on 1 nodes, of 16m40s; the mean job time was 90.0 s with the profile fair" in result.stderr
    )
    assert "nodes could not be read" in result.stderr
    assert json.loads((tmp_path / "work.json").read_text())["about"]["set_aside"] == {"pods that cannot be read": 2}
