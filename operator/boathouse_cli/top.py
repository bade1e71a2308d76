"""`boathouse top`: nodes, queues and unfinished jobs, on one screen."""

from typing import Annotated

import typer

from boathouse.resources import names
from boathouse_cli import options


def top(
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    operator_namespace: options.OperatorNamespace = names.OPERATOR_NAMESPACE,
    once: Annotated[
        bool, typer.Option("--once", help="Print once and end, as where the output is no terminal.")
    ] = False,
    interval: Annotated[float, typer.Option(min=0.5, metavar="SECONDS", help="Time between two refreshes.")] = 2.0,
) -> None:
    """Show nodes, queues and unfinished jobs, until Ctrl-C. Jobs are those of all namespaces unless -n is given.

    What you may not read is left out, with a note.
    """
    from boathouse_cli import top_view

    top_view.show(
        options.gateway(kubeconfig, context, namespace),
        operator_namespace,
        all_namespaces=namespace is None,
        interval_s=None if once else interval,
    )
