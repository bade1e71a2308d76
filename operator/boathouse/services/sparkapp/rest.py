"""Read what running drivers say of themselves by Spark's REST interface: for people, never as proof of anything.

A driver runs a tenant's code. It may answer slowly, without end, with a redirect or with anything else; each of these
is no answer. Whatever it says, the values that this module returns fit into a status.

A driver that does not respond occupies a worker for two seconds. Therefore separate workers read the drivers, each at
most every ten seconds, and namespaces take turns.
"""

import asyncio
import contextlib
import dataclasses
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import aiohttp
import msgspec

from boathouse import fair
from boathouse.resources.sparkapp import status as wire
from boathouse.services.frame.kind import ObjectUid

MASTER: Final = "spark.master"
_SIZES: Final = (
    *(
        f"spark.{role}.{what}"
        for role in ("driver", "executor")
        for what in ("cores", "memory", "memoryOverhead", "memoryOverheadFactor", "minMemoryOverhead")
    ),
    *("spark.executor.instances", "spark.executor.pyspark.memory", "spark.kubernetes.memoryOverheadFactor"),
    *("spark.memory.offHeap.enabled", "spark.memory.offHeap.size"),
    *(f"spark.dynamicAllocation.{what}" for what in ("enabled", "minExecutors", "maxExecutors", "initialExecutors")),
    *(f"spark.kubernetes.{role}.{bound}.cores" for role in ("driver", "executor") for bound in ("request", "limit")),
)
_CLOSED: Final = (
    *("spark.authenticate", "spark.ui.killEnabled"),
    *("spark.kubernetes.namespace", "spark.kubernetes.driver.pod.name", "spark.kubernetes.executor.podNamePrefix"),
    *("spark.kubernetes.executor.podTemplateFile", "spark.kubernetes.executor.scheduler.name"),
    "spark.kubernetes.authenticate.executor.serviceAccountName",
)
_RELIED_ON: Final = frozenset({MASTER, *_SIZES, *_CLOSED})
_EXTENDED_RESOURCES: Final = ("spark.driver.resource.", "spark.executor.resource.")
TIMEOUT_S: Final = 2.0
MAX_ANSWER_BYTES: Final = 256 * 1024
_STATES: Final = ("active", "completed", "failed")
_OK: Final = 200
EVERY_S: Final = 10.0
WORKERS: Final = 8
STARTS_PER_S: Final = 20
MAX_KEYS: Final = 16
T = TypeVar("T")
Get = Callable[[str, int, str], Awaitable[bytes | None]]
"""Reads a path of a port of an address."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Stages and tasks of the running jobs of an application."""

    stages: wire.StageCounts
    tasks: wire.TaskCounts

    @property
    def percent(self) -> int | None:
        """Return how many of the tasks are done, in percent; None without tasks."""
        total = self.tasks.total
        return min(100, 100 * self.tasks.completed // total) if total else None


class _Job(msgspec.Struct, rename="camel"):
    num_tasks: int = 0
    num_active_tasks: int = 0
    num_completed_tasks: int = 0
    num_failed_tasks: int = 0
    num_active_stages: int = 0
    num_completed_stages: int = 0
    num_failed_stages: int = 0


class _Stage(msgspec.Struct, rename="camel"):
    disk_bytes_spilled: int = 0


class _Environment(msgspec.Struct, rename="camel"):
    spark_properties: list[tuple[str, str]] = []


def _decoded(answer: bytes, shape: type[T]) -> T | None:
    """Return the answer; None if it is not understood."""
    try:
        return msgspec.json.decode(answer, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def progress(answer: bytes) -> Progress | None:
    """Return the sums over the running jobs; None if the answer is not understood."""
    jobs = _decoded(answer, list[_Job])
    if jobs is None:
        return None
    totals = {name: min(sum(max(0, getattr(job, name)) for job in jobs), 2**31 - 1) for name in _Job.__struct_fields__}
    return Progress(
        stages=wire.StageCounts(**{state: totals[f"num_{state}_stages"] for state in _STATES}),
        tasks=wire.TaskCounts(total=totals["num_tasks"], **{state: totals[f"num_{state}_tasks"] for state in _STATES}),
    )


def spilled_bytes(answer: bytes) -> int | None:
    """Return what the completed stages wrote to disk for want of memory; None if the answer is not understood."""
    stages = _decoded(answer, list[_Stage])
    if stages is None:
        return None
    return min(sum(max(0, stage.disk_bytes_spilled) for stage in stages), 2**60)


def relied_on(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of a driver's properties that its program must not change: by these, nodes were chosen."""
    return {key: value for key, value in properties.items() if key in _RELIED_ON or key.startswith(_EXTENDED_RESOURCES)}


def overridden(answer: bytes, expected: Mapping[str, str]) -> Sequence[str] | None:
    """Return the properties that the program changed, sorted; None if its answer is not understood."""
    environment = _decoded(answer, _Environment)
    if environment is None:
        return None
    actual = dict(environment.spark_properties)
    return sorted(key for key, value in expected.items() if _differs(key, value, actual.get(key)))


def _differs(key: str, expected: str, actual: str | None) -> bool:
    if key == MASTER:
        return actual is not None and not actual.startswith("k8s://")
    return actual is None or (actual.strip() != expected.strip() and not actual.endswith("redacted)"))


@contextlib.asynccontextmanager
async def reader() -> AsyncIterator[Get]:
    """Yield a function that returns the answer to a GET of a path without leading slash; None for no usable one."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        auto_decompress=False,
        trust_env=False,
        max_line_size=8190,
        max_field_size=8190,
    ) as session:
        yield partial(_get, session)


async def _get(session: aiohttp.ClientSession, address: str, port: int, path: str) -> bytes | None:
    url = url_of(address, port, path)
    if url is None:
        return None
    try:
        async with asyncio.timeout(TIMEOUT_S), session.get(url, allow_redirects=False) as answer:
            if answer.status != _OK:
                return None
            body = await answer.content.readexactly(MAX_ANSWER_BYTES + 1)
    except asyncio.IncompleteReadError as whole:
        return whole.partial
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return None
    return None if len(body) > MAX_ANSWER_BYTES else body


def url_of(address: str, port: int, path: str) -> str | None:
    """Return the URL below a pod's address; None for an address that no pod of the cluster's network has."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    if ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified or not 0 < port < 2**16:
        return None
    host = f"[{ip}]" if ip.version == 6 else str(ip)  # noqa: PLR2004 - of IP
    return f"http://{host}:{port}/{path}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A running driver, with the properties to compare; with `reads_spills`, what its executors spilled is read too."""

    uid: ObjectUid
    namespace: str
    pod_uid: str
    address: str
    port: int
    application_id: str
    expected: Mapping[str, str]
    reads_spills: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Data that a driver reports about itself; None: not reported yet. `overridden` are properties that it changed."""

    progress: Progress | None = None
    overridden: tuple[str, ...] | None = None
    spilled_bytes: int = 0


@dataclasses.dataclass(slots=True)
class _Followed:
    target: Target
    due_s: float
    is_queued: bool = False
    report: Report = dataclasses.field(default_factory=Report)


class Reports:
    """The reports of running drivers, which `run` reads; calls `on_change` with an application that has news."""

    def __init__(
        self,
        on_change: Callable[[ObjectUid], None],
        monotonic: Callable[[], float],
        client: contextlib.AbstractAsyncContextManager[Get] | None = None,
    ) -> None:
        self._on_change, self._monotonic, self._client = on_change, monotonic, client or reader()
        self._followed: dict[ObjectUid, _Followed] = {}
        self._queue: fair.FairQueue[ObjectUid] = fair.FairQueue(WORKERS)

    def follow(self, target: Target) -> None:
        """Read this driver from now on."""
        self._followed[target.uid] = _Followed(target, self._monotonic())

    def follows(self, uid: ObjectUid, pod_uid: str, address: str) -> bool:
        """Return whether this driver is read at this address, which changes if the kubelet makes a new sandbox."""
        followed = self._followed.get(uid)
        return followed is not None and (followed.target.pod_uid, followed.target.address) == (pod_uid, address)

    def forget(self, uid: ObjectUid) -> None:
        """Read the driver of an application no more."""
        self._followed.pop(uid, None)

    def of(self, uid: ObjectUid, pod_uid: str) -> Report:
        """Return what the driver said last; an empty report if it said nothing."""
        followed = self._followed.get(uid)
        return followed.report if followed is not None and followed.target.pod_uid == pod_uid else Report()

    async def run(self) -> None:
        """Read reports until cancelled."""
        reading: set[asyncio.Task[None]] = set()
        async with self._client as get:
            try:
                while True:
                    self._queue_due()
                    if (taken := self._queue.take()) is not None:
                        task = asyncio.create_task(self._read(get, *taken))
                        reading.add(task)
                        task.add_done_callback(reading.discard)
                    await asyncio.sleep(1 / STARTS_PER_S)
            finally:
                for task in reading:
                    task.cancel()
                await asyncio.gather(*reading, return_exceptions=True)

    def _queue_due(self) -> None:
        now_s = self._monotonic()
        for uid, followed in self._followed.items():
            if followed.due_s <= now_s and not followed.is_queued:
                followed.is_queued = True
                self._queue.put(followed.target.namespace, uid)

    async def _read(self, get: Get, namespace: str, uid: ObjectUid) -> None:
        followed = self._followed.get(uid)
        try:
            if followed is None or not followed.is_queued:
                return
            report = await _report(get, followed)
            followed.is_queued, followed.due_s = False, self._monotonic() + EVERY_S
            if report != followed.report:
                followed.report = report
                self._on_change(uid)
        finally:
            self._queue.done(namespace)


async def _report(get: Get, followed: _Followed) -> Report:
    target, report = followed.target, followed.report

    async def answer(path: str) -> bytes | None:
        return await get(target.address, target.port, f"api/v1/applications/{target.application_id}/{path}")

    jobs = await answer("jobs?status=running")
    if jobs is None:
        return report
    report = dataclasses.replace(report, progress=progress(jobs) or report.progress)
    if target.reads_spills and (stages := await answer("stages?status=complete")) is not None:
        spilled = max(spilled_bytes(stages) or 0, report.spilled_bytes)
        report = dataclasses.replace(report, spilled_bytes=spilled)
    environment = await answer("environment") if report.overridden is None else None
    changed = None if environment is None else overridden(environment, target.expected)
    return report if changed is None else dataclasses.replace(report, overridden=tuple(changed[:MAX_KEYS]))
