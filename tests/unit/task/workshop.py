"""Jobs on a folder, run by the code of the task pods."""

import os
import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from boathouse_task import local, runner
from boathouse_task.contract import Split, TaskResult, TaskSpec, TaskType
from boathouse_task.environment import Environment
from boathouse_task.processes import Processes
from boathouse_task.task import Task

_SUM = """
{ if (NR > 1 && $1 != key) { print key "\\t" sum; sum = 0 } key = $1; sum += $2 }
END { if (NR) print key "\\t" sum }
"""
SUM = ["awk", "-F\t", _SUM]
WORDS = ["awk", '{ for (i = 1; i <= NF; i++) print $i "\t1" }']


class Workshop:
    """A folder with an input and an output, and tasks that work on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.input = folder / "in"
        self.input.mkdir()
        self.output = folder / "out"
        self._number = 0

    def given(self, name: str, content: bytes) -> str:
        """An input file; returns its URL."""
        path = self.input / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return f"file://{path}"

    def spec(self, mapper: Sequence[str] = ("cat",), **fields: object) -> TaskSpec:
        """The setup's order of a job over the whole input."""
        inputs = fields.pop("inputs", [f"file://{self.input}"])
        return local.job_spec(inputs=inputs, output=f"file://{self.output}", mapper=mapper, **fields)

    def environment(self, **fields: object) -> Environment:
        """Surroundings with a fresh work folder."""
        self._number += 1
        work = self.folder / f"work-{self._number}"
        work.mkdir()
        values = {
            "work_path": work,
            "variables": dict(os.environ),
            "pod_name": "pod",
            "pod_uid": uuid.uuid4().hex,
            **fields,
        }
        return Environment(**values)

    def map_spec(self, content: bytes, mapper: Sequence[str] = ("cat",), **fields: object) -> TaskSpec:
        """The order of map 0 of a job with one split."""
        split = Split(
            url=self.given("split", content), offset_bytes=0, length_bytes=len(content), size_bytes=len(content)
        )
        attempt = fields.pop("attempt", 1)
        base = self.spec(mapper, **fields)
        return msgspec.structs.replace(base, task_type=TaskType.MAP, split=split, maps=1, attempt=attempt)

    def task(self, spec: TaskSpec, **fields: object) -> Task:
        """A task that has not begun."""
        return Task(spec, self.environment(**fields), Processes())

    def run(self, spec: TaskSpec, **fields: object) -> TaskResult:
        """Runs one task to its end."""
        return runner.run(spec, self.environment(**fields), Processes())

    def run_job(
        self, mapper: Sequence[str] = ("cat",), *, buffer_bytes: int | None = None, **fields: object
    ) -> TaskResult:
        """Runs a whole job."""
        return local.run_job(self.spec(mapper, **fields), self.environment(buffer_bytes=buffer_bytes))

    def failure(self, mapper: Sequence[str] = ("cat",), **fields: object) -> TaskResult:
        """Runs a whole job that fails, and returns the failed task's result."""
        with pytest.raises(local.JobFailed) as failed:
            self.run_job(mapper, **fields)
        return failed.value.result

    def parts(self) -> list[bytes]:
        """The output's files."""
        return [path.read_bytes() for path in sorted(self.output.glob("part-*"))]

    def listing(self) -> list[str]:
        """All names below the output."""
        return sorted(str(path.relative_to(self.output)) for path in self.output.rglob("*") if path.is_file())
