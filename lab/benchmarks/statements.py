"""Count the Python statements, lines and files of each part of the project, and compare them with another revision.

    python -m benchmarks.statements [FOLDER] [--against REVISION]

A statement is a node of the syntax tree that is an `ast.stmt`: assignments, calls, imports, `if`, `for`, `def`, `class`
and the rest, at every depth. An `if` counts once, and each statement inside it counts too; `else`, `except` and `case`
lines are no statements of their own. A statement that is only a string does not count: docstrings of modules, classes,
functions and constants. Comments, blank lines and how a statement is broken into lines have no influence. Lines are all
lines of a file.

The parts are what `pip install` brings (operator, task runtime, command line, policies, simulator), and the laboratory.
With FOLDER, relative to the checkout's root, its packages are counted instead. `--against` compares with a commit of
this repository: `moved` is what git finds renamed into or out of a part, counted as it was before.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import io
import subprocess
import tarfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ROOT = Path(__file__).resolve().parents[2]
SUFFIX = ".py"
INSTALLED = {
    "operator/boathouse": "operator",
    "operator/boathouse_task": "task runtime",
    "operator/boathouse_cli": "command line",
    "policies/boathouse_policies": "policies",
    "policies/boathouse_sim": "simulator",
}
LABORATORY = {"lab/boathouse_lab": "laboratory: studies", "lab/benchmarks": "laboratory: benchmarks"}


@dataclasses.dataclass(frozen=True, slots=True)
class Size:
    """Of some modules."""

    statements: int = 0
    lines: int = 0
    files: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.statements + other.statements, self.lines + other.lines, self.files + other.files)

    def __neg__(self) -> Size:
        return Size(-self.statements, -self.lines, -self.files)


def size(source: str) -> Size:
    """Return the size of a module."""
    statements = sum(isinstance(node, ast.stmt) and not _is_docstring(node) for node in ast.walk(ast.parse(source)))
    return Size(statements, len(source.splitlines()), 1)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def part_of(path: str) -> str | None:
    """Return the part of the project to which a file belongs; None for tests and tools."""
    parents = [folder.as_posix() for folder in PurePosixPath(path).parents]
    return next((part for folder in parents if (part := (INSTALLED | LABORATORY).get(folder))), None)


def package_of(folder: str) -> Callable[[str], str | None]:
    """Return a function that names the package of a file below a folder: "." for a module at the top."""

    def package(path: str) -> str | None:
        if not PurePosixPath(path).is_relative_to(folder):
            return None
        first, *below = PurePosixPath(path).relative_to(folder).parts
        return first if below else "."

    return package


def here() -> dict[str, Size]:
    """Return the size of each module of this checkout that git knows, by its path."""
    names = _git("ls-files", "-z", "--", f"*{SUFFIX}").decode().split("\0")
    return {name: size((ROOT / name).read_text()) for name in names if name and (ROOT / name).is_file()}


def at(revision: str) -> dict[str, Size]:
    """Return the size of each module of a commit, by its path."""
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", revision))) as archive:
        return {
            member.name: size(content.read().decode())
            for member in archive.getmembers()
            if member.name.endswith(SUFFIX) and (content := archive.extractfile(member))
        }


def renames(revision: str) -> dict[str, str]:
    """Return the path that each module moved since a commit has now, by the path that it had."""
    fields = _git("diff", "--name-status", "--find-renames", "--diff-filter=R", "-l0", "-z", revision)
    words = fields.decode().split("\0")[:-1]
    return dict(zip(words[1::3], words[2::3], strict=True))


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"git says: {done.stderr.decode().strip()}")
    return done.stdout


def grouped(sizes: Iterable[tuple[str | None, Size]]) -> Mapping[str, Size]:
    """Return the sum of each group."""
    sums: collections.defaultdict[str, Size] = collections.defaultdict(Size)
    for group, found in sizes:
        if group is not None:
            sums[group] += found
    return sums


def main() -> None:
    """Print a line for each part or package, and sums."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", nargs="?", help="count the packages of this folder (default: the project's parts)")
    parser.add_argument("--against", metavar="REVISION", help="a commit of this repository")
    chosen = parser.parse_args()
    group_of = part_of if chosen.folder is None else package_of(chosen.folder.rstrip("/"))
    after = grouped((group_of(path), found) for path, found in here().items())
    if not after:
        raise SystemExit(f"{chosen.folder} has no modules that git knows")
    sums = {"all": after.keys()} if chosen.folder else {"installed": INSTALLED.values(), "lab": LABORATORY.values()}
    rows = [(group, [group]) for group in after] + [(name, list(groups)) for name, groups in sums.items()]
    columns: list[tuple[str, Mapping[str, Size]]] = [("", after)]
    if chosen.against is not None:
        old = at(chosen.against)
        pairs = [(path, group_of(path), group_of(now)) for path, now in renames(chosen.against).items()]
        moved = [(path, was, is_) for path, was, is_ in pairs if was != is_]
        out = [(was, -old[path]) for path, was, _ in moved if path in old]
        into = [(is_, old[path]) for path, _, is_ in moved if path in old]
        before = grouped((group_of(path), found) for path, found in old.items())
        rows = [(group, [group]) for group in before if group not in after] + rows
        columns = [("before", before), ("moved", grouped([*out, *into])), ("after", after)]
    _print(rows, columns)


def _print(rows: Iterable[tuple[str, list[str]]], columns: list[tuple[str, Mapping[str, Size]]]) -> None:
    fields = [field.name for field in dataclasses.fields(Size)]
    print(f"{'':<24}" + "".join(f"{field:>{12 * len(columns)}}" for field in fields))
    if len(columns) > 1:
        print(f"{'':<24}" + "".join(f"{name:>12}" for _ in fields for name, _ in columns))
    for name, groups in rows:
        sums = [sum((column.get(group, Size()) for group in groups), Size()) for _, column in columns]
        print(f"{name:<24}" + "".join(f"{getattr(found, field):>12,}" for field in fields for found in sums))


if __name__ == "__main__":
    main()
