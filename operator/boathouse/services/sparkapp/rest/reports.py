"""Read the progress of running drivers concurrently with the reconcilers.

A driver that does not respond occupies a worker for two seconds. Therefore separate workers read the drivers, each at
most every ten seconds, and namespaces take turns.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from boathouse import fair
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.sparkapp.rest import answers, driver_client

EVERY_S: Final = 10.0
WORKERS: Final = 8
STARTS_PER_S: Final = 20
MAX_KEYS: Final = 16


class Client(Protocol):
    """Reads from a driver."""

    async def get(self, address: str, port: int, path: str) -> bytes | None:
        """Return the answer to a GET; None for no usable one."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A running driver.

    Attributes:
        pod_uid: The UID of its pod.
        address: The IP address of its pod.
        expected: The properties that it was given, of those that are compared.
        reads_spills: Whether to read what its executors spilled.
    """

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
    """Data that a driver reports about itself.

    Attributes:
        progress: Stages and tasks; None if the driver has not reported them.
        overridden: Properties that its program changed; None if the driver has not reported them.
        spilled_bytes: What its executors wrote to disk for want of memory, as far as it was read.
    """

    progress: answers.Progress | None = None
    overridden: tuple[str, ...] | None = None
    spilled_bytes: int = 0


@dataclasses.dataclass(slots=True)
class _Followed:
    target: Target
    due_s: float
    is_queued: bool = False
    report: Report = dataclasses.field(default_factory=Report)


class Reports:
    """The reports of running drivers; `run` reads them.

    Args:
        on_change: Called with the application whose report changed.
        monotonic: Returns monotonic seconds.
        client: Reads from drivers; an async context manager.
    """

    def __init__(
        self,
        on_change: Callable[[ObjectUid], None],
        monotonic: Callable[[], float],
        client: driver_client.DriverClient | None = None,
    ) -> None:
        self._on_change, self._monotonic = on_change, monotonic
        self._client = client or driver_client.DriverClient()
        self._followed: dict[ObjectUid, _Followed] = {}
        self._queue: fair.FairQueue[ObjectUid] = fair.FairQueue(WORKERS)

    def follow(self, target: Target) -> None:
        """Read this driver from now on."""
        self._followed[target.uid] = _Followed(target, self._monotonic())

    def follows(self, uid: ObjectUid, pod_uid: str, address: str) -> bool:
        """Return whether this driver is read at this address, which changes if the kubelet makes a new sandbox."""
        known = self._followed.get(uid)
        return known is not None and (known.target.pod_uid, known.target.address) == (pod_uid, address)

    def forget(self, uid: ObjectUid) -> None:
        """Read the driver of an application no more."""
        self._followed.pop(uid, None)

    def of(self, uid: ObjectUid, pod_uid: str) -> Report:
        """Return what the driver said last; an empty report if it said nothing."""
        known = self._followed.get(uid)
        return known.report if known is not None and known.target.pod_uid == pod_uid else Report()

    async def run(self) -> None:
        """Read reports until cancelled."""
        reading: set[asyncio.Task[None]] = set()
        async with self._client as client:
            try:
                while True:
                    self._queue_due()
                    if (taken := self._queue.take()) is not None:
                        task = asyncio.create_task(self._read(client, *taken))
                        reading.add(task)
                        task.add_done_callback(reading.discard)
                    await asyncio.sleep(1 / STARTS_PER_S)
            finally:
                for task in reading:
                    task.cancel()
                await asyncio.gather(*reading, return_exceptions=True)

    def _queue_due(self) -> None:
        now_s = self._monotonic()
        for uid, known in self._followed.items():
            if known.due_s <= now_s and not known.is_queued:
                known.is_queued = True
                self._queue.put(known.target.namespace, uid)

    async def _read(self, client: Client, namespace: str, uid: ObjectUid) -> None:
        known = self._followed.get(uid)
        try:
            if known is None or not known.is_queued:
                return
            report = await _report(client, known)
            known.is_queued, known.due_s = False, self._monotonic() + EVERY_S
            if report != known.report:
                known.report = report
                self._on_change(uid)
        finally:
            self._queue.done(namespace)


async def _report(client: Client, followed: _Followed) -> Report:
    target, report = followed.target, followed.report
    base = f"api/v1/applications/{target.application_id}"
    answer = await client.get(target.address, target.port, f"{base}/{answers.JOBS_PATH}")
    if answer is None:
        return report
    report = dataclasses.replace(report, progress=answers.progress(answer) or report.progress)
    if target.reads_spills:
        answer = await client.get(target.address, target.port, f"{base}/{answers.STAGES_PATH}")
        spilled = (answer is not None and answers.spilled_bytes(answer)) or 0
        report = dataclasses.replace(report, spilled_bytes=max(spilled, report.spilled_bytes))
    if report.overridden is not None:
        return report
    answer = await client.get(target.address, target.port, f"{base}/{answers.ENVIRONMENT_PATH}")
    changed = None if answer is None else answers.overridden(answer, target.expected)
    return report if changed is None else dataclasses.replace(report, overridden=tuple(changed[:MAX_KEYS]))
