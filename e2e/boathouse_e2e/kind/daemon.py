"""A Docker daemon for one cluster, in the cluster's namespaces, from Debian packages that are not installed."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from boathouse_e2e import debian
from boathouse_e2e.docker import Docker
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.kind import capabilities
from boathouse_e2e.local import cgroups, checks, node
from boathouse_e2e.local.processes import Component

if TYPE_CHECKING:
    from pathlib import Path

    from boathouse_e2e.local.layout import Layout

NAME = "dockerd"
PACKAGES = ("containerd", "docker.io")
_NO_DOCKER = (
    "kind needs Docker, and `docker info` does not answer: start Docker, or run as root on Debian, "
    "where the cluster gets a Docker daemon of its own, or use PROVIDER=local"
)
_MAX_SOCKET_PATH = 107
_CONTAINERD_SOCKET = "/run/containerd/containerd.sock"  # /run is of the cluster's own mounts
_RUNTIME = "boathouse"
_FOLDERS = ("usr/bin", "usr/sbin")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing() -> list[str]:
    """Return why no Docker daemon can be started here; empty where it can."""
    if not debian.can_install():
        return [_NO_DOCKER]
    return checks.cgroup_problems() or ([] if debian.absent(debian.DOCKER_PACKAGES) else checks.kernel_problems())


def socket_of(layout: Layout) -> Path:
    """Return the daemon's socket.

    Raises:
        ClusterError: the path is longer than the kernel takes.
    """
    path = layout.folder / "docker.sock"
    if len(str(path)) > _MAX_SOCKET_PATH:
        raise ClusterError(f"the path {path} is too long for a socket: set XDG_STATE_HOME to a shorter folder")
    return path


def client(layout: Layout) -> Docker:
    """Return a client of the cluster's own daemon."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOCKER_")}
    environment |= {"PATH": _path(), "DOCKER_HOST": f"unix://{socket_of(layout)}"}
    return Docker(environment=environment)


def _path() -> str:
    root = debian.unpacked(PACKAGES)
    return ":".join([*(str(root / folder) for folder in _FOLDERS), os.environ.get("PATH", ""), _SYSTEM_PATH])


def install() -> None:
    """Install what the daemon and its namespaces need of the machine.

    Raises:
        ClusterError: a Debian package could not be had, or the kernel refuses what the daemon needs.
    """
    debian.ensure(debian.DOCKER_PACKAGES)
    if problems := checks.kernel_problems():
        raise ClusterError("\n".join(["Docker cannot run here:", *problems]))


def components(layout: Layout) -> tuple[Component, Component]:
    """Write the daemon's files, make its cgroup, and return containerd and it, to be started in the namespaces.

    Raises:
        ClusterError: a Debian package could not be had.
    """
    cgroups.create(layout.cgroup)
    config = layout.folder / "containerd.toml"
    config.write_text(_containerd_config(layout))
    return (
        _component(layout, "containerd", "usr/bin/containerd", f"--config={config}"),
        _component(layout, NAME, "usr/sbin/dockerd", *_flags(layout)),
    )


def log_of(layout: Layout) -> Path:
    """Return the daemon's log."""
    return layout.logs / f"{NAME}.log"


def _component(layout: Layout, name: str, program: str, *arguments: str) -> Component:
    path = debian.unpacked(PACKAGES) / program
    command = ("env", f"PATH={_path()}", str(path), *arguments)
    return Component(name=name, command=command, log=str(layout.logs / f"{name}.log"), program=str(path))


def _containerd_config(layout: Layout) -> str:
    """Return the configuration of a containerd for Docker, which has no folder outside of the cluster's."""
    return f"""version = 2
root = '{layout.folder}/containerd'
state = '/run/containerd'
disabled_plugins = ['io.containerd.grpc.v1.cri']
[grpc]
  address = '{_CONTAINERD_SOCKET}'
[plugins.'io.containerd.internal.v1.opt']
  path = '{layout.folder}/opt'
"""


def _flags(layout: Layout) -> tuple[str, ...]:
    data = layout.folder / "docker"
    flags = {
        "host": f"unix://{socket_of(layout)}",
        "containerd": _CONTAINERD_SOCKET,
        "data-root": data,
        "exec-root": "/run/docker",
        "pidfile": "/run/docker.pid",
        "storage-driver": "vfs" if node.snapshotter(data) == "native" else "overlay2",
        "cgroup-parent": f"/{layout.cgroup}",
        "log-level": "warn",
    }
    words = tuple(f"--{name}={value}" for name, value in flags.items())
    return words + _runtime(layout) if capabilities.missing() else words


def _runtime(layout: Layout) -> tuple[str, ...]:
    script = layout.folder / "runc"
    script.write_text(capabilities.shim(sys.executable))
    script.chmod(0o755)
    return (f"--add-runtime={_RUNTIME}={script}", f"--default-runtime={_RUNTIME}")
