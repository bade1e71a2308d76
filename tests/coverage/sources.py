"""Find the functions of a module, and the lines of its earlier versions."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CACHES = {"cache", "lru_cache", "cached_property"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function or method."""

    name: str
    first: int
    """The line of its name; its decorators and defaults are evaluated when the module is imported."""
    body: int
    last: int
    cached: bool
    """Whether it has a cache: then a process executes it for the first of several tests only."""

    @property
    def lines(self) -> range:
        """The lines that a call executes."""
        return range(self.body, self.last + 1)


@dataclasses.dataclass(frozen=True)
class Module:
    """The text of a module, and what is found in it."""

    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines, the first at index 0."""
        return self.text.splitlines()

    @functools.cached_property
    def functions(self) -> tuple[Function, ...]:
        """All functions, a method as `Class.method`, an inner function after its outer."""
        return tuple(_functions(self.tree, ""))

    @functools.cached_property
    def words(self) -> dict[str, set[int]]:
        """The lines on which each identifier stands."""
        found: dict[str, set[int]] = {}
        for number, line in enumerate(self.lines, 1):
            for word in re.findall(r"[A-Za-z_]\w*", line):
                found.setdefault(word, set()).add(number)
        return found

    def function(self, line: int) -> Function | None:
        """Return the innermost function whose body contains a line; None if importing the module executes it."""
        return next((function for function in reversed(self.functions) if line in function.lines), None)

    def named(self, name: str) -> Function | None:
        """Return the function of this name."""
        return next((function for function in self.functions if function.name == name), None)

    def statement(self, line: int) -> tuple[range, ast.stmt | None]:
        """Return the lines of the innermost statement at a line, without the statements inside of it."""
        found: ast.stmt | None = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                found = node  # breadth first: an inner statement comes after its outer
        if found is None:
            return range(line, line + 1), None
        body: list[ast.stmt] = getattr(found, "body", None) or []
        end = body[0].lineno - 1 if body else found.end_lineno or found.lineno
        return range(found.lineno, max(end, found.lineno) + 1), found

    @functools.cached_property
    def definitions(self) -> dict[int, set[str]]:
        """The names that the import gives to the rest of the program, by each line of their definitions."""
        found: dict[int, set[str]] = {}
        for statement in _imported(self.tree.body):
            for line in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1):
                found[line] = _defined(statement)  # a field comes after its class
        return found


def _imported(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that the import of a module executes, a class before its fields and methods."""
    for statement in body:
        yield statement
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imported(getattr(statement, "body", ()))


def _defined(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Assign(targets=targets):
            return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case _:
            return set()


def _functions(node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield Function(
                    name=prefix + child.name,
                    first=child.lineno,
                    body=child.body[0].lineno,
                    last=child.end_lineno or child.lineno,
                    cached=any(_word(decorator) in _CACHES for decorator in child.decorator_list),
                )
                yield from _functions(child, f"{prefix}{child.name}.")
            case ast.ClassDef():
                yield from _functions(child, f"{prefix}{child.name}.")
            case _:
                yield from _functions(child, prefix)


def _word(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def earlier_lines(new: Module, old: Module, lines: Iterable[int]) -> set[int]:
    """Return where lines of a module were in an earlier version of it; for a new line, the function around it."""
    if new.text == old.text:
        return set(lines)
    places = _places(new.text, old.text)
    found = set()
    for line in lines:
        if line in places:
            found.add(places[line])
        elif (function := new.function(line)) and (before := old.named(function.name)):
            found.update(before.lines)
    return found


@functools.lru_cache(maxsize=256)
def _places(new: str, old: str) -> dict[int, int]:
    blocks = difflib.SequenceMatcher(None, new.splitlines(), old.splitlines(), autojunk=False).get_matching_blocks()
    return {block.a + at + 1: block.b + at + 1 for block in blocks for at in range(block.size)}
