"""Recordings of `boathouse record`: their lines, and simulated clusters that are played on a fake API server."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_cli import record_keeping, record_lines
from boathouse_sim import conditions, topology, work
from boathouse_sim.workload import Cluster
from tests.builders import manifests, simulations
from tests.builders.operators import server_clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from boathouse_sim.live import TaskRecord
    from boathouse_sim.workload import Workload

START_S = 1_800_000_000
GIB = 1 << 30


# Lines


def begin(at_s: float = 0, **fields) -> record_lines.Begin:
    """The recording begins, this long after `START_S`, as all times here."""
    return record_lines.Begin(at_s=START_S + at_s, **fields)


def mark(at_s: float = 1000, **fields) -> record_lines.Mark:
    """All was seen until then."""
    return record_lines.Mark(at_s=START_S + at_s, **fields)


def node(name: str = "n1", at_s: float = 0, *, cpu_milli: int = 4000, gib: float = 8, **fields) -> record_lines.Node:
    """A usable node."""
    memory_bytes = round(gib * GIB)
    fields = {"usable": True} | fields
    return record_lines.Node(at_s=START_S + at_s, name=name, cpu_milli=cpu_milli, memory_bytes=memory_bytes, **fields)


def job(uid: str = "j", at_s: float = 10, end_s: float | None = 100, *, kind: str = "mrjob", **fields):
    """A job that has succeeded, or has not ended."""
    fields = {"namespace": "demo", "name": uid, "phase": "Running" if end_s is None else "Succeeded"} | fields
    ended_s = None if end_s is None else START_S + end_s
    return record_lines.Job(uid=uid, kind=kind, created_s=START_S + at_s, ended_s=ended_s, **fields)


def pod(type_: str = "map", index: int = 0, placed_s: float = 20, end_s: float | None = 50, **fields):
    """A pod of a task of the job `j` that has succeeded, or has not ended."""
    fields = {"uid": f"{fields.get('owner', 'j')}-{type_}-{index}", "namespace": "demo", "node": "n1"} | fields
    fields = {"cpu_milli": 1000, "memory_bytes": GIB, "owner": "j", "succeeded": end_s is not None} | fields
    ended_s = None if end_s is None else START_S + end_s
    return record_lines.Pod(type=type_, index=index, placed_s=START_S + placed_s, ended_s=ended_s, **fields)


# Objects


def time(at_s: float) -> str:
    """A time as Kubernetes writes it, this long after `START_S`, cut to its second."""
    return server_clocks.text(int(START_S + at_s))


def mixed_workload(jobs: int = 6, nodes: int = 3) -> Workload:
    """MapReduce jobs whose reducers copy, beside Spark applications, on disks that they share."""
    mapper = work.Container(mem_mb=2048, segments=(work.segment("map", cpu_s=20, read_mb=256, write_mb=60),))
    shuffle, last = work.segment("shuffle", copy_mb=400), work.segment("reduce", cpu_s=10, write_mb=100)
    reducer = work.Container(mem_mb=4096, segments=(shuffle, last))
    apps = [
        simulations.mapreduce(
            f"count-{i}", maps=24, map=mapper, reduces=4, reduce=reducer, submit_ms=20_000 * i, slow_start=i % 2
        )
        for i in range(jobs)
    ]
    driver = work.Container(mem_mb=1024)
    apps.append(simulations.spark("rank", executors=4, tasks=(48, 48), seconds=6, mb=6144, driver=driver))
    cluster = Cluster.of(topology.machines(nodes, cores=8, mem_mb=16_384, racks=2))
    return simulations.live_workload(*apps, cluster=cluster, jitter=0.3, contention=conditions.Saturation())


def epoch_s(written: str) -> float:
    """A time that Kubernetes wrote."""
    return dt.datetime.fromisoformat(written).timestamp()


class PlayedCluster:
    """A simulated cluster on a fake API server, whose objects have the simulation's times.

    Args:
        api: The server.
        workload: What is simulated, as `mixed_workload`.
        profile: The policies.
        deletes: Whether half of the pods are deleted when they have ended.

    Attributes:
        job_times_s: Of the simulated jobs.
    """

    def __init__(self, api, workload: Workload, profile: str = "fair", *, deletes: bool = True) -> None:
        self._api, self._deletes = api, deletes
        world = simulations.live_world(workload, profile)
        self.job_times_s = world.finished().job_times_s
        self._records = sorted(world.records, key=lambda one: (one.placed_ms, one.job, one.kind, one.index))
        runs = {run.spec.id: run for run in world.runs.values()}
        self._runs = [runs[app.id] for app in workload.apps]
        self._attempts: dict[tuple[str, str, int], int] = {}
        api.world.date = time(0)
        for one in workload.cluster.machines:
            labels = {names.LABEL_RACK: one.rack}
            api.add(manifests.node(one.name, cpu=str(one.cores), memory=f"{one.mem_mb}Mi", labels=labels))

    @property
    def pods(self) -> int:
        """How many pods it has in all."""
        return sum(one.kind != "task" for one in self._records)

    def steps(self) -> Iterator[Callable[[], object]]:
        """Yield what happens, in order."""
        happens: list[tuple[float, int, Callable[[], object]]] = []
        for run in self._runs:
            happens += [
                (run.submitted_ms, 0, lambda run=run: self._submit(run.spec)),
                (run.ended_ms, 3, lambda run=run: self._end_job(run)),
            ]
        for one in self._records:
            if one.kind != "task":
                key = self._key(one)
                happens += [
                    (one.placed_ms, 1, lambda one=one, key=key: self._place(one, key)),
                    (one.ended_ms, 2, lambda one=one, key=key: self._end(one, key)),
                ]
        for at_ms, _, step in sorted(happens, key=lambda event: event[:2]):
            self._api.world.date = time(at_ms / 1000)
            yield step

    def _key(self, one: TaskRecord) -> str:
        task = one.job, one.kind, one.index
        self._attempts[task] = self._attempts.get(task, 0) + 1
        return f"demo/{one.job}-{one.kind}-{one.index}-a{self._attempts[task]}"

    def _submit(self, spec) -> None:
        kind = "MRJob" if hasattr(spec, "maps") else "SparkApp"
        of = {"mapper": {"command": ["cat"]}} if kind == "MRJob" else {"mainApplicationFile": "local:///rank.py"}
        self._api.add(
            {
                "apiVersion": names.API_VERSION,
                "kind": kind,
                "metadata": {"name": spec.id, "namespace": "demo"},
                "spec": of,
                "status": {"phase": "Running", "queue": "default"},
            }
        )

    def _plural(self, name: str) -> str:
        return "mrjobs" if self._api.get("mrjobs", f"demo/{name}") else "sparkapps"

    def _end_job(self, run) -> None:
        status = {"phase": "Succeeded", "completionTime": self._api.world.date}
        if hasattr(run.spec, "maps"):
            status |= {"maps": {"total": run.spec.maps}, "reduces": {"total": run.spec.reduces}}
        self._api.change(self._plural(run.spec.id), f"demo/{run.spec.id}", {"status": status})

    def _place(self, one: TaskRecord, key: str) -> None:
        plural, owner = self._plural(one.job), f"demo/{one.job}"
        if one.kind == "executor":
            plural, owner = "pods", f"demo/{one.job}-driver-0-a1"
        uid = self._api.get(plural, owner)["metadata"]["uid"]
        labels = {names.LABEL_TASK_TYPE: one.kind, mrjob_names.LABEL_TASK_INDEX: str(one.index)}
        role = {"spark-role": one.kind} if one.kind in {"driver", "executor"} else {names.LABEL_JOB_UID: uid}
        made = manifests.pod(
            key.partition("/")[2],
            cpu=f"{one.cpu_milli}m",
            memory=f"{one.memory_mb}Mi",
            node=one.node,
            labels=labels | role,
            owner=manifests.owner(uid=uid),
        )
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self._api.world.date}
        made["status"] |= {"phase": "Running", "conditions": [scheduled]}
        self._api.add(made)

    def _end(self, one: TaskRecord, key: str) -> None:
        ended = {
            "exitCode": int(one.lost),
            "startedAt": time(one.started_ms / 1000),
            "finishedAt": self._api.world.date,
        }
        statuses = [{"name": names.CONTAINER, "state": {"terminated": ended}}]
        self._api.set_phase(key, "Failed" if one.lost else "Succeeded", containerStatuses=statuses)
        if self._deletes and one.index % 2:  # the operator and drivers delete pods that ended; others stay
            self._api.remove("pods", key)


def lines_of(file) -> list[record_lines.Line]:
    """The lines of a recording."""
    return [line for line, _ in record_keeping.read_lines(file)]
