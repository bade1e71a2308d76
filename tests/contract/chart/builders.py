"""What tests of the chart apply: pods, jobs, applications, Leases and roles."""

from typing import Any

from boathouse.resources import names
from boathouse.resources.config import OperatorConfig
from boathouse.services.mrjob import model, pod_builder
from boathouse.services.mrjob.settle import Attempt
from boathouse.services.sparkapp import gang
from boathouse_task import contract
from tests.builders import sparkapps

OPERATOR = "system:serviceaccount:boathouse-system:boathouse"
CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
RBAC = "rbac.authorization.k8s.io"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
OWNER = {"apiVersion": "boathouse.dev/v1alpha1", "kind": "MRJob", "name": "wc", "uid": "1-2", "controller": True}
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
OPERATORS_LABEL = {"labels": {"app.kubernetes.io/name": "boathouse"}}
MINIMAL = {"name": "c", "image": "i"}
EPOCH = 7
KUEUE = "system:serviceaccount:kueue-system:kueue-controller-manager"
SPARK_AND_QUEUES = {
    "queues": [
        {"name": "default"},
        {"name": "elsewhere", "namespaces": ["another"]},
        {"name": "nightly", "namespaces": ["demo"], "priorityClasses": ["batch-low"]},
    ],
    "rights": {"exempt": [KUEUE]},
    "spark": {"namespaces": ["demo"], "priorityClasses": ["batch-low"]},
}
"""Values of the chart that several modules share."""


def pod(name: str = "p", namespace: str = "demo", *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Anybody's pod, within the restricted pod security standard."""
    secure = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {"name": "c", "image": "i", "securityContext": SAFE}
    whole = {"containers": [container], "securityContext": secure, "restartPolicy": "Never", **spec}
    metadata = {"name": name, "namespace": namespace, **(meta or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


def fenced(epoch: int | None = EPOCH) -> dict[str, Any]:
    annotations = {} if epoch is None else {"boathouse.dev/epoch": str(epoch)}
    return {"labels": {"boathouse.dev/fenced": "true"}, "annotations": annotations}


def object_(kind: str, name: str, namespace: str = "", *, api: str = "v1", **rest: Any) -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata | rest.pop("metadata", {}), **rest}


JOBS = ("boathouse.dev", ["mrclusters", "mrjobs", "sparkapps"], ["get", "create", "update", "patch"], [])
"""What a user needs to create objects of each kind: a rule for `role`."""


def mrjob(namespace: str = "demo", *, name: str = "wc", **fields: Any) -> dict[str, Any]:
    """A job that names the Secret s3-credentials; `fields` of its spec are added."""
    s3 = {"endpointURL": "http://s3:7070", "secretRef": {"name": "s3-credentials"}}
    spec = {"input": ["s3://b/in"], "output": "s3://b/out", "mapper": {"command": ["cat"]}, "storage": {"s3": s3}}
    return object_("MRJob", name, namespace, api="boathouse.dev/v1alpha1", spec=spec | fields)


def task_pod(
    namespace: str = "demo", *, uid: str = "1-2", epoch: int = EPOCH, node: str = "node-0", **spec: Any
) -> dict[str, Any]:
    """A task's pod as the operator's own builder makes it, with what the scheduler adds."""
    body = mrjob(namespace)
    body["metadata"] |= {"uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z"}
    job = model.from_resource(body, OperatorConfig.model_validate({"task": {"image": "boathouse-task:dev"}}))
    assert isinstance(job, model.Job), job
    settings = pod_builder.PodSettings(
        progress_url="https://boathouse-progress.boathouse-system.svc", scratch_bytes=1 << 30
    )
    attempt = Attempt(task_type=contract.TaskType.SETUP, index=0, number=1)
    resources = job.stage(contract.TaskType.MAP).resources
    manifest = pod_builder.PodBuilder(job=job, settings=settings).build(attempt, resources, node)
    for field, added in fenced(epoch).items():
        manifest["metadata"][field] |= added
    manifest["spec"] |= spec
    return manifest


def sparkapp(namespace: str = "demo", *, name: str = "pi", **fields: Any) -> dict[str, Any]:
    """A SparkApp; `fields` of its spec are added."""
    spec = {"type": "Python", "mainApplicationFile": "local:///opt/app/main.py"}
    return object_("SparkApp", name, namespace, api="boathouse.dev/v1alpha1", spec=spec | fields)


def submission(namespace: str = "demo", *, name: str = "pi", uid: str = "1-2", **fields: Any) -> sparkapps.Submission:
    """What the operator creates for the first attempt of an application."""
    return sparkapps.submission(sparkapps.app(name=name, uid=uid, metadata={"namespace": namespace}, **fields))


def driver_pod(
    namespace: str = "demo", *, name: str = "pi", uid: str = "1-2", fields: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A driver's pod as the operator's own builder makes it of `fields`, with what the scheduler adds."""
    manifest = submission(namespace, name=name, uid=uid, **(fields or {})).driver
    for field, added in fenced().items():
        manifest["metadata"][field] |= added
    manifest["spec"] |= spec
    return manifest


def placeholder_pod(namespace: str = "demo", *, is_driver: bool = False) -> dict[str, Any]:
    """A placeholder as the operator's own builder makes it, with what the scheduler adds."""
    app = sparkapps.app(uid="1-2", metadata={"namespace": namespace})
    manifest = gang.DriverFactory(app=app, attempt=sparkapps.ATTEMPT).build_placeholder(is_driver=is_driver)
    metadata = manifest["metadata"]
    metadata |= {"name": "pi-placeholder-0", "annotations": fenced()["annotations"]}
    metadata["labels"] |= fenced()["labels"] | {"boathouse.dev/task-type": names.TASK_TYPE_PLACEHOLDER}
    return manifest


def lease(epoch: int) -> dict[str, Any]:
    metadata = {"name": "boathouse", "namespace": "boathouse-system"}
    spec = {"leaseTransitions": epoch}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def grant(name: str, role: str, *users: str) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "User", "name": user} for user in users]
    return object_("ClusterRoleBinding", name, api=f"{RBAC}/v1", roleRef=reference, subjects=subjects)


def role(
    name: str, namespace: str, user: str, *rules: tuple[str, list[str], list[str], list[str]]
) -> list[dict[str, Any]]:
    """A Role and its RoleBinding to a user; each rule is group, resources, verbs, and names (empty: all)."""
    written = [
        {"apiGroups": [group], "resources": resources, "verbs": verbs} | ({"resourceNames": only} if only else {})
        for group, resources, verbs, only in rules
    ]
    return [
        object_("Role", name, namespace, api=f"{RBAC}/v1", rules=written),
        binding(name, namespace, "Role", name, {"kind": "User", "name": user}),
    ]


def reads(resource: str, *names: str) -> tuple[str, list[str], list[str], list[str]]:
    """A rule for `role`: read objects of those names (none: all)."""
    return ("", [resource], ["get"], list(names))


def binding(name: str, namespace: str, kind: str, role: str, subject: dict[str, str]) -> dict[str, Any]:
    """A RoleBinding."""
    reference = {"apiGroup": RBAC, "kind": kind, "name": role}
    return object_("RoleBinding", name, namespace, api=f"{RBAC}/v1", roleRef=reference, subjects=[subject])


def wait_for_policies(cluster: Any) -> None:
    """Wait until each policy is in force, and the Lease known."""
    operator, alice = cluster.acting_as(OPERATOR), cluster.acting_as("alice")
    cluster.apply(*role("few-rights", "demo", "bob", JOBS, reads("secrets", "s3-credentials")))
    bob = cluster.acting_as("bob")
    cluster.until(lambda: operator.binds("foreign"), "boathouse-account:")
    cluster.until(lambda: operator.creates(object_("ConfigMap", "other", "demo")), "boathouse-account:")
    cluster.until(lambda: alice.creates(pod(schedulerName="boathouse", nodeName="node-0")), "spec.nodeName")
    cluster.until(lambda: operator.creates(task_pod("unguarded", hostPID=True)), "boathouse-account-pods")
    cluster.until(lambda: alice.creates(mrjob(name="new", queue="none")), "boathouse-guard-jobs")
    cluster.until(lambda: bob.creates(mrjob(name="new", envFrom=[{"secretRef": {"name": "a"}}])), "the Secret a")
    cluster.until(lambda: bob.creates(mrjob(name="new", envFrom=[{"configMapRef": {"name": "a"}}])), "the ConfigMap a")
    cluster.until(lambda: bob.creates(mrjob(name="new", serviceAccountName="a")), "spec.serviceAccountName: only")
    cluster.until(lambda: operator.patches("mrjob/wc", {"spec": {"suspend": True}}), "boathouse-account:")
    cluster.until(lambda: operator.creates(task_pod(epoch=EPOCH - 1)), "boathouse-fence")
    cluster.until(lambda: operator.creates(task_pod()), "admitted")
