"""What runs only on a cluster, or by hand, uses names that exist: nothing else notices a name that is gone."""

import ast
import importlib
import types

import pytest

from boathouse_e2e import paths

FOLDERS = (
    "lab/benchmarks",
    "tests/contract",
    "tests/faults",
    "tests/hostile",
    "tests/soak",
    "tests/autoscaling",
    "e2e",
)
FILES = sorted(file for folder in FOLDERS for file in (paths.REPOSITORY / folder).rglob("*.py"))


def imported(module, name):
    """What `from module import name` gives; None if there is nothing."""
    try:
        found = importlib.import_module(module)
        return getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")
    except ImportError:
        return None


def missing(tree):
    """The names of our packages that a file imports or uses of an imported module, and that do not exist."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("boathouse"):
            for alias in node.names:
                found = imported(node.module, alias.name)
                if found is None:
                    yield f"line {node.lineno}: {node.module}.{alias.name}"
                if isinstance(found, types.ModuleType):
                    modules[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                yield f"line {node.lineno}: {module.__name__}.{node.attr}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_name_of_our_packages_exists(folder):
    files = [file for file in FILES if file.is_relative_to(paths.REPOSITORY / folder)]
    found = {str(file): list(missing(ast.parse(file.read_text()))) for file in files}
    assert files
    assert {file: names for file, names in found.items() if names} == {}
