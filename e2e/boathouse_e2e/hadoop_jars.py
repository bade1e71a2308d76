"""Hadoop Streaming on this machine: its jars from Maven, pinned by version and checksum, in the cache folder."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

from boathouse_e2e import paths, shell
from boathouse_e2e.errors import ClusterError

if TYPE_CHECKING:
    from pathlib import Path

_SOURCES = paths.REPOSITORY / "e2e" / "hadoop"
_POM, _SUMS = _SOURCES / "pom.xml", _SOURCES / "jars.sha256"
_NEEDS = {"java": "openjdk-17-jre-headless", "javac": "openjdk-17-jdk-headless", "mvn": "maven"}


def prepare(program: Path) -> str:
    """Fetch and check the jars and compile a program with them, once; return the class path of both.

    Raises:
        ClusterError: Java, its compiler or Maven is missing, a file could not be had, or is not the pinned one.
    """
    if missing := [package for command, package in _NEEDS.items() if shutil.which(command) is None]:
        raise ClusterError(f"Hadoop needs Java and Maven; as root: apt-get install {' '.join(missing)}")
    jars, classes = _folder(_POM, _SUMS), _folder(_POM, _SUMS, program)
    with paths.locked(jars.with_name(f".{jars.name}.lock")):
        if not jars.exists():
            _fetch(jars)
        if not classes.exists():
            shell.run("javac", "-cp", f"{jars}/*", "-d", classes, program, timeout_s=300)
    return f"{classes}{os.pathsep}{jars}/*"


def _folder(*sources: Path) -> Path:
    """Return the cache folder of what is made of these files."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    return paths.cache_folder() / "hadoop" / digest


def _fetch(jars: Path) -> None:
    print("fetching Hadoop Streaming once ...", flush=True)
    unfinished = jars.with_name(f"{jars.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={unfinished}")
    shell.run("mvn", "-B", "-q", "-f", _POM, *goal, timeout_s=1200)
    _check(unfinished)
    unfinished.rename(jars)


def _check(jars: Path) -> None:
    pinned = {name: digest for digest, name in (line.split() for line in _SUMS.read_text().splitlines())}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in jars.iterdir()}
    if wrong := sorted(name for name in pinned.keys() | found.keys() if pinned.get(name) != found.get(name)):
        raise ClusterError(f"Maven gave other files than {_SUMS.name} pins: {', '.join(wrong[:5])}")
