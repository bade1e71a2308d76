"""300 Spark applications and 100 MRJobs on fake nodes that hold about a fifth of them, and with kube-scheduler alone.

    python -m benchmarks.spark_mix [--applications 300] [--mrjobs 100] [--nodes 8] [--only boathouse]

All objects exist when the scheduler begins. Boathouse is the operator itself (`python -m boathouse`, with an
administrator's credentials); what drivers, executors and tasks do is a model (`fake_programs.py`). Then the same
drivers and maps are created as pods while kube-scheduler is stopped (SIGSTOP), and reducers after their maps. That
round ends after three times the time of Boathouse's. What finished counts. Drivers request equal executors in both
rounds. Each round prints where the time of cores and drivers went, and what was written. About 10 minutes.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import http
import json
import random
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from benchmarks import api_requests, core_time, fake_programs, load, support
from boathouse.cluster import catalogue, client, config, errors, wire
from boathouse.resources import names
from boathouse.services.mrjob import splits
from boathouse_e2e.local.provider import LocalProvider
from boathouse_e2e.spec import ClusterSpec
from boathouse_task import contract
from boathouse_task.contract import TaskType

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

NAMESPACES = tuple(f"team-{number}" for number in range(4))
MAPS, REDUCES = 8, 2
RUN_S = {TaskType.SETUP: 0.5, TaskType.MAP: 5.0, TaskType.REDUCE: 4.0, TaskType.COMMIT: 0.5}
LIMIT_S = 1800
TIMES = 3
MEMORY_MIB = 512 + 384
KEYS = {"name": "keys"}
SECRETS = catalogue.Resource(plural="secrets", kind="Secret", view=wire.Manifest)
ACCOUNTS = catalogue.Resource(plural="serviceaccounts", kind="ServiceAccount", view=wire.Manifest)
APPS = catalogue.Resource(
    group=names.GROUP, version=names.VERSION, plural="sparkapps", kind="SparkApp", view=wire.Manifest
)
MRJOBS = catalogue.Resource(group=names.GROUP, version=names.VERSION, plural="mrjobs", kind="MRJob", view=wire.Manifest)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A Spark application.

    Attributes:
        heap_mib: Heap of an executor.
    """

    name: str
    namespace: str
    is_dynamic: bool
    minimum: int
    work: fake_programs.Work
    heap_mib: int = 512

    def manifest(self) -> dict[str, Any]:
        """Return the SparkApp."""
        executor = {"cores": self.work.cores, "memory": f"{self.heap_mib}m"}
        spec: dict[str, Any] = {
            "type": "Scala",
            "mainClass": "org.example.Main",
            "mainApplicationFile": "local:///opt/app.jar",
            "driver": {"cores": 1, "memory": "512m", "annotations": {fake_programs.WORK: self.work.text()}},
            "executor": executor if self.is_dynamic else executor | {"instances": self.work.executors},
            "ui": {"service": False},
        }
        if self.is_dynamic:
            most = self.work.executors
            spec["dynamicAllocation"] = {"enabled": True, "minExecutors": self.minimum, "maxExecutors": most}
        return manifest("SparkApp", self.name, self.namespace, spec)

    def driver(self) -> dict[str, Any]:
        """Return the driver as a plain pod for kube-scheduler."""
        found = plain_pod(f"{self.name}-driver", self.namespace, cpu="1", memory=f"{MEMORY_MIB}Mi")
        found["metadata"]["annotations"] = {fake_programs.WORK: self.work.text()}
        return found


def applications(count: int) -> Iterator[Application]:
    """Yield applications of 1 to 6 executors of 1 or 2 cores, a third of them with dynamic allocation."""
    draw = random.Random(14)  # noqa: S311 - a workload
    for number in range(count):
        executors, cores = draw.randint(1, 6), draw.choice((1, 1, 2))
        minimum = max(1, executors // 2) if number % 3 == 0 else executors
        yield Application(
            name=f"app-{number}",
            namespace=NAMESPACES[number % len(NAMESPACES)],
            is_dynamic=number % 3 == 0,
            minimum=minimum,
            work=fake_programs.Work(
                executors=executors,
                minimum=minimum,
                cores=cores,
                memory_mib=MEMORY_MIB,
                seconds=executors * draw.uniform(5, 15),
            ),
        )


def mrjob(number: int) -> dict[str, Any]:
    """Return an MRJob."""
    stage = {"command": ["cat"]}
    small = stage | {"resources": {"cpu": "1", "memory": "512Mi"}}
    spec = {
        "image": "none",
        "input": ["s3://b/in"],
        "output": f"s3://b/out-{number}",
        "mapper": small,
        "reducer": small,
    }
    spec |= {"reducer": small | {"tasks": REDUCES}, "storage": {"s3": {"endpointURL": "http://s3", "secretRef": KEYS}}}
    return manifest("MRJob", f"mr-{number}", NAMESPACES[number % len(NAMESPACES)], spec)


def manifest(kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return an object of Boathouse."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def plain_pod(name: str, namespace: str, *, cpu: str, memory: str) -> dict[str, Any]:
    """Return a pod for kube-scheduler."""
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": "default-scheduler",
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [{"name": "task", "image": "none", "resources": resources}],
        },
    }


async def all_of(calls: Sequence[Callable[[], Awaitable[Any]]]) -> None:
    """Make calls, 16 at a time; what exists already is fine."""
    waiting = iter(calls)

    async def work() -> None:
        for call in waiting:
            with contextlib.suppress(errors.AlreadyExists):
                await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(16):
            group.create_task(work())


class Tasks:
    """What tasks of MRJobs do: setup posts a plan to the operator's endpoint, all report that they succeeded."""

    def __init__(self, api: client.ApiClient, port: int) -> None:
        self._api, self._port = api, port
        self._order = msgspec.json.Decoder(contract.TaskSpec)
        split = contract.Split(url="s3://b/in", offset_bytes=0, length_bytes=1, size_bytes=1)
        self._plan = contract.Plan(splits=[split] * MAPS, bytes_total=MAPS)
        self._digest = splits.encode(self._plan).digest
        self._context = ssl.create_default_context()
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE

    async def run(self, pod: fake_programs.Pod) -> str | None:
        """Run a task; return its termination message."""
        env = {one.name: one.value for one in pod.spec.containers[0].env}
        if contract.TASK_ENV not in env:
            return None
        order = self._order.decode(env[contract.TASK_ENV])
        await asyncio.sleep(RUN_S.get(order.task_type, 1.0))
        is_setup = order.task_type is TaskType.SETUP
        if is_setup:
            await self._post(pod, order)
        result = contract.TaskResult(
            outcome="succeeded", winner_attempt=order.attempt, digest=self._digest if is_setup else "", counters={}
        )
        return msgspec.json.encode(result).decode()

    async def _post(self, pod: fake_programs.Pod, order: contract.TaskSpec) -> None:
        token = await fake_programs.token(self._api, pod)
        url = f"https://127.0.0.1:{self._port}/v1/jobs/{order.namespace}/{order.job_uid}/plan"
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession() as session:
            status = 0
            for _ in range(60):
                async with session.post(
                    url, data=msgspec.json.encode(self._plan), headers=headers, ssl=self._context
                ) as posted:
                    status = posted.status
                if status == http.HTTPStatus.OK:
                    return
                await asyncio.sleep(1)
        raise SystemExit(f"the operator does not take the plan of {pod.metadata.name}: {status}")


class Mix:
    """The two rounds on one cluster."""

    def __init__(self, api: client.ApiClient, cluster: Any, folder: Path, arguments: argparse.Namespace) -> None:
        self._api, self._cluster, self._folder = api, cluster, folder
        self._apps = list(applications(arguments.applications))
        self._mrjobs = arguments.mrjobs
        self._cores = arguments.nodes * ClusterSpec().kwok_node_cpu

    async def prepare(self) -> None:
        """Make namespaces and accounts."""
        for namespace in NAMESPACES:
            await all_of([partial(self._api.create, catalogue.NAMESPACES.untyped(), {"metadata": {"name": namespace}})])
            for account in ("default", "boathouse-spark"):
                metadata = {"metadata": {"name": account}}
                await all_of([partial(self._api.create, ACCOUNTS, metadata, namespace)])
            keys = {"metadata": KEYS, "stringData": {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}}
            await all_of([partial(self._api.create, SECRETS, keys, namespace)])

    # Boathouse

    async def boathouse(self) -> tuple[float, collections.Counter[str]]:
        """Run all with Boathouse; return seconds, and what finished."""
        given = {"task": {"image": "none"}, "spark": {"image": "none"}, "lease": load.PATIENT}
        objects = [(APPS, one.manifest()) for one in self._apps]
        objects += [(MRJOBS, mrjob(number)) for number in range(self._mrjobs)]
        random.Random(1).shuffle(objects)  # noqa: S311 - a workload
        await all_of([partial(self._api.create, r, m, m["metadata"]["namespace"]) for r, m in objects])
        began_s = time.monotonic()
        with operator(self._folder, self._cluster.kubeconfig, given) as (ours, port):
            programs = fake_programs.Programs(self._api, NAMESPACES, Tasks(self._api, port).run)
            async with self._measured(programs, has_reservations=True) as running:
                finished = await self._until_done(began_s, len(objects), running)
            seconds = time.monotonic() - began_s
            support.say(f"    {support.cpu_s(ours.process.pid):.0f} s of the operator's CPU")
        return seconds, finished

    @contextlib.asynccontextmanager
    async def _measured(
        self, programs: fake_programs.Programs, *, has_reservations: bool
    ) -> AsyncIterator[asyncio.Task[None]]:
        """Run programs during the block; print where the time of cores and drivers went, and what was written."""
        used = core_time.CoreTime(programs, self._cores, has_reservations=has_reservations)
        running, sampling = asyncio.create_task(programs.run()), asyncio.create_task(used.run())
        before, began_s = await asyncio.to_thread(api_requests.Requests.of, self._cluster), time.monotonic()
        yield running
        after, seconds = await asyncio.to_thread(api_requests.Requests.of, self._cluster), time.monotonic() - began_s
        for task in (running, sampling):
            await support.cancel(task)
        for line in (*used.lines(), after.since(before).line(seconds)):
            support.say(f"    {line}")

    async def _until_done(self, began_s: float, count: int, running: asyncio.Task[None]) -> collections.Counter[str]:
        while True:
            phases: collections.Counter[str] = collections.Counter()
            for resource in (APPS, MRJOBS):
                page = await support.reading(partial(self._api.list, resource))
                phases.update(
                    f"{r['kind']} {r.get('status', {}).get('phase', 'new')}" for r in map(_kinded(resource), page.items)
                )
            done = sum(n for phase, n in phases.items() if phase.split()[1] in {"Succeeded", "Failed"})
            seconds = time.monotonic() - began_s
            support.say(f"    {seconds:4.0f} s: {', '.join(f'{phase} {n}' for phase, n in sorted(phases.items()))}")
            if done == count or seconds > LIMIT_S:
                return phases
            if running.done():
                running.result()
            await asyncio.sleep(10)

    # kube-scheduler

    async def kube_scheduler(self, limit_s: float) -> tuple[float, collections.Counter[str]]:
        """Run all with kube-scheduler alone, for so long at most; return seconds, and what finished."""
        ended: dict[str, asyncio.Event] = collections.defaultdict(asyncio.Event)

        async def task(pod: fake_programs.Pod) -> str | None:
            kind = TaskType.MAP if "-map-" in pod.metadata.name else TaskType.REDUCE
            await asyncio.sleep(RUN_S[kind])
            ended[pod.metadata.name].set()
            return ""

        programs = fake_programs.Programs(self._api, NAMESPACES, task)
        work: list[Callable[[], Awaitable[Any]]] = [
            partial(self._api.create_pod, one.namespace, one.driver()) for one in self._apps
        ]
        jobs = [asyncio.create_task(self._plain_mrjob(number, ended, work)) for number in range(self._mrjobs)]
        await asyncio.sleep(0)
        random.Random(1).shuffle(work)  # noqa: S311 - a workload
        LocalProvider().signal(self._cluster.name, "kube-scheduler", signal.SIGSTOP)
        await all_of(work)
        async with self._measured(programs, has_reservations=False):
            LocalProvider().signal(self._cluster.name, "kube-scheduler", signal.SIGCONT)
            seconds, finished = await self._until_finished(programs, jobs, limit_s)
        for job in jobs:
            await support.cancel(job)
        return seconds, finished

    async def _until_finished(
        self, programs: fake_programs.Programs, jobs: list[asyncio.Task[None]], limit_s: float
    ) -> tuple[float, collections.Counter[str]]:
        finished: collections.Counter[str] = collections.Counter()
        began_s = time.monotonic()
        while True:
            seconds = time.monotonic() - began_s
            apps = sum(f"{one.name}-driver" in programs.ended for one in self._apps)
            finished = collections.Counter({"SparkApp": apps, "MRJob": sum(one.done() for one in jobs)})
            support.say(f"    {seconds:4.0f} s: {dict(finished)}")
            if seconds >= limit_s or sum(finished.values()) == len(self._apps) + len(jobs):
                return seconds, finished
            await asyncio.sleep(10)

    async def _plain_mrjob(
        self, number: int, ended: dict[str, asyncio.Event], work: list[Callable[[], Awaitable[Any]]]
    ) -> None:
        namespace = NAMESPACES[number % len(NAMESPACES)]
        maps, reduces = (
            [f"mr-{number}-{kind}-{i}" for i in range(n)] for kind, n in (("map", MAPS), ("reduce", REDUCES))
        )

        def create(name: str) -> Awaitable[Any]:
            return self._api.create_pod(namespace, plain_pod(name, namespace, cpu="1", memory="512Mi"))

        work += [partial(create, name) for name in maps]
        for name in maps:
            await ended[name].wait()
        await all_of([partial(create, name) for name in reduces])
        for name in reduces:
            await ended[name].wait()

    async def clear(self) -> None:
        """Delete all objects and pods."""
        for namespace in NAMESPACES:
            for kind in ("sparkapps", "mrjobs"):
                self._cluster.run("delete", kind, "--all", "-n", namespace, "--wait=false")
            self._cluster.run("delete", "pods", "--all", "-n", namespace, "--grace-period=0", "--force", "--wait=false")
        while await self._count_pods():  # noqa: ASYNC110 - no event says so
            await asyncio.sleep(2)

    async def _count_pods(self) -> int:
        pages = [await support.reading(partial(self._api.list, catalogue.PODS, n)) for n in NAMESPACES]
        return sum(len(page.items) for page in pages)


def _kinded(resource: catalogue.Resource[Any]) -> Callable[[Any], dict[str, Any]]:
    return lambda one: {**one, "kind": resource.kind}


@contextlib.contextmanager
def operator(
    folder: Path, kubeconfig: Path, given: dict[str, Any], program: tuple[str, ...] = ("-m", "boathouse")
) -> Iterator[tuple[load.Operator, int]]:
    """Run the operator until the block ends; give it and the port of its endpoint.

    Args:
        folder: For its configuration and log.
        kubeconfig: The cluster.
        given: Settings, with the keys of the configuration file.
        program: What Python runs.
    """
    path = folder / "operator.json"
    path.write_text(json.dumps({"namespace": load.SYSTEM} | given))
    ports = {name: support.free_port() for name in ("metrics", "health", "progress")}
    command = [sys.executable, *program, f"--config={path}", f"--kubeconfig={kubeconfig}", "--identity=mix"]
    command += [f"--{name}-port={port}" for name, port in ports.items()]
    with (folder / "operator.log").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield (
            load.Operator(process=process, metrics_port=ports["metrics"], health_port=ports["health"]),
            ports["progress"],
        )
    finally:
        process.kill()
        process.wait(timeout=30)


async def main(arguments: argparse.Namespace) -> None:
    """Run both rounds, and print what finished."""
    folder = Path(tempfile.mkdtemp(prefix="boathouse-bench-mix-"))
    support.say(f"==> logs in {folder}")
    theirs: collections.Counter[str] | None = None
    theirs_s = 0.0
    with support.cluster("mix", arguments.nodes) as cluster:
        cluster.run("create", "namespace", load.SYSTEM)
        cluster.run("apply", "--server-side", "-f", str(load.CRDS))
        async with client.ApiClient(config.load(cluster.kubeconfig)) as api:
            mix = Mix(api, cluster, folder, arguments)
            await mix.prepare()
            support.say("==> Boathouse")
            seconds, ours = await mix.boathouse()
            if arguments.only != "boathouse":
                await mix.clear()
                support.say(f"==> kube-scheduler, for {TIMES * seconds:.0f} s at most")
                theirs_s, theirs = await mix.kube_scheduler(TIMES * seconds)
    support.say(f"\nBoathouse: {seconds:.0f} s: {dict(sorted(ours.items()))}")
    if theirs is not None:
        support.say(f"kube-scheduler alone: {theirs_s:.0f} s: {dict(sorted(theirs.items()))} finished")
    raise SystemExit(not set(ours) <= {"MRJob Succeeded", "SparkApp Succeeded"})


if __name__ == "__main__":
    asyncio.run(main(support.options(__doc__ or "", applications=300, mrjobs=100, nodes=8, only="")))
