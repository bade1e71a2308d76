"""DriverApp on the frame."""

import datetime as dt
from functools import partial

from boathouse.cluster import catalogue, wire
from boathouse.resources import names
from boathouse.services.frame.kind import KindDefinition, Refusal
from boathouse.services.frame.protocols import Desired, Life
from boathouse.services.frame.status_writer import Memory
from boathouse_policies import model
from tests.builders import manifests
from tests.kinds.driver_app import planner, state
from tests.kinds.driver_app.planner import App, Seen

DRIVER_APP = KindDefinition(
    resource=catalogue.Resource(
        group=names.GROUP, version=names.VERSION, plural="driverapps", kind="DriverApp", view=wire.Manifest
    ),
    noun="app",
    phases=("Pending", "Running", "Suspended", *sorted(state.TERMINAL)),
    terminal_phases=state.TERMINAL,
)
SIZE = model.Resources(cpu_milli=500, memory_bytes=256 << 20)


class DriverApps:
    """Implements `protocols.Kind`."""

    definition, status_format = DRIVER_APP, state

    def __init__(self, leader):
        self._scheduling, self._now = leader.scheduling, leader.controllers.context.now

    def parse(self, body):
        metadata, spec = body["metadata"], body["spec"]
        if spec["executors"] < 0:
            return Refusal(reason="InvalidSpec", message="spec.executors is negative")
        return App(
            uid=metadata["uid"],
            name=metadata["name"],
            namespace=metadata["namespace"],
            generation=metadata.get("generation", 1),
            created_s=dt.datetime.fromisoformat(metadata["creationTimestamp"]).timestamp(),
            queue=spec.get("queue", "default"),
            executors=spec["executors"],
            suspend=spec.get("suspend", False),
            ttl_s=spec.get("ttlSecondsAfterFinished"),
        )

    def life(self, app):
        return Life(created_s=app.created_s, ttl_s=app.ttl_s, wants_finalizer=False)

    def load(self, status, _app):
        return state.from_status(status)

    def remember(self, uid, known, written):
        return Memory(uid, known, written)

    def refuse(self, known, refusal, generation, now_s):
        return planner.refuse(known, refusal, generation, now_s)

    async def observe(self, app, memory):
        pods = [pod for store in (self._scheduling.ended, self._scheduling.pods) for pod in store.objects.values()]
        name = driver_name(app, memory.state.starts)
        driver = next((pod for pod in pods if owner(pod) == app.uid and pod.metadata.name == name), None)
        return Seen(
            app=app,
            state=memory.state,
            driver=driver,
            executors=tuple(pod for pod in pods if driver is not None and is_child(pod, driver)),
            now_s=self._now(),
        )

    def plan(self, observation, _memory):
        wanted = planner.plan(observation)
        return Desired(
            state=wanted.state,
            delete=[(pod.metadata.name, pod.metadata.uid) for pod in wanted.delete],
            after=[partial(self._submit, observation.app, wanted)],
            recheck_at_s=wanted.recheck_at_s,
        )

    async def _submit(self, app, wanted, writes):
        job = model.JobId(app.uid)
        if not wanted.needs_driver:
            self._scheduling.scheduler.withdraw(job)
            return
        writes.check_lead()
        driver_class = model.TaskClass(id=model.ClassId(f"{app.uid}/driver"), job=job, resources=SIZE, gang_min=1)
        task_id = model.TaskId(f"{app.namespace}/{driver_name(app, wanted.state.starts)}")
        self._scheduling.scheduler.submit(
            model.Job(
                id=job,
                queue=model.QueueName(app.queue),
                submitted_s=app.created_s,
                name=f"{app.namespace}/{app.name}",
                namespace=model.NamespaceName(app.namespace),
            ),
            [driver_class],
            [model.Task(id=task_id, task_class=driver_class.id)],
            Drivers(app),
        )

    def note(self, app, known):
        return f"{known.executors} of {app.executors} executors run"

    def restored(self, uid):
        pass

    def forget(self, uid, _namespace):
        self._scheduling.scheduler.withdraw(model.JobId(uid))


class Drivers:
    """Makes the driver pods of an app."""

    resource = DRIVER_APP.resource
    control = None

    def __init__(self, app):
        self._app = app

    def build(self, task, resources, node, _expected=None):
        app, (namespace, name) = self._app, task.split("/")
        controller = {"apiVersion": names.API_VERSION, "kind": "DriverApp", "name": app.name, "uid": app.uid}
        return manifests.pod(
            name,
            namespace=namespace,
            node=node or "",
            cpu=f"{resources.cpu_milli}m",
            memory=str(resources.memory_bytes),
            labels={names.LABEL_JOB_UID: app.uid, names.LABEL_QUEUE: app.queue},
            annotations={"executors": str(app.executors)},
            owner=controller | {"controller": True},
        )


def driver_name(app, start):
    return f"{app.name}-{app.uid}-driver-{start}"


def owner(pod):
    """Return the UID of the controller of a pod."""
    return pod.metadata.controller.uid if pod.metadata.controller else None


def is_child(pod, driver):
    """Say whether the driver created a pod: the driver is its controller, in the same namespace."""
    return owner(pod) == driver.metadata.uid and pod.metadata.namespace == driver.metadata.namespace


def add(leader):
    """Let a leader reconcile DriverApps."""
    controllers, scheduling = leader.controllers, leader.scheduling
    controllers.add(DriverApps(leader))
    drivers = {}

    def changed(change):
        pod = getattr(change, "new", None) or change.old
        drivers[pod.metadata.uid] = owner(pod)
        for uid in (owner(pod), drivers.get(owner(pod))):
            if uid is not None:
                controllers.mark(uid)

    scheduling.pods.subscribe(changed)
    scheduling.ended.subscribe(changed)
