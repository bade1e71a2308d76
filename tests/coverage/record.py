"""Run the tests whose files are new or changed, and record what they execute: `python -m tests.coverage record`."""

from __future__ import annotations

import collections
import os
import pathlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from boathouse_e2e import results
from tests.coverage import recording

if TYPE_CHECKING:
    from collections.abc import Iterable

WITHOUT_CLUSTER = ("tests/unit", "tests/wire", "tests/kinds", "lab/tests")
_NO_TESTS = 5
"""pytest's exit status if all tests of a file are deselected."""


def record(paths: Iterable[str], *, again: bool = False, workers: str = "auto") -> None:
    """Record the tests below some paths, folder by folder, so that what is stopped goes on where it was."""
    kept = recording.Recording()
    kept.forget_gone()
    digests = {} if again else kept.digests()
    wanted = {file: digest for file, digest in _files(paths).items() if digests.get(file) != digest}
    print(f"==> recording coverage: {len(wanted)} test files are new or changed")
    for files in _by_folder(wanted):
        kept.replace(_run(files, workers))
    kept.close()


def _by_folder(files: Iterable[str]) -> list[list[str]]:
    """Return groups of files: those of `tests/unit/NAME` with all below, or those directly in `tests/NAME`."""
    groups: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for file in files:
        groups[pathlib.PurePath(file).parent.parts[:3]].append(file)
    return list(groups.values())


def _files(paths: Iterable[str]) -> dict[str, str]:
    root = recording.ROOT
    found: set[pathlib.Path] = set()
    for path in map(root.joinpath, paths):
        found.update([path] if path.suffix == ".py" else path.rglob("test_*.py"))
    return {file.relative_to(root).as_posix(): recording.digest(file.read_text()) for file in sorted(found)}


def _run(files: list[str], workers: str) -> recording.Run:
    """Run test files under coverage.py."""
    root = recording.ROOT
    folder = recording.PATH.parent / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    modules = recording.modules()
    print(f"==> {len(files)} files of {pathlib.PurePath(files[0]).parent}", flush=True)
    rows = folder / "results.jsonl"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.coverage.contexts", "-m", "not long"]
    ended = subprocess.run(
        [*command, "--timeout=600", f"--results={rows}", *([] if workers == "0" else ["-n", workers]), *files],
        cwd=root,
        env={**os.environ, "COVERAGE_PROCESS_START": str(_settings(folder, root))},
        check=False,
    )
    if ended.returncode not in (0, 1, _NO_TESTS):
        raise SystemExit(f"pytest ended with {ended.returncode}; what it recorded is left out")
    took_s = seconds(rows)
    return recording.Run(
        files={file: recording.digest((root / file).read_text()) for file in files},
        modules=modules,
        seconds=took_s,
        lines=recording.lines_of(folder, took_s, modules, root),
    )


def _settings(folder: pathlib.Path, root: pathlib.Path) -> pathlib.Path:
    """Write the settings of coverage.py with absolute paths, whatever environment and folder a process has."""
    template = pathlib.Path(__file__).with_name("coverage.ini").read_text()
    settings = folder / "coverage.ini"
    settings.write_text(template.replace("FOLDER", str(folder)).replace("ROOT", str(root)))
    return settings


def seconds(path: pathlib.Path) -> dict[str, tuple[float, float]]:
    """Return the CPU and wall seconds of each test from the results of a run."""
    cpu_s: collections.Counter[str] = collections.Counter()
    wall_s: collections.Counter[str] = collections.Counter()
    for row in results.read(path):
        if row.phase != results.SESSION:
            cpu_s[row.test] += row.own_cpu_s
            wall_s[row.test] += row.wall_s
    return {name: (round(cpu_s[name], 4), round(wall_s[name], 4)) for name in wall_s}
