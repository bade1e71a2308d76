"""A leader that orders a reduce to pause, and the cgroup in which the reduce sees its CPU limit."""

import threading
from pathlib import Path

import msgspec

from boathouse_task import contract
from boathouse_task.contract import Acknowledgement, Orders, SuspendOrder, TaskSpec, TaskType
from tests.unit.task.endpoints import Endpoint
from tests.unit.task.workshop import Workshop

MAPS = 2


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
        """Sets the limit, as the kubelet does after a resize; None: no limit."""
        quota = None if milli is None else milli * self._period_us // 1000
        if self._version == 1:
            (self.folder / "cpu/cpu.cfs_quota_us").write_text(f"{-1 if quota is None else quota}\n")
        else:
            (self.folder / "cpu.max").write_text(f"{'max' if quota is None else quota} {self._period_us}\n")


class Leader(Endpoint):
    """Answers polls: an order to pause while map 1 has not ended, then all maps.

    Attributes:
        acknowledged: Is set by the first acknowledgement.
        acknowledgements: Those that arrived.
    """

    def __init__(self, order: SuspendOrder) -> None:
        super().__init__([])
        self._order = order
        self.acknowledged = threading.Event()
        self.acknowledgements: list[Acknowledgement] = []

    def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        if path.endswith("/acknowledge"):
            self.acknowledgements.append(msgspec.json.decode(body, type=Acknowledgement))
            self.acknowledged.set()
            return 204, b""
        if path.endswith("/report"):
            return 200, b"{}"
        carried_out = f"order={self._order.id}" in path
        done = range(MAPS if carried_out else 1)
        orders = Orders(
            version=2 if carried_out else 1,
            maps_total=MAPS,
            maps_done=contract.encode_bitmap(done, MAPS),
            suspend=self._order,
        )
        return 200, msgspec.json.encode(orders)


def reduce_spec(workshop: Workshop, url: str) -> TaskSpec:
    """The order of a reduce whose maps have ended; its result is `RESULT`."""
    order = workshop.map_spec(b"b\t1\na\t1\n", reducer=["cat"])
    order = msgspec.structs.replace(order, maps=MAPS)
    for index in range(MAPS):
        assert workshop.run(msgspec.structs.replace(order, index=index)).succeeded
    return msgspec.structs.replace(order, task_type=TaskType.REDUCE, progress_url=url)


RESULT = b"a\t1\na\t1\nb\t1\nb\t1\n"


def result_of(workshop: Workshop, spec: TaskSpec) -> bytes:
    """What the reduce has written."""
    return Path("/" + workshop.task(spec).layout.data(TaskType.REDUCE, 0, 1).path).read_bytes()
