"""Build images from Dockerfiles: by Docker where it reaches a registry, else by buildah on a Debian base made here."""

from __future__ import annotations

import ast
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e import debian
from boathouse_e2e.archive import Image, write_root
from boathouse_e2e.docker import Docker, docker_answers
from boathouse_e2e.dockerfiles import base_of
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import cache_folder, images_folder
from boathouse_e2e.shell import run, succeeds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boathouse_e2e.dockerfiles import Base, Recipe


_PASSED_ON = ("index-url", "extra-index-url", "proxy", "trusted-host", "default-timeout", "timeout", "retries")
_CA_IN_BUILD = "/run/secrets/ca.crt"


def parse_pip_config(listing: str) -> dict[str, str]:
    """Return what `pip config list` printed -> option -> value; the environment's win, as in pip."""
    pairs = [line.partition("=") for line in listing.splitlines() if "=" in line]
    by_scope = {key: str(ast.literal_eval(value)) for key, _, value in pairs}
    scopes = ("global.", "install.", ":env:.")
    return {key[len(scope) :]: value for scope in scopes for key, value in by_scope.items() if key.startswith(scope)}


def pip_conf(settings: Mapping[str, str], *, own_authorities: bool) -> str:
    """Return the pip.conf of a build: what names where packages come from, nothing that is a path of this machine."""
    lines = [f"{name} = {_continued(settings[name])}" for name in _PASSED_ON if name in settings]
    if own_authorities:
        lines.append(f"cert = {_CA_IN_BUILD}")
    return "\n".join(["[global]", *lines, ""])


def _continued(value: str) -> str:
    return "\n    ".join(value.split("\n"))


def pip_secrets(folder: Path) -> list[str]:
    """Write the secrets into a folder; returns the builder's flags for them."""
    settings = _settings()
    authorities = settings.get("cert") or os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE")
    config = folder / "pip.conf"
    config.touch(mode=0o600)
    config.write_text(pip_conf(settings, own_authorities=bool(authorities)))
    flags = ["--secret", f"id=pip.conf,src={config}"]
    if authorities:
        flags += ["--secret", f"id=ca.crt,src={Path(authorities).resolve()}"]
    return flags


def _settings() -> dict[str, str]:
    """Return the settings of pip here, by whichever pip there is; none where there is no pip."""
    for python in (sys.executable, "python3"):
        try:
            return parse_pip_config(run(python, "-m", "pip", "config", "list"))
        except ClusterError:
            continue
    return {}


_STORE_LIMIT_BYTES = 6 * 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One image to build.

    Attributes:
        name: its name with its tag.
        recipe: how it is built.
        archive: the docker-archive file to write.
    """

    name: str
    recipe: Recipe
    archive: Path


def build(builds: Sequence[Build], repository: Path) -> None:
    """Build images from a checkout, with a line of progress for each that says how long it took and its size.

    Raises:
        ClusterError: a builder is missing and cannot be installed, or a build failed.
    """
    if not builds:
        return
    with_docker = _docker_builds(builds, repository)
    with tempfile.TemporaryDirectory(prefix="boathouse-build-") as folder:
        secrets = pip_secrets(Path(folder))
        for one in builds:
            print(f"Building {one.name} with {'docker' if with_docker else 'buildah'}", flush=True)
            started = time.monotonic()
            context = one.recipe.folder(repository)
            if with_docker:
                _build_with_docker(one, context, secrets)
            else:
                _build_with_buildah(one, context, secrets, Path(folder))
            size_mb = one.archive.stat().st_size / 1e6
            print(f"  built in {time.monotonic() - started:.0f} s, {size_mb:.0f} MB", flush=True)


def _docker_builds(builds: Sequence[Build], repository: Path) -> bool:
    """Return whether Docker runs and has, or can pull, what the images are built on."""
    dockerfiles = {(one.recipe.folder(repository) / "Dockerfile").read_text() for one in builds}
    return docker_answers() and all(map(Docker().obtains, sorted(map(base_of, dockerfiles))))


def _build_with_docker(one: Build, context: Path, secrets: Sequence[str]) -> None:
    env = {**os.environ, "DOCKER_BUILDKIT": "1"}
    options = (*_arguments(one.recipe), "--target", one.recipe.target)
    run("docker", "build", *options, *secrets, "--tag", one.name, context, env=env)
    run("docker", "save", "--output", one.archive, one.name)


def _build_with_buildah(one: Build, context: Path, secrets: Sequence[str], folder: Path) -> None:
    """Build with a store of our own that keeps the layers, so that a changed source file costs seconds."""
    base = base_archive(one.recipe.base)
    debian.ensure(debian.IMAGE_PACKAGES)
    store = cache_folder() / "buildah"
    driver = storage_driver(store)
    if _size_bytes(store) > _STORE_LIMIT_BYTES:
        shutil.rmtree(store)
    buildah = ("buildah", "--storage-driver", driver, "--root", store / "root", "--runroot", folder / "run")
    env = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
    unfinished = one.archive.with_name(f".{one.archive.name}.unfinished")
    try:
        base_image = run(*buildah, "pull", "--quiet", f"docker-archive:{base}", env=env).strip()
        arguments = _arguments(one.recipe, f"BASE={base_image}")
        options = (*arguments, "--pull-never", "--layers", "--target", one.recipe.target)
        run(*buildah, "build", *options, *secrets, "--tag", one.name, context, env=env)
        unfinished.unlink(missing_ok=True)
        run(*buildah, "push", "--quiet", one.name, f"docker-archive:{unfinished}:{one.name}", env=env)
        unfinished.rename(one.archive)
    finally:
        unfinished.unlink(missing_ok=True)
        run(*buildah, "rm", "--all", env=env)  # unmounts what a failed build left mounted
        succeeds("umount", store / "root" / driver)  # the driver mounts its own folder upon itself


def _arguments(recipe: Recipe, *more: str) -> tuple[str, ...]:
    return tuple(word for argument in (*recipe.arguments, *more) for word in ("--build-arg", argument))


def storage_driver(store: Path) -> str:
    """Layers as overlays where the kernel has them for us, else as full copies."""
    store.mkdir(parents=True, exist_ok=True)
    kind = run("stat", "--file-system", "--format=%T", store).strip()
    return "overlay" if os.geteuid() == 0 and kind != "overlayfs" else "vfs"


def _size_bytes(folder: Path) -> int:
    return int(run("du", "--bytes", "--summarize", folder).split()[0]) if folder.exists() else 0


def base_archive(base: Base) -> Path:
    """Return a Debian root file system as an image; made once by mmdebstrap and kept.

    Raises:
        ClusterError: mmdebstrap is missing and cannot be installed, or failed.
    """
    target = images_folder() / f"boathouse-base-{base.key()}.tar"
    if target.exists():
        return target
    print(f"  making its base once, Debian {base.suite} with {', '.join(base.packages)}", flush=True)
    started = time.monotonic()
    images_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="boathouse-base-") as folder:
        root = Path(folder) / "root.tar"
        make_root(base, root)
        write_root(target, Image(name=f"localhost/boathouse-base:{base.key()}"), root)
    print(f"  base made in {time.monotonic() - started:.0f} s", flush=True)
    return target


def make_root(base: Base, target: Path, *, hooks: Sequence[str] = ()) -> None:
    """Write a Debian root file system as a tar file.

    Args:
        base: What is in it.
        target: The file.
        hooks: Commands of mmdebstrap that change the root file system at the end, in order.

    Raises:
        ClusterError: mmdebstrap is missing and cannot be installed, or failed.
    """
    debian.ensure(debian.IMAGE_PACKAGES)
    left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in base.left_out]
    options = [f'--setup-hook=mkdir -p "$1{name}"' for name in base.folders]
    options.append("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr")
    options.extend(f"--customize-hook={hook}" for hook in hooks)
    include = f"--include={','.join(base.packages)}"
    mode = f"--mode={'root' if os.geteuid() == 0 else 'unshare'}"
    run("mmdebstrap", "--quiet", f"--variant={base.variant}", mode, include, *left_out, *options, base.suite, target)
