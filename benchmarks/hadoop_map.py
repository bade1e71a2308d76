"""Run Hadoop's map task as a command, with jars from Maven, pinned by version and checksum, in the cache folder."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from map_cases import MIB, VARIABLES, Case, Measured, measure

from boathouse_e2e import paths, shell
from boathouse_e2e.errors import ClusterError
from boathouse_task.environment import Environment

SOURCES = Path(__file__).parent / "hadoop"
POM, SUMS, PROGRAM = SOURCES / "pom.xml", SOURCES / "jars.sha256", SOURCES / "MapAttempt.java"
NEEDS = {
    "java": "openjdk-17-jre-headless",
    "javac": "openjdk-17-jdk-headless",
    "mvn": "maven",
}


@dataclass(frozen=True, slots=True)
class Hadoop:
    """A classpath that is there."""

    classpath: str

    def attempt(self, case: Case, folder: Path, memory_bytes: int) -> Measured:
        """Run a case as a map attempt of Hadoop Streaming; its heap is the whole limit, its command comes on top."""
        work = folder / "hadoop"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        buffer_mib = Environment(memory_limit_bytes=memory_bytes).sort_bytes // MIB
        combiner = _command(case.combiner, work / "combiner.py") if case.combiner else ""
        return measure(
            [
                *("java", f"-Xmx{memory_bytes // MIB}m", "-cp", self.classpath, "org.apache.hadoop.mapred.MapAttempt"),
                *(str(folder / case.data), str(work), str(case.reduces), str(buffer_mib)),
                *(_command(case.mapper, work / "mapper.py"), combiner),
            ],
            VARIABLES,
        )


def _command(words: list[str], script: Path) -> str:
    """Return a command as Hadoop Streaming takes it: one string, so a program in it goes into a file."""
    if words[1:2] == ["-c"]:
        script.write_text(words[2])
        words = [words[0], str(script)]
    return shlex.join(words)


def prepare() -> Hadoop:
    """Fetch, check and compile once.

    Raises:
        ClusterError: Java, its compiler or Maven is missing, a file could not be had, or is not the pinned one.
    """
    if missing := [package for command, package in NEEDS.items() if shutil.which(command) is None]:
        raise ClusterError(f"Hadoop's side needs Java and Maven; as root: apt-get install {' '.join(missing)}")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (POM, SUMS, PROGRAM))).hexdigest()[:12]
    folder = paths.cache_folder() / "hadoop" / digest
    with paths.locked(folder.with_name(f".{digest}.lock")):
        if not folder.exists():
            _build(folder)
    return Hadoop(f"{folder / 'classes'}{os.pathsep}{folder / 'lib' / '*'}")


def _build(folder: Path) -> None:
    print("fetching Hadoop's map task once ...", flush=True)
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    jars = unfinished / "lib"
    goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}")
    shell.run("mvn", "-B", "-q", "-f", POM, *goal, timeout_s=1200)
    _check(jars)
    shell.run("javac", "-cp", f"{jars}/*", "-d", unfinished / "classes", PROGRAM, timeout_s=300)
    unfinished.rename(folder)


def _check(jars: Path) -> None:
    pinned = {name: digest for digest, name in (line.split() for line in SUMS.read_text().splitlines())}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in jars.iterdir()}
    if wrong := sorted(name for name in pinned.keys() | found.keys() if pinned.get(name) != found.get(name)):
        raise ClusterError(f"Maven gave other files than {SUMS.name} pins: {', '.join(wrong[:5])}")
