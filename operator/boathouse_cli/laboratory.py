"""Commands of the laboratory, a distribution of its own: `boathouse reproduce` and `boathouse board`."""

from collections.abc import Callable
from importlib import metadata
from typing import Final

import typer

from boathouse_cli.errors import CommandError, ExitCode

GROUP: Final = "boathouse.commands"
"""Entry points by which a distribution adds commands: the name of a command, and its function."""
COMMANDS: Final = {
    "reproduce": "Run the papers' experiments.",
    "board": "Compare profiles on many workloads.",
}
"""Commands of the laboratory, and what they do."""


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the installed laboratory; without it, commands that say what to install."""
    installed = metadata.entry_points(group=GROUP)
    for command in installed:
        app.command(command.name)(command.load())
    for name, does in COMMANDS.items():
        if name not in installed.names:
            app.command(
                name,
                help=f"{does} Needs the distribution boathouse-lab: pip install boathouse-lab.",
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
            )(_missing(name))


def _missing(name: str) -> Callable[[], None]:
    message = f"{name} is a command of boathouse-lab, which is not installed: pip install boathouse-lab"

    def refuse() -> None:
        raise CommandError(message, ExitCode.USAGE)

    return refuse
