"""Options before the command, as people write them for kubectl."""

from importlib import metadata

import pytest
from typer.testing import CliRunner

from boathouse_cli import commands
from boathouse_cli.errors import CommandError


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--kubeconfig", "absent.yaml", "list"], id="before the command"),
        pytest.param(["list", "--kubeconfig", "absent.yaml"], id="after the command"),
    ],
)
def test_a_shared_option_is_taken_on_either_side_of_the_command(words):
    result = CliRunner().invoke(commands.app, words)
    assert isinstance(result.exception, CommandError)
    assert "absent.yaml does not exist" in str(result.exception)


@pytest.mark.parametrize("path", ["", "a" * 300])
def test_a_path_that_can_be_no_file_is_an_error_and_never_the_default_kubeconfig(path):
    result = CliRunner().invoke(commands.app, ["list", "--kubeconfig", path])
    assert "does not exist: pass the path of a kubeconfig" in str(result.exception)


def test_the_option_nearer_to_the_command_wins():
    result = CliRunner().invoke(commands.app, ["--kubeconfig", "far.yaml", "list", "--kubeconfig", "near.yaml"])
    assert "near.yaml does not exist" in str(result.exception)


def test_the_version_is_that_of_the_distribution():
    assert CliRunner().invoke(commands.app, ["--version"]).stdout == f"boathouse {metadata.version('boathouse')}\n"
