"""Run jobs with real Hadoop Streaming in one Java machine, by the local runner."""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote_plus

from boathouse_task.contract import Counters, accumulate
from tests.streaming import options, scripts
from tests.streaming.jobs import Job

_LOG = """
log4j.rootLogger=WARN,err
log4j.appender.err=org.apache.log4j.ConsoleAppender
log4j.appender.err.target=System.err
log4j.appender.err.layout=org.apache.log4j.PatternLayout
log4j.appender.err.layout.ConversionPattern=%p %c{1}: %m%n
"""
_POLL_MILLISECONDS = "20"


class Hadoop:
    """A running Java machine.

    Args:
        process: it.
        folder: folder for the jobs.

    Attributes:
        counters: Counters of the last job that its commands set.
    """

    def __init__(self, process: "subprocess.Popen[str]", folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._number = 0
        self.counters: Counters = {}

    def run(
        self, job: Job, properties: Mapping[str, str] | None = None, words: Sequence[str] = ()
    ) -> dict[str, bytes] | None:
        """Return the job's output files by name; None if it failed.

        Args:
            job: the job.
            properties: further properties; {folder} is its folder.
            words: further options of Hadoop Streaming; a command among them replaces that of the job.
        """
        self._number += 1
        folder = self._folder / str(self._number)
        scripts.place(job, folder)
        arguments = folder / "arguments"
        written = _arguments(job, folder, properties or {}, words)
        arguments.write_bytes(b"".join(f"{argument}\0".encode() for argument in written))
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{arguments}\n")
        self._process.stdin.flush()
        self.counters = {}
        for line in self._process.stdout:
            if line.startswith("counter "):
                group, name, value = (unquote_plus(word) for word in line[len("counter ") : -1].split(" "))
                accumulate(self.counters, group, name, int(value))
            if line.startswith("ended "):
                self.counters = scripts.of_commands(self.counters)
                return scripts.parts(folder / "out") if line == "ended 0\n" else None
        raise RuntimeError(f"Java ended in job {self._number}, see {self._folder / 'errors'}")


@contextlib.contextmanager
def running(classpath: str, folder: Path) -> Iterator[Hadoop]:
    """Run a Java machine with these classes; its standard error goes to a file in the folder."""
    (folder / "log4j.properties").write_text(_LOG)
    here = folder / "here"  # where archives are linked
    here.mkdir()
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(
            [*java, "-cp", f"{folder}{os.pathsep}{classpath}", "StreamingJobs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=here,
            text=True,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)},
        )
        try:
            yield Hadoop(process, folder)
        finally:
            process.kill()
            process.wait()


def _arguments(job: Job, folder: Path, properties: Mapping[str, str], words: Sequence[str]) -> Iterator[str]:
    yield from options.generic(job.spec, str(folder / "archives"))
    surroundings = {
        "mapreduce.framework.name": "local",
        "hadoop.tmp.dir": str(folder / "tmp"),
        "mapreduce.cluster.local.dir": str(folder / "local"),
        "mapreduce.client.completion.pollinterval": _POLL_MILLISECONDS,
        "mapreduce.client.progressmonitor.pollinterval": _POLL_MILLISECONDS,
        "mapreduce.task.io.sort.mb": "8",
        "mapreduce.job.maps": "1",
        "fs.local.block.size": str(job.split_bytes),
        "fs.file.impl.disable.cache": "true",
    }
    more = {key: value.format(folder=folder) for key, value in properties.items()}
    for key, value in (surroundings | options.properties(job.spec) | more).items():
        yield from ("-D", f"{key}={value}")
    for name in sorted(job.files):  # one by one: the local file system lists a folder in no order
        yield from ("-input", str(folder / "in" / name))
    yield from ("-output", str(folder / "out"))
    for kind in ("mapper", "combiner", "reducer"):
        if kind in job.spec and f"-{kind}" not in words:
            yield from (f"-{kind}", str(folder / "scripts" / f"{kind}.sh"))
    yield from options.streaming(job.spec)
    yield from words
