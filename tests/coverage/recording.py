"""Keep which test executes which line, in a file of SQLite.

A line belongs to a version of its module. So a recording stays useful while the code changes: a line is looked up where
it was in each recorded version. A test is recorded again if its file changes.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import hashlib
import pathlib
import sqlite3
from typing import TYPE_CHECKING

from coverage import numbits
from tests.coverage import contexts, sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

ROOT = pathlib.Path(__file__).parents[2]
PATH = ROOT / "build" / "coverage" / "recording.sqlite"
SOURCES = ("operator", "policies", "e2e/boathouse_e2e", "lab")
_TABLES = """
create table if not exists source (id integer primary key, path text, text text, unique (path, text));
create table if not exists test (
    id integer primary key, name text unique, file text, digest text, cpu_s real, wall_s real
);
create table if not exists executed (test integer, source integer, lines blob, primary key (source, test));
create index if not exists executed_by on executed (test);
"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A recorded test and what it took, set-up and tear-down included, while it was recorded."""

    __test__ = False  # no test of pytest

    name: str
    file: str
    cpu_s: float
    wall_s: float


def digest(text: str) -> str:
    """Return what tells a text from others."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def modules(root: pathlib.Path = ROOT) -> dict[str, str]:
    """Return the text of each module that is recorded, by its path in the repository."""
    found = sorted(path for folder in SOURCES for path in (root / folder).rglob("*.py"))
    return {path.relative_to(root).as_posix(): path.read_text() for path in found}


class Recording:
    """Tells which tests execute a line of the present code."""

    def __init__(self, path: pathlib.Path = PATH, root: pathlib.Path = ROOT) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path)
        self._database.executescript(_TABLES)
        self._root = root

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @functools.cached_property
    def tests(self) -> dict[str, Test]:
        """The recorded tests by node ID."""
        rows = self._database.execute("select name, file, cpu_s, wall_s from test")
        return {name: Test(name=name, file=file, cpu_s=cpu, wall_s=wall) for name, file, cpu, wall in rows}

    @functools.cached_property
    def modules(self) -> dict[str, sources.Module]:
        """The present modules by path."""
        return {path: sources.Module(text) for path, text in modules(self._root).items()}

    def digests(self) -> dict[str, str]:
        """Return the digest of each recorded test file."""
        return dict(self._database.execute("select distinct file, digest from test"))

    def executing(self, path: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that execute one of these lines of a module."""
        wanted = set(lines)
        found = set()
        for source, text in self._versions(path):
            earlier = sources.earlier_lines(self.modules[path], text, wanted)
            if earlier:
                found.update(name for name, executed in self._executed(source) if executed & earlier)
        return found

    def concerning(self, path: str, line: int) -> list[Test]:
        """Return the tests that can notice a fault at a line, the cheapest first.

        These execute the line. What the import of a module executes, no test executes alone: these tests call a
        function of the module, or execute a line elsewhere that names what the line defines, or another constant made
        of it; or they name a constant of the line themselves. The same holds for a function with a cache, which the
        first of several tests fills.
        """
        module = self.modules[path]
        function = module.function(line)
        if function is None or function.cached:
            found = self.executing(path, (line for function in module.functions for line in function.lines))
            names = module.definitions.get(function.first if function else line, set())
            for user, lines in self._using(names):
                found |= self.executing(user, lines)
            found |= self._naming({name for name in names if name.isupper()})
        else:
            found = self.executing(path, [line]) or self.executing(path, module.statement(line)[0])
        return sorted((self.tests[name] for name in found), key=lambda test: (test.cpu_s, test.name))

    def _using(self, names: set[str]) -> Iterator[tuple[str, set[int]]]:
        """Yield the lines inside functions, by module, that use names, or constants made of them."""
        fresh, reached = set(names), set(names)
        while fresh:
            name = fresh.pop()
            for path, module in self.modules.items():
                lines = module.words.get(name, set())
                if inside := {line for line in lines if module.function(line)}:
                    yield path, inside
                made = {made for line in lines - inside for made in module.definitions.get(line, ()) if made.isupper()}
                fresh |= made - reached
                reached |= made

    def _naming(self, constants: set[str]) -> set[str]:
        """Return the tests whose own bodies name a constant."""
        return {
            test.name for test in self.tests.values() if constants & self._test_file(test.file).get(_body(test), set())
        }

    @functools.cache  # noqa: B019 - a recording lives as long as its command
    def _test_file(self, file: str) -> dict[str, set[str]]:
        """Return the words of each function of a file of tests."""
        path = self._root / file
        module = sources.Module(path.read_text() if path.exists() else "")
        found = dict[str, set[str]]()
        for word, lines in module.words.items():
            for function in filter(None, map(module.function, lines)):
                found.setdefault(function.name.rpartition(".")[2], set()).add(word)
        return found

    @functools.lru_cache(maxsize=512)  # noqa: B019 - a recording lives as long as its command
    def _versions(self, path: str) -> list[tuple[int, sources.Module]]:
        rows = self._database.execute("select id, text from source where path = ?", [path])
        return [(source, sources.Module(text)) for source, text in rows]

    @functools.lru_cache(maxsize=64)  # noqa: B019
    def _executed(self, source: int) -> list[tuple[str, set[int]]]:
        rows = self._database.execute(
            "select name, lines from executed join test on test.id = executed.test where source = ?", [source]
        )
        return [(name, set(numbits.numbits_to_nums(lines))) for name, lines in rows]

    def forget_gone(self) -> None:
        """Forget the tests of files that are not there any more."""
        with self._database:
            self._forget(file for file in self.digests() if not (self._root / file).exists())

    def _forget(self, files: Iterable[str]) -> None:
        rows = [(file,) for file in files]
        self._database.executemany("delete from executed where test in (select id from test where file = ?)", rows)
        self._database.executemany("delete from test where file = ?", rows)

    def replace(self, run: Run) -> None:
        """Replace what is recorded of the files of a run."""
        with self._database as database:
            self._forget(run.files)
            for name, (cpu_s, wall_s) in run.seconds.items():
                file = name.partition("::")[0]
                database.execute(
                    "insert into test (name, file, digest, cpu_s, wall_s) values (?, ?, ?, ?, ?)",
                    [name, file, run.files[file], cpu_s, wall_s],
                )
            for path in {path for path, _ in run.lines}:
                database.execute("insert or ignore into source (path, text) values (?, ?)", [path, run.modules[path]])
            database.executemany(
                "insert or replace into executed select test.id, source.id, ? from test, source"
                " where test.name = ? and source.path = ? and source.text = ?",
                ((lines, name, path, run.modules[path]) for (path, name), lines in run.lines.items()),
            )
            database.execute("delete from source where id not in (select source from executed)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """What a run of pytest recorded."""

    files: Mapping[str, str]
    """The digest of each test file."""
    modules: Mapping[str, str]
    """The modules' text when the run began."""
    seconds: Mapping[str, tuple[float, float]]
    """CPU and wall seconds of each test."""
    lines: Mapping[tuple[str, str], bytes]
    """What each test executes of a module, by the module's path and the test's name, as coverage.py packs it."""


def lines_of(
    folder: pathlib.Path, tests: Iterable[str], paths: Collection[str], root: pathlib.Path
) -> dict[tuple[str, str], bytes]:
    """Read what tests execute of some modules from the files that coverage.py left in a folder."""
    names = set(tests)
    found: dict[tuple[str, str], bytes] = collections.defaultdict(bytes)
    for file in sorted(folder.glob("data.*")):
        for absolute, context, lines in _rows(file):
            path = absolute.removeprefix(f"{root}/")
            for name in _tests_of(context, names) if path in paths else ():  # templates of Jinja are recorded, too
                found[path, name] = numbits.numbits_union(found[path, name], lines)
    return found


def _rows(file: pathlib.Path) -> Iterator[tuple[str, str, bytes]]:
    with contextlib.closing(sqlite3.connect(file)) as database:
        try:
            yield from database.execute(
                "select file.path, context.context, numbits from line_bits"
                " join file on file.id = file_id join context on context.id = context_id"
            )
        except sqlite3.OperationalError:
            return  # a process that was killed before it saved


def _tests_of(context: str, names: set[str]) -> list[str]:
    """Return the tests of a context: a worker's, with its phase a child's, or that of a shared fixture."""
    if context.startswith(contexts.SHARED):
        base = context.removeprefix(contexts.SHARED)
        return [name for name in names if not base or name.startswith((f"{base}::", f"{base}/"))]
    child = context.rpartition(" (")[0]
    return [name for name in (context, child) if name in names]


def _body(test: Test) -> str:
    """Return the name of a test's function."""
    return test.name.rpartition("::")[2].partition("[")[0]
