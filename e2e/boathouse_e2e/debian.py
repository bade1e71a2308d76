"""Debian packages: which are missing, and installing them where that is possible."""

from __future__ import annotations

import os
import shutil
import tempfile
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
DOCKER_PACKAGES = {  # what Docker needs of the machine
    "iptables": "iptables",
    "iproute2": "ip",
    "libdevmapper1.02.1": "/lib/*/libdevmapper.so.1.02.1",
    "libsystemd0": "/lib/*/libsystemd.so.0",
    "nftables": "nft",
    "runc": "runc",
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
        return any(Path("/").glob(sign.lstrip("/")))
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


def unpacked(packages: Iterable[str]) -> Path:
    """Return a folder with the files of packages that are not installed, so that no service of theirs is started.

    Raises:
        ClusterError: this is not Debian, or apt failed.
    """
    names = sorted(packages)
    folder = cache_folder() / "debian" / "-".join(names)
    with locked(cache_folder() / ".apt.lock"):
        if folder.exists():
            return folder
        if not can_install():
            raise ClusterError(f"as root on Debian, {' and '.join(names)} would be downloaded; or install them")
        print(f"Downloading Debian packages: {' '.join(names)}", flush=True)
        run("apt-get", "update", "-q")
        with tempfile.TemporaryDirectory(prefix="boathouse-debian-") as downloads:
            run("apt-get", "download", "-q", *names, cwd=Path(downloads))
            unfinished = folder.with_name(f".{folder.name}.unfinished")
            unfinished.mkdir(parents=True, exist_ok=True)
            for archive in Path(downloads).glob("*.deb"):
                run("dpkg-deb", "--extract", archive, unfinished)
        unfinished.rename(folder)
    return folder
