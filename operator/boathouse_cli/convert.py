"""`boathouse convert`: Spark applications of other operators and of spark-submit as SparkApps.

The conversion is imported where it is needed: the models of the custom resource take longer to load than most commands
to run.
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boathouse_cli.conversion.draft import Converted

_KIND: Final = re.compile(r"""^\s*["']?(?:kind|apiVersion)["']?\s*:""", re.MULTILINE)


def convert(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="SparkApplications of a Spark operator (YAML), or command lines of spark-submit; - is standard input.",
        ),
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="End with exit code 3 if anything has no counterpart in a SparkApp.")
    ] = False,
) -> None:
    """Print SparkApps made of manifests of Spark operators or of spark-submit lines; needs no cluster.

    The operators are Kubeflow's (sparkoperator.k8s.io) and Apache's (spark.apache.org).

    What has no counterpart is listed on standard error, with its path and what to do. The exit code is 3 if an
    application could not be converted.
    """
    import yaml

    text = _read(file)
    try:
        found = list(_converted(text))
    except ValueError as error:
        raise CommandError(f"{file} {error}", ExitCode.USAGE) from error
    if not found:
        raise CommandError(f"{file} has no SparkApplication and no spark-submit line", ExitCode.USAGE)
    for each in found:
        for note in each.notes:
            print(note.text, file=sys.stderr)
    made = [each.manifest for each in found if each.manifest is not None]
    if made:
        print(yaml.safe_dump_all(made, sort_keys=False, allow_unicode=True), end="")
    if any(each.has_failed or (strict and each.notes) for each in found):
        raise typer.Exit(ExitCode.NOT_CONVERTED)


def read_text(path: str) -> str:
    """Return the text of a file that the user named."""
    return Path(path).read_text(encoding="utf-8")


def _converted(text: str) -> "Iterable[Converted]":
    from boathouse_cli.conversion import command_lines, manifests, programs

    if programs.SPARK_LINE.search(text) and not _KIND.search(text):
        return command_lines.convert_text(text, read=read_text)
    return manifests.convert_text(text)


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else read_text(file)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}", ExitCode.USAGE) from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file} is not text in UTF-8", ExitCode.USAGE) from error
