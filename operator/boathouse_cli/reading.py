"""What the commands print that only read the cluster, once or until a job ends."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer
from rich import console, live, progress_bar, table, text

from boathouse.resources import names
from boathouse_cli import explain as explaining, kinds, model, mrclusters, options, picture, tables, usage
from boathouse_cli.errors import CommandError, ExitCode, UsageError
from boathouse_cli.gateway import CONFIG, Gateway

ACTIVE: Final = "active"
FINISHED: Final = "finished"
PHASES: Final = (
    *("Pending", "Suspended", "Setup", "Map", "Reduce", "Commit", "Starting", "Running", "Restarting", "Ready"),
    *("Degraded", "Succeeded", "Failed", "Expired"),
)
"""Of all kinds; a test compares them with the custom resources, which take longer to import than a list to print."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which jobs are shown, by kinds, queues and phases; an empty tuple is all."""

    of_kinds: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse kinds and states that do not exist."""
        self.chosen_kinds()
        known = [*(phase.lower() for phase in PHASES), ACTIVE, FINISHED]
        for state in self.states:
            if state.lower() not in known:
                raise UsageError(f'"{state}" is no state: choose from {", ".join(known)}')

    def chosen_kinds(self) -> Sequence[kinds.Kind]:
        """Return the kinds to read."""
        return [kinds.object_target(f"{name}/any")[0] for name in self.of_kinds] or kinds.KINDS

    def takes(self, job: model.Job) -> bool:
        """Return whether a job is shown."""
        states = {(job.phase or "Pending").lower(), FINISHED if job.finished else ACTIVE}
        is_in_state = not self.states or not states.isdisjoint(map(str.lower, self.states))
        return is_in_state and (not self.queues or job.queue in self.queues)


def show(gateway: Gateway, operator_namespace: str, *, all_namespaces: bool, interval_s: float | None) -> None:
    """Print the tables, again after each interval; None, or an output that is no terminal: once."""
    screen = console.Console()

    def read() -> console.Group:
        return draw(gateway, operator_namespace, all_namespaces=all_namespaces, now_s=time.time())

    if interval_s is None or not screen.is_terminal:
        screen.print(read())
        return
    with live.Live(read(), console=screen, screen=True, auto_refresh=False) as view:
        while True:
            time.sleep(interval_s)
            view.update(read(), refresh=True)


def draw(gateway: Gateway, operator_namespace: str, *, all_namespaces: bool, now_s: float) -> console.Group:
    """Return the tables of nodes, queues and unfinished jobs; a note for each that the user may not read."""

    def nodes() -> console.RenderableType:
        return tables.nodes(usage.of_nodes(gateway.objects("nodes"), gateway.pods("", all_namespaces=True)))

    def jobs() -> console.RenderableType:
        found = map(kinds.read, kinds.raw_jobs(gateway, all_namespaces=all_namespaces))
        active = sorted((job for job in found if not job.finished), key=lambda job: (job.queue, job.created_s))
        return tables.jobs(active, namespaces=all_namespaces, now_s=now_s)

    def shares() -> console.RenderableType:
        return tables.queues(_queues(gateway, operator_namespace))

    parts: list[console.RenderableType] = []
    refused: list[CommandError] = []
    sections = (nodes, shares, jobs)
    for section in sections:
        try:
            parts += [section(), ""]
        except CommandError as error:
            refused.append(error)
            parts += [f"({error})", ""]
    if len(refused) == len(sections):
        raise refused[0]
    return console.Group(*parts)


_UNWRAPPED: Final = 10_000
"""Columns of a table whose rows are lines whatever the terminal, as of kubectl's `-o wide`."""


def explain(gateway: Gateway, target: str, operator_namespace: str, output: options.Format) -> None:
    """Print why an object or a pod is as it is."""
    kind, name = kinds.target(target)
    if kind is None:
        answer = explaining.explain_pod(
            gateway.get("pods", name),
            gateway.events(involvedObject__kind="Pod", involvedObject__name=name),
            now_s=time.time(),
        )
    else:
        job, queue = kinds.job(gateway, kind, name), None
        with contextlib.suppress(CommandError):  # the user may not read other namespaces and nodes
            queue = next((queue for queue in _queues(gateway, operator_namespace) if queue.name == job.queue), None)
        pods = kinds.pods(gateway, kind, job)
        if isinstance(job, mrclusters.MRCluster):
            try:
                others = gateway.objects(kind.plural, all_namespaces=True)
            except CommandError:  # the user may not read other namespaces
                others = gateway.objects(kind.plural)
            answer = explaining.explain_cluster(job, pods, queue, map(mrclusters.read, others), now_s=time.time())
        else:
            answer = explaining.explain_job(job, pods, queue, now_s=time.time())
    if output is not options.Format.TABLE:
        options.print_data(answer, output)
        return
    screen = console.Console()
    screen.print(answer.headline, style="bold", highlight=False, markup=False, soft_wrap=True)
    screen.print(tables.explanation(answer), highlight=False, markup=False)


def jobs(gateway: Gateway, output: options.ListFormat, chosen: Filter, *, all_namespaces: bool) -> None:
    """Print the jobs and Hadoop clusters that a filter takes."""
    found = kinds.raw_jobs(gateway, all_namespaces=all_namespaces, among=chosen.chosen_kinds())
    pairs = [(job, raw) for job, raw in zip(map(kinds.read, found), found, strict=True) if chosen.takes(job)]
    pairs.sort(key=lambda pair: (pair[0].namespace, pair[0].created_s, pair[0].name))
    listed = [job for job, _ in pairs]
    match output:
        case options.ListFormat.JSON | options.ListFormat.YAML:
            options.print_data([raw for _, raw in pairs], output)
        case options.ListFormat.NAME:
            print(*(job.title for job in listed), sep="\n", end="\n" if listed else "")
        case options.ListFormat.TABLE | options.ListFormat.WIDE if listed:
            is_wide = output is options.ListFormat.WIDE
            drawn = tables.jobs(listed, namespaces=all_namespaces, now_s=time.time(), is_wide=is_wide)
            console.Console(width=_UNWRAPPED if is_wide else None).print(drawn)
        case _:
            _print_none("jobs" if chosen == Filter() else "such jobs", gateway, all_namespaces=all_namespaces)


def _print_none(what: str, gateway: Gateway, *, all_namespaces: bool) -> None:
    where = "any namespace" if all_namespaces else f"namespace {gateway.namespace}"
    console.Console(stderr=True).print(f"No {what} in {where}.")


def clusters(gateway: Gateway, output: options.Format, *, all_namespaces: bool) -> None:
    """Print the Hadoop clusters."""
    found = gateway.objects(kinds.MRCLUSTER.plural, all_namespaces=all_namespaces)
    if not found and output is options.Format.TABLE:
        _print_none("clusters", gateway, all_namespaces=all_namespaces)
        return
    clusters = sorted(map(mrclusters.read, found), key=lambda cluster: (cluster.namespace, cluster.name))
    _print(found, output, tables.clusters(clusters, namespaces=all_namespaces))


def _print(found: Any, output: options.Format, drawn: table.Table) -> None:
    if output is options.Format.TABLE:
        console.Console().print(drawn)
    else:
        options.print_data(found, output)


def timeline(gateway: Gateway, targets: Sequence[tuple[kinds.Kind, str]], output: Path | None) -> None:
    """Print how jobs spent their time, and draw it if a file is given."""
    jobs = [(kind, kinds.job(gateway, kind, name)) for kind, name in targets]
    lines = [kind.timeline(job, kinds.drawn_pods(gateway, kind, job), now_s=time.time()) for kind, job in jobs]
    for line in lines:
        console.Console().print(tables.seconds(picture.shares(line), line.job.title if len(lines) > 1 else ""))
    if output is not None:
        output.write_text(picture.to_svg(*lines) if output.suffix == ".svg" else picture.to_html(*lines))
        console.Console(stderr=True).print(f"picture: {output.resolve()}", highlight=False, soft_wrap=True)


def list_queues(gateway: Gateway, operator_namespace: str, output: options.Format) -> None:
    """Print the queues."""
    found = _queues(gateway, operator_namespace)
    _print(found, output, tables.queues(found))


def show_shadow(gateway: Gateway, operator_namespace: str, output: options.Format) -> None:
    """Print how the decisions of the shadow profile differ."""
    try:
        found = gateway.data(operator_namespace, names.SHADOW, names.SHADOW_KEY)
    except CommandError as error:
        if error.code is not ExitCode.NOT_FOUND:
            raise
        raise CommandError(f"{error}; a shadow runs with the chart's shadowProfile", error.code) from error
    if output is not options.Format.TABLE:
        options.print_data(found, output)
        return
    screen, now_s = console.Console(), time.time()
    screen.print(tables.shadow(found, now_s))
    if found["error"]:
        screen.print(f"The shadow is off until the operator restarts: {found['error']}", markup=False)
    if found["differences"]:
        screen.print(tables.differences(found, now_s))


def _queues(gateway: Gateway, operator_namespace: str) -> tuple[usage.Queue, ...]:
    return usage.of_queues(
        usage.configured(gateway.data(operator_namespace, *CONFIG)),
        [kinds.read(raw) for raw in kinds.raw_jobs(gateway, all_namespaces=True)],
        [
            *gateway.pods(names.LABEL_QUEUE, all_namespaces=True),
            *gateway.pods(f"{model.SPARK_ROLE}={model.EXECUTOR},!{names.LABEL_QUEUE}", all_namespaces=True),
        ],
        gateway.objects("nodes"),
    )


POLL_S: Final = 1.0
LINE_EVERY_S: Final = 10.0
"""Interval of lines where the output is not a terminal; a change of phase prints a line at once."""


def draw_job(job: model.Job, *, now_s: float) -> table.Table:
    """Return the phase, a progress bar for each stage, and why the job is pending."""
    drawn = table.Table.grid(padding=(0, 2))
    drawn.add_row(text.Text(job.title, style="bold"), "", f"{job.phase or 'Pending'}, {_age(job, now_s)}")
    for stage in job.stages:
        bar = progress_bar.ProgressBar(total=stage.total, completed=stage.done, width=40) if stage.total else ""
        drawn.add_row(stage.name, bar, stage.text)
    if why := tables.why(job):
        drawn.add_row("reason", "", why)
    return drawn


def job_line(job: model.Job, *, now_s: float) -> str:
    """Return the job's phase, progress and reason in one line, for logs."""
    words = (job.title, job.phase or "Pending", job.progress or job.activity, _age(job, now_s), tables.why(job))
    return " ".join(filter(None, words))


def _age(job: model.Job, now_s: float) -> str:
    return model.duration((job.completed_s or now_s) - job.created_s)


def follow(
    gateway: Gateway, kind: kinds.Kind, name: str, screen: console.Console, *, timeout_s: float | None = None
) -> model.Job:
    """Wait until a job ends."""
    deadline_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
    last_line = ("", 0.0)
    with live.Live(console=screen, refresh_per_second=4, transient=True) as view:
        while True:
            job = kinds.job(gateway, kind, name)
            if screen.is_terminal:
                view.update(draw_job(job, now_s=time.time()))
            else:
                last_line = _say(job, last_line, screen)
            if job.finished:
                return job
            if time.monotonic() > deadline_s:
                raise CommandError(
                    f"{job.title} has not ended after {timeout_s:.0f} s: see `boathouse explain {job.title}`",
                    ExitCode.TIMEOUT,
                )
            time.sleep(POLL_S)


def _say(job: model.Job, last_line: tuple[str, float], screen: console.Console) -> tuple[str, float]:
    phase, at_s = last_line
    now_s = time.monotonic()
    if job.phase == phase and now_s - at_s < LINE_EVERY_S:
        return last_line
    screen.print(job_line(job, now_s=time.time()), highlight=False, soft_wrap=True)
    return job.phase, now_s


def follow_driver(gateway: Gateway, name: str) -> None:
    """Print the logs of a SparkApp's drivers, attempt after attempt, until it ends; its phases on stderr."""
    screen, last_line = console.Console(stderr=True), ("", 0.0)
    printed: set[str] = set()
    while True:
        job = kinds.job(gateway, kinds.SPARKAPP, name)
        for pod in sorted(kinds.pods(gateway, kinds.SPARKAPP, job), key=lambda pod: pod.attempt):
            if pod.task == model.DRIVER and pod.started_s is not None and pod.name not in printed:
                printed.add(pod.name)
                for line in gateway.log(pod.name, pod.container, tail=None, follow=True):
                    print(line, flush=True)
        if job.finished:
            _conclude(job, screen)
            return
        if not printed:
            last_line = _say(job, last_line, screen)
        time.sleep(POLL_S)


def until_end(gateway: Gateway, kind: kinds.Kind, name: str, *, timeout_s: float | None = None) -> None:
    """Follow a job until it ends, and say how; the exit code says whether it failed."""
    screen = console.Console()
    _conclude(follow(gateway, kind, name, screen, timeout_s=timeout_s), screen)


def _conclude(ended: model.Job, screen: console.Console) -> None:
    headline = explaining.explain_job(ended, [], None, now_s=time.time()).headline
    screen.print(headline, highlight=False, markup=False, soft_wrap=True)
    if ended.phase != "Succeeded":
        raise typer.Exit(ExitCode.JOB_FAILED)
