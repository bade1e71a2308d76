"""Debian packages: which are missing, and installing them where that is possible."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import cache_folder, locked
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Package -> a file or command that shows that it, or another distribution's twin of it, is there.
NODE_PACKAGES = {
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/ptp",
    "nftables": "nft",
    "iptables": "iptables",
    "iproute2": "ip",
    "util-linux": "nsenter",
    "mount": "mount",
}
IMAGE_PACKAGES = {
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "netavark": "/usr/lib/podman/netavark",  # buildah only recommends it, and refuses a store that was made with it
}


def absent(packages: Mapping[str, str]) -> list[str]:
    """Return the packages whose file or command is not there."""
    return [name for name, sign in packages.items() if not _there(sign)]


def _there(sign: str) -> bool:
    if sign.startswith("/"):
        return Path(sign).exists()
    return shutil.which(sign, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None


def can_install() -> bool:
    """Return whether this process may install packages, and how is known."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install_command(packages: Iterable[str]) -> str:
    """Return what a person would type."""
    return f"apt-get install --no-install-recommends {' '.join(packages)}"


def ensure(packages: Mapping[str, str]) -> None:
    """Install the packages that are missing.

    Raises:
        ClusterError: some are missing and this process may not install them, or apt failed.
    """
    if not absent(packages):
        return
    with locked(cache_folder() / ".apt.lock"):
        names = absent(packages)
        if not names:
            return
        if not can_install():
            raise ClusterError(f"missing packages; as root: {install_command(names)}")
        print(f"Installing Debian packages: {' '.join(names)}", flush=True)
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "update", "-q", env=env)
        run("apt-get", "install", "-q", "-y", "--no-install-recommends", *names, env=env)
