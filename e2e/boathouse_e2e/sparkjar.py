"""Compile a small Spark application against the jars of the Spark image, with Debian's JDK."""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from boathouse_e2e import debian, images
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.paths import REPOSITORY, cache_folder, locked
from boathouse_e2e.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD_COUNT = REPOSITORY / "examples" / "spark" / "WordCount.java"
JDK_PACKAGES = {"openjdk-17-jdk-headless": "javac"}
_RELEASE = "17"
_JARS = "opt/spark/jars/"
_API = ("scala-library-", "spark-")


def ensure(source: Path = WORD_COUNT) -> Path:
    """Return the jar of a Java file whose class is its main class; compile it if it or Spark's version has changed.

    Raises:
        ClusterError: there is no JDK and none can be installed, or the compiler refused the file.
    """
    folder = cache_folder() / "jars"
    target = folder / f"{source.stem}-{_key(source)}.jar"
    with locked(folder / ".lock"):
        if not target.exists():
            debian.ensure(JDK_PACKAGES)
            archive = images.ensure([images.SPARK])[images.SPARK]
            print(f"Compiling {source.name}", end="", flush=True)
            started = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="boathouse-jar-") as scratch:
                _compile(source, target, extract_jars(archive, Path(scratch)), Path(scratch))
            print(f": {time.monotonic() - started:.0f} s, {target.stat().st_size} bytes", flush=True)
    return target


def _key(source: Path) -> str:
    digest = hashlib.sha256(_RELEASE.encode() + source.read_bytes())
    digest.update((REPOSITORY / images.RECIPES[images.SPARK].context / "versions/4.3/requirements.txt").read_bytes())
    return digest.hexdigest()[:12]


def extract_jars(archive: Path, folder: Path) -> list[Path]:
    """Write the jars that applications compile against from an image's archive into a folder.

    Raises:
        ClusterError: the image has none.
    """
    found: list[Path] = []
    with tarfile.open(archive) as image:
        manifest = image.extractfile("manifest.json")
        assert manifest is not None
        for layer in json.load(manifest)[0]["Layers"]:
            with tarfile.open(fileobj=image.extractfile(layer)) as files:
                found += _extract(files, folder)
    if not found:
        raise ClusterError(f"{archive} has no jars of Spark in /{_JARS}: build the image again")
    return found


def _extract(files: tarfile.TarFile, folder: Path) -> Iterable[Path]:
    for member in files:
        path, _, name = member.name.removeprefix("./").rpartition("/")
        if f"{path}/" == _JARS and name.startswith(_API) and member.isfile():
            content = files.extractfile(member)
            assert content is not None
            (folder / name).write_bytes(content.read())
            yield folder / name


def _compile(source: Path, target: Path, jars: Iterable[Path], scratch: Path) -> None:
    classes, unfinished = scratch / "classes", target.with_suffix(".unfinished")
    class_path = ":".join(map(str, jars))
    run("javac", "-Xlint:none", "--release", _RELEASE, "-cp", class_path, "-d", classes, source)
    run("jar", "--create", "--file", unfinished, "--main-class", source.stem, "-C", classes, ".")
    unfinished.rename(target)
