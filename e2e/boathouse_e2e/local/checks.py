"""Whether this machine can run a local cluster, and if not, why and what to do."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e import debian
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.local import cgroups, network
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from boathouse_e2e.spec import ClusterSpec

INSTEAD = "Or use kind (PROVIDER=kind) where Docker runs, or a cluster of yours (PROVIDER=existing)."
_PROBE = "boathouse-probe"
_NEEDED_CGROUPS = ("cpu", "memory", "pids", "cpuset")
# What nodes need of the kernel, tried in namespaces that end with the command.
_NAMESPACES = (
    "unshare",
    "--mount",
    "--net",
    "--pid",
    "--fork",
    "--mount-proc",
    "--propagation",
    "private",
    "sh",
    "-ec",
)
_KERNEL = {
    "overlay file systems": "cd $(mktemp -d); mkdir l u w m; "
    "mount -t overlay overlay -o lowerdir=l,upperdir=u,workdir=w m; umount m; rm -r l u w m; rmdir $PWD",
    "netfilter queues, which NetworkPolicies need": " ".join(network.ASK_POLICIES),
    "veth devices": "ip link add probe0 type veth peer name probe1",
    "nftables with address translation": "nft add table ip p; "
    "nft 'add chain ip p c { type nat hook postrouting priority 100 ; }'; nft add rule ip p c masquerade",
}


def missing(spec: ClusterSpec) -> list[str]:
    """Return what the machine lacks, each with what to do; empty where the cluster can run."""
    if platform.system() != "Linux":
        return [f"local clusters need Linux, this is {platform.system()}"]
    if spec.nodes == 0:
        return []
    if os.geteuid() != 0:
        return ["real nodes need root: run as root (fake nodes do not: NODES=0 KWOK_NODES=2)"]
    packages = debian.absent(debian.NODE_PACKAGES)
    if packages and not debian.can_install():
        return [f"Debian packages are missing: {debian.install_command(packages)}"]
    return cgroup_problems() or ([] if packages else kernel_problems())


def prepare(spec: ClusterSpec) -> None:
    """Install the packages that nodes need, and try what they need of the kernel.

    Raises:
        ClusterError: the machine cannot run the cluster; the message says why.
    """
    if problems := missing(spec):
        raise ClusterError("\n".join(["A local cluster cannot run here:", *problems, INSTEAD]))
    if not spec.nodes:
        return
    debian.ensure(debian.NODE_PACKAGES)
    if problems := kernel_problems():
        raise ClusterError("\n".join(["A local cluster cannot run here:", *problems, INSTEAD]))


def cgroup_problems() -> list[str]:
    """Return why no cgroups can be made here; empty where they can."""
    root = cgroups.ROOT
    if cgroups.unified():
        have = (root / "cgroup.controllers").read_text().split()
    else:
        have = [name for name in _NEEDED_CGROUPS if (root / name / "cgroup.procs").exists()]
    if lacking := [name for name in _NEEDED_CGROUPS if name not in have]:
        return [f"cgroup controllers are missing under {root}: {', '.join(lacking)}"]
    try:
        cgroups.create(_PROBE)
    except OSError as error:
        return [f"cgroups cannot be made: {error}; in a container, run it privileged with its own cgroup namespace"]
    cgroups.remove(_PROBE)
    return []


def kernel_problems() -> list[str]:
    """Return what the kernel refuses of what nodes need, with `nft` and `ip`, which must be there."""
    problems = []
    for what, script in _KERNEL.items():
        try:
            run(*_NAMESPACES, script)
        except ClusterError as error:
            problems.append(f"the kernel refuses {what}: {str(error).splitlines()[-1]}")
    return problems


def machine_memory_mib() -> int:
    """Return the machine's memory."""
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal:"))
    return int(line.split()[1]) // 1024
