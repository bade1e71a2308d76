"""Run the tests of each fault in the copies, and keep the results.

A fault is caught if a test fails that executes its line and passes without it. Tests whose file imports the module come
first, because they check what it does and not only execute it; of these and of the others the cheapest come first. They
run in three runs of growing length, so that a fault that a cheap test catches costs a second.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import json
import os
import queue
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

from tests.coverage import changed, record, recording

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tests.mutations import copies, faults

_RUNS_S = (3.0, 45.0, float("inf"))
"""What the tests of each run of a fault took when they were recorded, at most."""
_CHECKED = 12
"""How many tests of each fault run without a fault first, all together; others when they fail."""
_START_S = 600.0
"""For the imports of a run, on a machine that has much else to do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What became of a fault."""

    key: str
    caught_by: str
    """The test that failed; empty if none did."""
    tests: tuple[str, ...]
    """The first tests of those that execute the line."""
    executed_by: int
    """How many tests execute the line."""
    took_s: float
    digests: dict[str, str]
    """The test files on which the result rests, with what these import: of the test that failed, or all whose tests
    execute the line."""

    @property
    def is_caught(self) -> bool:
        """Whether a test failed."""
        return bool(self.caught_by)


class Results:
    """The results of earlier runs, a line each, which hold while neither the module nor the tests change.

    They are kept with the code, so that who changes a few modules tries the faults of these only.
    """

    def __init__(self, path: pathlib.Path, root: pathlib.Path = recording.ROOT) -> None:
        self._path, self._root = path, root
        lines = path.read_text().splitlines() if path.exists() else []
        rows = (json.loads(line) for line in lines if line.endswith("}"))
        self._results = {row["key"]: Result(**{**row, "tests": tuple(row["tests"])}) for row in rows}

    def get(self, fault: faults.Fault, tests: Sequence[recording.Test]) -> Result | None:
        """Return the result of a fault that some tests execute, if it still holds."""
        result = self._results.get(fault.key)
        return None if result is None or self.left(fault, tests) else result

    def left(self, fault: faults.Fault, tests: Sequence[recording.Test]) -> Sequence[recording.Test]:
        """Return the tests that have to run: of a fault that survived, those of files that are new or have changed."""
        result = self._results.get(fault.key)
        if result is None:
            return tests
        if result.is_caught:
            holds = all(self.digest(file) == digest for file, digest in result.digests.items())
            return () if holds else tests
        return [test for test in tests if result.digests.get(test.file) != self.digest(test.file)]

    def add(self, result: Result) -> None:
        """Keep a result."""
        self._results[result.key] = result
        with self._path.open("a") as file:
            file.write(_line(result))

    def keep_only(self, chosen: Iterable[faults.Fault]) -> None:
        """Forget the results of all other faults, and write the file anew, in an order that does not change."""
        keys = {fault.key for fault in chosen}
        self._results = {key: result for key, result in sorted(self._results.items()) if key in keys}
        self._path.write_text("".join(map(_line, self._results.values())))

    @functools.cache  # noqa: B019 - results live as long as their command
    def digest(self, file: str) -> str:
        """Return the digest of a test file with all that it uses of the tests; empty if there is no such file."""
        if not (self._root / file).exists():
            return ""
        return recording.digest(
            "\n".join((self._root / used).read_text() for used in sorted(self._importers.used(file)))
        )

    @functools.cached_property
    def _importers(self) -> changed.Importers:
        return changed.Importers(self._root)


def _line(result: Result) -> str:
    return json.dumps(dataclasses.asdict(result)) + "\n"


@dataclasses.dataclass(frozen=True)
class Health:
    """Which tests pass without a fault, as far as they were tried."""

    passing: set[str] = dataclasses.field(default_factory=set)
    failing: set[str] = dataclasses.field(default_factory=set)
    """They catch nothing."""


class Worker:
    """A copy and its process."""

    def __init__(self, copy: copies.Copy, health: Health) -> None:
        self._copy, self._health = copy, health
        self._process: subprocess.Popen[str] | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Make the copy and start its process."""
        self._copy.update()
        (self._copy.folder / "build").mkdir(exist_ok=True)
        environment = dict(os.environ)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # imports are most of what a run costs
        command = [*_own_processes(), self._copy.python, "-m", "tests.mutations.worker"]
        self._process = subprocess.Popen(
            command, cwd=self._copy.folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def stop(self) -> None:
        """End the process, and a run with it."""
        self._is_stopped = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def try_fault(
        self,
        fault: faults.Fault,
        tests: Sequence[recording.Test],
        digest: Callable[[str], str],
        left: Sequence[recording.Test] | None = None,
    ) -> Result:
        """Run the tests that execute the line of a fault until one fails, or only those that are left of them."""
        began = time.monotonic()
        caught_by = ""
        for part in _runs(tests if left is None else left):
            left = [test for test in part if test.name not in self._health.failing]
            while left:
                answer = self._run(left, fault)
                if "fails" not in answer:
                    break
                by = next((test for test in left if test.name == answer["fails"]), None)
                suspects = [by] if by else left  # a file that cannot be imported, or a process that died
                if self.check(suspects, is_again="limit" in answer):
                    caught_by = answer["fails"] or "the import"
                    break
                left = [test for test in left if test.name not in self._health.failing]
            if caught_by:
                break
        files = {test.file for test in tests if not caught_by or test.name == caught_by}
        return Result(
            key=fault.key, caught_by=caught_by, executed_by=len(tests),
            tests=tuple(test.name for test in tests[:3]), took_s=round(time.monotonic() - began, 1),
            digests={file: digest(file) for file in sorted(files)},
        )  # fmt: skip

    def check(self, tests: Sequence[recording.Test], *, is_again: bool = False) -> bool:
        """Run tests without a fault. Returns whether one of them passes."""
        untried = [test for test in tests if is_again or test.name not in self._health.passing | self._health.failing]
        while untried:
            answer = self._run(untried, None, is_whole=True)
            begun = set(answer["begun"]) or {test.name for test in untried}
            failing = begun & set(answer["failing"]) if answer["begun"] else begun  # pytest did not get to the tests
            if "limit" in answer:
                failing.add(answer["fails"])  # it ended the run, and others may not have begun
            for name in sorted(failing - self._health.failing):
                print(f"left out, because it fails without a fault, too: {name}", flush=True)
            self._health.failing.update(failing)
            self._health.passing.update(begun - failing)
            untried = [test for test in untried if test.name not in begun]
        return any(test.name not in self._health.failing for test in tests)

    def _run(
        self, tests: Sequence[recording.Test], fault: faults.Fault | None, *, is_whole: bool = False
    ) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if fault is not None:
            self._copy.plant(fault.path, fault.mutated)
        try:
            limits = [{"name": test.name, **_limits(test)} for test in tests]
            request = {
                "is_whole": is_whole,
                "tests": limits,
                "wall_s": _START_S + sum(limit["wall_s"] for limit in limits),
            }
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(
                self._process.stdout.readline()
                or '{"fails": "", "begun": [], "failing": [], "limit": "the worker ended"}'
            )
        finally:
            if fault is not None:
                self._copy.restore(fault.path)
        if answer.get("limit") == "the worker ended":
            if self._is_stopped:
                raise RuntimeError("the worker is stopped")
            self.start()
        return answer


def _limits(test: recording.Test) -> dict[str, float]:
    """Return the limits of a test: many times what it took, so that only a test without an end exceeds them."""
    return {"cpu_s": 10 + 5 * test.cpu_s, "wall_s": 120 + 10 * test.wall_s}


def _runs(tests: Sequence[recording.Test]) -> Iterator[list[recording.Test]]:
    """Split tests, the cheapest first, into runs; those that start a cluster come last."""
    left = sorted(tests, key=lambda test: not test.file.startswith(record.WITHOUT_CLUSTER))
    for limit_s in _RUNS_S:
        part, took_s = [], 0.0
        while left and took_s + left[0].cpu_s <= limit_s:
            took_s += left[0].cpu_s
            part.append(left.pop(0))
        if part:
            yield part


@functools.cache
def _own_processes() -> tuple[str, ...]:
    """Return the command that ends all processes of a run with its worker, where the system allows it."""
    if shutil.which("unshare"):
        for who in ((), ("--user", "--map-current-user")):
            command = ("unshare", *who, "--pid", "--fork", "--kill-child", "--mount-proc")
            if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
                return command
    return ()


def concerning(kept: recording.Recording, fault: faults.Fault) -> list[recording.Test]:
    """Return the tests that can notice a fault: without a cluster, unless BOATHOUSE_MUTATIONS_CLUSTERS is set."""
    tests = kept.concerning(fault.path, fault.line)
    is_with_clusters = bool(os.environ.get("BOATHOUSE_MUTATIONS_CLUSTERS"))
    return [test for test in tests if is_with_clusters or test.file.startswith(record.WITHOUT_CLUSTER)]


def nearest_first(tests: Iterable[recording.Test], near: Collection[str]) -> list[recording.Test]:
    """Return tests in their order, those of some files before all others."""
    return sorted(tests, key=lambda test: test.file not in near)


def _cpu_s(tests: Iterable[recording.Test]) -> float:
    return sum(test.cpu_s for test in tests)


def run(
    chosen: Iterable[faults.Fault], limit_s: float, kept: recording.Recording, results: Results,
    workers: Sequence[Worker], report: Callable[[faults.Fault, Result, bool], None],
) -> None:  # fmt: skip
    """Try the faults that have no result yet and whose tests take less than a limit; report all results."""
    waiting: list[tuple[faults.Fault, list[recording.Test], Sequence[recording.Test]]] = []
    importers = changed.Importers()
    for fault in chosen:
        tests = nearest_first(concerning(kept, fault), importers.of(fault.path))
        if (result := results.get(fault, tests)) is not None:
            report(fault, result, True)
        elif _cpu_s(left := results.left(fault, tests)) < limit_s:
            waiting.append((fault, tests, left))
    waiting.sort(key=lambda todo: _cpu_s(todo[2]))  # so that most are known early
    free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
    for worker in workers:
        free.put(worker)

    def attempt(fault: faults.Fault, tests: Sequence[recording.Test], left: Sequence[recording.Test]) -> Result:
        worker = free.get()
        try:
            return worker.try_fault(fault, tests, results.digest, left)
        finally:
            free.put(worker)

    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        cheapest = sorted({test for _, _, left in waiting for test in left[:_CHECKED]}, key=lambda test: test.name)
        checks = [cheapest[number :: len(workers)] for number in range(len(workers))]
        try:
            list(pool.map(lambda worker, tests: worker.check(tests), workers, checks))
            attempts = {pool.submit(attempt, *todo): todo[0] for todo in waiting}
            for future in concurrent.futures.as_completed(attempts):
                results.add(future.result())
                report(attempts[future], future.result(), False)
        except BaseException:  # also if a user stops the command: the threads would go on with all other faults
            for worker in workers:
                worker.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
