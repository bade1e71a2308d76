"""What `--help` and completion import: the large libraries take seconds of CPU."""

import os
import subprocess
import sys

import pytest

from boathouse_cli import commands
from boathouse_sim import fluid, simulation

OF_TYPER = {"pydantic"}
"""Typer itself reads the options of a command with it."""
MODELS = "boathouse.resources.base"
LARGE = {"aiohttp", "cel", "jinja2", "kopf", "matplotlib", "numpy", "pycurl", "pydantic", "rich", "scipy", "yaml"}
SCRIPT = """
import sys
from boathouse_cli import __main__
sys.argv = ["boathouse", *sys.argv[1:]]
try:
    __main__.main()
except SystemExit as end:
    assert not end.code, end.code
print("imported:", *sys.modules, file=sys.stderr)
"""


def call(*words, **variables):
    command = [sys.executable, "-c", SCRIPT, *words]
    found = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True, timeout=60)
    printed, imported = found.stdout, found.stderr.rpartition("imported:")[2].split()
    assert "typer" in imported
    return printed, (LARGE | {MODELS}) & set(imported)


def test_help_imports_no_large_library():
    printed, large = call("--help")
    assert "Usage: boathouse" in printed
    assert large == set()


@pytest.mark.parametrize("command", ["submit", "record", "simulate", "reproduce"])
def test_the_help_of_a_command_imports_no_large_library_of_ours(command):
    printed, large = call(command, "--help")
    assert f"Usage: boathouse {command}" in printed
    assert large <= OF_TYPER


@pytest.mark.parametrize(
    ("line", "completed"),
    [("boathouse exp", "explain"), ("boathouse explain spa", "sparkapp/"), ("boathouse list --k", "--kubeconfig")],
)
def test_completion_before_a_slash_imports_no_large_library(line, completed):
    number = str(len(line.split()) - 1)
    printed, large = call(_BOATHOUSE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=number)
    assert completed in printed.split()
    assert large <= OF_TYPER


def test_the_help_of_simulate_names_the_profiles_and_orders_of_the_simulator():
    assert simulation.names() == commands.PROFILES
    assert tuple(fluid.Order) == commands.ORDERS
