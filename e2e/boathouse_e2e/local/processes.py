"""The processes of a local cluster: started detached and marked, found by their mark, ended by it.

Each process carries its cluster's random id in its environment, which the kernel keeps for us in /proc. So no list of
pids has to be written, none can be missed when the starter dies halfway, and a pid that was given to another process
since is never taken for ours: a signal goes to a pidfd whose process was checked after the pidfd was opened.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.spec import ComponentStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CLUSTER_MARK = "BOATHOUSE_CLUSTER_ID"
COMPONENT_MARK = "BOATHOUSE_COMPONENT"
PROGRAM_MARK = "BOATHOUSE_PROGRAM"
_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_inherited_anyway = tuple(name.lower() for name in _INHERITED[-3:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that carries a cluster's mark.

    Attributes:
        pid: its id, as the machine sees it.
        component: what it was started as; what it starts itself inherits that.
        program: the name of its executable.
        main: whether it is the component's own program, not what only put it there nor what it started.
    """

    pid: int
    component: str
    program: str
    main: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A program to start: what is kept of it, so that it can be started again.

    Attributes:
        name: its name within the cluster.
        command: its words.
        log: where its output goes.
        program: the program that the command ends in, where that is not its first word.
    """

    name: str
    command: tuple[str, ...]
    log: str
    program: str = ""

    @property
    def executable(self) -> str:
        """The name of the executable that does the component's work: `program`, or the command's first word."""
        word = self.program or self.command[0]
        return Path(shutil.which(word) or word).resolve().name


def _environment_of(pid: int) -> dict[str, str]:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it ended, or is another user's
        return {}
    return dict(entry.decode(errors="replace").split("=", 1) for entry in entries if b"=" in entry)


def _read(pid: int, cluster_id: str) -> Process | None:
    environment = _environment_of(pid)
    if environment.get(CLUSTER_MARK) != cluster_id:
        return None
    try:
        program = Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)")
    except OSError:
        return None
    main = program == environment.get(PROGRAM_MARK)
    return Process(pid=pid, component=environment.get(COMPONENT_MARK, "?"), program=program, main=main)


def find(cluster_id: str) -> list[Process]:
    """Return all running processes of a cluster with its mark, oldest pid first (its pods' processes have none)."""
    pids = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())
    return [process for pid in pids if (process := _read(pid, cluster_id))]


def find_component(cluster_id: str, component: str) -> Process | None:
    """Return the process that does the work of a component."""
    own = [process for process in find(cluster_id) if process.component == component and process.main]
    return own[0] if own else None


def send(process: Process, cluster_id: str, number: signal.Signals) -> bool:
    """Signal a process if it still is the one with the cluster's mark; whether it was."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if _read(process.pid, cluster_id) is None:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def end_all(cluster_id: str, *, first: str | None = None, timeout_s: float = 60) -> None:
    """Kill all processes of a cluster, those of the component `first` before the others, until none is left.

    Raises:
        ClusterError: some did not end in time.
    """
    deadline = time.monotonic() + timeout_s
    while living := find(cluster_id):
        if time.monotonic() > deadline:
            named = ", ".join(f"{process.component} ({process.pid})" for process in living)
            raise ClusterError(f"these processes did not end: {named}")
        for process in sorted(living, key=lambda process: process.component != first):
            send(process, cluster_id, signal.SIGKILL)
        time.sleep(0.02)


def start(component: Component, *, cluster_id: str, folder: Path, enter: Sequence[str] = ()) -> None:
    """Start a component as a daemon, its output appended to its log, its command kept in `folder/components/`.

    `enter` is a command that puts the rest of its words into the cluster's namespaces.
    """
    kept = folder / "components" / f"{component.name}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(asdict(component), indent=1))
    environment = {key: os.environ[key] for key in (*_INHERITED, *_inherited_anyway) if key in os.environ}
    environment |= {CLUSTER_MARK: cluster_id, COMPONENT_MARK: component.name, PROGRAM_MARK: component.executable}
    Path(component.log).parent.mkdir(parents=True, exist_ok=True)
    with Path(component.log).open("ab") as log:
        subprocess.run(
            ["setsid", "--fork", *enter, *component.command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=folder,
            check=True,
        )


def known(folder: Path) -> Iterator[Component]:
    """Yield the components that were started for a cluster, by name."""
    for path in sorted((folder / "components").glob("*.json")):
        data = json.loads(path.read_text())
        yield Component(**{**data, "command": tuple(data["command"])})


def status(cluster_id: str, component: Component) -> ComponentStatus:
    """Return whether a component's process runs."""
    process = find_component(cluster_id, component.name)
    return ComponentStatus(
        name=component.name,
        state="running" if process else "ended",
        pid=process.pid if process else None,
        log=Path(component.log),
    )


def log_tail(path: Path, *, chars: int = 1500) -> str:
    """Return the end of a log, for an error message."""
    try:
        return path.read_text(errors="replace")[-chars:].strip()
    except OSError:
        return ""
