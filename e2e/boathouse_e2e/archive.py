"""Write an image as a docker-archive file from a few files: for static programs no builder is needed."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def write_docker_archive(
    target: Path, *, image: str, programs: Mapping[str, Path], entrypoint: Sequence[str], user: str, machine: str
) -> None:
    """Write an image of one layer.

    Args:
        target: the file to write, whole or not at all.
        image: the image's name with its tag.
        programs: path in the image -> file on this machine; all are made executable.
        entrypoint: the command it runs.
        user: `uid:gid` it runs as.
        machine: this machine's architecture as `platform.machine()` says it.
    """
    layer = _layer(programs)
    config = _config(layer, entrypoint=list(entrypoint), user=user, machine=machine)
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [image], "Layers": ["layer.tar"]}]
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(unfinished, "w") as archive:
        for name, content in (("layer.tar", layer), (config_name, config), ("manifest.json", json.dumps(manifest).encode())):
            _add(archive, name, content, mode=0o644)
    unfinished.rename(target)


def _layer(programs: Mapping[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        tmp = tarfile.TarInfo("tmp")
        tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
        layer.addfile(tmp)
        for name, path in sorted(programs.items()):
            _add(layer, name.lstrip("/"), path.read_bytes(), mode=0o755)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    archive.addfile(info, io.BytesIO(content))


def _config(layer: bytes, *, entrypoint: list[str], user: str, machine: str) -> bytes:
    config: dict[str, Any] = {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Entrypoint": entrypoint, "User": user, "Env": ["PATH=/"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    return json.dumps(config).encode()
