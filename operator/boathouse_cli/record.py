"""`boathouse record`: write what a cluster runs as a workload for `boathouse simulate`."""

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from boathouse.resources import names
from boathouse_cli import options
from boathouse_cli.errors import UsageError

_DURATION: Final = re.compile(r"(\d{1,9})([smhd])")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def record(  # noqa: PLR0917  each is an option of the command
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The recording. One that is there already is continued.")
    ],
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only this namespace. Default: all namespaces.")
    ] = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    operator_namespace: options.OperatorNamespace = names.OPERATOR_NAMESPACE,
    for_: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long, such as 30m, 12h or 7d. 0s: only what is there now.")
    ] = "7d",
    max_mib: Annotated[
        int,
        typer.Option("--max-mib", min=1, help="Size of FILE at which the recording ends; a pod takes about 0.7 KiB."),
    ] = 512,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="WORKLOAD",
            help="Write what FILE holds as a workload to this file, and end. Needs no cluster; another process may be "
            "recording.",
        ),
    ] = None,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous",
            help="With --write: write hashes in place of all names. Their salt is random and not kept. FILE itself "
            "has names.",
        ),
    ] = False,
) -> None:
    """Record the jobs, tasks and nodes of a cluster, and make a workload for simulate of them.

    Recording ends with Ctrl-C, after --for, or when FILE is full. A stop or kill loses the last line at most, and the
    same command goes on where it was. It needs the rights to list and watch pods, mrjobs and sparkapps, in all
    namespaces or with -n in one. Without the right to list and watch nodes, their sizes are guessed from the pods on
    them; without that to get the ConfigMap boathouse-config in the operator's namespace, all queues have weight 1.
    """
    if anonymous and write is None:
        raise UsageError("--anonymous requires --write: names are replaced in the workload")
    for_s = _seconds(for_)
    if write is not None:
        if write.resolve() == file.resolve():
            raise UsageError(f"{write} is the recording: choose another file for the workload")
        from boathouse_cli import record_workload

        record_workload.write_workload(file, write, anonymous=anonymous)
        return
    from boathouse_cli import record_session

    request = record_session.Request(
        all_namespaces=namespace is None, operator_namespace=operator_namespace, for_s=for_s, max_bytes=max_mib << 20
    )
    record_session.record(options.gateway(kubeconfig, context, namespace), file, request)


def _seconds(written: str) -> float:
    found = _DURATION.fullmatch(written)
    if found is None:
        raise UsageError(f'"{written}" is not a time: write it as 30m, 12h or 7d')
    return int(found[1]) * _UNITS_S[found[2]]
