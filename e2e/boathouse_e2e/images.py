"""The images of demo and tests, as docker-archive files in the cache: no registry is needed to get them to nodes.

The project's two come from its one Dockerfile, by Docker where it answers, else by buildah on a Debian base made here.
An image is built again only when something that goes into it has changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e import debian, tools
from boathouse_e2e.archive import Image, write_programs, write_root
from boathouse_e2e.catalogue import TOOLS_BY_NAME
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import REPOSITORY, cache_folder, locked
from boathouse_e2e.pipconfig import pip_secrets
from boathouse_e2e.providers import choose, docker_answers
from boathouse_e2e.shell import run, succeeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from boathouse_e2e.spec import Cluster

OPERATOR, TASK, VERSITYGW = (
    "localhost/boathouse-operator:dev",
    "localhost/boathouse-task:dev",
    "localhost/versitygw:dev",
)
TARGETS = {OPERATOR: "operator", TASK: "task"}
ALL = (OPERATOR, TASK, VERSITYGW)

BASE_SUITE = "bookworm"
BASE_PACKAGES = ("ca-certificates", "libstdc++6", "python3", "python3-venv")
_BASE_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
_KEPT_ARCHIVES = 3
_STORE_LIMIT_BYTES = 6 * 1024**3


def images_folder() -> Path:
    """Where the archives are kept."""
    return cache_folder() / "images"


def ensure(names: Iterable[str] = ALL) -> dict[str, Path]:
    """The archives of the named images, after building those whose inputs have changed.

    Raises:
        ClusterError: no such image, a builder is missing and cannot be installed, or a build failed.
    """
    names = list(names)
    if unknown := set(names) - set(ALL):
        raise ClusterError(f"no such image: {', '.join(sorted(unknown))}; there are {', '.join(ALL)}")
    with locked(images_folder() / ".lock"):
        found = {name: archive_of(name) for name in names}
        missing = [name for name in names if not found[name].exists()]
        if VERSITYGW in missing:
            _build_versitygw(found[VERSITYGW])
        _build_project({name: found[name] for name in missing if name in TARGETS})
        for name in names:
            _forget_older(found[name])
    return found


def ensure_version(repository: Path, tag: str) -> dict[str, Path]:
    """The archives of the project's images, built from another checkout, by their names with a tag of their own.

    Raises:
        ClusterError: as `ensure`.
    """
    names = {f"{name.rpartition(':')[0]}:{tag}": target for name, target in TARGETS.items()}
    with locked(images_folder() / ".lock"):
        found = {name: _archive(name, inputs_hash(repository)) for name in names}
        _build_project({name: found[name] for name in names if not found[name].exists()}, repository)
        for archive in found.values():
            _forget_older(archive)
    return found


def load_archives(cluster: Cluster, archives: Iterable[Path]) -> None:
    """Make images known to every real node of the cluster."""
    choose(cluster.provider, name=cluster.name, context=cluster.context).load_images(cluster, list(archives))


def load(cluster: Cluster, names: Iterable[str] = ALL) -> None:
    """Build the named images where that is needed and make them known to every real node of the cluster."""
    archives = list(ensure(names).values())
    started = time.monotonic()
    load_archives(cluster, archives)
    print(f"  {len(archives)} images loaded into the nodes of {cluster.name!r} in {time.monotonic() - started:.1f} s")


def archive_of(name: str) -> Path:
    """Where the archive of an image with its present inputs is, or will be."""
    return _archive(name, TOOLS_BY_NAME["versitygw"].key() if name == VERSITYGW else inputs_hash(REPOSITORY))


def _archive(name: str, key: str) -> Path:
    short = name.removeprefix("localhost/").replace(":", "-")
    return images_folder() / f"{short}-{key}.tar"


def inputs_hash(repository: Path) -> str:
    """A hash over the Dockerfile, the base's packages and every file that the Dockerfile copies."""
    dockerfile = repository / "Dockerfile"
    if not dockerfile.exists():
        raise ClusterError(f"there is no {dockerfile}")
    digest = hashlib.sha256(repr((BASE_SUITE, BASE_PACKAGES, _BASE_LEFT_OUT)).encode())
    text = dockerfile.read_text()
    digest.update(text.encode())
    for path in sorted(set(_copied_files(repository, text))):
        digest.update(f"{path.relative_to(repository)}\0{path.stat().st_mode & 0o111}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def copied(dockerfile: str) -> list[str]:
    """The sources of a Dockerfile's COPY lines, those from other stages left out."""
    lines = re.sub(r"\\\n", " ", dockerfile).splitlines()
    words = [line.split()[1:] for line in lines if re.match(r"\s*(COPY|ADD)\s", line)]
    own = [line for line in words if not any(word.startswith("--from=") for word in line)]
    return [word for line in own for word in line[:-1] if not word.startswith("--")]


def _copied_files(repository: Path, dockerfile: str) -> Iterator[Path]:
    for source in copied(dockerfile):
        for top in sorted(repository.glob(source.strip("./") or "*")):
            files = top.rglob("*") if top.is_dir() else [top]
            yield from (path for path in files if path.is_file() and "__pycache__" not in path.parts)


def _forget_older(archive: Path) -> None:
    """Keep a few archives of an image: other branches' and clusters' builds need not be made again at once."""
    stem = archive.name.rsplit("-", 1)[0]
    others = sorted(archive.parent.glob(f"{stem}-*.tar"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[_KEPT_ARCHIVES:]:
        if path != archive:
            path.unlink()


def _build_versitygw(target: Path) -> None:
    program = tools.ensure(["versitygw"])["versitygw"]
    write_programs(
        target, Image(name=VERSITYGW, entrypoint=("/versitygw",), user="10001:10001"), {"/versitygw": program}
    )


def _build_project(targets: Mapping[str, Path], repository: Path = REPOSITORY) -> None:
    if not targets:
        return
    builder = "docker" if docker_answers() else "buildah"
    print(f"Building {', '.join(targets)} with {builder}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="boathouse-build-") as folder:
        if builder == "docker":
            _build_with_docker(targets, Path(folder), repository)
        else:
            _build_with_buildah(targets, Path(folder), repository)
    print(f"  built in {time.monotonic() - started:.0f} s", flush=True)


def _target(name: str) -> str:
    """The Dockerfile's stage of an image, whatever its tag."""
    return TARGETS[f"{name.rpartition(':')[0]}:dev"]


def _build_with_docker(targets: Mapping[str, Path], folder: Path, repository: Path) -> None:
    env = {**os.environ, "DOCKER_BUILDKIT": "1"}
    for name, archive in targets.items():
        secrets = pip_secrets(folder)
        run("docker", "build", "--target", _target(name), "--tag", name, *secrets, repository, env=env)
        run("docker", "save", "--output", archive, name)


def _build_with_buildah(targets: Mapping[str, Path], folder: Path, repository: Path) -> None:
    """Build with a store of our own that keeps the layers, so that a changed source file costs seconds."""
    base = base_archive()
    debian.ensure(debian.IMAGE_PACKAGES)
    store = cache_folder() / "buildah"
    driver = storage_driver(store)
    if _size_bytes(store) > _STORE_LIMIT_BYTES:
        shutil.rmtree(store)
    buildah = ("buildah", "--storage-driver", driver, "--root", store / "root", "--runroot", folder / "run")
    env = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    try:
        base_image = run(*buildah, "pull", "--quiet", f"docker-archive:{base}", env=env).strip()
        secrets = pip_secrets(folder)
        for name, archive in targets.items():
            options = ("--build-arg", f"BASE={base_image}", "--pull-never", "--layers", "--target", _target(name))
            run(*buildah, "build", *options, *secrets, "--tag", name, repository, env=env)
            unfinished = archive.with_name(f".{archive.name}.unfinished")
            unfinished.unlink(missing_ok=True)
            run(*buildah, "push", "--quiet", name, f"docker-archive:{unfinished}:{name}", env=env)
            unfinished.rename(archive)
    finally:
        run(*buildah, "rm", "--all", env=env)  # unmounts what a failed build left mounted
        succeeds("umount", store / "root" / driver)  # the driver mounts its own folder upon itself


def storage_driver(store: Path) -> str:
    """Layers as overlays where the kernel has them for us, else as full copies."""
    store.mkdir(parents=True, exist_ok=True)
    kind = run("stat", "--file-system", "--format=%T", store).strip()
    return "overlay" if os.geteuid() == 0 and kind != "overlayfs" else "vfs"


def _size_bytes(folder: Path) -> int:
    return int(run("du", "--bytes", "--summarize", folder).split()[0]) if folder.exists() else 0


def base_archive() -> Path:
    """A Debian root file system with Python, as an image; made once by mmdebstrap and kept.

    Raises:
        ClusterError: mmdebstrap is missing and cannot be installed, or failed.
    """
    key = hashlib.sha256(repr((BASE_SUITE, BASE_PACKAGES, _BASE_LEFT_OUT)).encode()).hexdigest()[:12]
    target = images_folder() / f"boathouse-base-{key}.tar"
    if target.exists():
        return target
    debian.ensure(debian.IMAGE_PACKAGES)
    print(f"Making the images' base, Debian {BASE_SUITE} with Python, once", flush=True)
    started = time.monotonic()
    images_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="boathouse-base-") as folder:
        root = Path(folder) / "root.tar"
        left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in _BASE_LEFT_OUT]
        include = f"--include={','.join(BASE_PACKAGES)}"
        mode = "root" if os.geteuid() == 0 else "unshare"
        run("mmdebstrap", "--quiet", "--variant=essential", f"--mode={mode}", include, *left_out, BASE_SUITE, root)
        write_root(target, Image(name=f"localhost/boathouse-base:{key}"), root)
    print(f"  made in {time.monotonic() - started:.0f} s", flush=True)
    return target
