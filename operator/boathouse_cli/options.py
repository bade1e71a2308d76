"""Options that commands share, names that the shell completes, and output in the formats of `-o`."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import os
from collections.abc import Iterator  # noqa: TC003 - Typer reads the annotations of completions
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from boathouse_cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

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


Output = Annotated[Format, typer.Option("--output", "-o", help="Output format.")]


def print_data(value: Any, form: Format | ListFormat) -> None:
    """Print a value as JSON or YAML."""
    plain = _plain(value)
    if form == Format.YAML:
        import yaml

        print(yaml.safe_dump(plain, sort_keys=False), end="")
    else:
        print(json.dumps(plain, indent=2))


def _plain(value: Any) -> Any:
    """Return a value with dataclasses and tuples turned into dicts and lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def gateway(kubeconfig: str | None, context: str | None, namespace: str | None) -> Gateway:
    """Return the client of the cluster that the options name."""
    from boathouse_cli.gateway import Gateway

    return Gateway.connect(kubeconfig=_kubeconfig_path(kubeconfig), context=context, namespace=namespace)


def _kubeconfig_path(option: str | None) -> str | None:
    """Return the option's path, or None: the client then reads $KUBECONFIG and ~/.kube/config itself."""
    if option is not None and not os.path.exists(option):  # noqa: PTH110 - the client wants text
        raise CommandError(f"{option} does not exist: pass the path of a kubeconfig", ExitCode.USAGE)
    return option


def jobs(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the jobs that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, JOBS)


def objects(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the objects of all kinds that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, KINDS)


def _completed(context_of_call: typer.Context, incomplete: str, among: Sequence[str]) -> Iterator[str]:
    written, slash, _ = incomplete.partition("/")
    if not slash:
        yield from (f"{name}/" for name in among if name.startswith(written))
        return
    from boathouse_cli import kinds

    given = context_of_call.params
    with contextlib.suppress(CommandError):
        kind, _ = kinds.object_target(f"{written}/any")
        if kind.name not in among:
            return
        cluster = gateway(given.get("kubeconfig"), given.get("context"), given.get("namespace"))
        for raw in cluster.objects(kind.plural):
            target = f"{written}/{raw['metadata']['name']}"
            if target.startswith(incomplete):
                yield target
