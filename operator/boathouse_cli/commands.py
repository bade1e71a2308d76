"""Commands of the CLI. Each parses its options, reads the cluster through the gateway and prints a result."""

import time
from pathlib import Path
from typing import Annotated

import typer
from rich import console

from boathouse.resources import names
from boathouse_cli import explain as explaining
from boathouse_cli import model, options, picture, queues, reproduce, simulate, tables, timeline, watching
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_cli.gateway import Gateway

app = typer.Typer(
    name="boathouse",
    help="Inspect Boathouse's jobs, pods and queues. Also a kubectl plugin: kubectl boathouse …",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
JobArgument = Annotated[str, typer.Argument(metavar="mrjob/NAME", help="Job name.")]


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
    target: Annotated[str, typer.Argument(metavar="KIND/NAME", help="Object: mrjob/NAME or pod/NAME.")],
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    operator_namespace: options.OperatorNamespace = names.OPERATOR_NAMESPACE,
    output: options.Output = options.Format.TABLE,
) -> None:
    """Explain the state of a job or pod; if it is pending, name the scarce resource and the jobs that hold it."""
    kind, name = options.target(target)
    gateway = _gateway(kubeconfig, context, namespace)
    if kind == "pod":
        answer = explaining.explain_pod(
            gateway.pod(name), gateway.events(involvedObject__kind="Pod", involvedObject__name=name), now_s=time.time()
        )
    else:
        job = model.job(gateway.job(name))
        queue = _queue_of(gateway, job, operator_namespace)
        answer = explaining.explain_job(job, _task_pods(gateway, job), queue, now_s=time.time())
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
    """List jobs with their phase, progress and the reason that they are pending."""
    gateway = _gateway(kubeconfig, context, namespace)
    found = gateway.jobs(all_namespaces=all_namespaces)
    if output is not options.Format.TABLE:
        options.print_data(found, output)
    elif not found:
        where = "any namespace" if all_namespaces else f"namespace {gateway.namespace}"
        _screen(stderr=True).print(f"No jobs in {where}.")
    else:
        jobs = sorted(map(model.job, found), key=lambda job: (job.namespace, job.created_s, job.name))
        _screen().print(tables.jobs(jobs, namespaces=all_namespaces, now_s=time.time()))


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
    name = options.job_name(job)
    ended = watching.follow(_gateway(kubeconfig, context, namespace), name, _screen(), timeout_s=timeout)
    answer = explaining.explain_job(ended, [], None, now_s=time.time())
    _screen().print(answer.headline, highlight=False, markup=False, soft_wrap=True)
    if ended.phase != "Succeeded":
        raise typer.Exit(ExitCode.JOB_FAILED)


@app.command()
def logs(
    job: JobArgument,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    task: Annotated[str | None, typer.Option(help="Task, such as m-00042. Default: all tasks.")] = None,
    attempt: Annotated[int | None, typer.Option(help="Attempt number. Default: the last of --task.")] = None,
    tail: Annotated[int | None, typer.Option(help="Print only the last lines of each log.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stream the log until the task ends. Requires --task.")
    ] = False,
) -> None:
    """Print the logs of a job's tasks: stderr of the commands, and the task runtime's log."""
    if follow and task is None:
        raise CommandError("--follow requires --task, such as --task m-00000", ExitCode.USAGE)
    name = options.job_name(job)
    gateway = _gateway(kubeconfig, context, namespace)
    found = model.job(gateway.job(name))
    chosen = _chosen(_task_pods(gateway, found), task, attempt)
    if not chosen:
        raise CommandError(
            f"{found.title} has no pod of {task or 'any task'}: see `boathouse explain {found.title}`",
            ExitCode.NOT_FOUND,
        )
    for pod in chosen:
        prefix = "" if task else f"{pod.task}-a{pod.attempt}: "
        for line in gateway.log(pod.name, tail=tail, follow=follow):
            print(f"{prefix}{line}")


@app.command("timeline")
def show_timeline(
    job: JobArgument,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the timeline as a picture to this .html or .svg file.")
    ] = None,
) -> None:
    """Show how a job spent its time, by phase, as a table; with -o also draw its pods by node."""
    if output is not None and output.suffix not in {".html", ".svg"}:
        raise CommandError(f"{output} ends neither in .html nor in .svg: choose one of these", ExitCode.USAGE)
    name = options.job_name(job)
    gateway = _gateway(kubeconfig, context, namespace)
    found = model.job(gateway.job(name))
    line = timeline.build(found, _task_pods(gateway, found), now_s=time.time())
    _screen().print(tables.seconds(picture.shares(line)))
    if output is not None:
        output.write_text(picture.to_svg(line) if output.suffix == ".svg" else picture.to_html(line))
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


app.command("simulate")(simulate.simulate)
app.command("reproduce")(reproduce.reproduce)


def _gateway(kubeconfig: str | None, context: str | None, namespace: str | None) -> Gateway:
    return Gateway.connect(kubeconfig=options.kubeconfig_path(kubeconfig), context=context, namespace=namespace)


def _screen(*, stderr: bool = False) -> console.Console:
    return console.Console(stderr=stderr)


def _task_pods(gateway: Gateway, job: model.Job) -> list[model.TaskPod]:
    return [model.task_pod(raw) for raw in gateway.pods(f"{names.LABEL_JOB_UID}={job.uid}")]


def _queues(gateway: Gateway, operator_namespace: str) -> tuple[queues.Queue, ...]:
    return queues.usage(
        queues.configured(gateway.operator_config(operator_namespace)),
        [model.job(raw) for raw in gateway.jobs(all_namespaces=True)],
        gateway.pods(names.LABEL_QUEUE, all_namespaces=True),
        gateway.nodes(),
    )


def _queue_of(gateway: Gateway, job: model.Job, operator_namespace: str) -> queues.Queue | None:
    """Return the job's queue, or None if the user may not read other namespaces and nodes."""
    try:
        return next((queue for queue in _queues(gateway, operator_namespace) if queue.name == job.queue), None)
    except CommandError:
        return None


def _chosen(pods: list[model.TaskPod], task: str | None, attempt: int | None) -> list[model.TaskPod]:
    """Return the selected pods; for a task without an attempt number, the pod of its last attempt."""
    order = sorted(pods, key=lambda pod: (pod.created_s, pod.task, pod.attempt))
    wanted = [pod for pod in order if task in (None, pod.task) and attempt in (None, pod.attempt)]
    return wanted[-1:] if task is not None else wanted
