"""The cluster commands: `python -m boathouse_e2e up|down|status|kubeconfig|load-image|tools|pin-kubernetes`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path  # noqa: TC003 # typer reads the annotations at run time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from boathouse_e2e import catalogue, images, kubernetes_module, providers, tools
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.kind import node_image
from boathouse_e2e.spec import Cluster, ClusterSpec, Provider

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="A Kubernetes cluster for demo, tests and CI, on any machine."
)
_DEFAULT = ClusterSpec()

Name = Annotated[str, typer.Option("--name", help="Name of the cluster; several can run at a time.")]
ProviderName = Annotated[
    str, typer.Option("--provider", help="local, kind, existing, or auto: kind if Docker runs, else local.")
]
Context = Annotated[str | None, typer.Option("--context", help="Kubeconfig context of an existing cluster.")]

ImageNames = Annotated[list[str] | None, typer.Argument(help="Image names. Default: those of the demo and the tests.")]


@app.command()
def up(  # noqa: PLR0917 # a command's options, which typer passes by name
    name: Name = _DEFAULT.name,
    provider: ProviderName = "auto",
    context: Context = None,
    nodes: Annotated[
        int, typer.Option(help="Number of real nodes; 0: only a control plane, which starts in seconds.")
    ] = _DEFAULT.nodes,
    kwok_nodes: Annotated[int, typer.Option(help="Number of fake nodes, run by KWOK.")] = _DEFAULT.kwok_nodes,
    node_cpu: Annotated[int, typer.Option(help="CPUs of a real node.")] = _DEFAULT.node_cpu,
    node_memory_mib: Annotated[int, typer.Option(help="MiB of memory of a real node.")] = _DEFAULT.node_memory_mib,
    racks: Annotated[int, typer.Option(help="Number of values of the label boathouse.dev/rack.")] = _DEFAULT.racks,
    audit_log: Annotated[Path | None, typer.Option(help="File for the API server's audit log.")] = None,
    grace_period_s: Annotated[
        int | None, typer.Option(help="Seconds without a heartbeat after which a node is NotReady.")
    ] = None,
) -> None:
    """Start a cluster unless it runs, and wait until it is ready."""
    spec = ClusterSpec(
        name=name,
        nodes=nodes,
        kwok_nodes=kwok_nodes,
        node_cpu=node_cpu,
        node_memory_mib=node_memory_mib,
        racks=racks,
        audit_log=audit_log.resolve() if audit_log else None,
        node_monitor_grace_period_s=grace_period_s,
    ).validated()
    chosen = _chosen(provider, name, context)
    started = time.monotonic()
    cluster = chosen.up(spec)
    print(f"Cluster {name!r} is ready after {time.monotonic() - started:.1f} s: {cluster.server}")
    _print_use(cluster)


@app.command()
def down(name: Name = _DEFAULT.name, provider: ProviderName = "auto", context: Context = None) -> None:
    """Stop a cluster and remove its files."""
    started = time.monotonic()
    _chosen(provider, name, context).down(name)
    print(f"Cluster {name!r} is down after {time.monotonic() - started:.1f} s")


@app.command()
def status(name: Name = _DEFAULT.name, provider: ProviderName = "auto", context: Context = None) -> None:
    """Show a cluster's processes, nodes and logs."""
    parts = _chosen(provider, name, context).status(name)
    if not parts:
        raise ClusterError(f"the cluster {name!r} does not exist: start it with `up`")
    table = Table("part", "state", "pid", Column("log", overflow="fold"))
    for part in parts:
        table.add_row(part.name, part.state, str(part.pid or ""), str(part.log or ""))
    Console().print(table)


@app.command()
def kubeconfig(name: Name = _DEFAULT.name, provider: ProviderName = "auto", context: Context = None) -> None:
    """Print the path of the cluster's kubeconfig file, for `export KUBECONFIG=$(...)`."""
    print(_found(provider, name, context, quiet=True).kubeconfig)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def kubectl(
    arguments: typer.Context, name: Name = _DEFAULT.name, provider: ProviderName = "auto", context: Context = None
) -> None:
    """Run kubectl against the cluster."""
    command = _found(provider, name, context, quiet=True).kubectl_command(*arguments.args)
    os.execvp(command[0], command)  # noqa: S606 # kubectl takes this process's place, with its terminal


@app.command(name="load-image")
def load_image(
    archives: Annotated[list[Path], typer.Argument(exists=True, help="docker-archive files.")],
    name: Name = _DEFAULT.name,
    provider: ProviderName = "auto",
    context: Context = None,
) -> None:
    """Load images into every node of the cluster."""
    chosen = _chosen(provider, name, context)
    chosen.load_images(_found(provider, name, context, quiet=True), archives)


@app.command(name="images")
def build_images(names: ImageNames = None) -> None:
    """Build the images of the demo and the tests if their inputs changed, and print the paths of their archives."""
    for path in images.ensure(names or images.DEFAULT).values():
        print(path)


@app.command(name="load-images")
def load_images(
    names: ImageNames = None, name: Name = _DEFAULT.name, provider: ProviderName = "auto", context: Context = None
) -> None:
    """Build the images of the demo and the tests, and load them into every node of the cluster."""
    images.load(_found(provider, name, context), names or images.DEFAULT)


@app.command(name="kind-node-image")
def build_kind_node_image() -> None:
    """Build the image of kind's nodes if its inputs changed, and print the path of its archive."""
    print(node_image.ensure())


@app.command(name="tools")
def build_tools(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tool names. Default: all that local clusters need.")
    ] = None,
) -> None:
    """Build the cluster's binaries into the cache, and print their paths."""
    special = (*catalogue.ONLY_KIND, *catalogue.ONLY_RELEASE, *catalogue.KARPENTER)
    everything = [name for name in catalogue.TOOLS_BY_NAME if name not in special]
    unknown = set(names or ()) - set(catalogue.TOOLS_BY_NAME)
    if unknown:
        raise ClusterError(
            f"no such tool: {', '.join(sorted(unknown))}; there are {', '.join(catalogue.TOOLS_BY_NAME)}"
        )
    for path in tools.ensure(names or everything).values():
        print(path)


@app.command(name="pin-kubernetes")
def pin_kubernetes(version: Annotated[str, typer.Argument(help="Full version, such as v1.35.4.")]) -> None:
    """Write the go.mod and go.sum that pin a version of Kubernetes, and print their folder."""
    print(kubernetes_module.write(version).parent)


def _chosen(provider: str, name: str, context: str | None, *, quiet: bool = False) -> Provider:
    chosen = providers.choose(provider, name=name, context=context)
    if not quiet:
        print(f"Provider: {chosen.name}", flush=True)
    return chosen


def _found(provider: str, name: str, context: str | None, *, quiet: bool = False) -> Cluster:
    cluster = _chosen(provider, name, context, quiet=quiet).find(name)
    if cluster is None:
        raise ClusterError(f"cluster {name!r} is not up; start it with `up`")
    return cluster


def _print_use(cluster: Cluster) -> None:
    context = f" --context {cluster.context}" if cluster.context else ""
    print(f"  export KUBECONFIG={cluster.kubeconfig}\n  {cluster.kubectl}{context} get nodes")


def main() -> None:
    """Run a command; what a person can mend ends with its message and code 1."""
    try:
        app()
    except ClusterError as error:
        print(error, file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
