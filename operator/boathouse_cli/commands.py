"""Commands of the CLI. Each parses its options, reads the cluster through the gateway and prints a result.

A command imports what it uses when it is called: `--help` and completion need the options only, and a test keeps the
large libraries out of this module.
"""

import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

import typer

from boathouse.resources import names
from boathouse_cli import changing, options
from boathouse_cli.errors import UsageError

GROUP: Final = "boathouse.commands"
"""Entry points by which a distribution adds commands: the name of a command, and its function."""
COMMANDS: Final = {"reproduce": "Run the papers' experiments.", "board": "Compare profiles on many workloads."}
"""Commands of the laboratory, and what they do."""


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the installed laboratory; without it, commands that say what to install."""
    installed = metadata.entry_points(group=GROUP)
    for command in installed:
        app.command(command.name)(command.load())
    for name, does in COMMANDS.items():
        if name not in installed.names:
            app.command(
                name,
                help=f"{does} Needs the distribution boathouse-lab: pip install boathouse-lab.",
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
            )(_missing(name))


def _missing(name: str) -> Callable[[], None]:
    def refuse() -> None:
        raise UsageError(f"{name} is a command of boathouse-lab, which is not installed: pip install boathouse-lab")

    return refuse


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
    from boathouse_cli import reading

    reading.show(
        options.gateway(kubeconfig, context, namespace),
        operator_namespace,
        all_namespaces=namespace is None,
        interval_s=None if once else interval,
    )


PROFILES: Final = (
    *("boathouse", "capacity", "delay", "fair", "fifo", "fspy", "iao", "ikayak", "ila", "ila-static-1", "ila-static-2"),
    *("ila-static-4", "ila-static-6", "ila-static-8", "koala", "lao", "late", "meganode", "non-spread-out"),
    *("spread-out", "srjf", "yarn", "yarn-client", "yarn-cluster", "yarn-me", "yarn-no-reservations"),
)
"""Those of the simulator, which takes longer to import than `--help` may take; a test compares."""
ORDERS: Final = ("fifo", "ps", "srpt", "fsp")


def simulate(  # noqa: PLR0917  each is an option of the command
    file: Annotated[
        Path, typer.Argument(help="SWIM trace (tab-separated), or JSON in the format neutral-cluster-workload/1.")
    ],
    more: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", hidden=True)] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Profile; repeat it or separate by commas for several. {', '.join(PROFILES)}; with "
            f"--fluid: {', '.join(ORDERS)}. Default: fair, with --fluid fsp."
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of nodes. Default: that of the workload.")] = None,
    heartbeat: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Allocate only at node heartbeats, with YARN's protocol and masters."),
    ] = None,
    use_fluid: Annotated[
        bool,
        typer.Option("--fluid", help="Simulate a SWIM trace on one fluid resource with exact sizes, like schedsim."),
    ] = False,
    load: Annotated[float | None, typer.Option(help="With --fluid: ratio of work to time. Default: 0.9.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Simulate scheduling policies on a trace or workload. Prints job times, makespan and utilization."""
    if use_fluid and (nodes is not None or heartbeat is not None):
        raise UsageError("--fluid excludes --nodes and --heartbeat: omit them")
    if load is not None and not use_fluid:
        raise UsageError("--load requires --fluid: add --fluid or omit --load")
    from boathouse_cli import simulating

    names = [*(profile or []), *(more or [])]
    if use_fluid:
        simulating.show_fluid(file, names, load=0.9 if load is None else load, as_json=as_json)
    else:
        simulating.show(file, names, nodes=nodes, heartbeat_s=heartbeat, seed=seed, as_json=as_json)


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
    duration = re.fullmatch(r"(\d{1,9})([smhd])", for_)
    if duration is None:
        raise UsageError(f'"{for_}" is not a time: write it as 30m, 12h or 7d')
    if write is not None:
        if write.resolve() == file.resolve():
            raise UsageError(f"{write} is the recording: choose another file for the workload")
        from boathouse_cli import record_workload

        record_workload.write_workload(file, write, anonymous=anonymous)
        return
    from boathouse_cli import record_session

    request = record_session.Request(
        all_namespaces=namespace is None,
        operator_namespace=operator_namespace,
        for_s=int(duration[1]) * _UNITS_S[duration[2]],
        max_bytes=max_mib << 20,
    )
    record_session.record(options.gateway(kubeconfig, context, namespace), file, request)


app = typer.Typer(
    name="boathouse",
    help="Submit Spark applications, and inspect Boathouse's jobs, pods and queues. Also a kubectl plugin: "
    "kubectl boathouse …",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, as kubectl's: Rich takes a third of the CPU time of --help
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"boathouse {metadata.version('boathouse')}")
        raise typer.Exit


@app.callback()
def shared(
    context_of_call: typer.Context,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    version: Annotated[  # noqa: ARG001 - its callback prints
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Accept the shared options before the command too, as kubectl does."""
    given = {"namespace": namespace, "context": context, "kubeconfig": kubeconfig}
    context_of_call.default_map = {
        str(context_of_call.invoked_subcommand): {option: value for option, value in given.items() if value is not None}
    }


@app.command()
def explain(
    target: Annotated[
        str,
        typer.Argument(
            metavar="KIND/NAME", help=f"Object: {options.SYNTAX}, or pod/NAME.", autocompletion=options.objects
        ),
    ],
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    operator_namespace: options.OperatorNamespace = names.OPERATOR_NAMESPACE,
    output: options.Output = options.Format.TABLE,
) -> None:
    """Explain the state of a job, cluster or pod; if it is pending, name the scarce resource and who holds it.

    Of a Hadoop cluster: what is wrong with it, then why it has as many nodes as it has.
    """
    from boathouse_cli import kinds, reading

    kinds.target(target)  # before a kubeconfig is needed
    reading.explain(options.gateway(kubeconfig, context, namespace), target, operator_namespace, output)


@app.command("list")
def list_jobs(
    namespace: options.Namespace = None,
    all_namespaces: options.AllNamespaces = False,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", "-k", help="Only this kind, such as sparkapp; repeat it for several.")
    ] = None,
    queue: Annotated[
        list[str] | None, typer.Option("--queue", "-q", help="Only jobs of this queue; repeat it for several.")
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state", "-s", help="Only jobs in this phase, such as failed, or active or finished; repeat it."
        ),
    ] = None,
    output: Annotated[
        options.ListFormat, typer.Option("--output", "-o", help="Output format: table, wide, name, json or yaml.")
    ] = options.ListFormat.TABLE,
) -> None:
    """List jobs and Hadoop clusters with their phase, progress and the reason that they are pending."""
    from boathouse_cli import reading

    chosen = reading.Filter(of_kinds=tuple(kind or ()), queues=tuple(queue or ()), states=tuple(state or ()))
    chosen.check()
    reading.jobs(options.gateway(kubeconfig, context, namespace), output, chosen, all_namespaces=all_namespaces)


@app.command("clusters")
def list_clusters(
    namespace: options.Namespace = None,
    all_namespaces: options.AllNamespaces = False,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    output: options.Output = options.Format.TABLE,
) -> None:
    """List Hadoop clusters with their nodes, load, policy and use of HDFS."""
    from boathouse_cli import reading

    reading.clusters(options.gateway(kubeconfig, context, namespace), output, all_namespaces=all_namespaces)


@app.command()
def watch(
    job: options.JobArgument,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for the job to end. Default: no limit.")
    ] = None,
) -> None:
    """Show a job's progress until it ends. The exit code is 0 if it succeeded and 1 if it failed."""
    from boathouse_cli import kinds, reading

    kind, name = kinds.job_target(job)
    reading.until_end(options.gateway(kubeconfig, context, namespace), kind, name, timeout_s=timeout)


@app.command()
def logs(  # noqa: PLR0917  each is an option of the command
    job: options.ObjectArgument,
    host: Annotated[
        str | None, typer.Argument(metavar="[HOST]", help="Node of an MRCluster, such as c0. Default: the master.")
    ] = None,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    task: Annotated[str | None, typer.Option(help="Task of an MRJob, such as m-00042. Default: all tasks.")] = None,
    executor: Annotated[
        int | None, typer.Option(help="Executor of a SparkApp, by number. Default: the driver.")
    ] = None,
    container: Annotated[
        str | None,
        typer.Option(
            "--container",
            "-c",
            help="Container of a node of an MRCluster, such as namenode; of an MRJob on one, the ID of a container of "
            "YARN. Default: all.",
        ),
    ] = None,
    attempt: Annotated[int | None, typer.Option(help="Attempt number. Default: the last.")] = None,
    tail: Annotated[int | None, typer.Option(help="Print only the last lines of each log.")] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Stream the log until the pod ends. Requires --task for an MRJob, --container for an MRCluster.",
        ),
    ] = False,
) -> None:
    """Print the logs of an MRJob's tasks, of a SparkApp's driver or executor, or of a node of an MRCluster.

    Of an MRJob with clusterRef: the log of its client, and those of its containers of YARN. They are read from web
    servers of the Hadoop cluster through the API server, which needs the right to get pods/proxy, as in the role edit.
    """
    from boathouse_cli import kinds, printing_logs

    kind, name = kinds.object_target(job)
    selection = printing_logs.Selection(
        task=task, executor=executor, attempt=attempt, host=host, container=container, follow=follow, tail=tail
    )
    selection.check(kind)
    printing_logs.show(options.gateway(kubeconfig, context, namespace), kind, name, selection)


@app.command("timeline")
def show_timeline(
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND/NAME...", help=f"{options.SYNTAX}; several share axes.", autocompletion=options.objects
        ),
    ],
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the timeline as a picture to this .html or .svg file.")
    ] = None,
) -> None:
    """Show how jobs spent their time, by phase, as a table for each; with -o also draw their pods by node.

    Of a Hadoop cluster, the picture has its nodes, and how many there were.
    """
    if output is not None and output.suffix not in {".html", ".svg"}:
        raise UsageError(f"{output} ends neither in .html nor in .svg: choose one of these")
    from boathouse_cli import kinds, reading

    targets = list(map(kinds.object_target, jobs))  # before a kubeconfig is needed
    reading.timeline(options.gateway(kubeconfig, context, namespace), targets, output)


@app.command("queues")
def list_queues(
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    operator_namespace: options.OperatorNamespace = names.OPERATOR_NAMESPACE,
    output: options.Output = options.Format.TABLE,
) -> None:
    """List queues with their weight, unfinished jobs, resource usage, share of the cluster and fair share."""
    from boathouse_cli import reading

    reading.list_queues(options.gateway(kubeconfig, context, None), operator_namespace, output)


@app.command("shadow")
def show_shadow(
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    operator_namespace: options.OperatorNamespace = names.OPERATOR_NAMESPACE,
    output: options.Output = options.Format.TABLE,
) -> None:
    """Show how the decisions of the chart's shadowProfile differ from the real ones. It says nothing of job times."""
    from boathouse_cli import reading

    reading.show_shadow(options.gateway(kubeconfig, context, None), operator_namespace, output)


@app.command("ui")
def open_ui(
    job: Annotated[
        str,
        typer.Argument(metavar="KIND/NAME", help="sparkapp/NAME or mrcluster/NAME.", autocompletion=options.objects),
    ],
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    port: Annotated[int | None, typer.Option(help="Port of this machine; default: the UI's, if it is free.")] = None,
    hdfs: Annotated[
        bool, typer.Option("--hdfs", help="Of an MRCluster: the NameNode (port 9870) instead of the ResourceManager.")
    ] = False,
) -> None:
    """Forward a port of this machine to a web UI, and print the address.

    Of a SparkApp: Spark's web UI of the running driver. Of an MRCluster: the ResourceManager's, or the NameNode's.
    """
    from boathouse_cli import kinds, ui

    kind, name = kinds.object_target(job)
    if kind is kinds.MRJOB:
        raise UsageError(f"{job} has no web UI: use `boathouse watch {job}`")
    gateway = options.gateway(kubeconfig, context, namespace)
    found = ui.of_driver(gateway, name) if kind is kinds.SPARKAPP else ui.of_cluster(gateway, name, hdfs=hdfs)
    given = {"--kubeconfig": kubeconfig, "--context": context}
    words = [f"{option}={value}" for option, value in given.items() if value is not None]
    ui.forward(gateway, found, port=port, kubectl=words)


app.command("submit", context_settings={"allow_interspersed_args": False})(changing.submit)
for command in (
    *(changing.convert, changing.enable_spark, changing.suspend, changing.resume, changing.retry, changing.delete),
    *(top, record, simulate),
):
    app.command()(command)
add_commands(app)
