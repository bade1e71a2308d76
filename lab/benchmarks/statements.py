"""Count the Python statements of a folder, package by package, and compare the counts with another revision.

    python lab/benchmarks/statements.py [FOLDER] [--against DIRECTORY_OR_REVISION] [--without PACKAGE ...]

A statement is a node of the syntax tree that is an `ast.stmt`: assignments, calls, imports, `if`, `for`, `def`, `class`
and the rest, at every depth. An `if` counts once, and each statement inside it counts too; `else`, `except` and `case`
lines are no statements of their own. A statement that is only a string does not count: docstrings of modules, classes,
functions and constants. Comments, blank lines and how a statement is broken into lines have no influence.

FOLDER is relative to the checkout's root. With `--against`, the same folder of another checkout, or of a commit of this
one, is the first column, and the ratio is this checkout's count over it. `--without` leaves packages out of all counts,
such as one that has moved here from another folder: `--without run_times` for `policies/boathouse_policies`.
"""

from __future__ import annotations

import argparse
import ast
import collections
import io
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

ROOT = Path(__file__).resolve().parents[2]
SUFFIX = ".py"


def count(source: str) -> int:
    """Return the number of statements in a module."""
    return sum(isinstance(node, ast.stmt) and not _is_docstring(node) for node in ast.walk(ast.parse(source)))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def by_package(modules: Iterable[tuple[str, str]]) -> Mapping[str, int]:
    """Return the statements of each package: the first part of a module's path, or "." for a module at the top."""
    counts: collections.Counter[str] = collections.Counter()
    for path, source in modules:
        package, slash, _ = path.partition("/")
        counts[package if slash else "."] += count(source)
    return +counts  # without packages of no statements


def in_directory(folder: Path) -> Iterable[tuple[str, str]]:
    """Yield the path, relative to the folder, and the source of each module."""
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not a folder")
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        yield path.relative_to(folder).as_posix(), path.read_text()


def in_revision(revision: str, folder: str) -> Iterable[tuple[str, str]]:
    """Yield the same of a folder in a commit of this repository."""
    done = subprocess.run(
        ["git", "-C", ROOT, "archive", "--format=tar", revision, "--", folder], capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{revision!r} is no directory, and git says: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member) if member.name.endswith(SUFFIX) else None
            if content is not None:
                yield Path(member.name).relative_to(folder).as_posix(), content.read().decode()


def main() -> None:
    """Print a line for each package, and the sum."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", nargs="?", default="policies/boathouse_policies", help="(default: %(default)s)")
    parser.add_argument("--against", metavar="DIRECTORY_OR_REVISION", help="another checkout, or a commit of this one")
    parser.add_argument("--without", metavar="PACKAGE", nargs="+", default=(), help="packages to leave out")
    arguments = parser.parse_args()
    now = _without(arguments.without, by_package(in_directory(ROOT / arguments.folder)))
    if arguments.against is None:
        for package, number in (*sorted(now.items()), ("all", sum(now.values()))):
            print(f"{package:<20} {number:>8,}")
        return
    other = Path(arguments.against)
    is_checkout = other.is_dir()
    modules = (
        in_directory(other / arguments.folder) if is_checkout else in_revision(arguments.against, arguments.folder)
    )
    before = _without(arguments.without, by_package(modules))
    print(f"{'package':<20} {'before':>8} {'after':>8} {'ratio':>6}")
    for package in sorted({*before, *now}):
        _compare(package, before.get(package, 0), now.get(package, 0))
    _compare("all", sum(before.values()), sum(now.values()))


def _without(packages: Collection[str], counts: Mapping[str, int]) -> Mapping[str, int]:
    return {package: number for package, number in counts.items() if package not in packages}


def _compare(package: str, before: int, after: int) -> None:
    ratio = f"{after / before:.2f}" if before else "new"
    print(f"{package:<20} {before:>8,} {after:>8,} {ratio:>6}")


if __name__ == "__main__":
    main()
