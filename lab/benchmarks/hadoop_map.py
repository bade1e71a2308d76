"""Run Hadoop's map task as a command."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.map_cases import MIB, VARIABLES, Case, Measured, measure
from boathouse_e2e import hadoop_jars
from boathouse_task.environment import Environment

PROGRAM = Path(__file__).parent / "hadoop" / "MapAttempt.java"


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
    return Hadoop(hadoop_jars.prepare(PROGRAM))
