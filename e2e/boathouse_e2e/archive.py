"""Write an image as a docker-archive file: of a few static programs, or of a whole root file system."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an image says of itself.

    Attributes:
        name: its name with its tag.
        entrypoint: the command it runs; empty for none.
        user: `uid:gid` it runs as; empty for root.
        environment: `NAME=value`, beside the path of commands.
        stop_signal: what ends it; empty for SIGTERM.
    """

    name: str
    entrypoint: tuple[str, ...] = ()
    user: str = ""
    environment: tuple[str, ...] = ()
    stop_signal: str = ""

    def config(self, layer_sha256: str) -> bytes:
        """Return the image's configuration, by the OCI image specification."""
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        config: dict[str, object] = {"Entrypoint": list(self.entrypoint) or None, "User": self.user}
        config["Env"] = [path, *self.environment]
        if self.stop_signal:
            config["StopSignal"] = self.stop_signal
        machine = platform.machine()
        described = {
            "architecture": ARCHITECTURES.get(machine, machine),
            "os": "linux",
            "config": config,
            "history": [{"created_by": "boathouse_e2e"}],
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_sha256}"]},
        }
        return json.dumps(described).encode()


def name_of(path: Path) -> str:
    """Return the name of the image in a docker-archive file, with its tag."""
    with tarfile.open(path) as tar:
        found = tar.extractfile("manifest.json")
        assert found is not None, path
        return str(json.load(found)[0]["RepoTags"][0])


def write_programs(target: Path, image: Image, programs: Mapping[str, Path]) -> None:
    """Write an image of a few static programs: path in the image -> file on this machine."""
    layer = target.with_name(f".{target.name}.layer")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(layer, "w") as tar:
        for folder in ("tmp", "data"):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(info)
        for name, path in sorted(programs.items()):
            info = tarfile.TarInfo(name.lstrip("/"))
            info.size, info.mode = path.stat().st_size, 0o755
            with path.open("rb") as content:
                tar.addfile(info, content)
    write_root(target, image, layer)
    layer.unlink()


def write_root(target: Path, image: Image, layer: Path) -> None:
    """Write an image of one layer, a tar file of a root file system; the target appears whole or not at all."""
    digest = hashlib.sha256()
    with layer.open("rb") as content:
        while chunk := content.read(_CHUNK):
            digest.update(chunk)
    config = image.config(digest.hexdigest())
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [image.name], "Layers": ["layer.tar"]}]).encode()
    unfinished = target.with_name(f".{target.name}.unfinished")
    try:
        with tarfile.open(unfinished, "w") as tar:
            tar.add(layer, "layer.tar")
            for name, data in ((config_name, config), ("manifest.json", manifest)):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)


def forget_older(archive: Path, *, kept: int) -> None:
    """Keep a few archives of an image: other branches' and clusters' builds need not be made again at once."""
    stem = archive.name.rsplit("-", 1)[0]
    others = sorted(archive.parent.glob(f"{stem}-*.tar"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[kept:]:
        if path != archive:
            path.unlink()


def mark(archive: Path) -> str:
    """Return what tells this archive, with this content, from others."""
    stat = archive.stat()
    return f"{archive.name}-{stat.st_size}-{stat.st_mtime_ns}"
