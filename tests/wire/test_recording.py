"""`boathouse record` beside a cluster on the fake API server: what it records, simulated again, gives what was seen."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading

import pytest

from boathouse_cli import gateway, record_keeping, record_lines, record_session, record_workload
from boathouse_cli.errors import CommandError
from boathouse_sim import simulation
from tests.builders import manifests, recordings
from tests.builders.cli import said
from tests.builders.operators import mrjobs, sparkapps

FACTOR = 1.1
"""Within which a recording's mean job time, simulated with the profile that ran, is what was observed."""

FAR_AHEAD = "2100-01-01T00:00:00Z"
"""Later than the operators' clocks, which end jobs: the recording goes on until then."""


class Recording:
    """`boathouse record` in a thread, which can be stopped and started again."""

    def __init__(self, api, file, kubeconfig, now):
        self._api, self.file, self._now = api, file, now
        self._gateway = gateway.Gateway.connect(kubeconfig=str(kubeconfig), context=None, namespace=None)
        self._stop, self._task = threading.Event(), None

    def request(self, **changed):
        given = {"all_namespaces": True, "operator_namespace": "boathouse-system", "for_s": 1e6, "max_bytes": 1 << 30}
        return record_session.Request(**(given | changed))

    def once(self, **changed):
        """Look at what is there."""
        return asyncio.to_thread(
            record_session.record, self._gateway, self.file, self.request(for_s=0, **changed), now=self._now
        )

    async def start(self, eventually):
        self._stop = threading.Event()
        call = asyncio.to_thread(
            record_session.record, self._gateway, self.file, self.request(), stop=self._stop, now=self._now
        )
        self._task = asyncio.ensure_future(call)
        await eventually(lambda: self._task.done() or self._api.watches.count("pods"))

    async def stop(self):
        self._stop.set()
        await self._task

    @property
    def lines(self):
        return recordings.lines_of(self.file)

    def ended(self, kind):
        """UIDs of what has ended."""
        return {one.uid for one in self.lines if isinstance(one, kind) and one.ended_s is not None}


@pytest.fixture
def recording(api, run, tmp_path, monkeypatch):
    monkeypatch.setattr(record_session, "BACKOFF_S", (0.01,))
    assert run

    def now_s():
        return recordings.epoch_s(api.world.date)

    return Recording(api, tmp_path / "week.jsonl", tmp_path / "kubeconfig", now_s)


@pytest.fixture
def cluster(api):
    return recordings.PlayedCluster(api, recordings.mixed_workload(), deletes=False)


async def play(steps, count=None):
    """Let things happen, while the recorder's threads run."""
    for _, step in zip(range(count or 10_000), steps, strict=False):
        step()
        await asyncio.sleep(0)


async def caught_up(recording, cluster, eventually):
    """Wait until all that ended is in the file."""
    await eventually(lambda: len(recording.ended(record_lines.Job)) == len(cluster.job_times_s))
    await eventually(lambda: len(recording.ended(record_lines.Pod)) == cluster.pods)


@pytest.mark.parametrize("profile", ["fair", "boathouse"])
async def test_a_recording_simulated_with_the_profile_that_ran_has_the_job_times_that_were_observed(
    api, recording, eventually, profile
):
    cluster = recordings.PlayedCluster(api, recordings.mixed_workload(), profile)
    await recording.start(eventually)
    await play(cluster.steps())
    await caught_up(recording, cluster, eventually)
    await recording.stop()
    built = record_workload.build(recording.lines, "week")
    assert sum(built.job_times_s) == pytest.approx(sum(cluster.job_times_s), rel=0.01)
    observed_s = statistics.fmean(cluster.job_times_s)
    simulated_s = simulation.simulate(built.workload, profile).mean_job_time_s
    assert observed_s / FACTOR < simulated_s < observed_s * FACTOR


async def test_watches_that_break_in_every_way_lose_nothing(api, recording, cluster, eventually):
    await recording.start(eventually)
    steps = cluster.steps()
    for break_watches in (api.watches.cut, api.watches.end, api.watches.expire, api.watches.cut):
        await play(steps, 60)
        api.fail_next("watch *", status=500, times=2)
        api.fail_next("list pods", status=410, reason="Expired")
        for plural in ("pods", "mrjobs", "sparkapps", "nodes"):
            break_watches(plural)
    await play(steps)
    await caught_up(recording, cluster, eventually)
    await recording.stop()
    assert len(record_workload.build(recording.lines, "week").workload.jobs) == len(cluster.job_times_s)


async def test_a_recording_goes_on_after_a_kill_and_leaves_out_what_it_may_have_missed(recording, cluster, eventually):
    await recording.start(eventually)
    steps = cluster.steps()
    await play(steps, 60)
    await recording.stop()
    with recording.file.open("a") as opened:
        opened.write('{"line":"pod","uid":"half of a li')
    await play(steps, 60)
    await recording.start(eventually)
    await play(steps)
    await caught_up(recording, cluster, eventually)
    await recording.stop()
    built = record_workload.build(recording.lines, "week")
    # The tasks of an MRJob are counted; which executors a SparkApp had meanwhile, nobody knows.
    assert [job.id.partition("/")[0] for job in built.workload.jobs] == ["mrjob"] * 6
    assert built.left_out == {"were not seen whole": 1}


async def test_jobs_of_the_operator_have_the_phases_of_their_tasks(api, client, recording, eventually):
    running = mrjobs.RunningMRJob(api, client, splits=3)
    await recording.start(eventually)
    api.add(mrjobs.mrjob())
    async with running.running():
        await eventually(mrjobs.ended(running))
    await eventually(lambda: recording.ended(record_lines.Job))
    api.world.date = FAR_AHEAD
    await recording.stop()
    (job,) = record_workload.build(recording.lines, "week").workload.jobs
    assert (job.id, job.namespace) == ("mrjob/demo/wordcount", "demo")
    assert [(phase.kind, phase.tasks) for phase in job.phases] == [
        ("setup", 1),
        ("map", 3),
        ("reduce", 1),
        ("commit", 1),
    ]


async def test_applications_of_the_operator_have_a_driver_and_executors(api, spark, recording, eventually):
    await recording.start(eventually)
    api.add(sparkapps.sparkapp())
    await eventually(lambda: spark.phase() == "Succeeded")
    await eventually(lambda: recording.ended(record_lines.Job))
    api.world.date = FAR_AHEAD
    await recording.stop()
    (job,) = record_workload.build(recording.lines, "week").workload.jobs
    assert [(phase.kind, phase.tasks) for phase in job.phases] == [("driver", 1), ("executor", 2)]


async def test_without_the_right_to_read_nodes_they_are_as_large_as_what_ran_on_them(
    api, recording, cluster, eventually
):
    api.fail_next("list nodes", status=403, reason="Forbidden")
    await recording.start(eventually)
    await play(cluster.steps())
    await caught_up(recording, cluster, eventually)
    await recording.stop()
    built = record_workload.build(recording.lines, "week")
    assert "nodes" in built.unread
    assert [(one.name, one.cores <= 8) for one in built.workload.cluster.machines] == [
        (name, True) for name in ("n0", "n1", "n2")
    ]


async def test_what_must_be_readable_is_named_with_what_to_do(api, recording):
    api.fail_next("list pods", status=403, reason="Forbidden")
    with pytest.raises(CommandError, match=r"permission to read pods: request the role view there, or pass -n NAMESP"):
        await recording.once()


async def test_a_file_goes_on_with_the_namespaces_that_it_has(recording):
    await recording.once()
    with pytest.raises(CommandError, match="the file records all namespaces: omit -n, or choose another file"):
        await recording.once(all_namespaces=False)


async def test_two_processes_do_not_record_into_one_file(recording):
    with record_keeping.appending(recording.file), pytest.raises(CommandError, match="another process records into"):
        await recording.once()


async def test_the_queues_and_the_profile_of_the_operator_are_recorded(api, recording):
    queues = [{"name": "night", "weight": 2, "limits": {"cpu": "1500m", "memory": "1Gi"}}]
    config = {"config.json": json.dumps({"profile": "fair", "queues": queues})}
    api.add(manifests.config_map("boathouse-config", namespace="boathouse-system") | {"data": config})
    await recording.once()
    (begin,) = (one for one in recording.lines if isinstance(one, record_lines.Begin))
    assert begin.profile == "fair"
    assert begin.queues == (
        record_lines.Queue(name="night", weight=2.0, limits={"cpu_milli": 1500, "memory_bytes": 1 << 30}),
    )


async def test_the_commands_make_a_workload_without_names_that_is_simulated(run, recording, cluster, tmp_path):
    steps = cluster.steps()
    await recording.once()
    await play(steps)
    await recording.once()  # what was deleted meanwhile would be missing
    written = await run("record", str(recording.file), "--write", str(tmp_path / "work.json"), "--anonymous")
    assert written.exit_code == 0, said(written)
    assert "6 jobs with " in written.stderr
    assert "left out: 1 were not seen whole" in written.stderr
    text = (tmp_path / "work.json").read_text()
    assert not any(name in text for name in ("demo", "count", "rank", "n0", "r0"))
    simulated = await run("simulate", str(tmp_path / "work.json"), "--json")
    assert json.loads(simulated.stdout)["profiles"]["fair"]["jobs"] == 6, said(simulated)


async def test_the_command_looks_once_and_says_what_it_has(run, tmp_path):
    looked = await run("record", str(tmp_path / "week.jsonl"), "--for", "0s")
    assert looked.exit_code == 0, said(looked)
    assert "recorded 0 jobs" in looked.stderr
    nothing = await run("record", str(tmp_path / "week.jsonl"), "--write", str(tmp_path / "work.json"))
    assert "no job can be taken (none was seen): record for longer" in said(nothing)
    assert nothing.exception.code == 2
