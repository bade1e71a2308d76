"""Names that the shell completes: kinds, and the jobs of the namespace."""

import contextlib
from collections.abc import Iterator

import typer

from boathouse_cli import kinds
from boathouse_cli.errors import CommandError
from boathouse_cli.gateway import Gateway


def jobs(context_of_call: typer.Context, incomplete: str) -> Iterator[str]:
    """Yield `KIND/NAME` of the jobs that begin so; before the slash, `KIND/`."""
    written, slash, _ = incomplete.partition("/")
    if not slash:
        yield from (f"{kind.name}/" for kind in kinds.KINDS if kind.name.startswith(written))
        return
    given = context_of_call.params
    with contextlib.suppress(CommandError):
        kind, _ = kinds.job_target(f"{written}/any")
        gateway = Gateway.connect(
            kubeconfig=given.get("kubeconfig"), context=given.get("context"), namespace=given.get("namespace")
        )
        for raw in gateway.jobs(kind.plural, all_namespaces=False):
            target = f"{written}/{raw['metadata']['name']}"
            if target.startswith(incomplete):
                yield target
