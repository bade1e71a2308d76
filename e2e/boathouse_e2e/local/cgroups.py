"""The cgroup above a local cluster's pods: made in every hierarchy before the kubelets start, removed at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from boathouse_e2e.errors import ClusterError

ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "hugetlb", "systemd")
_HYBRID = "unified"  # where systemd mounts v2 beside v1; container runtimes write there too
_REMOVE_TIMEOUT_S = 60


def unified(root: Path = ROOT) -> bool:
    """Return whether the machine has cgroup v2 only."""
    return (root / "cgroup.controllers").exists()


def hierarchies(root: Path = ROOT) -> list[Path]:
    """Return the mounted hierarchies: one for cgroup v2, one for each controller of v1 (links and doubles left out)."""
    if unified(root):
        return [root]
    found: dict[tuple[int, int], Path] = {}
    for name in _CONTROLLERS:
        path = root / name
        if (path / "cgroup.procs").exists():
            stat = path.stat()
            found.setdefault((stat.st_dev, stat.st_ino), path)
    return list(found.values())


def create(cgroup: str, root: Path = ROOT) -> None:
    """Make a cgroup in every hierarchy, with all controllers (v2) and its parent's CPUs and memory nodes (v1).

    Raises:
        OSError: the hierarchy cannot be written.
    """
    for hierarchy in hierarchies(root):
        steps = [hierarchy.joinpath(*Path(cgroup).parts[:depth]) for depth in range(1, len(Path(cgroup).parts) + 1)]
        for folder in steps:
            folder.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not unified(root) and (folder / name).exists():
                    (folder / name).write_text((folder.parent / name).read_text().strip())
            if unified(root):
                controllers = (folder.parent / "cgroup.controllers").read_text().split()
                (folder.parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in controllers))


def find(cgroup: str, root: Path = ROOT) -> list[Path]:
    """Return where the cgroup is, in any hierarchy."""
    everywhere = [*hierarchies(root), root / _HYBRID]
    return [path for hierarchy in everywhere if (path := hierarchy / cgroup).exists()]


def kill(cgroup: str, root: Path = ROOT) -> None:
    """End the processes in a cgroup of ours and in all beneath it."""
    for top in find(cgroup, root):
        for folder, _, _ in os.walk(top):
            for pid in _pids(Path(folder)):
                _kill(pid)


def remove(cgroup: str, root: Path = ROOT) -> None:
    """End what still runs in a cgroup of ours and remove it and all beneath it.

    Raises:
        ClusterError: the kernel keeps it busy.
    """
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while left := find(cgroup, root):
        for top in left:
            _remove_tree(top)
        if time.monotonic() > deadline:
            raise ClusterError(f"these cgroups are still busy: {', '.join(map(str, left))}")
        time.sleep(0.05)


def _remove_tree(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        try:
            Path(folder).rmdir()
        except OSError:  # busy: end what is in it, and come back
            for pid in _pids(Path(folder)):
                _kill(pid)


def _pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # it is in a cgroup that only this cluster's pods are put into
