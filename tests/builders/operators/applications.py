"""Applications whose drivers create their executors, at the scheduler's desk."""

from typing import Any

from boathouse.cluster import store, wire
from boathouse.resources import names
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators import desks

NAMESPACE = "demo"


class App:
    """An application as its kind submits it: a driver, and the minimum of its executors.

    Attributes:
        driver_cpu: Cores of the driver; an executor's are `cpu`.
        extended: Extended resources of each pod.
    """

    def __init__(
        self,
        name: str = "a",
        *,
        minimum: int = 2,
        cpu: int = 1,
        driver_cpu: int = 1,
        extended: dict[str, int] | None = None,
        **job: Any,
    ) -> None:
        self.extended = extended or {}
        self.name, self.minimum, self.cpu, self.driver_cpu = name, minimum, cpu, driver_cpu
        self.queue = job.get("queue", desks.QUEUE)
        self.job = model.Job(
            **{"id": model.JobId(name), "queue": desks.QUEUE, "submitted_s": 0.0, "namespace": NAMESPACE} | job
        )

    @property
    def driver(self) -> model.TaskId:
        return model.TaskId(f"{NAMESPACE}/{self.name}-driver")

    @property
    def classes(self) -> list[model.TaskClass]:
        return [self._class("driver", self.driver_cpu, 1), self._class("executor", self.cpu, self.minimum)]

    def _class(self, role: str, cpu: int, gang_min: int) -> model.TaskClass:
        return model.TaskClass(
            id=model.ClassId(f"{self.job.id}/{role}"),
            job=self.job.id,
            resources=model.Resources.of(cpu_milli=cpu * 1000, memory_bytes=1 << 20, extended=self.extended),
            gang_min=gang_min,
            stage=model.Stage(role),
        )

    def tasks(self, expected: int) -> list[model.Task]:
        driver, executor = self.classes
        found = [model.Task(id=self.driver, task_class=driver.id)]
        for number in range(expected):
            task = model.TaskId(f"{NAMESPACE}/{self.name}#{number}")
            found.append(model.Task(id=task, task_class=executor.id, index=number, expected=True))
        return found

    def driver_pod(self, node: str = "n1", *, revision: int = 10, **spec: Any) -> wire.PodView:
        """The driver as the API server shows it."""
        owner = wire.OwnerReference(
            api_version=names.API_VERSION, kind="SparkApp", name=self.name, uid=self.job.id, controller=True
        )
        labels = {names.LABEL_JOB_UID: self.job.id, names.LABEL_QUEUE: self.queue}
        return _pod(f"{self.name}-driver", owner, revision, cpu=self.driver_cpu, node=node, labels=labels, **spec)

    def executor_pod(
        self, number: int, node: str = "", *, revision: int = 20, cpu: int | None = None, **spec: Any
    ) -> wire.PodView:
        """An executor that the driver created."""
        name = f"{self.name}-driver"
        owner = wire.OwnerReference(api_version="v1", kind="Pod", name=name, uid=f"uid-{name}", controller=True)
        return _pod(f"{self.name}-exec-{number}", owner, revision, cpu=cpu or self.cpu, node=node, **spec)

    def placeholder_pod(self, number: int, *, revision: int = 15, **spec: Any) -> wire.PodView:
        """A placeholder of an executor as the API server shows it."""
        owner = wire.OwnerReference(
            api_version=names.API_VERSION, kind="SparkApp", name=self.name, uid=self.job.id, controller=True
        )
        labels = {names.LABEL_JOB_UID: self.job.id, names.LABEL_TASK_TYPE: names.TASK_TYPE_PLACEHOLDER}
        return _pod(f"{self.name}-placeholder-{number}", owner, revision, cpu=self.cpu, node="", labels=labels, **spec)


def _pod(name: str, owner: wire.OwnerReference, revision: int, *, cpu: int, node: str, **more: Any) -> wire.PodView:
    meta = {"revision": str(revision), "owner": owner, "labels": more.pop("labels", {})}
    return manifests.pod_view(
        name,
        meta=meta,
        node=node,
        containers=(manifests.container(cpu=str(cpu), memory="1Mi"),),
        **more,
    )


class Factory(desks.Factory):
    """Builds the pods of an application."""

    def build_placeholder(self, *, is_driver: bool) -> dict[str, Any]:
        """Return a placeholder, of which only the labels count here."""
        return {"metadata": {"labels": {"stands-for": "driver" if is_driver else "executor"}}, "spec": {}}


class DriverDesk(desks.Desk):
    """A desk with applications."""

    def submit_application(self, app: App, expected: int | None = None) -> None:
        """Submit an application as its kind does: always with its driver and its minimum."""
        tasks = app.tasks(app.minimum if expected is None else expected)
        self.scheduler.submit(app.job, app.classes, tasks, Factory())
        counts = {one.id: sum(task.task_class == one.id for task in tasks) for one in app.classes}
        submitted = model.Submitted(now_s=self.now_s, job=app.job, classes=tuple(app.classes), tasks=counts)
        for observer in self.scheduler.state.profile.observers:
            observer.observe(submitted)

    def reserved(self, app: App) -> list[str]:
        """Return the nodes where room is reserved for an application, sorted."""
        rows = [self.scheduler.state.pods.get(task.id) for task in app.tasks(app.minimum)]
        return sorted(row.reserved.node for row in rows if row is not None and row.reserved is not None)

    def draining(self) -> list[str]:
        """Return the jobs for which room is reserved as it comes free."""
        job = self.scheduler.state.profile.draining.job
        return [] if job is None else [job]

    def kept(self) -> list[str]:
        """Return the nodes of the members for which room is kept as it comes free."""
        return [part.node for part in self.scheduler.state.profile.draining.kept]

    async def start_driver(self, app: App, node: str = "n1") -> wire.PodView:
        """Let the driver start."""
        name = app.driver.partition("/")[2]
        pod = app.driver_pod(node)
        await self.answer("create", f"{name} {node}", pod)
        self.show(pod)
        return pod

    def quota(self, *, used: dict[str, str] | None = None, **hard: str) -> None:
        """Show a quota of the namespace."""
        view = manifests.quota_view("small", hard=hard, used=used)
        self.scheduler.intake.on_quota(store.Added(key=view.metadata.key, new=view))

    def delete_quota(self) -> None:
        """Delete the quota of the namespace."""
        view = manifests.quota_view("small")
        self.scheduler.intake.on_quota(store.Deleted(key=view.metadata.key, old=view))

    def used(self, queue: str = desks.QUEUE) -> int:
        """Return the millicores that a queue holds."""
        return int(self.scheduler.state.ledger.snapshot(0.0).queue_usage(model.QueueName(queue))[model.CPU])

    def reason(self, app: App) -> str:
        found = self.scheduler.diagnosis(app.job.id)
        return "" if found is None else found.reason
