"""The files of a job in a folder: input, scripts and archives, and its output."""

import bz2
import gzip
import zlib
from pathlib import Path

from boathouse_task import compression, counters
from boathouse_task.contract import Counters
from tests.streaming.jobs import Job

_OWN_GROUPS = (
    counters.INPUT,
    counters.OUTPUT,
    counters.BOATHOUSE,
    "FileSystemCounters",
    "File System Counters",
    "Shuffle Errors",
    "org.apache.hadoop.",
)
"""Groups of counters that no command sets, or how their names begin."""
_READ = {
    ".gz": gzip.decompress,
    ".tgz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".deflate": zlib.decompress,
    ".snappy": lambda content: b"".join(compression.decompressed([content], "snappy", "a recorded file")),
}


def place(job: Job, folder: Path) -> None:
    """Write the input, the scripts and the archives of a job."""
    for name, files in (("in", job.files), ("archives", job.archives)):
        (folder / name).mkdir(parents=True)
        for file, content in files.items():
            (folder / name / file).write_bytes(content)
    (folder / "scripts").mkdir()
    for file, script in job.scripts.items():
        path = folder / "scripts" / file
        shell = "bash" if "/*" in script else "sh"  # only bash replaces patterns in variables; it starts later
        path.write_text(f"#!/bin/{shell}\nexport LC_ALL=C\n{script}\n")
        path.chmod(0o755)


def unpacked(name: str, content: bytes) -> bytes:
    """Return the content of a file without compression."""
    return _READ.get(Path(name).suffix, bytes)(content) if content else b""


def parts(output: Path) -> dict[str, bytes]:
    """Return the output files without compression, by name."""
    return {
        path.name.partition(".")[0]: unpacked(path.name, path.read_bytes()) for path in sorted(output.glob("part-*"))
    }


def of_commands(found: Counters) -> Counters:
    """Return the counters that the commands of a job set."""
    return {group: values for group, values in found.items() if not group.startswith(_OWN_GROUPS)}
