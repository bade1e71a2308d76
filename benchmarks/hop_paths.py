"""The two paths of docs/architecture.md as tables, checked against a run.

The rule of these tables: a hop is a named function that the pod (its task, its decision, its result) enters on the
path, counted once. Leaf computations, which return a value to their caller and pass nothing on, do not count. They are
rows without a number where a reader needs them. Closures and policies do not count.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Final

from boathouse import scheduling

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

OPERATOR: Final = Path(scheduling.__file__).parents[1]
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
SIDES: Final = {"services": "job", "scheduling": "scheduler"}
"""The sides of the border, by package; all other packages serve both."""


class PathError(Exception):
    """A path differs from what a run recorded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """A function on a path, and what it does with the pod.

    Attributes:
        is_leaf: Whether it returns a value and passes nothing on: a row without a number.
    """

    name: str
    what: str = ""
    is_leaf: bool = False

    @property
    def side(self) -> str | None:
        """Return the side of the border that the function is on, or None."""
        return SIDES.get(self.name.partition(".")[0])

    @property
    def place(self) -> tuple[str, str]:
        """Return the file, relative to `operator/boathouse`, and the name inside it."""
        parts = self.name.split(".")
        for length in range(len(parts) - 1, 0, -1):
            file = Path(*parts[:length]).with_suffix(".py")
            if (OPERATOR / file).is_file():
                return file.as_posix(), ".".join(parts[length:])
        raise PathError(f"no file of the operator holds {self.name}: correct benchmarks/hop_paths.py")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HopPath:
    """A path, and the recorded hops that are not on it, by reason."""

    title: str
    steps: Sequence[Step]
    beside: Mapping[str, Collection[str]] = dataclasses.field(default_factory=dict)

    def check(self, hops: Collection[str], calls: Collection[str]) -> None:
        """Compare the path with a run.

        Args:
            hops: The functions that count by the rule of `benchmarks.hops`.
            calls: All functions that were called.

        Raises:
            PathError: A function of the path was not called, or a hop has no place here.
        """
        placed = {step.name for step in self.steps}.union(*self.beside.values())
        if missing := sorted({step.name for step in self.steps} - set(calls)):
            raise PathError(f"{self.title}: not called: {', '.join(missing)}: correct benchmarks/hop_paths.py")
        if strange := [name for name in hops if name not in placed]:
            raise PathError(f"{self.title}: neither on the path nor beside it: {', '.join(strange)}")

    def table(self, strict: Collection[str]) -> str:
        """Return the path in Markdown, with both counts and the crossings of the border."""
        lines = ["| hop | file | function | what happens |", "|---|---|---|---|"]
        numbers: dict[str, int] = {}
        side, crossings = None, 0
        for step in self.steps:
            if side is not None and step.side not in {None, side}:
                crossings += 1
                lines.append(f"| | | | **border {crossings}: {side} → {step.side}** |")
            side = step.side or side
            file, function = step.place
            is_again = step.name in numbers
            number = ""
            if not step.is_leaf:
                hop = numbers.setdefault(step.name, len(numbers) + 1)
                number = f"({hop})" if is_again else f"{hop}"
            lines.append(f"| {number} | `{file}` | `{function}` | {step.what or 'again'} |")
        counted = f"{len(numbers)} hops, {crossings} border crossings. "
        counted += f"`python -m benchmarks.hops` counts {len(strict)} in the same run, by its own rule."
        return "\n".join([counted, "", *lines, *self._beside(strict)])

    def _beside(self, strict: Collection[str]) -> list[str]:
        rows = [(why, len(set(names) & set(strict))) for why, names in self.beside.items()]
        if not rows:
            return []
        listed = "; ".join(f"{why} ({count})" for why, count in rows if count)
        return ["", f"Functions that `benchmarks.hops` counts and that are not on this path: {listed}."]


BIND: Final = HopPath(
    title="bind",
    steps=(
        Step("cluster.reflector.Reflector._line", "decodes the watch event and stores the reduced pod"),
        Step("cluster.reflector.Reflector._report", "delivers each change of the store"),
        Step("cluster.boundary.Boundary.run", "calls the handler; an error sets this object aside and no other"),
        Step("scheduling.intake.Intake.on_pod", "takes the change in"),
        Step(
            "scheduling.pods.table.PodTable.observe", "updates the pod's row and returns the transitions", is_leaf=True
        ),
        Step("scheduling.intake.Intake._apply", "acts on each transition of a row"),
        Step(
            "scheduling.intake.Intake._admit",
            "admits a pending pod, or sets the condition that says why not; wakes the loop",
        ),
        Step("scheduling.intake.Intake._problem", "checks what the scheduler does not support"),
        Step("scheduling.jobs.Jobs.add_foreign", "adds the pod as a task of the job of its owner"),
        Step("scheduling.scheduler.Scheduler._round", "wakes up"),
        Step("scheduling.scheduler.Scheduler.cycle", "starts what the decider returns"),
        Step("scheduling.decider.Decider.decide", "runs the policies on the state; returns operations", is_leaf=True),
        Step("scheduling.pods.table.PodTable.decide", "charges the node and makes the operation", is_leaf=True),
        Step("scheduling.executor.Executor.start", "queues the operation"),
        Step("fair.FairQueue.put", "queues by namespace, so that namespaces take turns"),
        Step("scheduling.executor.Executor._work", "runs the operation and hands its outcome to the intake"),
        Step("scheduling.executor.Executor._carry_out", "checks that the decision is still valid"),
        Step("scheduling.executor.Executor._bind", "resizes the pod first if the decision says so"),
        Step("scheduling.writer.Writer.bind", "adds the leader's epoch"),
        Step("scheduling.writer.Writer._attempt", "checks leadership; retries; reads the pod after an unclear answer"),
        Step("cluster.client.ApiClient.bind", "sends the bind request"),
    ),
    beside={
        "the loop that repeats the rounds of the scheduler": ("cluster.loops.Loop.run",),
        "the transition of the row, below `PodTable.observe`": (
            "scheduling.pods.table.PodTable.show",
            "scheduling.pods.table.PodTable._apply",
            "scheduling.pods.table.PodTable._relate",
        ),
        "the gang of the pod, if there are gangs": ("scheduling.intake.Intake._follow",),
        "pods to end that their own container has left": ("scheduling.outlived.OutlivedPods.on_pod",),
    },
)

_ENDED: Final = (
    Step("cluster.reflector.Reflector._line", "decodes the watch event: setup ended, with the digest of the plan"),
    Step("cluster.reflector.Reflector._report", "delivers each change of the store"),
    Step("cluster.boundary.Boundary.run", "calls the scheduler's handler, then the job's"),
    Step("services.frame.pod_index.PodIndex.on_ended", "takes the change in"),
    Step("services.frame.pod_index.PodIndex._put", "keeps the attempt with its result"),
)
_QUEUE: Final = (
    Step("services.frame.controllers.Controllers.mark", "finds the job's key; a posted plan marks the job too"),
    Step("services.frame.work_queue.WorkQueue.add", "adds the key to the reconcile queue"),
    Step("services.frame.work_queue.WorkQueue._work", "takes the key that is due, as one of several workers"),
    Step("services.frame.work_queue.WorkQueue._next", "waits for a key that is due"),
    Step("services.frame.work_queue.WorkQueue._collect_ready", "moves due keys to the queue of ready ones"),
    Step("fair.FairQueue.put", "queues by namespace, so that namespaces take turns"),
    Step("services.frame.work_queue.WorkQueue._reconcile_key", "measures the reconcile; backs off after an error"),
    Step("services.frame.controllers.Controllers._reconcile", "selects the reconciler of the kind"),
    Step("services.frame.reconciler.Reconciler.reconcile", "handles conflicts and objects that are set aside"),
    Step("services.frame.reconciler.Reconciler._reconcile_object", "parses the object and checks the tenant's limit"),
    Step("services.frame.reconciler.Reconciler._carry_out", "observes, plans, and carries out the desired state"),
    Step("services.mrjob.kind.MRJobKind.observe", "collects pods, plan and results", is_leaf=True),
    Step("services.mrjob.planning.planner.plan", "computes the next actions and the new state", is_leaf=True),
)
_STATUS: Final = (
    Step("services.frame.status_writer.StatusWriter.write", "writes phases at once, figures at most once a second"),
    Step("services.frame.status_writer.StatusWriter.patch", "writes without free parts if the status is refused"),
    Step("services.frame.writes.Writes.status", "writes between two failpoints and stores the answer"),
    Step("cluster.client.ApiClient.patch_status", "sends the patch of the status"),
)


def _again(steps: Sequence[Step]) -> tuple[Step, ...]:
    return tuple(dataclasses.replace(step, what="") for step in steps if not step.is_leaf)


COMMIT: Final = HopPath(
    title="commit",
    steps=(
        Step("services.mrjob.progress.routes.TaskRoutes._post_plan", "reads the plan that the setup task posts"),
        Step("services.mrjob.splits.split_plans.Plans.post", "keeps the posted plan in memory"),
        *_ENDED,
        *_QUEUE,
        Step("services.frame.reconciler.Reconciler._run", "runs the effects that precede the status"),
        Step(
            "services.mrjob.kind.MRJobKind._prepare",
            "writes the plan that setup vouches for; the next reconcile accepts it",
        ),
        Step("services.mrjob.splits.split_plans.Plans.write", "writes the plan in shards"),
        Step("services.mrjob.splits.split_plans.Plans._write_shard", "replaces shards of an earlier plan"),
        Step("cluster.client.ApiClient.create", "creates a ConfigMap"),
        Step("services.mrjob.splits.split_plans.Plans._keep", "keeps the written plan in memory"),
        *_STATUS,
        Step("services.mrjob.kind.MRJobKind._go_on", "limits retries of the namespace"),
        Step("services.mrjob.kind.MRJobKind._submit", "submits the maps that are pending"),
        Step("scheduling.intake.Intake.submit", "replaces the tasks of the job and wakes the loop"),
        Step("scheduling.jobs.Jobs.submit", "keeps the tasks that the next cycle lines up"),
        Step("scheduling.scheduler.Scheduler._round", "wakes up"),
        Step("scheduling.scheduler.Scheduler.cycle", "starts what the decider returns"),
        Step("scheduling.decider.Decider.decide", "runs the policies on the state; returns operations", is_leaf=True),
        Step("scheduling.executor.Executor.start", "queues the operation"),
        Step("fair.FairQueue.put"),
        Step("scheduling.executor.Executor._work", "runs the operation and hands its outcome to the intake"),
        Step(
            "scheduling.executor.Executor._carry_out",
            "checks that the decision is still valid; builds the manifest with the factory that was submitted",
        ),
        Step(
            "scheduling.executor.Executor._create", "compares the first pod of a class with what admission made of it"
        ),
        Step("scheduling.writer.Writer.create", "adds the leader's epoch"),
        Step("scheduling.writer.Writer._attempt", "checks leadership; retries; reads the pod after an unclear answer"),
        Step(
            "cluster.client.ApiClient.create_pod", "creates the pod with its node; the map runs and commits its output"
        ),
        Step("cluster.reflector.Reflector._line", "decodes the watch event: the map's pod ended, with its result"),
        *_again(_ENDED[1:]),
        *_again(_QUEUE),
        Step("services.mrjob.planning.planner.plan", "counts the map as succeeded, once", is_leaf=True),
        *_again(_STATUS),
    ),
    beside={
        "the check of the sender's token": (
            "services.mrjob.progress.routes.TaskRoutes._check_plan",
            "services.mrjob.progress.routes._check_setup",
            "services.progress.auth.Authenticator._review",
            "services.progress.auth.Authenticator._verdict",
            "cluster.client.ApiClient.token_review",
            "services.progress.auth._Memory.put",
        ),
        "events and conditions for people": (
            "services.frame.reconciler.Reconciler._report",
            "services.mrjob.kind.MRJobKind._publish_suspensions",
            "services.frame.object_events.ObjectEvents.publish",
            "cluster.events.EventWriter.publish",
            "cluster.events.EventWriter._enqueue",
            "scheduling.pod_conditions.PodConditions.forget",
            "scheduling.pod_conditions.PodConditions.scheduled",
        ),
        "rate limits": (
            "services.frame.status_writer.StatusShare.take",
            "services.frame.status_writer.StatusShare.forget",
            "services.frame.work_queue.WorkQueue._let_rest",
            "services.frame.work_queue.WorkQueue._rest",
        ),
        "orders for running tasks": (
            "services.mrjob.kind.MRJobKind._send",
            "services.mrjob.progress.task_orders.TaskOrders.update",
            "services.mrjob.progress.task_reports.TaskReports.update",
            "services.mrjob.placement.seconds.SecondAttempts.update",
        ),
        "the observers of the policies": (
            "services.mrjob.kind.MRJobKind._classes",
            "services.mrjob.policy_events.PolicyEvents.update",
            "services.mrjob.policy_events.PolicyEvents._publish",
            "services.mrjob.policy_events.PolicyEvents._end",
            "services.mrjob.policy_events.PolicyEvents.ended",
            "services.frame.pod_events.PodEvents.update",
            "services.frame.pod_events.PodEvents._changed",
            "services.frame.pod_events.PodEvents._end",
            "services.frame.pod_events.PodEvents.forget",
            "services.frame.pod_events.PodEvents._vanished",
        ),
        "loops that run from the start": (
            "cluster.loops.Loop.run",
            "cluster.reflector.Reflector.run",
            "cluster.reflector.Reflector._watch",
        ),
        "pods to end that their own container has left": ("scheduling.outlived.OutlivedPods.on_pod",),
        "the watch of the job itself": ("services.frame.object_store.ObjectStore.on_object",),
        "the job's index of running pods": (
            "services.frame.pod_index.PodIndex.on_pod",
            "services.frame.pod_index.PodIndex._end_limbo",
        ),
        "the scheduler's accounts of pods that were created, run or ended": (
            "scheduling.intake.Intake.on_pod",
            "scheduling.intake.Intake.on_ended",
            "scheduling.executor.Executor._finish",
            "scheduling.intake.Intake.finished",
            "scheduling.intake.Intake._done",
            "scheduling.intake.Intake._apply",
            "scheduling.intake.Intake._ended",
            "scheduling.intake.Intake._exclude_node",
            "scheduling.tenants.refusals.Refusals.succeeded",
            "scheduling.pods.holders.Holders.add",
            "scheduling.pods.table.PodTable.accept",
            "scheduling.pods.table.PodTable.observe",
            "scheduling.pods.table.PodTable.show",
            "scheduling.pods.table.PodTable.left",
            "scheduling.pods.table.PodTable.end",
            "scheduling.pods.table.PodTable.lose",
            "scheduling.pods.table.PodTable._apply",
            "scheduling.pods.table.PodTable._hold",
            "scheduling.pods.table.PodTable._bury",
            "scheduling.pods.table.PodTable._relate",
            "scheduling.pods.table.PodTable.unreserve",
            "scheduling.pods.children.Children.leave",
            "scheduling.intake.Intake._follow",
        ),
        "what follows the last status of the job": (
            "scheduling.reasons.Diagnoses.forget",
            "services.mrjob.kind.MRJobKind._over",
            "services.mrjob.kind.MRJobKind._end",
            "scheduling.intake.Intake.withdraw",
            "scheduling.jobs.Jobs.withdraw",
            "scheduling.pods.table.PodTable.withdraw",
            "scheduling.pods.table.PodTable._clear_task",
        ),
    },
)


def write(path: HopPath, strict: Collection[str], page: Path = PAGE) -> None:
    """Replace the table of a path between its markers in the page."""
    begin, end = f"<!-- hops: {path.title} -->\n", "<!-- hops: end -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise PathError(f"{page.name} lacks the markers of {path.title}: {begin.strip()} and {end}")
    page.write_text(f"{before}{begin}\n{path.table(strict)}\n\n{end}{after}")
