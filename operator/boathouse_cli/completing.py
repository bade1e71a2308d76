"""Names that the shell completes: kinds, and the objects of the namespace."""

import contextlib
from collections.abc import Iterator, Sequence

import typer

from boathouse_cli import options
from boathouse_cli.errors import CommandError


def jobs(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the jobs that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, options.JOBS)


def objects(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the objects of all kinds that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, options.KINDS)


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
        gateway = options.gateway(given.get("kubeconfig"), given.get("context"), given.get("namespace"))
        for raw in gateway.jobs(kind.plural, all_namespaces=False):
            target = f"{written}/{raw['metadata']['name']}"
            if target.startswith(incomplete):
                yield target
