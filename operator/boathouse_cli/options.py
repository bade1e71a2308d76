"""Options that commands share, names that the shell completes, and output in the formats of `-o`."""

import contextlib
import dataclasses
import enum
import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from boathouse_cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from boathouse_cli.gateway import Gateway


MRJOB: Final = "mrjob"
SPARKAPP: Final = "sparkapp"
MRCLUSTER: Final = "mrcluster"
KINDS: Final = (MRJOB, SPARKAPP, MRCLUSTER)
JOBS: Final = (MRJOB, SPARKAPP)
"""Kinds whose objects end by themselves."""
SYNTAX: Final = ", ".join(f"{name}/NAME" for name in KINDS)
JOB_SYNTAX: Final = " or ".join(f"{name}/NAME" for name in JOBS)


Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Namespace. Default: that of the kubeconfig's context.")
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="List the jobs of all namespaces.")]
Context = Annotated[str | None, typer.Option("--context", help="Kubeconfig context.")]
Kubeconfig = Annotated[str | None, typer.Option("--kubeconfig", help="Path of the kubeconfig. Default: $KUBECONFIG.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print YAML, and change nothing.")]
OperatorNamespace = Annotated[str, typer.Option("--operator-namespace", help="Namespace where Boathouse is installed.")]


class Format(enum.StrEnum):
    """Output formats of `-o`."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class ListFormat(enum.StrEnum):
    """Output formats of `-o` of `list`."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until it ends; the exit code is 1 if it failed, as with watch.")
]
Output = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]


def print_data(value: Any, form: Format | ListFormat) -> None:
    """Print a value as JSON or YAML."""
    text = json.dumps(value, default=dataclasses.asdict, indent=2)
    if form == Format.YAML:
        import yaml

        print(yaml.safe_dump(json.loads(text), sort_keys=False), end="")
    else:
        print(text)


def print_manifests(*manifests: Any) -> None:
    """Print objects as documents of YAML."""
    import yaml

    print(yaml.safe_dump_all(manifests, sort_keys=False, allow_unicode=True), end="")


def gateway(kubeconfig: str | None, context: str | None, namespace: str | None) -> "Gateway":
    """Return the client of the cluster that the options name."""
    from boathouse_cli.gateway import Gateway

    if kubeconfig is not None and not os.access(kubeconfig, os.R_OK):
        raise UsageError(f"{kubeconfig or 'the empty path'} does not exist: pass the path of a kubeconfig")
    return Gateway.connect(kubeconfig=kubeconfig, context=context, namespace=namespace)


def jobs(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the jobs that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, JOBS)


def objects(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the objects of all kinds that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, KINDS)


ObjectArgument = Annotated[
    str, typer.Argument(metavar="KIND/NAME", help=f"The object: {SYNTAX}.", autocompletion=objects)
]
JobArgument = Annotated[str, typer.Argument(metavar="KIND/NAME", help=f"The job: {JOB_SYNTAX}.", autocompletion=jobs)]


def _completed(context_of_call: typer.Context, incomplete: str, among: Sequence[str]) -> Iterator[str]:
    written, slash, _ = incomplete.partition("/")
    found = [f"{name}/" for name in among]
    if slash:
        from boathouse_cli import kinds

        found = []
        with contextlib.suppress(CommandError):
            kind, _ = kinds.object_target(f"{written}/any")
            if kind.name in among:
                client = gateway(*map(context_of_call.params.get, ("kubeconfig", "context", "namespace")))
                found = [f"{written}/{raw['metadata']['name']}" for raw in client.objects(kind.plural)]
    yield from (target for target in found if target.startswith(incomplete))
