"""End a local cluster, from any state: after a good run, a failed start, or a starter that was killed halfway."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import cgroups, network, processes, state
from boathouse_e2e.paths import locked
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_e2e.local.state import State

# What clusters with nodes need of the machine: packets let through, and watches for many kubelets and containers.
LEAST = {"net/ipv4/ip_forward": 1, "fs/inotify/max_user_instances": 8192, "fs/inotify/max_user_watches": 524288}
# Kubelets set the others.
SYSCTLS = (*LEAST, "vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops")
FOLDERS = (Path("/var/lib/kubelet"), Path("/lib/modules"), Path("/etc/docker"))
_REMOVE_TIMEOUT_S = 300  # for a busy disk
_DELETERS = 16
"""The layers of all nodes are so many files that a disk takes minutes for one after the other."""


def end(known: State, *, keep_logs: bool = False) -> None:
    """End every process of a cluster and remove all that was made for it; may be repeated.

    Raises:
        ClusterError: a process, a mount or a cgroup would not go.
    """
    layout = known.layout
    processes.end_all(known.cluster_id, first=network.HOLDER)
    if layout.isolated:
        network.remove(layout)
        _unmount_beneath(layout.folder)
        cgroups.remove(layout.cgroup)
    _remove_folder(layout.folder, keep_logs=keep_logs)
    if layout.isolated:
        restore_machine()


def _unmount_beneath(folder: Path) -> None:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [line.split()[1] for line in lines]
    for point in sorted((point for point in points if point.startswith(f"{folder}/")), reverse=True):
        run("umount", "--lazy", point)


def _remove_folder(folder: Path, *, keep_logs: bool) -> None:
    """Delete a cluster's folder, its state last: what cannot be deleted now is still known to the next `down`."""
    kept = {"state.json", "logs"} if keep_logs else {"state.json"}
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while left := [path for path in folder.iterdir() if path.name not in kept] if folder.exists() else []:
        if time.monotonic() > deadline:
            raise ClusterError(f"cannot delete {', '.join(map(str, left))}")
        for path in left:  # mounts of namespaces that just ended may hold a folder for a moment
            _delete(path) if path.is_dir() else path.unlink()
    (folder / "state.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the logs are kept
        folder.rmdir()


def _delete(folder: Path) -> None:
    """Delete a folder, as far as that is possible."""
    with concurrent.futures.ThreadPoolExecutor(_DELETERS) as pool:
        list(pool.map(_unlink, os.walk(folder)))
    shutil.rmtree(folder, ignore_errors=True)


def _unlink(found: tuple[str, list[str], list[str]]) -> None:
    folder, _, names = found
    for name in names:
        with contextlib.suppress(OSError):
            Path(folder, name).unlink()


def _saved_sysctls() -> Path:
    return state.clusters_folder() / ".sysctls.json"


def _absent_folders() -> Path:
    return state.clusters_folder() / ".folders.json"


def folders_to_remove() -> set[str]:
    """Return the folders that the last cluster removes, where they are empty then: there were none before the first."""
    return set(json.loads(_absent_folders().read_text())) if _absent_folders().exists() else set()


def save_machine(folders: Sequence[Path] = FOLDERS) -> None:
    """Remember the machine as it is before the first cluster with nodes; raise those settings that are too low.

    Args:
        folders: Those that clusters may make because something is mounted there.
    """
    with locked(state.clusters_folder() / ".lock"):
        saved = json.loads(_saved_sysctls().read_text()) if _saved_sysctls().exists() else {}
        present = {name: Path("/proc/sys", name).read_text().strip() for name in SYSCTLS}
        _saved_sysctls().write_text(json.dumps(present | saved))
        for name, least in LEAST.items():
            if int(present[name]) < least:
                Path("/proc/sys", name).write_text(str(least))
        if not _absent_folders().exists():
            _absent_folders().write_text(json.dumps([str(folder) for folder in folders if not folder.exists()]))


def restore_machine() -> None:
    """Restore the settings when no cluster with nodes is left, and remove the folders that clusters made."""
    with locked(state.clusters_folder() / ".lock"):
        if not _saved_sysctls().exists() or any(known.layout.isolated for known in state.load_all()):
            return
        for name, value in json.loads(_saved_sysctls().read_text()).items():
            Path("/proc/sys", name).write_text(value)
        _saved_sysctls().unlink()
        for folder in folders_to_remove():
            with contextlib.suppress(OSError):  # another program uses it
                Path(folder).rmdir()
        _absent_folders().unlink(missing_ok=True)
