"""CPU limit and usage of containers of nodes that run on this machine, from their cgroups."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import cgroups

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class ContainerCpu:
    """The CPU of one container.

    Args:
        limit: Its folder in the hierarchy of the controller `cpu`.
        usage: Its folder in the hierarchy of the controller `cpuacct`, the same one with cgroup v2.
    """

    def __init__(self, limit: Path, usage: Path) -> None:
        self._limit, self._usage = limit, usage

    @classmethod
    def find(cls, container_id: str, root: Path = cgroups.ROOT) -> Self:
        """Return the container with an ID as its pod's status has it, such as `containerd://abc`.

        Raises:
            ClusterError: its cgroup is not on this machine.
        """
        number = container_id.rpartition("/")[2]
        hierarchies = [root, root] if cgroups.unified(root) else [root / "cpu", root / "cpuacct"]
        folders = [next(hierarchy.rglob(f"*{number}*"), None) for hierarchy in hierarchies if number]
        found = [folder for folder in folders if folder is not None]
        if len(found) < len(hierarchies):
            raise ClusterError(f"the cgroup of container {container_id!r} is not on this machine: see PROVIDER")
        return cls(*found)

    def limit_milli(self) -> int | None:
        """Return its CPU limit in thousandths; None for no limit, or if the container has ended."""
        try:
            if (path := self._limit / "cpu.max").exists():
                quota, period = path.read_text().split()
            else:
                names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                quota, period = ((self._limit / name).read_text().strip() for name in names)
        except OSError:
            return None
        return None if quota in {"max", "-1"} else int(quota) * 1000 // int(period)

    def used_s(self) -> float:
        """Return its CPU time in seconds."""
        if (path := self._usage / "cpuacct.usage").exists():
            return int(path.read_text()) / 1e9
        words = (self._usage / "cpu.stat").read_text().split()
        return int(words[words.index("usage_usec") + 1]) / 1e6

    def rate(self, for_s: float) -> float:
        """Return the CPU that it uses from now on, in cores."""
        before_s, began_s = self.used_s(), time.monotonic()
        time.sleep(for_s)
        return (self.used_s() - before_s) / (time.monotonic() - began_s)


class LimitSampler:
    """Notes when the CPU limits of containers change.

    Args:
        containers: by name.
        every_s: time between two looks.

    Attributes:
        changes: epoch seconds, name and the new limit, in order; the first of each name is the limit at the start.
    """

    def __init__(self, containers: Mapping[str, ContainerCpu], every_s: float = 0.005) -> None:
        self._containers, self._every_s = containers, every_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="limits", daemon=True)
        self.changes: list[tuple[float, str, int | None]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def changed_s(self, name: str, limit_milli: int, after_s: float) -> float | None:
        """Return when a container first had a limit after a moment; None if it has not had it yet."""
        return next(
            (at_s for at_s, who, limit in self.changes if (who, limit) == (name, limit_milli) and at_s > after_s), None
        )

    def _run(self) -> None:
        last: dict[str, int | None] = {}
        while not self._stopped.wait(self._every_s):
            for name, container in self._containers.items():
                limit = container.limit_milli()
                if name not in last or last[name] != limit:
                    last[name] = limit
                    self.changes.append((time.time(), name, limit))
