"""`python -m boathouse_e2e.commands_page`: write docs/reference/commands.md from the commands themselves."""

import re
import sys
from typing import Any, Final

import typer.main

from boathouse_cli import commands, errors
from boathouse_e2e import paths

PAGE: Final = paths.REPOSITORY / "docs" / "reference" / "commands.md"
_HEAD: Final = """\
# The commands

`boathouse COMMAND` and `kubectl boathouse COMMAND` are the same program. Written by `make manifests` from the commands; `boathouse COMMAND --help` prints the same.

These options may stand before or after a command that reads the cluster: `--namespace`, `-n`; `--context`; `--kubeconfig`. They mean what they mean to kubectl. `boathouse --install-completion` installs completion for the shell; kubectl completes `kubectl boathouse` by `kubectl_complete-boathouse`, which is installed with it. `boathouse --version` prints the version.

## Exit codes

"""  # noqa: E501 - paragraphs of Markdown
_SHARED: Final = frozenset({"namespace", "context", "kubeconfig", "help"})


def page() -> str:
    """Return the text of the page."""
    codes = [line for line in (errors.__doc__ or "").splitlines() if line.startswith("|")]
    group = typer.main.get_command(commands.app)
    assert isinstance(group, typer.core.TyperGroup)
    sections = [_section(name, command) for name, command in sorted(group.commands.items())]
    return _HEAD + "\n".join(codes) + "\n\n" + "\n".join(sections)


def _section(name: str, command: Any) -> str:
    shown = [param for param in command.params if not (param.name in _SHARED or getattr(param, "hidden", False))]
    arguments = [_metavar(param) for param in shown if param.param_type_name == "argument"]
    text = re.sub(r"(?<!\n)\n(?!\n)", " ", (command.help or "").strip())
    table = ["| option | meaning |", "|---|---|", *map(_row, shown), ""] if shown else []
    usage = " ".join([f"boathouse {name} [OPTIONS]", *arguments])
    return "\n".join([f"## {name}", "", f"`{usage}`", "", text, "", *table])


def _row(param: Any) -> str:
    help_text = str(getattr(param, "help", None) or "").replace("|", "\\|")
    if param.param_type_name == "argument":
        return f"| `{_metavar(param)}` | {help_text} |"
    value = param.default
    default = f" ({value})" if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
    return f"| {', '.join(f'`{name}`' for name in reversed(param.opts))}{default} | {help_text} |"


def _metavar(parameter: Any) -> str:
    return parameter.metavar or str(parameter.name).upper()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
