"""Commands of the CLI. Each parses its options, reads the cluster through the gateway and prints a result."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich import console

from boathouse.resources import names
from boathouse_cli import (
    completing,
    convert,
    enable_spark,
    kinds,
    model,
    mrclusters,
    options,
    picture,
    printing_logs,
    queues,
    submit,
    tables,
    ui,
    watching,
)
from boathouse_cli import explain as explaining
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_cli.explain_cluster import explain_cluster
from boathouse_cli.gateway import Gateway
from boathouse_cli.selecting import Selection

app = typer.Typer(
    name="boathouse",
    help="Submit Spark applications, and inspect Boathouse's jobs, pods and queues. Also a kubectl plugin: "
    "kubectl boathouse …",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ObjectArgument = Annotated[
    str, typer.Argument(metavar="KIND/NAME", help=f"The object: {kinds.SYNTAX}.", autocompletion=completing.objects)
]
JobArgument = Annotated[
    str, typer.Argument(metavar="KIND/NAME", help=f"The job: {kinds.JOB_SYNTAX}.", autocompletion=completing.jobs)
]


@app.callback()
def shared(
    context_of_call: typer.Context,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Accept the shared options before the command too, as kubectl does."""
    given = {"namespace": namespace, "context": context, "kubeconfig": kubeconfig}
    defaults = {option: value for option, value in given.items() if value is not None}
    context_of_call.default_map = {str(context_of_call.invoked_subcommand): defaults}


@app.command()
def explain(
    target: Annotated[
        str,
        typer.Argument(
            metavar="KIND/NAME", help=f"Object: {kinds.SYNTAX}, or pod/NAME.", autocompletion=completing.objects
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
    kind, name = kinds.target(target)
    gateway = _gateway(kubeconfig, context, namespace)
    if kind is None:
        answer = explaining.explain_pod(
            gateway.pod(name), gateway.events(involvedObject__kind="Pod", involvedObject__name=name), now_s=time.time()
        )
    else:
        job = kinds.job(gateway, kind, name)
        queue, pods = _queue_of(gateway, job, operator_namespace), kinds.pods(gateway, kind, job)
        if isinstance(job, mrclusters.MRCluster):
            answer = explain_cluster(job, pods, queue, _all_clusters(gateway), now_s=time.time())
        else:
            answer = explaining.explain_job(job, pods, queue, now_s=time.time())
    if output is not options.Format.TABLE:
        options.print_data(answer, output)
        return
    screen = _screen()
    screen.print(answer.headline, style="bold", highlight=False, markup=False, soft_wrap=True)
    screen.print(tables.explanation(answer), highlight=False, markup=False)


@app.command("list")
def list_jobs(
    namespace: options.Namespace = None,
    all_namespaces: options.AllNamespaces = False,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    output: options.Output = options.Format.TABLE,
) -> None:
    """List jobs and Hadoop clusters with their phase, progress and the reason that they are pending."""
    gateway = _gateway(kubeconfig, context, namespace)
    found = kinds.raw_jobs(gateway, all_namespaces=all_namespaces)
    if output is not options.Format.TABLE:
        options.print_data(found, output)
    elif not found:
        where = "any namespace" if all_namespaces else f"namespace {gateway.namespace}"
        _screen(stderr=True).print(f"No jobs in {where}.")
    else:
        jobs = sorted(map(kinds.read, found), key=lambda job: (job.namespace, job.created_s, job.name))
        _screen().print(tables.jobs(jobs, namespaces=all_namespaces, now_s=time.time()))


@app.command("clusters")
def list_clusters(
    namespace: options.Namespace = None,
    all_namespaces: options.AllNamespaces = False,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    output: options.Output = options.Format.TABLE,
) -> None:
    """List Hadoop clusters with their nodes, load, policy and use of HDFS."""
    gateway = _gateway(kubeconfig, context, namespace)
    found = gateway.jobs(kinds.MRCLUSTER.plural, all_namespaces=all_namespaces)
    if output is not options.Format.TABLE:
        options.print_data(found, output)
    elif not found:
        where = "any namespace" if all_namespaces else f"namespace {gateway.namespace}"
        _screen(stderr=True).print(f"No clusters in {where}.")
    else:
        clusters = sorted(map(mrclusters.read, found), key=lambda cluster: (cluster.namespace, cluster.name))
        _screen().print(tables.clusters(clusters, namespaces=all_namespaces))


@app.command()
def watch(
    job: JobArgument,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds to wait for the job to end. Default: no limit.")
    ] = None,
) -> None:
    """Show a job's progress until it ends. The exit code is 0 if it succeeded and 1 if it failed."""
    kind, name = kinds.job_target(job)
    watching.until_end(_gateway(kubeconfig, context, namespace), kind, name, _screen(), timeout_s=timeout)


@app.command()
def logs(  # noqa: PLR0917  each is an option of the command
    job: ObjectArgument,
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
    kind, name = kinds.object_target(job)
    selection = Selection(task=task, executor=executor, attempt=attempt, host=host, container=container, follow=follow)
    selection.check(kind)
    printing_logs.show(_gateway(kubeconfig, context, namespace), kind, name, selection, tail=tail)


@app.command("timeline")
def show_timeline(
    jobs: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND/NAME...", help=f"{kinds.SYNTAX}; several share axes.", autocompletion=completing.objects
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
        raise CommandError(f"{output} ends neither in .html nor in .svg: choose one of these", ExitCode.USAGE)
    targets = list(map(kinds.object_target, jobs))
    gateway = _gateway(kubeconfig, context, namespace)
    lines = [kinds.timeline_of(gateway, kind, name, now_s=time.time()) for kind, name in targets]
    for line in lines:
        _screen().print(tables.seconds(picture.shares(line), line.job.title if len(lines) > 1 else ""))
    if output is not None:
        output.write_text(picture.to_svg(*lines) if output.suffix == ".svg" else picture.to_html(*lines))
        _screen(stderr=True).print(f"picture: {output.resolve()}", highlight=False, soft_wrap=True)


@app.command("queues")
def list_queues(
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    operator_namespace: options.OperatorNamespace = names.OPERATOR_NAMESPACE,
    output: options.Output = options.Format.TABLE,
) -> None:
    """List queues with their weight, unfinished jobs, resource usage, share of the cluster and fair share."""
    gateway = _gateway(kubeconfig, context, None)
    found = _queues(gateway, operator_namespace)
    if output is not options.Format.TABLE:
        options.print_data(found, output)
    else:
        _screen().print(tables.queues(found))


@app.command("ui")
def open_ui(
    job: Annotated[
        str,
        typer.Argument(metavar="KIND/NAME", help="sparkapp/NAME or mrcluster/NAME.", autocompletion=completing.objects),
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
    kind, name = kinds.object_target(job)
    if kind is kinds.MRJOB:
        raise CommandError(f"{job} has no web UI: use `boathouse watch {job}`", ExitCode.USAGE)
    gateway = _gateway(kubeconfig, context, namespace)
    found = ui.of_driver(gateway, name) if kind is kinds.SPARKAPP else ui.of_cluster(gateway, name, hdfs=hdfs)
    given = {"--kubeconfig": kubeconfig, "--context": context}
    words = [f"{option}={value}" for option, value in given.items() if value is not None]
    ui.forward(gateway, found, port=port, kubectl=words)


app.command("submit", context_settings={"allow_interspersed_args": False})(submit.submit)
app.command("convert")(convert.convert)
app.command("enable-spark")(enable_spark.enable_spark)


def _add_simulator() -> None:
    """Add the commands of the simulator; without its libraries, commands that say how to get them."""
    try:
        from boathouse_cli import reproduce, simulate
    except ModuleNotFoundError as error:
        for name in ("simulate", "reproduce"):
            app.command(name, context_settings={"ignore_unknown_options": True})(_without(str(error.name)))
    else:
        app.command("simulate")(simulate.simulate)
        app.command("reproduce")(reproduce.reproduce)


def _without(library: str) -> Callable[[list[str] | None], None]:
    def missing(words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:  # noqa: ARG001
        """Needs another extra: install boathouse[cli,simulator]."""
        raise CommandError(
            f"{library} is missing: install boathouse with two extras, boathouse[cli,simulator]", ExitCode.USAGE
        )

    return missing


_add_simulator()


def _gateway(kubeconfig: str | None, context: str | None, namespace: str | None) -> Gateway:
    return Gateway.connect(kubeconfig=options.kubeconfig_path(kubeconfig), context=context, namespace=namespace)


def _screen(*, stderr: bool = False) -> console.Console:
    return console.Console(stderr=stderr)


def _queues(gateway: Gateway, operator_namespace: str) -> tuple[queues.Queue, ...]:
    return queues.usage(
        queues.configured(gateway.operator_config(operator_namespace)),
        [kinds.read(raw) for raw in kinds.raw_jobs(gateway, all_namespaces=True)],
        [
            *gateway.pods(names.LABEL_QUEUE, all_namespaces=True),
            *gateway.pods(f"{model.SPARK_ROLE}={model.EXECUTOR},!{names.LABEL_QUEUE}", all_namespaces=True),
        ],
        gateway.nodes(),
    )


def _all_clusters(gateway: Gateway) -> list[mrclusters.MRCluster]:
    """Return the clusters of all namespaces, or of this one if the user may not read others."""
    try:
        return kinds.clusters(gateway, all_namespaces=True)
    except CommandError:
        return kinds.clusters(gateway, all_namespaces=False)


def _queue_of(gateway: Gateway, job: model.Job, operator_namespace: str) -> queues.Queue | None:
    """Return the job's queue, or None if the user may not read other namespaces and nodes."""
    try:
        return next((queue for queue in _queues(gateway, operator_namespace) if queue.name == job.queue), None)
    except CommandError:
        return None
