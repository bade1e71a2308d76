"""Run runc without the capabilities that this machine's processes cannot have.

Docker gives a privileged container all capabilities that it knows. Where one is missing from the bounding set, as in
many virtual machines and containers, runc refuses to start the container.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

RUNC = "runc"
NAMES = (
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"),
    *("LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"),
    *("SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"),
    *("SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"),
    *("MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"),
    "CHECKPOINT_RESTORE",
)
"""The kernel's capabilities, in the order of their bits."""


def missing(status: str | None = None, last: int | None = None) -> set[str]:
    """Return the capabilities that the kernel has and the bounding set of this process has not.

    Args:
        status: The text of `/proc/self/status`.
        last: The number of the kernel's last capability.
    """
    status = Path("/proc/self/status").read_text() if status is None else status
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text()) if last is None else last
    line = next(line for line in status.splitlines() if line.startswith("CapBnd:"))
    bounding = int(line.split()[1], 16)
    return {f"CAP_{name}" for bit, name in enumerate(NAMES[: last + 1]) if not bounding >> bit & 1}


def without(process: dict[str, Any], lacking: set[str]) -> dict[str, Any]:
    """Return a process of an OCI runtime specification without some capabilities."""
    sets = process.get("capabilities") or {}
    kept = {name: [capability for capability in values if capability not in lacking] for name, values in sets.items()}
    return {**process, "capabilities": kept}


def shim(python: str) -> str:
    """Return a script that is run in place of runc."""
    return f'#!/bin/sh\nexec {python} -m {__spec__.name} "$@"\n'


def _value_of(option: str, arguments: Sequence[str]) -> str | None:
    for index, word in enumerate(arguments):
        if word == option and index + 1 < len(arguments):
            return arguments[index + 1]
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
    return None


def adapt(arguments: Sequence[str], lacking: set[str]) -> None:
    """Rewrite the file that a runc command reads its process from: a bundle's configuration, or that of `exec`."""
    if bundle := _value_of("--bundle", arguments):
        path = Path(bundle) / "config.json"
        config = json.loads(path.read_text())
        path.write_text(json.dumps({**config, "process": without(config["process"], lacking)}))
    if process := _value_of("--process", arguments):
        path = Path(process)
        path.write_text(json.dumps(without(json.loads(path.read_text()), lacking)))


if __name__ == "__main__":
    adapt(sys.argv[1:], missing())
    os.execvp(RUNC, [RUNC, *sys.argv[1:]])  # noqa: S606 # runc takes this process's place
