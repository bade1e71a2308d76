"""Reduces that pause: the endpoint that orders it, and the cgroup in which they see their CPU limit."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from boathouse_task import contract
from boathouse_task.contract import Acknowledgement, Orders, SuspendOrder, TaskSpec, TaskType
from tests.builders.task_servers import Endpoint, Request

if TYPE_CHECKING:
    from tests.builders.tasks import JobFolder

MAPS = 2
RESULT = b"a\t1\na\t1\nb\t1\nb\t1\n"
"""What the reduce of `reduce_spec` writes with two maps."""


class Cgroup:
    """A folder with the files of a container's CPU limit.

    Args:
        folder: A folder that does not exist yet.
        version: Of the cgroup file system.
        period_us: The period; kubelets use 100 ms by default.
    """

    def __init__(self, folder: Path, version: int = 2, period_us: int = 100_000) -> None:
        self.folder, self._version, self._period_us = folder, version, period_us
        (folder / "cpu").mkdir(parents=True)
        if version == 1:
            (folder / "cpu/cpu.cfs_period_us").write_text(f"{period_us}\n")
        self.limit(None)

    def limit(self, milli: int | None) -> None:
        """Set the limit, as the kubelet does after a resize; None: no limit."""
        quota = None if milli is None else milli * self._period_us // 1000
        if self._version == 1:
            self._write("cpu/cpu.cfs_quota_us", f"{-1 if quota is None else quota}")
        else:
            self._write("cpu.max", f"{'max' if quota is None else quota} {self._period_us}")

    def _write(self, name: str, text: str) -> None:
        """Write a file at once, as the kernel does: who reads it meanwhile sees the old text or the new one."""
        descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(descriptor, f"{text:<40}\n".encode(), 0)
        finally:
            os.close(descriptor)


class SuspendingEndpoint(Endpoint):
    """Orders a reduce to pause while its last map has not ended, and then reports all maps as done.

    Attributes:
        acknowledged: Is set by the first acknowledgement.
        acknowledgements: All of them.
    """

    def __init__(self, order: SuspendOrder, maps: int = MAPS) -> None:
        super().__init__()
        self._order, self._maps = order, maps
        self.acknowledged = threading.Event()
        self.acknowledgements: list[Acknowledgement] = []

    def response(self, request: Request) -> tuple[int, bytes]:
        if request.path.endswith("/acknowledge"):
            self.acknowledgements.append(msgspec.json.decode(request.body, type=Acknowledgement))
            self.acknowledged.set()
            return 204, b""
        if request.path.endswith("/report"):
            return 200, b"{}"
        is_carried_out = f"order={self._order.id}" in request.path
        done = range(self._maps if is_carried_out else max(1, self._maps - 1))
        orders = Orders(
            version=2 if is_carried_out else 1,
            maps_total=self._maps,
            maps_done=contract.encode_bitmap(done, self._maps),
            suspend=self._order,
        )
        return 200, msgspec.json.encode(orders)


def reduce_spec(job_folder: JobFolder, url: str, maps: int = MAPS) -> TaskSpec:
    """Run the maps of a job; return the parameters of its reduce, whose endpoint is at the URL."""
    spec = msgspec.structs.replace(job_folder.map_spec(b"b\t1\na\t1\n", reducer=["cat"]), maps=maps)
    for index in range(maps):
        assert job_folder.run_task(msgspec.structs.replace(spec, index=index)).succeeded
    return msgspec.structs.replace(spec, task_type=TaskType.REDUCE, progress_url=url)


def reduce_output(job_folder: JobFolder, spec: TaskSpec) -> bytes:
    """Return what the reduce has written."""
    return Path("/" + job_folder.task(spec).layout.data(TaskType.REDUCE, 0, 1).path).read_bytes()
