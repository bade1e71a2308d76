"""Workloads of the board on real pods: jobs of the FB-2009 mix and Spark applications on modelled nodes.

    python -m benchmarks.live_mix [--row mix-0.9] [--seeds 1,2,3] [--minutes 3] [--limit 6]
                                  [--rounds boathouse,fair,kube-scheduler]
                                  [--without suspend,ikayak,ila,fspy,yarn-me]

`--row` names a row of the board that is such a mix (`boathouse_lab.board.rows`: mix-0.5, mix-0.9, mix-1.2, memory-x2,
memory-half, cpu, fb2009-sizes, mapreduce, spark, spark-70). Its nodes, jobs, applications, memory load and minutes are
the row's unless the options `--nodes`, `--jobs`, `--applications`, `--load` and `--minutes` say otherwise.
Each round submits the same workload (`mix_workload.py`) at the same times; every second seed has the rounds in reverse
order. Boathouse is the operator itself; pods are real, nodes are KWOK's, which actuate resizes, and run times follow
size, CPU and neighbours (`modelled_nodes.py`). In the rounds of kube-scheduler it binds the same pods as Boathouse:
drivers, setup, maps, reduces after the last map, and the commit. In a round `without` a policy, the profile boathouse
runs without it (`partial_operator.py`; `suspend` is the chart's switch). All rounds of Boathouse have slow start at
20 %. A round ends after `--limit` times the minutes.

Prints mean times from submission to end and their ratios, and those of the simulator for the same workloads. A job
that has not ended by the limit counts with the time until then, and is named. The logs' folder has the time of each.

Durations scale with `--minutes`; the latency of the API server, reports and polls do not. A short form therefore
understates what policies gain. A round takes about 1.4 times `--minutes` and a minute; by default there are 9.
`--nodes 4 --jobs 4 --applications 1 --minutes 0.5 --seeds 1` is a short trial.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import json
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import load, mix_tasks, mix_workload, modelled_nodes, partial_operator, spark_mix, support
from boathouse.cluster import catalogue, client, config, informer, store, wire
from boathouse.services.instruments import kubelet_client
from boathouse.services.mrjob.model import HOUSEKEEPING
from boathouse_e2e import kwok
from boathouse_lab.board import cases, columns, draws, mix, rows

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable

    from boathouse_sim import work

NAMESPACE = mix_workload.NAMESPACE
AROUND = HOUSEKEEPING.resources
"""What setup and commit tasks request."""
KUBE_SCHEDULER = "kube-scheduler"
WITHOUT = "without "
LOOK_S = 0.5
SAY_S = 15
AIMS = {"mix-0.9": 0.75, "memory-x2": 0.45, "fb2009-sizes": 0.8}
"""The largest ratio to kube-scheduler, by row, that the profile boathouse should have."""
FINISHED = frozenset({"Succeeded", "Failed"})


class _Status(wire.View, frozen=True, kw_only=True):
    phase: str = ""


class _Object(wire.View, frozen=True, kw_only=True):
    """What is read of an MRJob or a SparkApp."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    status: _Status = _Status()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What came of a round.

    Attributes:
        times_s: From submission to end, by job or application.
        unfinished: Those that had not ended at the limit, or failed.
        counts: What policies did to pods.
        alone_s: The mean time if each had enough nodes for itself: about the smallest that a scheduler can reach.
    """

    seed: int
    name: str
    times_s: dict[str, float]
    unfinished: tuple[str, ...]
    counts: dict[str, int]
    alone_s: float

    def mean_s(self, prefix: str = "") -> float:
        """Return the mean time, of those whose names begin so."""
        found = [time_s for name, time_s in self.times_s.items() if name.startswith(prefix)]
        return statistics.fmean(found) if found else 0.0

    def text(self) -> str:
        """Describe it in one line."""
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items() if count)
        failed = f"; NOT finished: {', '.join(self.unfinished)}" if self.unfinished else ""
        return (
            f"seed {self.seed}, {self.name}: mean {self.mean_s():.1f} s (jobs {self.mean_s('mr-'):.1f} s, "
            f"applications {self.mean_s('app-'):.1f} s); {counts or 'no adjustments'}{failed}"
        )


class Submissions:
    """Submits what comes, and takes the time of what ends."""

    def __init__(self, mix: mix_workload.Mix) -> None:
        self._mix = mix
        self._submitted_s: dict[str, float] = {}
        self.times_s: dict[str, float] = {}
        self.failed: set[str] = set()

    async def submit(self, how: Callable[[mix_workload.Job | mix_workload.Arrival], Any]) -> None:
        """Submit each job and application at its time."""
        began_s = time.monotonic()
        for submission in self._mix.everything:
            await asyncio.sleep(max(0.0, began_s + submission.submit_s - time.monotonic()))
            self._submitted_s[submission.name] = time.monotonic()
            await how(submission)

    def ended(self, name: str, *, failed: bool = False) -> None:
        """Take the time of a job or application."""
        if name in self._submitted_s and name not in self.times_s:
            self.times_s[name] = time.monotonic() - self._submitted_s[name]
            if failed:
                self.failed.add(name)

    async def finished(self, limit_s: float, check: Callable[[], None]) -> None:
        """Return when all have ended, or at the limit; print progress.

        Args:
            limit_s: Seconds from now on.
            check: Raises what ended the round early.
        """
        began_s, said_s, whole = time.monotonic(), 0.0, len(self._mix.everything)
        while len(self.times_s) < whole and (passed_s := time.monotonic() - began_s) < limit_s:
            check()
            if passed_s >= said_s:
                support.say(f"    {passed_s:4.0f} s: {len(self._submitted_s)} submitted, {len(self.times_s)} ended")
                said_s += SAY_S
            await asyncio.sleep(LOOK_S)

    def result(self, seed: int, name: str, counts: dict[str, int]) -> Round:
        """Return what came of the round."""
        late = {submission.name for submission in self._mix.everything} - self.times_s.keys()
        for late_name in late:
            self.ended(late_name)
        unfinished = tuple(sorted(late | self.failed))
        alone_s = self._mix.alone_s
        return Round(seed=seed, name=name, times_s=self.times_s, unfinished=unfinished, counts=counts, alone_s=alone_s)


class Comparison:
    """All rounds, on one cluster."""

    def __init__(
        self, api: client.ApiClient, cluster: Any, folder: Path, shape: mix.Shape, arguments: argparse.Namespace
    ) -> None:
        self._api, self._cluster, self._folder = api, cluster, folder
        self._shape, self._limit_s = shape, arguments.limit * shape.submit_s
        self._nodes = [kwok.name_of(index) for index in range(shape.nodes)]
        self._kubelets = modelled_nodes.Kubelets()
        self._rounds = 0

    async def prepare(self) -> None:
        """Create what all rounds need, and let the nodes say where their kubelets are."""
        await self._create(catalogue.NAMESPACES.untyped(), {"metadata": {"name": NAMESPACE}})
        for account in ("default", "boathouse-spark"):
            await self._create(spark_mix.ACCOUNTS, {"metadata": {"name": account}}, NAMESPACE)
        keys = {"metadata": spark_mix.KEYS, "stringData": {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}}
        await self._create(spark_mix.SECRETS, keys, NAMESPACE)
        await self._kubelets.start(self._nodes)
        (self._folder / "kubelets.crt").write_text(self._kubelets.pem)
        for name in self._nodes:
            await self._api.patch_status(catalogue.NODES, name, self._kubelets.status(name))

    async def _create(self, resource: catalogue.Resource[Any], manifest: dict[str, Any], namespace: str = "") -> None:
        await spark_mix.all_of([lambda: self._api.create(resource, manifest, namespace or None)])

    async def carry_out(self, seed: int, names: list[str]) -> AsyncIterator[Round]:
        """Carry out the rounds of a seed."""
        drawn = mix_workload.mix(seed, self._shape)
        support.say(f"==> seed {seed}: {drawn.text()}")
        for name in names:
            yield await self._round(seed, drawn, name)

    async def _round(self, seed: int, mix: mix_workload.Mix, name: str) -> Round:
        self._rounds += 1
        support.say(f"==> round {self._rounds}: seed {seed}, {name}")
        if name == KUBE_SCHEDULER:
            found = await self._kube_scheduler(seed, mix)
        else:
            found = await self._boathouse(seed, mix, name)
        await self._clear()
        support.say(f"    {found.text()}")
        (self._folder / f"{self._rounds}-times.json").write_text(json.dumps(found.times_s, indent=1))
        return found

    @contextlib.asynccontextmanager
    async def _programs(
        self, mix: mix_workload.Mix, seed: int, endpoint: mix_tasks.Endpoint | None
    ) -> AsyncIterator[tuple[mix_tasks.Programs, asyncio.Task[None]]]:
        """Run nodes and programs during the block."""
        nodes = modelled_nodes.Nodes(self._nodes, self._shape.cores)
        self._kubelets.nodes = nodes
        programs = mix_tasks.Programs(self._api, nodes, mix, seed, endpoint)

        async def run() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(nodes.run())
                group.create_task(programs.run())

        running = asyncio.create_task(run())
        try:
            yield programs, running
        finally:
            await support.cancel(running)
            self._kubelets.nodes = None
            if endpoint is not None:
                await endpoint.close()

    # Boathouse

    async def _boathouse(self, seed: int, mix: mix_workload.Mix, name: str) -> Round:
        """Run a profile, or the profile boathouse without a part."""
        part = name.removeprefix(WITHOUT) if name.startswith(WITHOUT) else ""
        system, folder = f"round-{self._rounds}", self._folder / f"{self._rounds}-{seed}-{name.replace(' ', '-')}"
        folder.mkdir()
        await self._create(catalogue.NAMESPACES.untyped(), {"metadata": {"name": system}})
        await self._create(spark_mix.ACCOUNTS, {"metadata": {"name": kubelet_client.ACCOUNT}}, system)
        program = ("-m", "boathouse")
        if part in partial_operator.PARTS:
            program = (partial_operator.__file__, part)
        settings = self._settings(system, "boathouse" if part else name, part)
        with spark_mix.operator(folder, self._cluster.kubeconfig, settings, program) as (ours, port):
            submissions, endpoint = Submissions(mix), mix_tasks.Endpoint(self._api, port)
            async with self._programs(mix, seed, endpoint) as (programs, running), self._ends(submissions):
                await load.leading(ours)
                await self._finish(submissions, self._submit, running, ours)
                counts = {
                    **programs.counts,
                    **{f"pauses ended by {why}": n for why, n in programs.paused.ended.items()},
                }
                found = submissions.result(seed, name, counts)
                support.say(f"    {support.cpu_s(ours.process.pid):.0f} s of the operator's CPU")
                if endpoint.refusals:
                    support.say(f"    refused by the endpoint: {dict(endpoint.refusals.most_common(4))}")
                await self._delete_objects()
        say_errors(folder / "operator.log")
        return found

    def _settings(self, system: str, profile: str, part: str) -> dict[str, Any]:
        kubelets: dict[str, Any] = {"enabled": True, "intervalSeconds": 5, "cadvisor": True}
        kubelets["caFile"] = str(self._folder / "kubelets.crt")
        return {
            "namespace": system,
            "watchNamespaces": [NAMESPACE],
            "profile": profile,
            "task": {"image": "none"},
            "spark": {"image": "none"},
            "lease": load.PATIENT,
            "actuators": {"suspend": part not in {"suspend", "ikayak"}},
            "signals": {"kubelets": kubelets if part != "ila" else {}},
        }

    async def _submit(self, submission: mix_workload.Job | mix_workload.Arrival) -> None:
        if isinstance(submission, mix_workload.Job):
            await self._api.create(spark_mix.MRJOBS, submission.manifest(), NAMESPACE)
        else:
            await self._api.create(spark_mix.APPS, submission.application.manifest(), NAMESPACE)

    @contextlib.asynccontextmanager
    async def _ends(self, submissions: Submissions) -> AsyncIterator[None]:
        """Take the times of what ends, during the block."""

        def changed(change: store.Change[_Object]) -> None:
            if not isinstance(change, store.Deleted) and change.new.status.phase in FINISHED:
                submissions.ended(change.new.metadata.name, failed=change.new.status.phase == "Failed")

        async with asyncio.TaskGroup() as group:
            watches = [
                group.create_task(
                    informer.Informer(
                        self._api, resource.viewed_as(_Object), namespaces=[NAMESPACE], on_change=changed
                    ).run()
                )
                for resource in (spark_mix.MRJOBS, spark_mix.APPS)
            ]
            yield
            for watch in watches:
                watch.cancel()

    async def _finish(
        self,
        submissions: Submissions,
        how: Callable[[Any], Any],
        running: asyncio.Task[None],
        ours: load.Operator | None = None,
    ) -> None:
        def check() -> None:
            if running.done():
                running.result()
            if ours is not None and ours.process.poll() is not None:
                raise SystemExit("the operator has ended: see its log")

        submitting = asyncio.create_task(submissions.submit(how))
        await submissions.finished(self._limit_s, check)
        await submitting

    # kube-scheduler

    async def _kube_scheduler(self, seed: int, mix: mix_workload.Mix) -> Round:
        """Let kube-scheduler bind the same pods."""
        submissions = Submissions(mix)
        jobs: list[asyncio.Task[None]] = []
        async with self._programs(mix, seed, None) as (programs, running):

            async def submit(submission: mix_workload.Job | mix_workload.Arrival) -> None:
                if isinstance(submission, mix_workload.Job):
                    course = self._plain_job(submission, programs, submissions)
                else:
                    course = self._plain_application(submission, programs, submissions)
                jobs.append(asyncio.create_task(course))

            await self._finish(submissions, submit, running)
            for job in jobs:
                await support.cancel(job)
            return submissions.result(seed, KUBE_SCHEDULER, {})

    async def _plain_application(
        self, arrival: mix_workload.Arrival, programs: mix_tasks.Programs, submissions: Submissions
    ) -> None:
        await self._api.create_pod(NAMESPACE, arrival.application.driver())
        await programs.ends[f"{arrival.name}-driver"].wait()
        submissions.ended(arrival.name)

    async def _plain_job(self, job: mix_workload.Job, programs: mix_tasks.Programs, submissions: Submissions) -> None:
        around, map_size = _size(AROUND.cpu_milli, AROUND.memory_bytes // mix_tasks.MIB), _of(job.map)
        stages = [("setup", 1, around), ("map", job.maps, map_size)]
        if job.reduce is not None:
            stages.append(("reduce", job.reduces, _of(job.reduce)))
        for kind, count, size in (*stages, ("commit", 1, around)):
            created = [f"{job.name}-{kind}-{index}" for index in range(count)]
            pods = [spark_mix.plain_pod(name, NAMESPACE, **size) for name in created]
            await spark_mix.all_of([partial(self._api.create_pod, NAMESPACE, pod) for pod in pods])
            for name in created:
                await programs.ends[name].wait()
        submissions.ended(job.name)

    # Afterwards

    async def _delete_objects(self) -> None:
        """Delete jobs and applications while the operator runs, so that it removes its finalizers."""
        for kind in ("sparkapps", "mrjobs"):
            self._cluster.run("delete", kind, "--all", "-n", NAMESPACE, "--wait=false")
        for resource in (spark_mix.APPS, spark_mix.MRJOBS):
            await self._gone(resource)

    async def _clear(self) -> None:
        """Delete all pods."""
        self._cluster.run("delete", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0")
        await self._gone(catalogue.PODS)

    async def _gone(self, resource: catalogue.Resource[Any]) -> None:
        async with asyncio.timeout(300):
            while (await support.reading(lambda: self._api.list(resource, NAMESPACE))).items:  # noqa: ASYNC110 - no event says so
                await asyncio.sleep(1)

    def close(self) -> None:
        """Stop the kubelets."""
        self._kubelets.close()


def _size(cpu_milli: int, memory_mib: int) -> dict[str, str]:
    return {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}


def _of(container: work.Container) -> dict[str, str]:
    return _size(round(1000 * container.cores), container.mem_mb)


def say_errors(log: Path) -> None:
    """Print how many errors an operator logged, and the first of each kind."""
    found: dict[str, str] = {}
    count: collections.Counter[str] = collections.Counter()
    for line in log.read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            entry = json.loads(line)
            if isinstance(entry, dict) and entry.get("level") in {"error", "critical"}:
                count[entry.get("message", "")] += 1
                found.setdefault(entry.get("message", ""), line[:400])
    for event, line in found.items():
        support.say(f"    {count[event]} errors in the operator's log: {line}")


def shape_of(arguments: argparse.Namespace) -> mix.Shape:
    """Return the shape of a row of the board, with what the options replace.

    Raises:
        SystemExit: There is no such row, or it is more than a mix on a cluster.
    """
    mixes = {row.name: row.draw for row in rows.ROWS if isinstance(row.draw, draws.Mixed)}
    fitting = {name: draw.shape for name, draw in mixes.items() if draw == draws.Mixed(shape=draw.shape)}
    if arguments.row not in fitting:
        raise SystemExit(f"--row {arguments.row}: choose from {', '.join(fitting)}")
    given = {
        "nodes": arguments.nodes or None,
        "jobs": arguments.jobs if arguments.jobs >= 0 else None,
        "applications": arguments.applications if arguments.applications >= 0 else None,
        "load": arguments.load or None,
        "submit_s": 60 * arguments.minutes or None,
    }
    return dataclasses.replace(
        fitting[arguments.row], **{name: value for name, value in given.items() if value is not None}
    )


def say_results(rounds: list[Round], aim: float | None) -> None:
    """Print means and ratios; `aim` is the largest ratio to kube-scheduler that is asked for."""
    by_name: dict[str, list[Round]] = collections.defaultdict(list)
    for round_ in rounds:
        by_name[round_.name].append(round_)
    support.say("\nmean time from submission to end, over all seeds")
    for name, found in by_name.items():
        means = [f"{statistics.fmean(round_.mean_s(prefix) for round_ in found):.1f}" for prefix in ("", "mr-", "app-")]
        seeds = ", ".join(f"{round_.mean_s():.1f}" for round_ in found)
        support.say(f"  {name}: {means[0]} s (jobs {means[1]} s, applications {means[2]} s; by seed {seeds})")
    alone_s = statistics.fmean(round_.alone_s for round_ in rounds) if rounds else 0.0
    support.say(f"  each alone on enough nodes: {alone_s:.1f} s; about the smallest that a scheduler can reach")
    ours = by_name.get("boathouse", [])
    for name, theirs in by_name.items():
        pairs = [(a.mean_s(), b.mean_s()) for a in ours for b in theirs if a.seed == b.seed]
        if name != "boathouse" and pairs:
            mean = sum(a for a, _ in pairs) / sum(b for _, b in pairs)
            say_ratio(name, [a / b for a, b in pairs], mean, aim if name == KUBE_SCHEDULER else None)
            if not name.startswith(WITHOUT):
                least = sum(round_.alone_s for round_ in theirs) / sum(round_.mean_s() for round_ in theirs)
                support.say(f"    the least possible ratio to {name}: {least:.2f}")
    for round_ in rounds:
        if round_.unfinished:
            support.say(f"  NOT finished, so the mean is too low: {round_.text()}")


def say_ratio(name: str, ratios: list[float], ratio: float, aim: float | None) -> None:
    """Print a ratio of the profile boathouse over another round."""
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} seeds"
    if name.startswith(WITHOUT):
        support.say(
            f"  {name}: {100 * (1 / ratio - 1):+.1f} % mean time (ratio boathouse / this {ratio:.2f}; {spread})"
        )
        return
    judged = "" if aim is None else f"; aim at most {aim}: {'reached' if ratio <= aim else 'NOT reached'}"
    support.say(f"  boathouse / {name}: {ratio:.2f} ({spread}){judged}")


def say_simulated(rounds: list[Round], shape: mix.Shape) -> None:
    """Print what the simulator has for the same workloads."""
    means_s: dict[str, dict[int, float]] = collections.defaultdict(dict)
    for round_ in rounds:
        if round_.name in columns.BY_NAME:
            means_s[round_.name][round_.seed] = cases.simulate(
                round_.name, draws.Mixed(shape=shape), round_.seed
            ).mean_s
    support.say("\nthe same in the simulator")
    ours = means_s.get("boathouse", {})
    for name, theirs in means_s.items():
        support.say(f"  {name}: {statistics.fmean(theirs.values()):.1f} s")
        pairs = [(ours[seed], theirs[seed]) for seed in theirs if seed in ours]
        if name != "boathouse" and pairs:
            ratios = [a / b for a, b in pairs]
            say_ratio(name, ratios, sum(a for a, _ in pairs) / sum(b for _, b in pairs), aim=None)


async def main(arguments: argparse.Namespace) -> None:
    """Carry out all rounds, and print what came of them."""
    shape = shape_of(arguments)
    folder = Path(tempfile.mkdtemp(prefix="boathouse-bench-live-mix-"))
    support.say(f"==> logs in {folder}")
    parts = [f"{WITHOUT}{part}" for part in arguments.without.split(",") if part]
    names = [*(name for name in arguments.rounds.split(",") if name), *parts]
    carried_out: list[Round] = []
    node = {"kwok_node_cpu": shape.cores, "kwok_node_memory_mib": shape.mem_mb, "kwok_resizes": True}
    with support.cluster("live-mix", shape.nodes, **node) as cluster:
        cluster.run("apply", "--server-side", "-f", str(load.CRDS))
        async with client.ApiClient(config.load(cluster.kubeconfig)) as api:
            comparison = Comparison(api, cluster, folder, shape, arguments)
            await comparison.prepare()
            try:
                for number, seed in enumerate(map(int, arguments.seeds.split(","))):
                    async for found in comparison.carry_out(seed, names[::-1] if number % 2 else names):
                        carried_out.append(found)  # noqa: PERF401 - to print those that were carried out
            finally:
                comparison.close()
                say_results(carried_out, AIMS.get(arguments.row))
                say_simulated(carried_out, shape)
    sys.exit(any(round_.unfinished for round_ in carried_out))


if __name__ == "__main__":
    asyncio.run(
        main(
            support.options(
                __doc__ or "",
                row="mix-0.9",
                seeds="1,2,3",
                minutes=0.0,
                limit=6.0,
                nodes=0,
                jobs=-1,
                applications=-1,
                load=0.0,
                rounds="boathouse,fair,kube-scheduler",
                without="",
            )
        )
    )
