"""The laboratory as it is installed: the command finds it, studies have claims, and benchmarks can be imported."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from boathouse_cli import commands
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_lab.reproduce import claim, sources, studies

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def test_the_installed_laboratory_adds_reproduce_to_the_command_line():
    program = Path(sys.executable).parent / "boathouse"
    done = subprocess.run([program, "reproduce", "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert all(paper in done.stdout for paper in studies.names())


@pytest.mark.parametrize("words", [("reproduce", "fspy", "--quick"), ("board", "--quick")])
def test_without_the_laboratory_its_commands_say_what_to_install(monkeypatch, words):
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints())
    app = typer.Typer()
    app.command("simulate")(lambda: None)
    commands.add_commands(app)
    error = CliRunner().invoke(app, words).exception
    assert isinstance(error, CommandError)
    assert error.code is ExitCode.USAGE
    assert "pip install boathouse-lab" in str(error)


@pytest.mark.parametrize("study", studies.chosen(studies.ALL), ids=lambda study: study.paper)
def test_a_study_has_a_catalogue_of_claims(study):
    kinds = {source.kind for source in sources.catalogue(study.paper).sources.values()}
    assert kinds
    assert kinds <= set(claim.Kind)


def test_every_benchmark_can_be_imported():
    files = [*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("*/*.py")]
    names = [".".join(path.relative_to(BENCHMARKS.parent).with_suffix("").parts) for path in files]
    assert len(names) > 40
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *names],
        cwd=BENCHMARKS.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
