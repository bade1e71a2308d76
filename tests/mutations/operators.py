"""Find what can be changed in a module: the operators of mutmut, and statements left out and values not returned.

Nothing is changed that no test should check: annotations, docstrings, the texts of logs, imports, `__all__`, decorators
of dataclasses, and what only type checkers execute.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TYPE_CHECKING, Any

import libcst
from libcst import matchers, metadata
from mutmut.mutation import mutators

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LOGS = {"log", "logger", "_log", "logging", "warnings"}
_TYPING = {"cast", "NewType", "TypeVar", "ParamSpec", "overload"}
_TEXTS = {"description", "help", "documentation"}
"""Keywords whose value is read by people."""

_VALUES = {
    "bool": ("True", "False"),
    "float": ("0.0", 'float("inf")'),
    "int": ("0", "1"),
    "str": ('""',),
    "list": ("[]",),
    "Sequence": ("[]",),
    "Collection": ("[]",),
    "Iterable": ("[]",),
    "dict": ("{}",),
    "Mapping": ("{}",),
    "tuple": ("()",),
    "set": ("set()",),
    "frozenset": ("frozenset()",),
}
"""What a function may return instead, by the first word of its annotation."""
_COLLECTIONS = {"list", "Sequence", "Collection", "Iterable", "dict", "Mapping", "tuple", "set", "frozenset"}


def _name(names: set[str]) -> matchers.Name:
    return matchers.Name(matchers.MatchIfTrue(names.__contains__))


class Family(enum.StrEnum):
    """A kind of fault."""

    STATEMENT = "statement left out"
    RETURN = "value not returned"
    CONDITION = "condition"
    COMPARISON = "comparison or arithmetic"
    CONSTANT = "constant"
    ARGUMENT = "argument"
    ASSIGNMENT = "assignment"
    BRANCH = "branch"


_FAMILIES: dict[Any, Family] = {
    mutators.operator_number: Family.CONSTANT,
    mutators.operator_string: Family.CONSTANT,
    mutators.operator_name: Family.CONSTANT,
    mutators.operator_lambda: Family.CONSTANT,
    mutators.operator_assignment: Family.ASSIGNMENT,
    mutators.operator_augmented_assignment: Family.ASSIGNMENT,
    mutators.operator_remove_unary_ops: Family.CONDITION,
    mutators.operator_if_exp: Family.CONDITION,
    mutators.operator_dict_arguments: Family.ARGUMENT,
    mutators.operator_arg_removal: Family.ARGUMENT,
    mutators.operator_symmetric_string_methods_swap: Family.ARGUMENT,
    mutators.operator_unsymmetrical_string_methods_swap: Family.ARGUMENT,
    mutators.operator_keywords: Family.COMPARISON,
    mutators.operator_swap_op: Family.COMPARISON,
    mutators.operator_match: Family.BRANCH,
}

_TO_NONE = {mutators.operator_assignment, mutators.operator_augmented_assignment}
"""Not for a variable: None in it fails at the next line, and mypy sees it before any test."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """A part of a module and what may stand there instead."""

    family: Family
    line: int
    old: str
    new: str
    nodes: tuple[libcst.CSTNode, libcst.CSTNode]


class Changes:
    """All changes of a module."""

    def __init__(self, text: str) -> None:
        wrapper = metadata.MetadataWrapper(libcst.parse_module(text))
        self._module = wrapper.module
        finder = _Finder(self._module)
        wrapper.visit(finder)
        self.found = finder.found

    def apply(self, change: Change) -> str:
        """Return the module's text with a change."""
        before, after = change.nodes
        changed = self._module.deep_replace(before, after)  # type: ignore[arg-type]
        assert isinstance(changed, libcst.Module)
        return changed.code


class _Finder(libcst.CSTVisitor):
    METADATA_DEPENDENCIES = (metadata.PositionProvider,)

    def __init__(self, module: libcst.Module) -> None:
        super().__init__()
        self.found: list[Change] = []
        self._module = module
        self._returns: list[libcst.Annotation | None] = [None]

    def on_visit(self, node: libcst.CSTNode) -> bool:
        if _is_left_out(node):
            return False
        if isinstance(node, libcst.FunctionDef | libcst.Lambda):
            self._returns.append(getattr(node, "returns", None))
        for family, before, after in self._changes(node):
            old, new = self._module.code_for_node(before).strip(), self._module.code_for_node(after).strip()
            if old != new and (old, new) not in _EQUAL:
                line = self.get_metadata(metadata.PositionProvider, before).start.line
                self.found.append(Change(family=family, line=line, old=old, new=new, nodes=(before, after)))
        return True

    def on_leave(self, original_node: libcst.CSTNode) -> None:
        if isinstance(original_node, libcst.FunctionDef | libcst.Lambda):
            self._returns.pop()

    def _changes(self, node: libcst.CSTNode) -> Iterator[tuple[Family, libcst.CSTNode, libcst.CSTNode]]:
        for kind, operator in mutators.mutation_operators:
            if isinstance(node, kind) and operator in _FAMILIES and not (operator in _TO_NONE and _names(node)):
                yield from ((_FAMILIES[operator], node, changed) for changed in operator(node))
        if isinstance(node, libcst.SimpleStatementLine) and len(node.body) == 1:
            yield from ((Family.STATEMENT, node.body[0], changed) for changed in _left_out(node.body[0]))
        if isinstance(node, libcst.Return) and node.value is not None:
            for value in _other_values(self._returns[-1]):
                yield Family.RETURN, node, node.with_changes(value=value)
        if isinstance(node, libcst.If | libcst.While):
            negated = libcst.UnaryOperation(operator=libcst.Not(), expression=_in_parentheses(node.test))
            yield Family.CONDITION, node.test, negated


_IGNORED = (
    matchers.Annotation()
    | matchers.Import()
    | matchers.ImportFrom()
    | matchers.Assert()
    | matchers.Decorator()
    | matchers.Expr(matchers.SimpleString() | matchers.ConcatenatedString() | matchers.Ellipsis())
    | matchers.If(matchers.Name("TYPE_CHECKING") | matchers.Attribute(attr=matchers.Name("TYPE_CHECKING")))
    | matchers.Assign([matchers.AssignTarget(_name({"__all__", "__slots__"}))])
    | matchers.Call(matchers.Attribute(_name(_LOGS)) | _name(_TYPING) | matchers.Attribute(attr=_name(_TYPING)))
    | matchers.Arg(keyword=_name(_TEXTS))
)

_EQUAL = {("return math.inf", 'return float("inf")')}


def _is_left_out(node: libcst.CSTNode) -> bool:
    """Whether nothing in a node is worth a fault."""
    return matchers.matches(node, _IGNORED)


def _left_out(statement: libcst.BaseSmallStatement) -> Iterator[libcst.BaseSmallStatement]:
    """Yield what stands for a statement with an effect: `pass`. Leaving out a local name would only fail at once."""
    match statement:
        case libcst.Expr(value=value):
            if not _is_left_out(statement) and not _is_left_out(_awaited(value)):
                yield libcst.Pass()
        case libcst.Assign(targets=targets):
            if targets and not _names(statement):
                yield libcst.Pass()
        case libcst.AugAssign() | libcst.Raise() | libcst.Del() | libcst.Continue() | libcst.Break():
            yield libcst.Pass()


def _names(node: libcst.CSTNode) -> bool:
    """Whether a node gives a value to a variable."""
    targets = [target.target for target in getattr(node, "targets", ())] or [getattr(node, "target", None)]
    return any(isinstance(target, libcst.Name | libcst.Tuple) for target in targets)


def _awaited(value: libcst.BaseExpression) -> libcst.BaseExpression:
    return value.expression if isinstance(value, libcst.Await) else value


def _other_values(annotation: libcst.Annotation | None) -> Iterable[libcst.BaseExpression]:
    """Return other values of a return statement, of the type that the function promises."""
    promised = libcst.Module([]).code_for_node(annotation.annotation) if annotation else ""
    word = promised.partition("[")[0].partition(" ")[0].rpartition(".")[2]
    values = _VALUES.get(word, ("None",))
    if (word in _COLLECTIONS and "None" in promised) or (word == "tuple" and "..." not in promised):
        values = ("None",)
    elif "None" in promised and "None" not in values:
        values = (*values, "None")
    return map(libcst.parse_expression, values)


def _in_parentheses(test: libcst.BaseExpression) -> libcst.BaseExpression:
    return test.with_changes(lpar=[libcst.LeftParen()], rpar=[libcst.RightParen()])
