"""Tasks in processes of their own, as in pods."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from boathouse_task import contract
from boathouse_task.contract import TaskResult
from tests.unit.task.workshop import Workshop

_SCRIPT = """
import dataclasses, json, os, pathlib, sys
from boathouse_task import __main__, environment
paths = {name: pathlib.Path(path) for name, path in json.loads(sys.argv[1]).items()}
surroundings = dataclasses.replace(environment.from_variables(os.environ), **paths)
sys.exit(__main__.run_pod(os.environ["BOATHOUSE_TASK"], surroundings))
"""


def start_pod(workshop: Workshop, order: bytes, **paths: Path) -> subprocess.Popen[bytes]:
    """Runs the console script's pod mode with paths of the workshop; `paths`: fields of `Environment`."""
    paths = {"work_path": workshop.folder, "termination_log_path": workshop.folder / "log", **paths}
    return subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, json.dumps({name: str(path) for name, path in paths.items()})],
        env={**os.environ, contract.TASK_ENV: order.decode()},
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def ended(workshop: Workshop, process: subprocess.Popen[bytes]) -> tuple[int, TaskResult]:
    """The exit status and the termination message of a pod, once it has ended."""
    _, said = process.communicate(timeout=30)
    assert b"boathouse-task: " in said
    return process.returncode, msgspec.json.decode((workshop.folder / "log").read_bytes(), type=TaskResult)
