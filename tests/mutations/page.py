"""Print what became of the faults, and write `docs/mutations.md`."""

from __future__ import annotations

import collections
import dataclasses
import difflib
import pathlib
import tomllib
from typing import TYPE_CHECKING

from tests.coverage import recording

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.mutations import faults, running

LEAST_CAUGHT = 0.9
PAGE = recording.ROOT / "docs" / "mutations.md"
REASONS = pathlib.Path(__file__).with_name("reasons.toml")
NO_REASON = "**No reason is given yet.**"
_INTRODUCTION = """\
# Planted faults

`make test-mutations` plants faults in the code and runs the tests that execute the changed line. A fault that no test
notices shows what the tests do not check. The command fails if fewer than 90 % of the faults of a package are caught.
It chooses the faults with a fixed seed, so they stay the same until the code around them changes. It writes this page;
do not edit it. [CONTRIBUTING](../CONTRIBUTING.md#planted-faults) says how to use the command.

"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tried:
    """A fault with its result."""

    package: str
    fault: faults.Fault
    result: running.Result


def table(tried: Sequence[Tried], chosen: Mapping[str, int]) -> list[str]:
    """Return the rows of the table by package, of which so many faults are chosen, and the sum."""
    rows = [
        "| package | faults | not tried yet | caught | survived | caught of tried |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, number in {**chosen, "all": sum(chosen.values())}.items():
        own = [one for one in tried if name in {one.package, "all"}]
        caught = sum(one.result.is_caught for one in own)
        share = f"{100 * caught / len(own):.1f} %" if own else ""
        rows.append(f"| {name} | {number} | {number - len(own)} | {caught} | {len(own) - caught} | {share} |")
    return rows


def below(tried: Sequence[Tried]) -> list[str]:
    """Return the packages of which too few faults are caught."""
    by_package: dict[str, list[bool]] = collections.defaultdict(list)
    for one in tried:
        by_package[one.package].append(one.result.is_caught)
    return [name for name, caught in by_package.items() if sum(caught) < LEAST_CAUGHT * len(caught)]


def reasons(file: pathlib.Path = REASONS) -> dict[tuple[str, ...], str]:
    """Return the reasons of survivors by file, function, and both texts."""
    entries = tomllib.loads(file.read_text()).get("survivor", [])
    return {(one["file"], one["function"], one["old"], one["new"]): one["reason"] for one in entries}


def reason(fault: faults.Fault, known: Mapping[tuple[str, ...], str]) -> str:
    """Return why a fault survives."""
    return known.get((fault.path, fault.function, fault.old, fault.new), NO_REASON)


def page(tried: Sequence[Tried], chosen: Mapping[str, int], known: Mapping[tuple[str, ...], str]) -> str:
    """Return the page."""
    lines = [_INTRODUCTION + "\n".join(table(tried, chosen)), ""]
    survivors = [one for one in tried if not one.result.is_caught]
    if survivors:
        lines += ["## Survivors", "", "A survivor counts even if its program behaves the same as the original.", ""]
    for package, own in _grouped(survivors).items():
        lines += [f"### {package}", "", "| where | change | reason |", "|---|---|---|"]
        for one in own:
            where = f"`{one.fault.path}`:{one.fault.line} `{one.fault.function or 'module'}`"
            lines.append(f"| {where} | {_code(one.fault.old)} → {_code(one.fault.new)} | {reason(one.fault, known)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def survivors(
    package: str, tried: Sequence[Tried], faults: int, known: Mapping[tuple[str, ...], str],
    root: pathlib.Path = recording.ROOT,
) -> str:  # fmt: skip
    """Return the survivors of a package for one who writes the missing tests."""
    lines = [f"# Survivors of {package}", "", *table(tried, {package: faults})[:-1], ""]
    for one in (one for one in tried if not one.result.is_caught):
        fault, before = one.fault, (root / one.fault.path).read_text()
        diff = difflib.unified_diff(before.splitlines(), fault.mutated.splitlines(), lineterm="", n=2)
        lines += [
            f"## {fault.path}:{fault.line} `{fault.function or 'module'}`",
            f"{fault.family}; executed by {one.result.executed_by} tests. {reason(fault, known)}",
            "```diff",
            *list(diff)[2:],
            "```",
            *(f"- `{test}`" for test in one.result.tests),
            "",
        ]
    return "\n".join(lines)


def _grouped(tried: Iterable[Tried]) -> dict[str, list[Tried]]:
    found: dict[str, list[Tried]] = collections.defaultdict(list)
    for one in tried:
        found[one.package].append(one)
    return {name: sorted(own, key=lambda one: (one.fault.path, one.fault.line)) for name, own in found.items()}


def _code(text: str) -> str:
    """Return code for a cell of a table."""
    return f"`` {' '.join(text.split()).replace('|', chr(92) + '|')} ``"
