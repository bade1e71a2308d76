"""Admission changes pods after their node was chosen: what it makes of the first is planned for the others."""

import msgspec
import pytest

from boathouse.cluster import errors, wire
from boathouse.resources import names
from boathouse.scheduling import admitted
from boathouse_policies import model
from tests.builders.operators import desks
from tests.builders.operators.applications import App, DriverDesk

GIB = 1 << 30
MIB = 1 << 20


def manifest(name="t", node="n1", cpu="1", memory="1Mi", **spec):
    container = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    where = {"nodeName": node} if node else {}
    return {"metadata": {"name": name, "namespace": "demo"}, "spec": {"containers": [container], **where, **spec}}


def pod(body, *, more=(), **spec):
    """Return the pod of a manifest as a webhook changed it: with more containers, or other fields of its spec."""
    body = msgspec.json.decode(msgspec.json.encode(body))
    body["spec"]["containers"] += [{"name": "proxy", "resources": {"requests": dict(requests)}} for requests in more]
    body["spec"] |= spec
    return msgspec.convert(body, wire.PodView)


CLASS = model.TaskClass(
    id=model.ClassId("j/map"),
    job=model.JobId("j"),
    resources=model.Resources(cpu_milli=1000, memory_bytes=MIB),
    constraints=model.Constraints(node_selector=(("disk", "ssd"),)),
)


def test_a_pod_that_admission_left_alone_changes_nothing():
    assert admitted.changes(manifest(), pod(manifest())) is None
    added = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
    assert admitted.changes(manifest(), pod(manifest(), tolerations=added)) is None


def test_a_sidecar_makes_the_pods_of_a_class_larger_and_their_manifests_stay_as_they_are():
    found = admitted.changes(manifest(), pod(manifest(), more=[{"cpu": "100m", "memory": "1Gi", "x.io/y": "1"}]))
    larger = found.applied(CLASS).resources
    assert larger == model.Resources(cpu_milli=1100, memory_bytes=MIB + GIB, extended=(("x.io/y", 1),))
    assert found.own(larger) == CLASS.resources


def test_a_selector_that_admission_adds_is_one_of_the_class():
    found = admitted.changes(manifest(), pod(manifest(), nodeSelector={"zone": "b"}))
    assert found.applied(CLASS).constraints.node_selector == (("disk", "ssd"), ("zone", "b"))


def test_tolerations_that_admission_adds_open_nodes_to_the_class():
    gpu, lost = ({"key": key, "operator": "Exists"} for key in ("gpu", "node.kubernetes.io/unreachable"))
    found = admitted.changes(manifest(), pod(manifest(), tolerations=[gpu, lost]))
    (added,) = found.applied(CLASS).constraints.tolerations
    assert (added.key, added.operator) == ("gpu", "Exists")


def test_a_pod_that_requests_less_counts_as_planned():
    less = pod(manifest(cpu="500m"))
    assert admitted.changes(manifest(), less) is None


def test_the_namespaces_that_are_remembered_are_bounded(monkeypatch):
    monkeypatch.setattr(admitted, "MAX_NAMESPACES", 2)
    known = admitted.Namespaces()
    for name in "abca":
        known.add(name)
    assert [name for name in "abc" if name in known] == ["a", "c"]


# Tasks


class Factory(desks.Factory):
    def __init__(self, job):
        self.job = job

    def build(self, task, resources, node, _expected=None):
        built = manifest(task.partition("/")[2], node, f"{resources.cpu_milli}m", str(resources.memory_bytes))
        owner = {"apiVersion": names.API_VERSION, "kind": "MRJob", "name": "j", "uid": self.job, "controller": True}
        built["metadata"] |= {"ownerReferences": [owner], "labels": {names.LABEL_JOB_UID: self.job}}
        return built


class ExpectingFactory(Factory):
    def build_expected(self, _expected):
        return manifest("executor", "")


class MutatingDesk(DriverDesk):
    """A desk in front of an API server with webhooks.

    Attributes:
        webhook: Fields that it adds to the spec, and containers.
        tries: Dry runs; an error refuses them.
    """

    def __init__(self, *, webhook=None, tried=None, **options):
        super().__init__(compares=True, pending_ahead=0, **options)
        self.webhook, self.tried, self.tries, self.created = webhook or {}, tried, [], []
        self.revision = 100
        for name, zone in (("n1", "a"), ("n2", "b")):
            self.node(name, labels={"zone": zone})

    async def create(self, _resource, body, _namespace, *, dry_run):
        assert dry_run
        assert body["metadata"]["annotations"][names.ANNOTATION_EPOCH]
        self.tries.append(body["metadata"]["name"])
        if self.tried is not None:
            raise self.tried
        return pod(body, **self.webhook)

    async def create_pod(self, namespace, body):
        self.revision += 1
        name, node = body["metadata"]["name"], body["spec"].get("nodeName", "-")
        meta = {"namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(self.revision)}
        made = pod(body | {"metadata": body["metadata"] | meta} | {"status": {"phase": "Pending"}}, **self.webhook)
        self.created.append((name, node, made.spec.containers[0].resources.requests["cpu"]))
        self.show(made)
        return made

    async def bind(self, _namespace, _name, uid, node, _annotations, _labels):
        self.created.append((uid, node, "bind"))

    def submit_tasks(self, *tasks, job_id="j", cpu_milli=1000):
        job = model.Job(id=model.JobId(job_id), queue=desks.QUEUE, submitted_s=0)
        size = model.Resources(cpu_milli=cpu_milli, memory_bytes=MIB)
        one = model.TaskClass(id=model.ClassId(f"{job_id}/map"), job=job.id, resources=size)
        todo = [model.Task(id=model.TaskId(f"demo/{task}"), task_class=one.id) for task in tasks]
        self.scheduler.submit(job, [one], todo, Factory(job_id))

    async def settle(self):
        for _ in range(6):
            self.now_s += 1.0
            await self.decide()
        return self.created


async def test_pods_of_a_class_go_only_where_the_selector_allows_that_admission_adds():
    async with MutatingDesk(webhook={"nodeSelector": {"zone": "b"}}).writing() as desk:
        desk.submit_tasks("t0")
        await desk.settle()
        desk.created.clear()
        desk.submit_tasks("t0", "t1", "t2", "t3")
        assert [node for _, node, _ in await desk.settle()] == ["n2"] * 3


async def test_pods_that_admission_makes_larger_are_counted_so_and_written_as_before():
    async with MutatingDesk(webhook={"more": [{"cpu": "1"}]}).writing() as desk:
        desk.submit_tasks("t0")
        await desk.settle()
        desk.submit_tasks(*[f"t{number}" for number in range(9)])
        created = await desk.settle()
    assert len(created) == 4  # two nodes of four cores
    assert {cpu for _, _, cpu in created} == {"1000m"}


async def test_the_first_pod_of_a_later_job_is_tried_where_admission_is_known_to_change_pods():
    async with MutatingDesk(webhook={"nodeSelector": {"zone": "b"}}).writing() as desk:
        desk.submit_tasks("a0", job_id="a")
        await desk.settle()
        assert desk.tries == []
        desk.created.clear()
        desk.submit_tasks("b0", "b1", job_id="b")
        assert {node for _, node, _ in await desk.settle()} == {"n2"}
        assert 1 <= len(desk.tries) <= 2  # those that were decided together


@pytest.mark.parametrize("why", ["does not support dry run", "denied the request: no dry runs here"])
async def test_a_pod_is_created_without_a_node_and_bound_where_a_webhook_refuses_dry_runs(why):
    refused = errors.from_status(400, "BadRequest", f"admission webhook x {why}")
    async with MutatingDesk(webhook={"nodeSelector": {"zone": "b"}}, tried=refused).writing() as desk:
        desk.submit_tasks("a0", job_id="a")
        await desk.settle()
        desk.created.clear()
        desk.submit_tasks("b0", job_id="b")
        assert await desk.settle() == [("b0", "-", "1000m"), ("uid-b0", "n2", "bind")]


async def test_namespaces_without_such_webhooks_cause_no_further_requests():
    async with MutatingDesk().writing() as desk:
        for job in "abc":
            desk.submit_tasks(f"{job}0", job_id=job)
            await desk.settle()
    assert (desk.tries, len(desk.created)) == ([], 3)


# Executors


def submit_application(desk, app, factory=ExpectingFactory):
    desk.scheduler.submit(app.job, app.classes, app.tasks(app.minimum), factory(app.job.id))


async def test_room_is_reserved_for_executors_as_admission_makes_them():
    async with MutatingDesk(webhook={"more": [{"cpu": "1"}], "nodeSelector": {"zone": "b"}}).writing() as desk:
        app = App(minimum=1)
        submit_application(desk, app)
        await desk.settle()
        assert ("a-driver", "n2", "1000m") in desk.created
        assert desk.reserved(app) == ["n2"]
        desk.show(app.executor_pod(1, cpu=2, node_selector={"zone": "b"}))
        await desk.settle()
    assert ("uid-a-exec-1", "n2", "bind") in desk.created


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (errors.Forbidden(403, "Forbidden", "maximum memory usage per Container is 1Gi"), "PodRefused"),
        (errors.Forbidden(403, "Forbidden", "exceeded quota: small, requested: limits.cpu=8"), "QuotaExceeded"),
        (errors.Invalid(422, "Invalid", "violates PodSecurity"), "PodRefused"),
        (errors.from_status(400, "BadRequest", "admission webhook x denied the request: no team"), "PodRefused"),
    ],
)
async def test_no_driver_starts_whose_executors_would_be_refused_and_its_reason_is_said(refusal, reason):
    async with MutatingDesk(tried=refusal).writing() as desk:
        app = App(minimum=1)
        submit_application(desk, app)
        desk.submit_tasks("t0")
        await desk.settle()
        found = desk.scheduler.diagnosis(app.job.id)
        assert (found.reason, found.message) == (reason, f"the API server refuses the executors: {refusal.message}")
        assert [name for name, _, _ in desk.created] == ["t0"]  # others of the namespace are not held
        desk.tried = None
        desk.now_s += 60.0
        await desk.settle()
        assert [name for name, _, _ in desk.created] == ["t0", "a-driver"]


async def test_executors_take_room_of_their_size_where_dry_runs_are_refused():
    refused = errors.from_status(400, "BadRequest", "admission webhook x does not support dry run")
    async with MutatingDesk(tried=refused).writing() as desk:
        app = App(minimum=1)
        submit_application(desk, app)
        await desk.settle()
        assert desk.reserved(app) in (["n1"], ["n2"])
        desk.show(app.executor_pod(1, cpu=2, node_selector={"zone": "b"}))
        await desk.settle()
    assert ("uid-a-exec-1", "n2", "bind") in desk.created
    assert desk.reserved(app) == []
