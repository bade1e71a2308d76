"""`python -m tests.streaming.record [all]`: record what real Hadoop Streaming writes for the jobs that have changed.

The jobs of `differences` and `cases` are always recorded. Needs Java 17 with its compiler, and Maven, which fetches
70 MB once. Nothing else leaves the machine. Takes about six minutes on two cores.
"""

import collections
import functools
import gzip
import hashlib
import json
import pathlib
import sys
import tempfile
from typing import Any

from boathouse_e2e import hadoop_jars
from boathouse_task.contract import Counters
from tests.streaming import cases, differences, hadoop_jobs, jobs, scripts
from tests.streaming.differences import Difference
from tests.streaming.hadoop_jobs import Hadoop
from tests.streaming.jobs import Job

_FOLDER = pathlib.Path(__file__).parent / "recorded"
RECORDED = _FOLDER / "jobs.json.gz"
DIFFERENT = _FOLDER / "differences.json"
CASES = _FOLDER / "cases.json.gz"
PROGRAM = pathlib.Path(__file__).with_name("StreamingJobs.java")


def main() -> None:
    classpath = hadoop_jars.prepare(PROGRAM)
    made = jobs.every()
    former = {recording["job"]: recording for recording in recorded()} if RECORDED.exists() and not sys.argv[1:] else {}
    found = []
    with tempfile.TemporaryDirectory() as folder, hadoop_jobs.running(classpath, pathlib.Path(folder)) as hadoop:
        for number, job in enumerate(made, 1):
            which = digest(job)
            found.append(former.get(which) or {"job": which, "parts": _text(hadoop.run(job))})
            if number % 50 == 0:
                print(f"{number} of {len(made)} jobs", flush=True)
        _record_differences(hadoop)
        _record_cases(hadoop)
    content = json.dumps({"seed": jobs.SEED, "jobs": found}, indent=0).encode()
    RECORDED.write_bytes(gzip.compress(content, mtime=0))
    counts = collections.Counter(option for job in made for option in job.options)
    print("\n".join(f"{count:4} {option}" for option, count in sorted(counts.items())))
    print(
        f"seed {jobs.SEED}: {len(made)} jobs, {sum(recording['parts'] is None for recording in found)} of them failed"
    )


def _record_differences(hadoop: Hadoop) -> None:
    found = {
        name: {
            "job": difference_digest(difference),
            "parts": _text(hadoop.run(difference.job, difference.properties, difference.words)),
        }
        for name, difference in differences.ALL.items()
    }
    DIFFERENT.write_text(json.dumps(found, indent=1) + "\n")


def _record_cases(hadoop: Hadoop) -> None:
    found = {}
    for name, job in cases.every().items():
        parts = _text(hadoop.run(job))
        found[name] = {"job": digest(job), "parts": parts, "counters": hadoop.counters}
    CASES.write_bytes(gzip.compress(json.dumps(found, indent=0).encode(), mtime=0))


def recorded_cases() -> dict[str, tuple[str, dict[str, bytes] | None, Counters]]:
    """Return the digest, the output files and the counters of the jobs of `cases`, by their names."""
    found = json.loads(gzip.decompress(CASES.read_bytes()))
    return {
        name: (recording["job"], bytes_of(recording["parts"]), recording["counters"])
        for name, recording in found.items()
    }


def recorded_differences() -> dict[str, dict[str, Any]]:
    """Return what Hadoop wrote for the jobs that differ, by their names."""
    found: dict[str, dict[str, Any]] = json.loads(DIFFERENT.read_text())
    return found


def difference_digest(difference: Difference) -> str:
    """Return a digest of a job that differs, as Hadoop runs it."""
    content = repr((digest(difference.job), sorted(difference.properties.items()), difference.words))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@functools.cache
def recorded() -> list[dict[str, Any]]:
    """Return what was recorded, in the order of the jobs."""
    found: list[dict[str, Any]] = json.loads(gzip.decompress(RECORDED.read_bytes()))["jobs"]
    return found


def digest(job: Job) -> str:
    """Return a digest of a job, which tells whether a recording is of it; compressors may differ."""
    files, archives = (
        {name: scripts.unpacked(name, content) for name, content in contents.items()}
        for contents in (job.files, job.archives)
    )
    content = repr((job.spec, files, job.scripts, archives, job.split_bytes))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def bytes_of(parts: dict[str, str] | None) -> dict[str, bytes] | None:
    """Return recorded output files."""
    return parts and {name: content.encode("latin-1") for name, content in parts.items()}


def _text(parts: dict[str, bytes] | None) -> dict[str, str] | None:
    return parts and {name: content.decode("latin-1") for name, content in parts.items()}


if __name__ == "__main__":
    main()
