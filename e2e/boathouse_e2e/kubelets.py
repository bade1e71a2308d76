"""The part of kubelets and task runtimes: tasks whose pods run end by a model, and commits are exclusive.

It keeps its own account of what was committed, which no death of an operator can touch; jobs are judged by it.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import functools
import gzip
import ssl
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from boathouse.cluster import catalogue, client, errors, informer, store, wire
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse_e2e import lab, played_pods
from boathouse_e2e.paused_tasks import PausedTasks
from boathouse_task import contract
from boathouse_task.contract import TaskType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_LOOK_S = 0.05
_AT_ONCE = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A job's shape, and what its tasks do wrong.

    Attributes:
        cpu: That each task asks for.
        fails: (task, attempt) that fails by the user's fault.
        lost: (task, attempt) that fails by the infrastructure's.
        polls: Whether its reduces poll for orders, and pause as ordered.
        slow_start_percent: Share of maps after which its reduces are started; None: the default.
    """

    maps: int
    reduces: int
    fails: frozenset[tuple[str, int]] = frozenset()
    lost: frozenset[tuple[str, int]] = frozenset()
    cpu: str = "900m"
    polls: bool = False
    slow_start_percent: int | None = None

    def manifest(self, name: str, namespace: str = lab.NAMESPACE) -> dict[str, Any]:
        """Return the MRJob."""
        stage: dict[str, Any] = {
            "command": ["cat"],
            "maxAttempts": 2,
            "resources": {"requests": {"cpu": self.cpu, "memory": "300Mi"}},
        }
        storage = {"s3": {"endpointURL": "http://s3:7070", "secretRef": {"name": "s3-credentials"}}}
        spec: dict[str, Any] = {"input": ["s3://b/in"], "output": f"s3://b/{name}", "mapper": stage, "storage": storage}
        if self.reduces:
            spec |= {"reducer": stage, "numReduceTasks": self.reduces}
        if self.slow_start_percent is not None:
            spec["slowStartCompletedMapsPercent"] = self.slow_start_percent
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": names.API_VERSION, "kind": mrjob_names.KIND, "metadata": metadata, "spec": spec}

    @property
    def tasks(self) -> int:
        """How many maps and reduces it has."""
        return self.maps + self.reduces

    @property
    def plan(self) -> contract.Plan:
        """A split for each map."""
        one = contract.Split(url="s3://b/in", offset_bytes=0, length_bytes=1, size_bytes=1)
        return contract.Plan(splits=[one] * self.maps, bytes_total=self.maps)


@dataclasses.dataclass(slots=True)
class Ledger:
    """What the store of one job would hold.

    Attributes:
        winners: task to the attempt whose commit was first.
        attempts: task to how many of its attempts ended.
        held: Whether its maps run on until this is taken back.
    """

    shape: Shape
    winners: dict[str, int] = dataclasses.field(default_factory=dict)
    attempts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    held: bool = False

    def committed(self, letter: str) -> int:
        """Return how many maps (`m`) or reduces (`r`) have committed."""
        return sum(task.startswith(letter) for task in self.winners)


class _Variable(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class _Container(msgspec.Struct, frozen=True):
    name: str
    env: tuple[_Variable, ...] = ()


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    containers: tuple[_Container, ...]
    service_account_name: str = ""


class Pod(msgspec.Struct, frozen=True):
    """What kubelets and task runtimes read of a pod."""

    metadata: wire.ObjectMeta
    spec: _Spec
    status: wire.PodStatus

    @property
    def runs(self) -> bool:
        """Whether its task may end."""
        return self.status.phase == "Running" and self.metadata.deletion_timestamp is None


_PODS = catalogue.PODS.viewed_as(Pod)


class Kubelets:
    """Ends the tasks of one namespace.

    Attributes:
        jobs: what it knows of each job, by UID.
        owners: the UID of the job that each output belongs to, by URL: the ownership marks.
        homes: the namespace of each job that has asked for an output, by UID: a part of its mark.
    """

    def __init__(self, api: client.ApiClient, place: lab.Lab, namespace: str = lab.NAMESPACE) -> None:
        self._api, self._lab, self._namespace = api, place, namespace
        self._decoder = msgspec.json.Decoder(contract.TaskSpec)
        self._session = aiohttp.ClientSession()
        self._posting: dict[str, asyncio.Task[None]] = {}
        self._running: dict[str, tuple[Pod, contract.TaskSpec]] = {}
        self._polling: dict[str, asyncio.Task[None]] = {}
        self._tokens: dict[str, str] = {}
        self.paused = PausedTasks(time.monotonic)
        self._wake = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self.operators: list[lab.Operator] = []
        self.jobs: dict[str, Ledger] = {}
        self.refusals: list[str] = []
        self.owners: dict[str, str] = {}
        self.homes: dict[str, str] = {}

    def start(self) -> None:
        """Begin to work."""
        self._work = asyncio.create_task(self.run())

    def check(self) -> None:
        """Raise what ended the work, if something has."""
        if self._work is not None and self._work.done():
            self._work.result()

    async def run(self) -> None:
        """Follow all pods, and end those that may end."""
        watch = informer.Informer(
            self._api,
            _PODS,
            on_change=self._on_change,
            namespaces=[self._namespace],
            labels=names.LABEL_JOB_UID,
            fields=catalogue.PODS_THAT_HOLD_RESOURCES,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(watch.run())
            group.create_task(self._step_for_ever())

    def _on_change(self, change: store.Change[Pod]) -> None:
        match change:
            case store.Deleted():
                self._stop(change.old)
            case store.Added(new=pod) | store.Modified(new=pod):
                order = self._order(pod)
                if pod.runs and order is not None:
                    self._running[pod.metadata.uid] = (pod, order)
                    self._wake.set()
                else:
                    self._stop(pod)

    def _stop(self, pod: Pod) -> None:
        """Forget a pod that runs no longer."""
        uid = pod.metadata.uid
        self._running.pop(uid, None)
        self._tokens.pop(uid, None)
        self.paused.forget(uid)
        if polling := self._polling.pop(uid, None):
            polling.cancel()

    async def _step_for_ever(self) -> None:
        while True:
            self._wake.clear()
            for pod, order in self._running.values():
                self._start_polling(pod, order)
            awake = [
                running_task for running_task in self._running.values() if not self.paused.is_paused(running_task[0])
            ]
            ready = iter([running_task for running_task in awake if self._is_ready(running_task[1])])
            async with asyncio.TaskGroup() as group:
                for _ in range(_AT_ONCE):
                    group.create_task(self._step_each(ready))
            for task in (*self._posting.values(), *self._polling.values()):
                if task.done():
                    task.result()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._wake.wait()

    async def _step_each(self, ready: Iterator[tuple[Pod, contract.TaskSpec]]) -> None:
        for pod, order in ready:
            with contextlib.suppress(*played_pods.PASSING):
                await self._step(pod, order)

    def _start_polling(self, pod: Pod, order: contract.TaskSpec) -> None:
        """Let a reduce poll for orders, if its job's reduces do."""
        job, uid = self.jobs.get(order.job_uid), pod.metadata.uid
        if job is not None and job.shape.polls and order.task_type is TaskType.REDUCE and uid not in self._polling:
            polls = self.paused.poll(
                f"{order.job_uid}/tasks/{pod.metadata.name}",
                functools.partial(self._ask, pod=pod),
                pod=lambda: self._running.get(uid, (pod,))[0],
                lacks_maps=lambda: job.committed("m") < job.shape.maps,
            )
            self._polling[uid] = asyncio.create_task(polls)

    def _is_ready(self, order: contract.TaskSpec) -> bool:
        """Return whether there is something to do for a task: a reduce waits for all maps."""
        job = self.jobs.get(order.job_uid)
        if job is None or (job.held and order.task_type is TaskType.MAP):
            return False
        done = job.committed("m") == job.shape.maps
        return done or order.task_type is not TaskType.REDUCE or bool(job.shape.fails or job.shape.lost)

    async def close(self) -> None:
        """End the work, and what is on its way; what went wrong is raised."""
        try:
            if self._work is not None:
                self._work.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._work
        finally:
            await self._close_connections()

    async def _close_connections(self) -> None:
        tasks = [*self._posting.values(), *self._polling.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    async def _step(self, pod: Pod, order: contract.TaskSpec) -> None:
        job = self.jobs[order.job_uid]
        task = contract.task_name(order.task_type, order.index)
        if order.task_type is TaskType.SETUP:
            if pod.metadata.uid not in self._posting:
                self._posting[pod.metadata.uid] = asyncio.create_task(self._set_up(pod, order, job))
        elif (task, order.attempt) in job.shape.fails and task not in job.winners:
            await self._end(
                pod, job, task, contract.TaskResult(outcome="failed", reason="UserCommandFailed", user_error=True)
            )
        elif (task, order.attempt) in job.shape.lost and task not in job.winners:
            await self._end(pod, job, task, contract.TaskResult(outcome="failed", reason="StorageError"))
        elif order.task_type is TaskType.CLEANUP:
            if self.owners.get(order.output_url) == order.job_uid:
                del self.owners[order.output_url]
            await self._end(pod, job, task, contract.TaskResult(outcome="succeeded"))
        elif self._may_end(order, job):
            winner = job.winners.setdefault(task, order.attempt)
            counters = self._counters(order, job)
            await self._end(
                pod, job, task, contract.TaskResult(outcome="succeeded", winner_attempt=winner, counters=counters)
            )

    def _may_end(self, order: contract.TaskSpec, job: Ledger) -> bool:
        """Return a reduce needs every map's output; a commit that comes too early is the operator's fault."""
        maps = job.committed("m") == job.shape.maps
        if order.task_type is TaskType.COMMIT:
            assert maps, "the commit task came before all maps had committed"
            assert job.committed("r") == job.shape.reduces, "the commit task came before all reduces had committed"
            assert self.owners.get(order.output_url) == order.job_uid, "another job has taken the output over"
        return maps or order.task_type in {TaskType.MAP, TaskType.PROBE}

    def _counters(self, order: contract.TaskSpec, job: Ledger) -> contract.Counters:
        """Return the counters of a task: 1 for a task itself, for the commit the sum of the committed ones."""
        if order.task_type is TaskType.COMMIT:
            return {"Tasks": {"map": job.committed("m"), "reduce": job.committed("r")}}
        return {"Tasks": {order.task_type.value: 1}}

    async def _set_up(self, pod: Pod, order: contract.TaskSpec, job: Ledger) -> None:
        if await self._acquire(pod, order):
            plan = msgspec.json.encode(job.shape.plan)
            digest = (await self._ask("POST", f"{order.job_uid}/plan", plan, pod=pod, gzipped=True))["digest"]
            assert digest == contract.plan_digest(job.shape.plan)
            result = contract.TaskResult(
                outcome="succeeded", digest=digest, splits=job.shape.maps, bytes_total=job.shape.maps
            )
        else:
            result = contract.TaskResult(outcome="failed", reason="OutputExists", user_error=True)
        while pod.metadata.uid in self._running:
            with contextlib.suppress(*played_pods.PASSING):
                await self._end(pod, job, "setup", result)
                return
            await asyncio.sleep(_LOOK_S)

    async def _acquire(self, pod: Pod, order: contract.TaskSpec) -> bool:
        """Make the job the output's owner, as `boathouse_task.ownership` does; False while another one is."""
        self.homes[order.job_uid] = order.namespace
        while (owner := self.owners.setdefault(order.output_url, order.job_uid)) != order.job_uid:
            path = f"{order.job_uid}/tasks/{pod.metadata.name}/owner"
            mark = f"uid={owner}&namespace={self.homes[owner]}&cluster={order.cluster}"
            state = (await self._ask("GET", f"{path}?{mark}", pod=pod))["state"]
            if state == contract.OwnerState.ENDED and self.owners.get(order.output_url) == owner:
                self.owners[order.output_url] = order.job_uid
            elif state != contract.OwnerState.UNKNOWN:
                return False
            await asyncio.sleep(0.1)
        return True

    async def _ask(
        self, method: str, path: str, body: bytes | None = None, *, pod: Pod, gzipped: bool = False
    ) -> dict[str, Any]:
        """Ask the progress endpoint as a task does, with the pod's own token, until a leader answers."""
        metadata = pod.metadata
        if metadata.uid not in self._tokens:
            self._tokens[metadata.uid] = await asyncio.to_thread(self._token, pod)
        path = f"/v1/jobs/{metadata.namespace}/{path}"
        headers = {"Authorization": f"Bearer {self._tokens[metadata.uid]}", "Content-Type": "application/json"}
        if body is not None and gzipped:  # as the task runtime sends plans
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        while True:
            for operator in self.operators:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, errors.ClusterError, ssl.SSLError):
                    context = ssl.create_default_context(cadata=await self._authorities())
                    url = f"https://localhost:{operator.port}{path}"
                    timeout = aiohttp.ClientTimeout(total=15)
                    async with self._session.request(
                        method, url, data=body, headers=headers, ssl=context, timeout=timeout
                    ) as answer:
                        if answer.ok:
                            return dict(await answer.json())
                        self.refusals.append(f"{metadata.name}: {answer.status} {await answer.text()}")
            await asyncio.sleep(0.1)

    async def _authorities(self) -> str:
        bundle = await self._api.get(catalogue.CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, self._namespace)
        return str(bundle["data"]["ca.crt"])

    def _token(self, pod: Pod) -> str:
        metadata = pod.metadata
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={metadata.name}")
        return self._lab.cluster.run(
            *("create", "token", pod.spec.service_account_name, "-n", metadata.namespace),
            *(f"--audience={names.TOKEN_AUDIENCE}", *bound, f"--bound-object-uid={metadata.uid}"),
        ).strip()

    def _order(self, pod: Pod) -> contract.TaskSpec | None:
        """Return the task that a pod runs; None for a pod that only bears the labels of one."""
        environment = {variable.name: variable.value for variable in pod.spec.containers[0].env}
        order = environment.get(contract.TASK_ENV)
        return self._decoder.decode(order) if order is not None else None

    async def _end(self, pod: Pod, job: Ledger, task: str, result: contract.TaskResult) -> None:
        exit_code = 0 if result.succeeded else 10 if result.user_error else 20
        if await self.end(pod, msgspec.json.encode(result).decode(), exit_code):
            job.attempts[task] += 1

    async def end(self, pod: Pod, message: str, exit_code: int) -> bool:
        """End a pod's container with a termination message. Returns False where the pod was deleted meanwhile."""
        status = played_pods.ended(pod.spec.containers[0].name, exit_code, message)
        is_there = await played_pods.write(self._api, self._namespace, pod.metadata.name, pod.metadata.uid, status)
        if is_there:
            self._stop(pod)
        return is_there


@contextlib.asynccontextmanager
async def running(api: client.ApiClient, place: lab.Lab) -> AsyncIterator[Kubelets]:
    """Kubelets at work until the block ends; what went wrong with them is raised then."""
    kubelets = Kubelets(api, place)
    kubelets.start()
    try:
        yield kubelets
    finally:
        await kubelets.close()
