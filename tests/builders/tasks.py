"""Jobs on a folder, run by the code of the task pods, and task pods as processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from boathouse_task import contract, key_fields, local, runner, uber_task
from boathouse_task.contract import BETWEEN_STEPS, Partitioner, Plan, Split, TaskResult, TaskSpec, TaskType
from boathouse_task.environment import Environment, Layout
from boathouse_task.processes import Processes
from boathouse_task.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SUM = """
{ if (NR > 1 && $1 != key) { print key "\\t" sum; sum = 0 } key = $1; sum += $2 }
END { if (NR) print key "\\t" sum }
"""
SUM = ["awk", "-F\t", _SUM]
"""A combiner and reducer that adds up the values of each key."""
WORDS = ["awk", '{ for (i = 1; i <= NF; i++) print $i "\t1" }']
"""A mapper that writes each word with the value 1."""
_POD = """
import dataclasses, json, os, pathlib, sys
from boathouse_task import __main__, environment
paths = {name: pathlib.Path(path) for name, path in json.loads(sys.argv[1]).items()}
environment = dataclasses.replace(environment.from_variables(os.environ), **paths)
sys.exit(__main__.run_pod(os.environ["BOATHOUSE_TASK"], environment))
"""


_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in memory


def memory_folder() -> Path | None:
    """Return a folder in memory for the files of tests; None if it has little room or runs no scripts."""
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 4 << 30
    return _MEMORY if has_room and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC else None


class SleepingClock:
    """A clock that only sleeping moves.

    Args:
        events: Seconds and what is done then, in order.

    Attributes:
        sleeps: The seconds of each call of `sleep`.
    """

    def __init__(self, *events: tuple[float, Callable[[], object]]) -> None:
        self.now_s, self.sleeps, self._events = 0.0, list[float](), list(events)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.sleeps.append(seconds)
        self.now_s += seconds
        while self._events and self._events[0][0] <= self.now_s:
            self._events.pop(0)[1]()

    def monotonic(self) -> float:
        """Return the time."""
        return self.now_s


def plan_of(spec: TaskSpec) -> Plan:
    """Return the plan that the setup task of a step has written."""
    return msgspec.json.decode(Path(f"/{Layout(spec).plan.path}").read_bytes(), type=Plan)


def _next_step(before: TaskSpec, fields: Mapping[str, object]) -> TaskSpec:
    """Return the parameters of the step after another."""
    commands = {"mapper": None, "combiner": None, "reducer": None, "partitioner": Partitioner(), **fields}
    reduces = max(1, before.reduces) if commands["reducer"] else 0
    made = {"input_format": BETWEEN_STEPS, "previous_reduces": before.reduces, "reduces": reduces, **commands}
    return msgspec.structs.replace(before, **made)


def run_steps(spec: TaskSpec, environment: Environment, *later: Mapping[str, object]) -> TaskResult:
    """Run a job of several steps, whose tasks are ordered as the operator does; `later`: what the steps have."""
    for number, fields in enumerate([{}, *later]):
        spec = msgspec.structs.replace(_next_step(spec, fields) if number else spec, step=number, steps=len(later) + 1)
        local.run_task(spec, environment, lambda *_: None)
        *orders, commit = uber_task.orders(spec, plan_of(spec).splits)
        for order in orders:
            local.run_task(order, environment, lambda *_: None)
    return local.run_task(commit, environment, lambda *_: None)


class JobFolder:
    """The input and the output of a job as folders, and the tasks that read and write them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.input = folder / "in"
        self.input.mkdir()
        self.output = folder / "out"
        self._environments = 0

    def write_input(self, name: str, content: bytes) -> str:
        """Write an input file; return its URL."""
        path = self.input / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"file://{path}"

    def setup_spec(self, mapper: Sequence[str] = ("cat",), **fields: object) -> TaskSpec:
        """Return the parameters of the setup task of a job that reads the whole input."""
        inputs = fields.pop("inputs", [f"file://{self.input}"])
        return local.job_spec(inputs=inputs, output=f"file://{self.output}", mapper=mapper, **fields)

    def map_spec(self, content: bytes, mapper: Sequence[str] = ("cat",), **fields: object) -> TaskSpec:
        """Return the parameters of map 0 of a job with one split."""
        size = len(content)
        split = Split(url=self.write_input("split", content), offset_bytes=0, length_bytes=size, size_bytes=size)
        attempt = fields.pop("attempt", 1)
        spec = self.setup_spec(mapper, **fields)
        return msgspec.structs.replace(spec, task_type=TaskType.MAP, split=split, maps=1, attempt=attempt)

    def environment(self, **fields: object) -> Environment:
        """Return the environment of a pod with an empty work folder."""
        self._environments += 1
        work = self.folder / f"work-{self._environments}"
        work.mkdir()
        defaults = {"work_path": work, "variables": dict(os.environ), "pod_name": "pod", "pod_uid": uuid.uuid4().hex}
        return Environment(**{**defaults, **fields})

    def task(self, spec: TaskSpec, **fields: object) -> Task:
        """Return a task that has not begun; `fields`: of its environment."""
        return Task(spec, self.environment(**fields), Processes())

    def run_task(self, spec: TaskSpec, **fields: object) -> TaskResult:
        """Run a task to its end; `fields`: of its environment."""
        return runner.run(spec, self.environment(**fields), Processes())

    def run_job(
        self, mapper: Sequence[str] = ("cat",), *, buffer_bytes: int | None = None, **fields: object
    ) -> TaskResult:
        """Run a whole job."""
        return local.run_job(self.setup_spec(mapper, **fields), self.environment(buffer_bytes=buffer_bytes))

    def run_steps(self, *later: Mapping[str, object], **first: object) -> TaskResult:
        """Run a job of several steps."""
        return run_steps(self.setup_spec(**first), self.environment(), *later)

    def fail_job(self, mapper: Sequence[str] = ("cat",), **fields: object) -> TaskResult:
        """Run a whole job that fails; return the failed task's result."""
        with pytest.raises(local.JobFailed) as failed:
            self.run_job(mapper, **fields)
        return failed.value.result

    def parts(self) -> list[bytes]:
        """Return the contents of the output's files."""
        return [path.read_bytes() for path in sorted(self.output.glob("part-*"))]

    def output_names(self) -> list[str]:
        """Return the names of all files below the output."""
        return sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*") if path.is_file())


def start_pod(job_folder: JobFolder, spec: bytes, **paths: Path) -> subprocess.Popen[bytes]:
    """Start the runtime of a task pod in a process of its own; `paths`: fields of its environment."""
    paths = {"work_path": job_folder.folder, "termination_log_path": job_folder.folder / "log", **paths}
    return subprocess.Popen(
        [sys.executable, "-c", _POD, json.dumps({name: str(path) for name, path in paths.items()})],
        env={**os.environ, contract.TASK_ENV: spec.decode()},
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def termination(job_folder: JobFolder, pod: subprocess.Popen[bytes]) -> tuple[int, TaskResult]:
    """Wait until the pod has ended; return its exit status and its termination message."""
    _, stderr = pod.communicate()
    assert b"boathouse-task: " in stderr
    return pod.returncode, msgspec.json.decode((job_folder.folder / "log").read_bytes(), type=TaskResult)


def partition_of(partitioner: Partitioner, key: bytes, reduces: int) -> int:
    """The reduce that gets a key."""
    return key_fields.chooser(partitioner, reduces)([key])[0]
