"""The images that a Dockerfile describes, and the hash that tells whether one must be built again."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from boathouse_e2e.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A Debian root file system, which replaces a Dockerfile's `BASE` where no image registry is reached.

    Attributes:
        packages: the packages beside Debian's essential ones.
        left_out: patterns of files that are not installed.
        folders: folders that packages expect although their files are left out.
        variant: mmdebstrap's name for what comes with the packages: `essential`, or only what they need (`extract`).
    """

    packages: tuple[str, ...]
    left_out: tuple[str, ...] = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
    folders: tuple[str, ...] = ()
    variant: str = "essential"

    suite = "bookworm"

    def key(self) -> str:
        """Return a hash over what goes into it."""
        return hashlib.sha256(self.description()).hexdigest()[:12]

    def description(self) -> bytes:
        """Return what goes into it."""
        variant = () if self.variant == "essential" else (self.variant,)
        return repr((self.suite, self.packages, self.left_out, self.folders, *variant)).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an image is built.

    Attributes:
        target: the Dockerfile's stage.
        base: what stands for `BASE` where no registry is reached.
        context: the folder of the repository that holds the Dockerfile and all that it copies.
        arguments: the values of the Dockerfile's arguments that are not the default ones, as NAME=VALUE.
    """

    target: str
    base: Base
    context: str = "."
    arguments: tuple[str, ...] = ()

    def folder(self, repository: Path) -> Path:
        """Return the build context in a checkout."""
        return repository / self.context

    def key(self, repository: Path) -> str:
        """Return a hash over everything that goes into the image."""
        return inputs_hash(self.folder(repository), self.base, self.arguments)


# usr-is-merged replaces usrmerge, which would bring Perl: 45 MB.
_PYTHON = ("ca-certificates", "libstdc++6", "python3", "python3-venv", "usr-is-merged")
PYTHON_BASE = Base(packages=_PYTHON)
_JVM = "/usr/lib/jvm/*/lib"
SPARK_BASE = Base(
    packages=(*_PYTHON, "libnss-extrausers", "openjdk-17-jre-headless", "tini"),
    left_out=(
        *PYTHON_BASE.left_out,
        "/usr/lib/*/gconv/*",
        f"{_JVM}/ct.sym",  # the compiler's
        f"{_JVM}/server/*_nocoops.jsa",  # for heaps over 32 GiB, which start a little later without it
    ),
    folders=("/usr/share/man/man1",),
)
HADOOP_BASE = replace(
    SPARK_BASE, packages=("ca-certificates", "ivy", "openjdk-17-jre-headless", "python3", "tini", "usr-is-merged")
)


def inputs_hash(folder: Path, base: Base = PYTHON_BASE, arguments: Sequence[str] = ()) -> str:
    """Return a hash over a folder's Dockerfile, the base, the arguments and every file that the Dockerfile copies.

    Raises:
        ClusterError: the folder has no Dockerfile.
    """
    dockerfile = folder / "Dockerfile"
    if not dockerfile.exists():
        raise ClusterError(f"there is no {dockerfile}")
    digest = hashlib.sha256(base.description())
    text = dockerfile.read_text()
    digest.update("\0".join((text, *arguments)).encode())
    for path in sorted(set(_copied_files(folder, text))):
        digest.update(f"{path.relative_to(folder)}\0{path.stat().st_mode & 0o111}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def base_of(dockerfile: str) -> str:
    """Return the published image that a Dockerfile builds on unless told otherwise.

    Raises:
        ClusterError: the Dockerfile names none.
    """
    found = re.search(r"^ARG BASE=(\S+)", dockerfile, re.MULTILINE)
    if not found:
        raise ClusterError("a Dockerfile must begin with ARG BASE=IMAGE")
    return found.group(1)


def copied(dockerfile: str) -> list[str]:
    """Return the sources of a Dockerfile's COPY lines, those from other stages left out."""
    lines = re.sub(r"\\\n", " ", dockerfile).splitlines()
    words = [line.split()[1:] for line in lines if re.match(r"\s*(COPY|ADD)\s", line)]
    own = [line for line in words if not any(word.startswith("--from=") for word in line)]
    return [word for line in own for word in line[:-1] if not word.startswith("--")]


def _copied_files(folder: Path, dockerfile: str) -> Iterator[Path]:
    for source in copied(dockerfile):
        for top in sorted(folder.glob(source.strip("./") or "*")):
            files = top.rglob("*") if top.is_dir() else [top]
            yield from (path for path in files if path.is_file() and "__pycache__" not in path.parts)
