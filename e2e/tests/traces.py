"""What a cluster leaves on a machine: processes, namespaces, mounts, cgroups, devices, routes, rules and files."""

import dataclasses
from pathlib import Path
from typing import Any

from boathouse_e2e.docker import docker_answers
from boathouse_e2e.local import cgroups, cleanup, processes, state
from boathouse_e2e.local.state import State
from boathouse_e2e.shell import run, succeeds

ISOLATED = {"processes", "cgroups", "device", "routes", "rules", "namespaces", "files"}
"""What there is of a cluster that runs in namespaces of its own."""
NAMESPACES = ("net", "mnt", "pid")
FOLDERS = (
    *("/run", "/var/run", "/var/lib", "/var/log", "/var/log/pods", "/var/log/containers", "/etc/cni", "/etc/docker"),
    "/opt",
)


def of(known: State) -> dict[str, list[Any]]:
    """Return what is on the machine of a cluster, by kind; empty when it is gone."""
    layout = known.layout
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if str(layout.folder) in line]
    found = {
        "processes": processes.find(known.cluster_id) + _in_cgroup(layout.cgroup),
        "namespaces": sorted(namespaces(known)),
        "mounts": mounts,
        "cgroups": cgroups.find(layout.cgroup),
        "device": [layout.veth] if succeeds("ip", "link", "show", layout.veth) else [],
        "routes": [line for line in run("ip", "route").splitlines() if layout.veth in line],
        "rules": [table for table in _tables() if table.endswith(f" {layout.nft_table}")],
        "files": [layout.folder] if layout.folder.exists() else [],
    }
    return {what: traces for what, traces in found.items() if traces}


def namespaces(known: State) -> set[str]:
    """Return the namespaces of a cluster's processes that are not the machine's."""
    pids = [process.pid for process in processes.find(known.cluster_id)] + _in_cgroup(known.layout.cgroup)
    return {space for pid in pids for space in _namespaces_of(str(pid))} - _namespaces_of("self")


def all_namespaces() -> set[str]:
    """Return the namespaces of the machine's processes, without those of clusters: numbers come again."""
    pids = [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]
    found = {space for pid in pids for space in _namespaces_of(pid)}
    return found - {space for known in state.load_all() for space in namespaces(known)}


def _namespaces_of(pid: str) -> set[str]:
    try:
        return {str(Path("/proc", pid, "ns", kind).readlink()) for kind in NAMESPACES}
    except OSError:  # it ended
        return set()


def _in_cgroup(cgroup: str) -> list[int]:
    def text(path: Path) -> str:
        try:
            return path.read_text()
        except OSError:
            return ""

    entries = [path for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [int(path.name) for path in entries if f"/{cgroup}/" in text(path / "cgroup")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """What does not bear a cluster's name: `own` is left by one, `shared` by the last; and which clusters there are."""

    own: set[str]
    shared: set[str]
    clusters: set[str]

    def left_since(self, before: "Machine") -> set[str]:
        """Return what is here and was not before; what clusters share only if the others are the same as before."""
        left = self.own - before.own
        return left | (self.shared - before.shared) if self.clusters == before.clusters else left


def machine() -> Machine:
    """Return files, rules and devices, and the settings and folders that are put back after the last cluster.

    A cluster in the user's Docker leaves the settings of the kernel that kubelets change: they are not among these.
    """
    files = {str(path) for folder in FOLDERS if Path(folder).exists() for path in Path(folder).iterdir()}
    files -= {str(folder) for folder in cleanup.FOLDERS}
    devices = {path.name for path in Path("/sys/class/net").iterdir() if _foreign(path.name)}
    folders = {str(folder) for folder in cleanup.FOLDERS if folder.exists()} - cleanup.folders_to_remove()
    saved = () if docker_answers() else cleanup.SYSCTLS
    settings = {f"{name} is {Path('/proc/sys', name).read_text().strip()}" for name in saved}
    clusters = {known.spec.name for known in state.load_all() if known.layout.isolated}
    return Machine(own=files | devices | _rules(), shared=folders | settings, clusters=clusters)


def _rules() -> set[str]:
    """Return the rules of all tables but those of clusters, which bear their names; none where they cannot be read."""
    tables = [table for table in _tables() if _foreign(table)]
    listed = ("nft", "--stateless", "list")  # counters change
    return {f"{table}: {line}" for table in tables for line in run(*listed, *table.split()).splitlines()}


def _tables() -> list[str]:
    return run("nft", "list", "tables").splitlines() if succeeds("nft", "list", "tables") else []


def _foreign(name: str) -> bool:
    return "boathouse" not in name
