"""Names that the shell completes: kinds, and the objects of the namespace."""

import contextlib
from collections.abc import Iterator, Sequence

import typer

from boathouse_cli import kinds
from boathouse_cli.errors import CommandError
from boathouse_cli.gateway import Gateway


def jobs(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the jobs that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, kinds.JOBS)


def objects(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the objects of all kinds that begin so; before the slash, `KIND/`."""
    return _completed(context_of_call, incomplete, kinds.KINDS)


def _completed(context_of_call: typer.Context, incomplete: str, among: Sequence[kinds.Kind]) -> Iterator[str]:
    written, slash, _ = incomplete.partition("/")
    if not slash:
        yield from (f"{kind.name}/" for kind in among if kind.name.startswith(written))
        return
    given = context_of_call.params
    with contextlib.suppress(CommandError):
        kind, _ = kinds.object_target(f"{written}/any")
        if kind not in among:
            return
        gateway = Gateway.connect(
            kubeconfig=given.get("kubeconfig"), context=given.get("context"), namespace=given.get("namespace")
        )
        for raw in gateway.jobs(kind.plural, all_namespaces=False):
            target = f"{written}/{raw['metadata']['name']}"
            if target.startswith(incomplete):
                yield target
