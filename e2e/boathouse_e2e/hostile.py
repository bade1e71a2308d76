"""A tenant that attacks, a tenant that must not notice, and what the API server recorded of both.

The attacker is a service account with the built-in role `edit` in its own namespace. The image of its task pods is its
own too: `HostileKubelets` lets them end with any termination message.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime as dt
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from typing_extensions import override

from boathouse.cluster import catalogue, client, config, errors
from boathouse.resources import names
from boathouse.services.mrcluster.model import MRCLUSTERS
from boathouse.services.mrjob.model import MRJOBS
from boathouse_e2e import faults, install, kubelets, lab, played_pods
from boathouse_e2e.errors import ClusterError
from boathouse_task.contract import TaskType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from boathouse.cluster.wire import Manifest
    from boathouse_task import contract

Json = dict[str, Any]

ATTACKER, VICTIM = "attacker", "victim"
ACCOUNT = "editor"
DRIVERS = "boathouse-spark"
"""The account of drivers in the attacker's namespace."""
_AT_ONCE = 24
_CLEAR_S = 600  # ten thousand pods, on a busy machine

REPLICA_SETS = catalogue.Resource(group="apps", plural="replicasets", kind="ReplicaSet", view=dict[str, Any])
JOBS = catalogue.Resource(group="batch", plural="jobs", kind="Job", view=dict[str, Any])
ACCOUNTS = catalogue.Resource(plural="serviceaccounts", kind="ServiceAccount", view=dict[str, Any])
QUOTAS = catalogue.Resource(plural="resourcequotas", kind="ResourceQuota", view=dict[str, Any])
SPARKAPPS = catalogue.Resource(
    group=names.GROUP, version=names.VERSION, plural="sparkapps", kind="SparkApp", view=dict[str, Any]
)
_KINDS = {
    resource.kind: resource
    for resource in (
        MRJOBS,
        SPARKAPPS,
        MRCLUSTERS,
        REPLICA_SETS,
        JOBS,
        catalogue.PODS.untyped(),
        catalogue.CONFIG_MAPS.untyped(),
        QUOTAS,
        ACCOUNTS,
        catalogue.PERSISTENT_VOLUME_CLAIMS.untyped(),
        catalogue.SERVICES.untyped(),
        catalogue.NETWORK_POLICIES.untyped(),
    )
}
"""What a tenant makes, owners first: that is the order in which it is cleared away."""


# What the API server recorded


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What the operator did during an attack.

    Attributes:
        writes: Writes that the API server accepted, Leases and events aside.
        events: Events that it created or patched.
        refused_creates: Creates of pods that the API server refused.
        token_reviews: TokenReviews.
        lease_gap_s: The longest time between two renewals of the Lease.
    """

    writes: int
    events: int
    refused_creates: int
    token_reviews: int
    lease_gap_s: float


_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_FIRST_ERROR = 300


def counts(audit: Iterable[Json]) -> Counts:
    """Count what the operator's account did, by the audit log."""
    own = [event for event in audit if event["user"]["username"] == lab.ACCOUNT and event["verb"] in _WRITES]
    reviews = [event for event in own if _resource(event) == "tokenreviews"]
    taken = [event for event in own if _code(event) < _FIRST_ERROR]
    plain = [event for event in taken if _resource(event) not in ("leases", "events", "tokenreviews")]
    renewals = [_moment_s(event) for event in taken if _resource(event) == "leases"]
    return Counts(
        writes=len(plain),
        events=sum(_resource(event) == "events" for event in taken),
        refused_creates=len(refused_creates_s(own)),
        token_reviews=len(reviews),
        lease_gap_s=max((later - earlier for earlier, later in itertools.pairwise(renewals)), default=0.0),
    )


def refused_creates_s(audit: Iterable[Json]) -> list[float]:
    """Return when creates of pods by the operator were refused, in epoch seconds."""
    return [
        _moment_s(event)
        for event in audit
        if event["user"]["username"] == lab.ACCOUNT
        and event["verb"] == "create"
        and _resource(event) == "pods"
        and not event["objectRef"].get("subresource")
        and _code(event) >= _FIRST_ERROR
    ]


def placement_s(audit: Iterable[Json], job: str) -> float:
    """Return a job's scheduling delay: from its creation to its setup's, and from its setup's end to its last map's.

    Raises:
        ValueError: The log does not hold the whole life of the job's maps.
    """
    made_s = ended_s = setup_s = 0.0
    maps_s: list[float] = []
    for event in audit:
        reference = event.get("objectRef") or {}
        if reference.get("namespace") != VICTIM or _code(event) >= _FIRST_ERROR:
            continue
        name = _name(event)
        if event["verb"] == "create" and _resource(event) == "mrjobs" and name == job:
            made_s = _moment_s(event)
        elif event["verb"] == "create" and _resource(event) == "pods" and name.startswith(f"{job}-"):
            if "-setup-" in name:
                setup_s = _moment_s(event)
            elif re.search(r"-m-\d+-a", name):
                maps_s.append(_moment_s(event))
        elif reference.get("subresource") == "status" and "-setup-" in name and _ended(event):
            ended_s = _moment_s(event)
    if not (made_s and setup_s and ended_s and maps_s):
        raise ValueError(f"the audit log does not show how the tasks of {job} were placed")
    return setup_s - made_s + max(maps_s) - ended_s


def _ended(event: Json) -> bool:
    status = (event.get("requestObject") or {}).get("status") or {}
    return event["user"]["username"] != lab.ACCOUNT and status.get("phase") == "Succeeded"


def _name(event: Json) -> str:
    body = (event.get("requestObject") or {}).get("metadata", {}).get("name", "")
    return str(event["objectRef"].get("name") or body)


def _resource(event: Json) -> str:
    return str((event.get("objectRef") or {}).get("resource", ""))


def _code(event: Json) -> int:
    return int((event.get("responseStatus") or {}).get("code", 0))


def _moment_s(event: Json) -> float:
    return dt.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()


def peak_memory_bytes(pid: int) -> int:
    """Return the most resident memory that a process has had (VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return int(found.group(1)) * 1024


# Who attacks


class Tenant:
    """A service account in a namespace, by its own token."""

    def __init__(self, api: client.ApiClient, namespace: str) -> None:
        self.api, self.namespace = api, namespace

    async def create(self, manifest: Json) -> Json:
        """Create an object in the tenant's namespace; a busy API server is asked again.

        Raises:
            errors.ApiError: The API server refuses it.
        """
        resource = _KINDS[manifest["kind"]]
        while True:
            try:
                return await self.api.create(resource, manifest, self.namespace)
            except errors.AlreadyExists:
                return await self.api.get(resource, manifest["metadata"]["name"], self.namespace)
            except played_pods.PASSING:
                await asyncio.sleep(0.2)

    async def create_all(self, manifests: Iterable[Json]) -> int:
        """Create many objects, some at a time; returns how many."""
        left, made = iter(manifests), 0

        async def work() -> None:
            nonlocal made
            for manifest in left:
                await self.create(manifest)
                made += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(work())
        return made

    async def delete_pods(self, labels: str = "") -> int:
        """Delete the namespace's pods at once; returns how many there were."""
        pods = (await self.api.list(catalogue.PODS, self.namespace, labels=labels)).items
        for pod in pods:
            with contextlib.suppress(errors.NotFound, *played_pods.PASSING):
                await self.api.delete(catalogue.PODS, pod.metadata.name, self.namespace, grace_period_s=0)
        return len(pods)


class Driver(Tenant):
    """The pod of a Spark driver, by its token."""

    def __init__(self, api: client.ApiClient, namespace: str, pod: str, uid: str) -> None:
        super().__init__(api, namespace)
        self.pod, self.uid = pod, uid

    @property
    def owner(self) -> Json:
        """Return the ownerReference that Spark gives executors."""
        return {"apiVersion": "v1", "kind": "Pod", "name": self.pod, "uid": self.uid, "controller": True}

    def executor(self, number: int, *, requests: Json | None = None, metadata: Json | None = None, **spec: Any) -> Json:
        """Return an executor that the API server accepts, with fields of its metadata and spec replaced."""
        added = dict(metadata or {})
        labels = {"app.kubernetes.io/name": "spark", "spark-role": "executor", **added.pop("labels", {})}
        meta = {"ownerReferences": [self.owner], "labels": labels, **added}
        manifest = pod(
            f"{self.pod}-exec-{number}", requests=requests, metadata=meta, automountServiceAccountToken=False
        )
        manifest["spec"]["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        for container in manifest["spec"]["containers"]:
            container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        return manifest | {"spec": {**manifest["spec"], **spec}}


class HostileKubelets(kubelets.Kubelets):
    """Kubelets of the attacker's pods: tasks end with the message that the attacker's image writes.

    Attributes:
        message: The termination message of a task and its exit code; None lets the task do what an honest one does.
    """

    message: Callable[[contract.TaskSpec], tuple[str, int] | None] | None = None

    def share_storage(self, others: kubelets.Kubelets) -> None:
        """Keep the marks of outputs where the tasks of other kubelets keep theirs."""
        self.owners, self.homes = others.owners, others.homes

    @override
    async def _step(self, pod: kubelets.Pod, order: contract.TaskSpec) -> None:
        said = self.message(order) if self.message is not None else None
        if said is None:
            await super()._step(pod, order)
        else:
            await self.end(pod, *said)

    @override
    async def _set_up(self, pod: kubelets.Pod, order: contract.TaskSpec, job: kubelets.Ledger) -> None:
        """Ignore a missing pod, which the attacker may delete while a token is requested for it."""
        try:
            await super()._set_up(pod, order, job)
        except ClusterError as error:
            if "not found" not in str(error):
                raise

    @override
    def _is_ready(self, order: contract.TaskSpec) -> bool:
        """Tasks of the attacker wait for nothing but an order of the test to go on."""
        job = self.jobs.get(order.job_uid)
        return job is not None and not (job.held and order.task_type is TaskType.MAP)

    @override
    def _may_end(self, order: contract.TaskSpec, job: kubelets.Ledger) -> bool:
        """Return True: tasks of the attacker may always end, whatever they committed."""
        return True


def pod(name: str, *, requests: Json | None = None, metadata: Json | None = None, **spec: Any) -> Json:
    """Return a pod for Boathouse's scheduler, unless `spec` names another."""
    container = {"name": "c", "image": "none", "resources": {"requests": requests or {"cpu": "10m", "memory": "16Mi"}}}
    whole = {"schedulerName": names.SCHEDULER_NAME, "containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **(metadata or {})}, "spec": whole | spec}


def job(name: str, *, maps: int = 1, reduces: int = 0, metadata: Json | None = None, **spec: Any) -> Json:
    """Return an MRJob in the attacker's namespace; `spec` adds to what a plain job has."""
    manifest = kubelets.Shape(maps=maps, reduces=reduces, cpu="50m").manifest(name, ATTACKER)
    manifest["metadata"] |= metadata or {}
    manifest["spec"] |= spec
    return manifest


def application(name: str, **spec: Any) -> Json:
    """A SparkApp in the attacker's namespace that starts with its driver alone; `spec` adds to its fields."""
    whole = {
        "type": "Python",
        "mainApplicationFile": "local:///opt/app/main.py",
        "image": "none",
        "driver": {"coreRequest": "100m", "memory": "512m"},
        "executor": {"instances": 0},
    }
    metadata = {"name": name, "namespace": ATTACKER}
    return {"apiVersion": names.API_VERSION, "kind": SPARKAPPS.kind, "metadata": metadata, "spec": whole | spec}


# The two namespaces


def prepare(place: lab.Lab) -> None:
    """Make both namespaces, the attacker's account with the role `edit`, and its drivers' account."""
    spaces = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in (ATTACKER, VICTIM))
    place.cluster.apply(*spaces)
    place.cluster.apply(*_account(ACCOUNT, "edit"), *_account(DRIVERS, "boathouse-spark-driver"))


def _account(name: str, role: str) -> tuple[Json, Json]:
    """Return an account of the attacker's, and its binding to a ClusterRole."""
    metadata = {"name": name, "namespace": ATTACKER}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}, binding


@contextlib.asynccontextmanager
async def driver(place: lab.Lab, pod: str, uid: str) -> AsyncIterator[Driver]:
    """A driver of the attacker's that acts by the token that a kubelet would mount, until the block ends."""
    async with tenant(place, DRIVERS, pod=pod) as one:
        yield Driver(one.api, one.namespace, pod, uid)


@contextlib.asynccontextmanager
async def tenant(
    place: lab.Lab, account: str = ACCOUNT, namespace: str = ATTACKER, pod: str = ""
) -> AsyncIterator[Tenant]:
    """A service account that acts by its own token, or by one that is bound to a pod of its, until the block ends."""
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod}") if pod else ()
    token = place.cluster.run("create", "token", account, "-n", namespace, "--duration=12h", *bound).strip()
    kubeconfig = place.folder / f"{namespace}.{pod or account}.kubeconfig"
    content = yaml.safe_load(place.cluster.kubeconfig.read_text())
    content["users"] = [{"name": user["name"], "user": {"token": token}} for user in content["users"]]
    kubeconfig.touch(mode=0o600)
    kubeconfig.write_text(yaml.safe_dump(content))
    async with client.ApiClient(config.from_kubeconfig(kubeconfig), user_agent="attacker") as api:
        yield Tenant(api, namespace)


async def clear(admin: client.ApiClient, namespace: str) -> None:
    """Delete what tenants made in a namespace, and wait until it is gone."""
    async with asyncio.timeout(_CLEAR_S):
        for resource in _KINDS.values():
            is_held = False
            while names_left := await _names(admin, resource, namespace):
                await _delete_all(admin, resource, namespace, names_left, is_held=is_held)
                is_held = True


async def _names(admin: client.ApiClient, resource: catalogue.Resource[Manifest], namespace: str) -> list[str]:
    try:
        found = (await admin.list(resource, namespace)).items
    except errors.NotFound:  # an earlier version of the chart has no such kind
        return []
    kept = ("kube-root-ca.crt", names.PROGRESS_CA_CONFIG_MAP, "default", ACCOUNT, DRIVERS)
    return [item["metadata"]["name"] for item in found if item["metadata"]["name"] not in kept]


async def _delete_all(
    admin: client.ApiClient, resource: catalogue.Resource[Any], namespace: str, found: list[str], *, is_held: bool
) -> None:
    """Delete objects, and also the finalizers of those that a deletion did not remove: nobody serves them."""
    left: Iterator[str] = iter(found)

    async def work() -> None:
        for name in left:
            with contextlib.suppress(errors.NotFound, errors.Conflict, *played_pods.PASSING):
                await admin.delete(resource, name, namespace, grace_period_s=0, propagation="Background")
                if is_held:
                    await admin.patch(resource, name, {"metadata": {"finalizers": None}}, namespace)

    async with asyncio.TaskGroup() as group:
        for _ in range(_AT_ONCE):
            group.create_task(work())


async def epoch(admin: client.ApiClient) -> int:
    """Return the Lease's epoch; 0 before anybody has led."""
    with contextlib.suppress(errors.NotFound):
        return (await admin.get(catalogue.LEASES, faults.LEASE, install.NAMESPACE)).spec.lease_transitions or 0
    return 0
