"""Commands of the laboratory, a distribution of its own: `boathouse reproduce` runs the papers' experiments."""

from importlib import metadata
from typing import Final

import typer

from boathouse_cli.errors import CommandError, ExitCode

GROUP: Final = "boathouse.commands"
"""Entry points by which a distribution adds commands: the name of a command, and its function."""
REPRODUCE: Final = "reproduce"


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the installed laboratory; without it, a `reproduce` that says what to install."""
    installed = metadata.entry_points(group=GROUP)
    for command in installed:
        app.command(command.name)(command.load())
    if REPRODUCE not in installed.names:
        app.command(REPRODUCE, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(_missing)


def _missing() -> None:
    """Run the papers' experiments. Needs the distribution boathouse-lab: pip install boathouse-lab."""
    raise CommandError(
        f"{REPRODUCE} is a command of the distribution boathouse-lab, which is not installed: "
        "pip install boathouse-lab",
        ExitCode.USAGE,
    )
