"""Run times and spills of map and reduce attempts by their memory limit: what YARN-ME's penalty models are fitted to.

    python -m benchmarks.task_memory [--mib 32] [--rounds 3] [--out FILE]

The attempts are the task runtime with a file:// store and the command `cat`; the reduce merges the output of 16 maps.
Each round runs all sizes one after the other, so that a change of the machine's load meets all of them. `--out` writes
the figures as they are in `data/task-memory.json`, which `tests/unit/policies/yarn_me/test_recorded_runs.py` reads.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.map_cases import MIB, write_data
from boathouse.services.mrjob import results
from boathouse_task import contract, local, runner
from boathouse_task.contract import Split, TaskResult, TaskSpec, TaskType
from boathouse_task.environment import Environment
from boathouse_task.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAPS = 16
MEMORY_MIB = {TaskType.MAP: (256, 128, 96, 80), TaskType.REDUCE: (160, 128, 120, 112, 104, 96, 88, 80)}
"""Limits of the attempts; nothing spills with the first, if the input is at most 32 MiB."""


class Job:
    """A job over one file, whose attempts run in a folder.

    Args:
        folder: The folder; it has the file `pairs`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "pairs"
        url, output = f"file://{self._data}", f"file://{folder}/out"
        self._spec = msgspec.structs.replace(
            local.job_spec(inputs=[url], output=output, mapper=["cat"], reducer=["cat"], reduces=1), maps=MAPS
        )

    def map_spec(self, index: int, maps: int = MAPS) -> TaskSpec:
        """Return the order of a map of one of several equal splits."""
        size = self._data.stat().st_size
        length = size // maps
        split = Split(url=f"file://{self._data}", offset_bytes=index * length, length_bytes=length, size_bytes=size)
        return msgspec.structs.replace(self._spec, task_type=TaskType.MAP, index=index, split=split)

    def reduce_spec(self) -> TaskSpec:
        """Return the order of the reduce."""
        return msgspec.structs.replace(self._spec, task_type=TaskType.REDUCE)

    def run(self, spec: TaskSpec, memory_bytes: int) -> tuple[TaskResult, float]:
        """Run an attempt that commits whatever others did before; return its result and CPU time in seconds."""
        task = contract.task_name(spec.task_type, spec.index)
        for path in sorted(self._folder.rglob(f"{task}*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        before_s = sum(os.times()[:4])
        with tempfile.TemporaryDirectory(dir=self._folder) as work:
            surroundings = Environment(
                work_path=Path(work), memory_limit_bytes=memory_bytes, pod_uid=uuid.uuid4().hex, variables=os.environ
            )
            result = runner.run(spec, surroundings, Processes())
        if not result.succeeded:
            raise SystemExit(f"{task} failed: {result.message}")
        return result, sum(os.times()[:4]) - before_s


def figures(task_type: TaskType, memory_bytes: int, result: TaskResult, cpu_s: float) -> dict[str, Any]:
    """Return what the operator learns of an attempt, and its CPU time."""
    counters = results.flat_counters(result, has_local_input=True)
    return {
        "stage": task_type.value,
        "memoryBytes": memory_bytes,
        "seconds": round(results.worked_s(result), 3),
        "cpuSeconds": round(cpu_s, 3),
        "inputBytes": int(results.input_bytes(counters)),
        "spilledBytes": int(counters["spilled_bytes"]),
        "spillBytesPerSecond": int(counters.get("spill_bytes_per_s", 0.0)),
        "peakBytes": int(counters.get("peak_memory_bytes", 0.0)),
        "load": round(os.getloadavg()[0], 1),
    }


def measure(folder: Path, rounds: int) -> Iterator[dict[str, Any]]:
    """Run the attempts of all sizes so many times."""
    job = Job(folder)
    for index in range(MAPS):
        job.run(job.map_spec(index), MEMORY_MIB[TaskType.MAP][0] * MIB)
    orders = {TaskType.REDUCE: job.reduce_spec(), TaskType.MAP: job.map_spec(0, maps=1)}  # maps overwrite their output
    for task_type, order in orders.items():
        for number in range(rounds):
            for memory_mib in MEMORY_MIB[task_type]:
                yield figures(task_type, memory_mib * MIB, *job.run(order, memory_mib * MIB))
            print(f"==> {task_type}: {number + 1} of {rounds} rounds", flush=True)


def write(path: Path, options: argparse.Namespace, runs: Sequence[dict[str, Any]]) -> None:
    """Write the figures, with how they were measured."""
    about = {
        "command": f"python -m benchmarks.task_memory --mib {options.mib} --rounds {options.rounds}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    lines = ",\n  ".join(map(json.dumps, runs))
    path.write_text(f'{{"about": {json.dumps(about)},\n "runs": [\n  {lines}\n]}}\n')


def show(runs: Sequence[dict[str, Any]]) -> None:
    """Print the medians."""
    print(f"{'stage':8}{'memory MiB':>12}{'seconds':>10}{'CPU s':>8}{'spilled MiB':>13}{'MB/s':>8}")
    for stage, memory_bytes in dict.fromkeys((run["stage"], run["memoryBytes"]) for run in runs):
        own = [run for run in runs if (run["stage"], run["memoryBytes"]) == (stage, memory_bytes)]
        seconds, cpu_s, spilled, rate = (statistics.median(run[field] for run in own) for field in _SHOWN)
        print(f"{stage:8}{memory_bytes // MIB:12}{seconds:10.2f}{cpu_s:8.2f}{spilled / MIB:13.0f}{rate / 1e6:8.0f}")


_SHOWN = ("seconds", "cpuSeconds", "spilledBytes", "spillBytesPerSecond")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=32, help="input of the map and of the reduce (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(default %(default)s)")
    parser.add_argument("--out", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_data(Path(name), options.mib * MIB)
        runs = []
        for run in measure(Path(name), options.rounds):
            runs.append(run)
            if options.out is not None:
                write(options.out, options, runs)
    show(runs)


if __name__ == "__main__":
    main()
