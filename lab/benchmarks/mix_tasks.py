"""What drivers, executors and tasks of `mix_workload.py` do on `modelled_nodes.py`, as their pods are now.

Tasks of MRJobs speak to the operator's endpoint as the task runtime does: setup posts the plan, tasks report, reduces
poll for orders and pause as ordered. Plain pods for kube-scheduler run the same work and send nothing.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import http
import ssl
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
from typing_extensions import override

from benchmarks import fake_programs, mix_workload, modelled_nodes
from boathouse.cluster import errors, store
from boathouse.resources import quantity
from boathouse.services.mrjob import splits
from boathouse_e2e.paused_tasks import PausedTasks
from boathouse_policies import model
from boathouse_sim import work
from boathouse_sim.live import sizes
from boathouse_sim.live.rates import Activity, Gate
from boathouse_task import contract
from boathouse_task.contract import TaskType

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from boathouse.cluster import client

AROUND_S = 0.5
"""Run time of setup, commit and cleanup tasks."""
REPORT_S = 5.0
LOOK_S = 0.05
JITTER = 0.1
"""Coefficient of variation of run times, the same in all rounds."""
COMMAND_SHARE = 0.1
"""Share of a task's memory that its command needs; the rest is for buffers."""
MIB = 1 << 20
ENDLESS_MS = 1e9
GROUP = "Boathouse"


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class JobState:
    """A job of a round.

    Attributes:
        gate: Its map output.
        mapped: Indexes of the maps that have ended.
    """

    job: mix_workload.Job
    gate: Gate
    mapped: set[int] = dataclasses.field(default_factory=set)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a pod runs.

    Attributes:
        job_uid: Empty for a plain pod.
    """

    state: JobState
    task_type: TaskType
    index: int
    attempt: int = 1
    job_uid: str = ""


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class Live:
    """A task that runs.

    Attributes:
        pod: The newest version of its pod.
        running: Its part of the node.
        size: What `sizes` reads of it.
        segment: What it does; None for nothing that takes resources.
        ended: Set when it has done that.
        timings: Of its phases.
    """

    pod: fake_programs.Pod
    order: Order
    running: modelled_nodes.Running
    size: Any
    luck: float
    segment: work.Segment | None = None
    ended: asyncio.Future[None] | None = None
    timings: list[contract.Timing] = dataclasses.field(default_factory=list)

    @property
    def lacks_maps(self) -> bool:
        """Whether it is a reduce without all its input."""
        return self.order.task_type is TaskType.REDUCE and not self.order.state.gate.open


class Endpoint:
    """The operator's endpoint, as tasks use it.

    Args:
        api: Creates tokens.
        port: Of the endpoint.
    """

    def __init__(self, api: client.ApiClient, port: int) -> None:
        self._api, self._base = api, f"https://127.0.0.1:{port}/v1/jobs"
        self._context = ssl.create_default_context()
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._tokens: dict[str, str] = {}
        self.refusals: collections.Counter[str] = collections.Counter()

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(self, pod: fake_programs.Pod, method: str, path: str, body: bytes | None = None) -> Any:
        """Send a request; returns the answer, or None if it was refused."""
        url, metadata = f"{self._base}/{pod.metadata.namespace}/{path}", pod.metadata
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, errors.ClusterError):
            if metadata.uid not in self._tokens:
                self._tokens[metadata.uid] = await fake_programs.token(self._api, pod)
            headers = {"Authorization": f"Bearer {self._tokens[metadata.uid]}"}
            async with self._session.request(method, url, data=body, headers=headers, ssl=self._context) as answer:
                if answer.status == http.HTTPStatus.OK:
                    return await answer.json()
                self.refusals[f"{method} {path.rpartition('/')[2].partition('?')[0]}: {answer.status}"] += 1
        return None

    async def ask(self, pod: fake_programs.Pod, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        """Send a request until it is accepted."""
        while (answer := await self.send(pod, method, path, body)) is None:  # noqa: ASYNC110
            await asyncio.sleep(1)
        return dict(answer)


class Programs(fake_programs.Programs):
    """The pods of a round.

    Args:
        api: Speaks to the API server.
        nodes: Where they run.
        mix: The workload.
        seed: Of the tasks' luck.
        endpoint: The operator's; None where kube-scheduler binds plain pods.

    Attributes:
        counts: What policies did to pods.
        paused: Tasks that pause.
    """

    def __init__(
        self,
        api: client.ApiClient,
        nodes: modelled_nodes.Nodes,
        mix: mix_workload.Mix,
        seed: int,
        endpoint: Endpoint | None,
    ) -> None:
        super().__init__(api, [mix_workload.NAMESPACE], self._run)
        self._nodes, self._seed, self._endpoint = nodes, seed, endpoint
        self._states = {job.name: JobState(job=job, gate=Gate(job.maps)) for job in mix.jobs}
        self._live: dict[str, Live] = {}
        self._busy: dict[str, modelled_nodes.Running] = {}  # executors that work
        self._decoder = msgspec.json.Decoder(contract.TaskSpec)
        self.counts: collections.Counter[str] = collections.Counter()
        self.paused = PausedTasks(time.monotonic)
        self.ends: dict[str, asyncio.Event] = collections.defaultdict(asyncio.Event)

    @override
    async def run(self) -> None:
        """Follow the pods until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(super().run())
            group.create_task(self._pause_for_ever())

    # Pods

    @override
    def _changed(self, change: store.Change[fake_programs.Pod]) -> None:
        super()._changed(change)
        pod = change.old if isinstance(change, store.Deleted) else change.new
        uid = pod.metadata.uid
        live = self._live.get(uid)
        if uid not in self.pods:
            if (running := self._busy.pop(uid, None)) is not None:
                self._nodes.remove(running)
            if live is not None and live.ended is not None and pod.status.phase != "Succeeded":
                live.ended.cancel()
        elif live is not None:
            live.pod = pod
            self._resize(live)

    def _resize(self, live: Live) -> None:
        """Take over the CPU that the pod has now."""
        milli = _cpu_milli(live.pod)
        if milli == live.size.asked.cpu_milli:
            return
        live.size.asked = model.Resources(cpu_milli=milli, memory_bytes=0)
        if live.segment is None:
            return
        stretch = sizes.stretches(live.segment, live.size, None, work.PLAIN_READING, live.luck)
        load = sizes.loads(live.segment, live.size, None, stretch)

        def change(activity: Activity) -> None:
            activity.stretch, activity.load = stretch, load

        self._nodes.change(live.running, change)

    async def _pause_for_ever(self) -> None:
        """Pause and continue reduces."""
        while True:
            await asyncio.sleep(LOOK_S)
            for live in list(self._live.values()):
                activity = live.running.activity
                if activity is not None and live.order.task_type is TaskType.REDUCE:
                    is_paused = self.paused.is_paused(live.pod)
                    if is_paused is not activity.paused:
                        self._nodes.change(live.running, partial(_pause, is_paused=is_paused))

    @override
    async def _end(self, pod: fake_programs.Pod, message: str = "") -> None:
        await super()._end(pod, message)
        self.ends[pod.metadata.name].set()

    # Executors

    @override
    def worked_s(self, executors: list[fake_programs.Pod]) -> float:
        """Return the executor-seconds that running executors have worked since the last tick."""
        return sum(map(self._worked_s, executors))

    def _worked_s(self, pod: fake_programs.Pod) -> float:
        running = self._busy.get(pod.metadata.uid)
        if running is None:
            cores = quantity.milli(pod.spec.containers[0].resources.requests["cpu"]) / 1000
            running = self._busy[pod.metadata.uid] = _running(pod)
            self._nodes.add(running)
            load, stretch = (cores, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
            self._nodes.start(running, Activity(running.node, ENDLESS_MS, stretch, load, lambda: None))
        activity = running.activity
        assert activity is not None
        left_ms = self._nodes.left_ms(activity)
        worked_ms = activity.work_ms - left_ms
        activity.work_ms = left_ms
        return worked_ms / 1000

    # Tasks

    def _order(self, pod: fake_programs.Pod) -> Order | None:
        if self._endpoint is None:
            job, kind, index = pod.metadata.name.rsplit("-", 2)
            state = self._states.get(job)
            return None if state is None else Order(state=state, task_type=TaskType(kind), index=int(index))
        env = {variable.name: variable.value for variable in pod.spec.containers[0].env}
        if contract.TASK_ENV not in env:
            return None
        spec = self._decoder.decode(env[contract.TASK_ENV])
        return Order(
            state=self._states[spec.job_name],
            task_type=spec.task_type,
            index=spec.index,
            attempt=spec.attempt,
            job_uid=spec.job_uid,
        )

    async def _run(self, pod: fake_programs.Pod) -> str | None:
        """Run a task; return its termination message."""
        order = self._order(pod)
        if order is None:
            return None
        live = self._live[pod.metadata.uid] = self._begin(pod, order)
        self._nodes.add(live.running)
        beside = [asyncio.create_task(coroutine) for coroutine in self._beside(live)]
        try:
            result = await self._perform(live)
        except asyncio.CancelledError:  # the pod is gone
            self.counts["lost tasks"] += 1
            return None
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            self._nodes.remove(live.running)
            self.paused.forget(pod.metadata.uid)
            del self._live[pod.metadata.uid]
        return msgspec.json.encode(result).decode()

    def _begin(self, pod: fake_programs.Pod, order: Order) -> Live:
        container = _container(order)
        given_mb = _memory_mib(pod)
        penalty = container.penalty.run_time_ms(10_000, given_mb, container.mem_mb) / 10_000
        is_work = order.task_type in {TaskType.MAP, TaskType.REDUCE}
        milli = _cpu_milli(pod)
        self.counts["probes"] += order.task_type is TaskType.PROBE
        self.counts["tasks with less memory"] += is_work and given_mb < container.mem_mb
        self.counts["tasks with less CPU"] += is_work and milli < 1000 * container.cores
        name = f"{order.state.job.name}-{order.task_type}-{order.index}"
        return Live(
            pod=pod,
            order=order,
            running=_running(pod),
            size=SimpleNamespace(
                container=container,
                machine=SimpleNamespace(speed=1.0),
                penalty=penalty,
                asked=model.Resources(cpu_milli=milli, memory_bytes=0),
            ),
            luck=sizes.variation(self._seed, name, order.attempt, JITTER, (0.0, 0.0)),
        )

    def _beside(self, live: Live) -> list[Coroutine[Any, Any, None]]:
        """Return the coroutines that report and poll while a task works."""
        if self._endpoint is None or live.order.task_type not in {TaskType.MAP, TaskType.REDUCE}:
            return []
        found: list[Coroutine[Any, Any, None]] = [self._report_for_ever(live)]
        if live.order.task_type is TaskType.REDUCE:
            path, endpoint = self._path(live), self._endpoint

            async def ask(method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
                return await endpoint.ask(live.pod, method, path, body)

            found.append(self.paused.poll(path, ask, pod=lambda: live.pod, lacks_maps=lambda: live.lacks_maps))
        return found

    def _path(self, live: Live) -> str:
        return f"{live.order.job_uid}/tasks/{live.pod.metadata.name}"

    async def _perform(self, live: Live) -> contract.TaskResult:
        """Do a task's work."""
        order, digest = live.order, ""
        match order.task_type:
            case TaskType.SETUP:
                digest = await self._set_up(live)
            case TaskType.MAP | TaskType.REDUCE:
                for segment in live.size.container.segments:
                    await self._do(live, segment)
                if order.task_type is TaskType.MAP:
                    self._mapped(order)
            case TaskType.PROBE:
                probe = order.state.job.spec.probe
                assert probe is not None
                await self._do(live, work.Segment(name="tasks", cpu_ms=probe.duration_ms))
            case TaskType.COMMIT | TaskType.CLEANUP | TaskType.UBER:
                await asyncio.sleep(AROUND_S)
        return contract.TaskResult(
            outcome=contract.SUCCEEDED,
            winner_attempt=order.attempt,
            digest=digest,
            counters={GROUP: _counters(live)},
            timings=live.timings,
        )

    async def _set_up(self, live: Live) -> str:
        await asyncio.sleep(AROUND_S)
        if self._endpoint is None:
            return ""
        plan = _plan(live.order.state.job)
        await self._endpoint.ask(live.pod, "POST", f"{live.order.job_uid}/plan", msgspec.json.encode(plan))
        return str(splits.encode(plan).digest)

    async def _do(self, live: Live, segment: work.Segment) -> None:
        """Do a segment at the rate that the node allows."""
        began_ms = _epoch_ms()
        is_copy = segment.name == "shuffle"
        gate = live.order.state.gate if is_copy else None
        live.segment, live.ended = segment, asyncio.get_running_loop().create_future()
        stretch = sizes.stretches(segment, live.size, None, work.PLAIN_READING, live.luck)
        load = sizes.loads(segment, live.size, None, stretch)
        ended = live.ended
        activity = Activity(
            live.running.node,
            sizes.work_ms(segment),
            stretch,
            load,
            lambda: None if ended.done() else ended.set_result(None),
            gate=gate,
        )
        self._nodes.start(live.running, activity)
        try:
            await ended
        finally:
            self._nodes.drop(live.running)
        # A copy mostly waits for maps: as in the runtime, that does not count as work.
        live.timings.append(contract.Timing("wait" if is_copy else segment.name, began_ms, _epoch_ms()))

    def _mapped(self, order: Order) -> None:
        """Let the reduces of a job copy the output of a map."""
        state = order.state
        if order.index in state.mapped:
            return
        state.mapped.add(order.index)
        is_last = len(state.mapped) == state.job.maps
        copying = [
            live.running
            for live in self._live.values()
            if is_last and live.order.state is state and live.running.activity and live.running.activity.gate
        ]
        self._nodes.mapped(state.gate, copying)

    # Reports

    async def _report_for_ever(self, live: Live) -> None:
        assert self._endpoint is not None
        while True:
            await asyncio.sleep(REPORT_S)
            activity = live.running.activity
            if activity is not None and not activity.paused:
                report = msgspec.json.encode(self._report(live, activity))
                await self._endpoint.send(live.pod, "POST", f"{self._path(live)}/report", report)

    def _report(self, live: Live, activity: Activity) -> contract.TaskReport:
        assert live.segment is not None
        share = 1.0 - self._nodes.left_ms(activity) / activity.work_ms
        state = live.order.state
        if live.order.task_type is TaskType.MAP:
            return contract.TaskReport(phase="map", progress=share, cpu_s=live.running.cpu_s)
        is_copy = activity.gate is not None
        copied = live.size.container.segments[0].copy_mb * (share if is_copy else 1.0) * modelled_nodes.MB
        return contract.TaskReport(
            phase="wait" if live.lacks_maps else "shuffle" if is_copy else "reduce",
            progress=min(share, 0.99) / 3 if is_copy else (2 + share) / 3,
            cpu_s=live.running.cpu_s,
            counters={GROUP: {"Reduce shuffle bytes": round(copied)}},
            maps_done=len(state.mapped),
            maps_total=state.job.maps,
        )


def _running(pod: fake_programs.Pod) -> modelled_nodes.Running:
    metadata = pod.metadata
    return modelled_nodes.Running(node=pod.spec.node_name, namespace=metadata.namespace, name=metadata.name)


def _container(order: Order) -> work.Container:
    job = order.state.job
    if order.task_type is TaskType.MAP:
        return job.map
    if order.task_type is TaskType.REDUCE:
        assert job.reduce is not None
        return job.reduce
    return work.Container(mem_mb=1)


def _cpu_milli(pod: fake_programs.Pod) -> int:
    """Return the CPU that a pod's container may use: its limit in force, which is 1m above its request."""
    statuses = [status.resources for status in pod.status.container_statuses if status.resources is not None]
    resources = statuses[0] if statuses else pod.spec.containers[0].resources
    limit = resources.limits.get("cpu")
    return quantity.milli(limit) - 1 if limit else quantity.milli(resources.requests.get("cpu", "1"))


def _memory_mib(pod: fake_programs.Pod) -> int:
    """Return the memory of a task: its limit, which is 1 MiB above its request; a plain pod has a request only."""
    resources = pod.spec.containers[0].resources
    return quantity.units(resources.limits.get("memory") or resources.requests["memory"]) // MIB


def _plan(job: mix_workload.Job) -> contract.Plan:
    size = job.swim.map_input_bytes // job.maps
    split = contract.Split(url="s3://b/in", offset_bytes=0, length_bytes=size, size_bytes=size)
    return contract.Plan(splits=[split] * job.maps, bytes_total=size * job.maps)


def _counters(live: Live) -> dict[str, int]:
    """Return the counters of a finished task."""
    order, container = live.order, live.size.container
    if order.task_type is TaskType.PROBE:
        return _probe_counters(order.state.job)
    if order.task_type not in {TaskType.MAP, TaskType.REDUCE}:
        return {}
    penalty = live.size.penalty
    copied = round(container.segments[0].copy_mb * modelled_nodes.MB)
    written = round(sum(segment.write_mb for segment in container.segments) * modelled_nodes.MB)
    found = {"CPU time spent (ms)": round(1000 * live.running.cpu_s)}
    found["Peak memory bytes"] = round(COMMAND_SHARE * container.mem_mb) * MIB
    is_map = order.task_type is TaskType.MAP
    found["Bytes Read" if is_map else "Reduce shuffle bytes"] = copied
    found["Map output materialized bytes" if is_map else "Bytes Written"] = written
    if penalty > 1:
        found["Spilled bytes"] = written if is_map else copied
        found["Spill milliseconds"] = round((penalty - 1) * container.work_ms)
    return found


def _probe_counters(job: mix_workload.Job) -> dict[str, int]:
    """Return the counters of a probe, by the names of the runtime."""
    assert job.spec.probe is not None
    found = {}
    for name, amount in job.spec.probe.counters:
        if name == "Sampled fraction":
            found["Sampled bytes"] = round(amount * _plan(job).bytes_total)
        elif name.endswith(" seconds"):
            found[name.removesuffix("seconds") + "milliseconds"] = round(1000 * amount)
        else:
            found[name] = round(amount)
    return found


def _epoch_ms() -> int:
    return round(time.time() * 1000)


def _pause(activity: Activity, *, is_paused: bool) -> None:
    activity.paused = is_paused
