"""Run the tests that a change concerns, the cheapest first, within some minutes: `make test-changed`."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import os
import pathlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.coverage import record, recording, sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_BASES = ("origin/main", "main")
_START_S = 60.0
"""For collecting the tests."""
_SPARE = 0.7
"""Of the time of all cores: the last tests do not keep all of them busy."""
_MIRRORS = {
    "operator/boathouse/": "tests/unit/",
    "operator/boathouse_task": "tests/unit/task",
    "operator/boathouse_cli": "tests/unit/cli",
    "policies/boathouse_policies/": "tests/unit/policies/",
    "policies/boathouse_sim": "tests/unit/sim",
    "e2e/boathouse_e2e": "tests/unit/e2e",
    "lab/benchmarks": "lab/tests/benchmarks",
    "lab/boathouse_lab": "lab/tests",
    "charts": "tests/unit/chart",
}
"""Where the unit tests of a folder are, for a checkout without a recording."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Selection:
    """The tests that a change concerns."""

    tests: frozenset[str]
    """Recorded ones."""
    files: frozenset[str]
    """Files or folders of tests of which nothing is recorded."""
    unfollowed: tuple[str, ...]
    """Changed files that no test is known to execute or to name."""


def run(base: str, budget_s: float) -> int:
    """Run what the changes since a revision concern. Returns the exit status."""
    began_s = time.monotonic()
    revision = merge_base(base)
    changed = changed_files(revision)
    print(f"==> {len(changed)} files changed since {revision[:12]}")
    kept = recording.Recording()
    if kept.tests:
        selection = select(kept, revision, changed)
    else:
        print("There is no recording of what each test executes. `make record-coverage` makes it, once; until then the")
        print("unit tests run that have the names of the changed folders.")
        selection = _mirrored(changed)
    chosen, left_out = within(kept, selection, (budget_s - _START_S) * _SPARE * (os.cpu_count() or 1))
    _tell(chosen, left_out, selection)
    return _pytest(began_s + budget_s) if chosen else 0


def merge_base(base: str) -> str:
    """Return the revision that changes are counted from: where HEAD left `base`, or main; HEAD~1 on main itself."""
    head = _git("rev-parse", "HEAD")
    for name in [base] if base else _BASES:
        if found := _git("merge-base", "HEAD", name, check=bool(base)):
            return found if base or found != head or _git("status", "--porcelain") else _git("rev-parse", "HEAD~1")
    return head


def changed_files(revision: str) -> list[str]:
    """Return the files that differ from a revision, new ones included."""
    changed = (
        _git("diff", "--name-only", "-z", revision) + "\0" + _git("ls-files", "-z", "--others", "--exclude-standard")
    )
    return sorted({name for name in changed.split("\0") if name})


def select(kept: recording.Recording, revision: str, changed: Iterable[str]) -> Selection:
    """Return the tests that execute changed lines, are changed, import changed helpers, or name changed files."""
    tests: set[str] = set()
    files: set[str] = set()
    unfollowed = []
    importers = Importers()
    for path in changed:
        concerned: set[str] = set()
        if path in kept.modules:
            tests |= (executing := _executing(kept, path, _git("show", f"{revision}:{path}", check=False)))
            concerned = executing
        elif path.startswith("tests/") and path.endswith(".py"):
            concerned = importers.tests(path)
            files |= concerned
        else:
            concerned = importers.naming(pathlib.PurePath(path).name)
            files |= concerned
        if not concerned:
            unfollowed.append(path)
    recorded = {test.file for test in kept.tests.values()}
    tests |= {name for name, test in kept.tests.items() if test.file in files}
    return Selection(tests=frozenset(tests), files=frozenset(files - recorded), unfollowed=tuple(unfollowed))


def changed_lines(before: str, after: str) -> set[int]:
    """Return the lines of a text that are new, and those next to what was deleted."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    found: set[int] = set()
    for what, _, _, first, last in matcher.get_opcodes():
        if what == "delete":
            found.update((first, first + 1))
        elif what != "equal":
            found.update(range(first + 1, last + 1))
    return found & set(range(1, len(after.splitlines()) + 1))


def _executing(kept: recording.Recording, path: str, before: str) -> set[str]:
    module = kept.modules[path]
    found: set[str] = set()
    for line in changed_lines(before, module.text):
        if not module.lines[line - 1].strip() or module.lines[line - 1].strip().startswith("#"):
            continue
        function = module.function(line)
        tests = kept.concerning(path, line)
        found.update(test.name for test in tests)
        if not tests and function is not None:
            found |= kept.executing(path, function.lines)
    return found


def within(kept: recording.Recording, selection: Selection, budget_s: float) -> tuple[list[str], list[str]]:
    """Return what to run, the cheapest first, and what is left out because it takes too long or needs a cluster."""
    ranked = sorted((kept.tests[name] for name in selection.tests), key=lambda test: (test.wall_s, test.name))
    chosen = [file for file in sorted(selection.files) if file.startswith(record.WITHOUT_CLUSTER)]
    left_out = sorted(selection.files - set(chosen))
    for test in ranked:
        budget_s -= test.wall_s
        fits = budget_s > 0 and test.file.startswith(record.WITHOUT_CLUSTER)
        (chosen if fits else left_out).append(test.name)
    return chosen, left_out


class Importers:
    """Which test files use a module of the tests, themselves or by others."""

    def __init__(self, root: pathlib.Path = recording.ROOT) -> None:
        files = [*root.glob("conftest.py"), *sorted((root / "tests").rglob("*.py"))]
        self._texts = {file.relative_to(root).as_posix(): file.read_text() for file in files}

    def tests(self, path: str) -> set[str]:
        """Return the test files that import a module of the tests, or are below the folder of a conftest.py."""
        reached, fresh = {path}, [path]
        while fresh:
            current = fresh.pop()
            users = self._users.get(current.removesuffix(".py").removesuffix("/__init__").replace("/", "."), set())
            if current.endswith("/conftest.py"):
                users = users | {file for file in self._texts if file.startswith(current.removesuffix("conftest.py"))}
            fresh.extend(users - reached)
            reached |= users
        return {file for file in reached if _is_test(file) and file in self._texts}

    def of(self, path: str) -> set[str]:
        """Return the test files that themselves import a module of the code, such as `operator/boathouse/names.py`."""
        module = path.partition("/")[2].removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return {file for file in self._users.get(module, set()) if _is_test(file)}

    def used(self, file: str) -> set[str]:
        """Return a test file, the modules of the tests that it imports, also by others, and its conftest.py files."""
        reached, fresh = set[str](), {file}
        while fresh:
            current = fresh.pop()
            reached.add(current)
            folders = pathlib.PurePath(current).parents
            found = {(folder / "conftest.py").as_posix() for folder in folders}
            found |= {path for name in self._imports.get(current, ()) for path in _paths(name)}
            fresh |= (found & self._texts.keys()) - reached
        return reached

    def naming(self, name: str) -> set[str]:
        """Return the test files that name a file."""
        return {file for file, text in self._texts.items() if _is_test(file) and name in text}

    @functools.cached_property
    def _users(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for file, names in self._imports.items():
            for name in names:
                found.setdefault(name, set()).add(file)
        return found

    @functools.cached_property
    def _imports(self) -> dict[str, set[str]]:
        return {file: set(_imported(sources.Module(text).tree)) for file, text in self._texts.items()}


def _paths(name: str) -> tuple[str, str]:
    path = name.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)


def _is_test(file: str) -> bool:
    return pathlib.PurePath(file).name.startswith("test_")


def _mirrored(changed: Iterable[str]) -> Selection:
    files: set[str] = set()
    unfollowed = []
    importers = Importers()
    for path in changed:
        found = importers.tests(path) if path.startswith("tests/") else set()
        for folder, tests in _MIRRORS.items():
            if path.startswith(folder):
                below = path.removeprefix(folder).partition("/")[0] if tests.endswith("/") else ""
                found = {tests + below} if (recording.ROOT / tests / below).is_dir() else {tests.rstrip("/")}
        files |= found
        if not found:
            unfollowed.append(path)
    return Selection(tests=frozenset(), files=frozenset(files), unfollowed=tuple(unfollowed))


def _tell(chosen: Collection[str], left_out: Collection[str], selection: Selection) -> None:
    folder = recording.ROOT / "build" / "changed"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tests.txt").write_text("\n".join(chosen) + "\n")
    (folder / "left-out.txt").write_text("\n".join(left_out) + "\n")
    print(f"==> {len(chosen)} tests or test files concern the change and fit into the time, the cheapest first")
    if left_out:
        print(f"left out: {len(left_out)}. Run them with `.venv/bin/pytest -n auto @build/changed/left-out.txt`")
    if selection.unfollowed:
        print(
            f"No test is known to execute or name these; `make test` runs all tests: {', '.join(selection.unfollowed)}"
        )


def _pytest(until_s: float) -> int:
    listed = "@build/changed/tests.txt"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-m", "not long", listed]
    process = subprocess.Popen(command, cwd=recording.ROOT)
    try:
        return process.wait(until_s - time.monotonic())
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
        print(f"The time is over. Run the rest with `.venv/bin/pytest -n auto {listed}`")
        return 1


def _git(*arguments: str, check: bool = True) -> str:
    ran = subprocess.run(["git", *arguments], cwd=recording.ROOT, capture_output=True, text=True, check=False)
    if ran.returncode and check:
        raise SystemExit(f"git {' '.join(arguments)}: {ran.stderr.strip()}")
    return ran.stdout.strip("\n") if not ran.returncode else ""
