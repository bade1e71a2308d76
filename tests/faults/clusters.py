"""Hadoop clusters under harm: on claims of volumes that exist, with a model of Hadoop in their pods."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from typing import TYPE_CHECKING, Any

from boathouse.cluster import catalogue, client, config, errors, views
from boathouse.resources import names
from boathouse.resources.mrcluster.names import LABEL_HOST
from boathouse.services.mrcluster.model import MRCLUSTERS
from boathouse.services.mrjob.model import MRJOBS
from boathouse_e2e import faults, invariants, kubelets, lab
from boathouse_e2e.errors import ClusterError
from boathouse_e2e.hadoop_clients import HadoopClients, Leave
from boathouse_e2e.hadoop_pods import HadoopPods
from tests.builders import clusters
from tests.faults.conftest import Trial

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from boathouse_e2e.hadoop_master import Hadoop
    from boathouse_e2e.hadoop_model import Application
    from boathouse_task.cluster_contract import Version

CLASS = "trials"
_VOLUMES = 5
_NUMBERS = itertools.count(1)
_VOLUME = {"size": "256Mi", "storageClassName": CLASS}
_OWNED = (
    catalogue.SERVICES,
    catalogue.CONFIG_MAPS,
    catalogue.NETWORK_POLICIES,
    catalogue.PERSISTENT_VOLUME_CLAIMS,
)


class ClusterTrial(Trial):
    """One cluster under harm, with jobs on it.

    Attributes:
        model: Hadoop in the pods of the namespace.
        clients: The clients of jobs.
        jobs: Names of the jobs.
        cluster_id: The first ID that the status had.
    """

    resource = MRCLUSTERS

    def __init__(
        self,
        place: lab.Lab,
        api: client.ApiClient,
        nodes: kubelets.Kubelets,
        recording: Any,
        model: HadoopPods,
        clients: HadoopClients,
    ) -> None:
        super().__init__(place, api, nodes, recording)
        self.model, self.clients = model, clients
        self.jobs: list[str] = []
        self.cluster_id = ""

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something work beside the trial; its end by an error fails the trial."""
        self._begin(work)

    # The cluster

    async def start_cluster(self, **spec: Any) -> None:
        """Apply a cluster, and make volumes for its claims."""
        name = f"etl-{next(_NUMBERS)}"
        for number in range(_VOLUMES):
            await self.api.create(views.VOLUMES.untyped(), _volume(f"{name}-{number}"))
        await self.create(_cluster(name, **spec))

    @property
    def hadoop(self) -> Hadoop:
        """The programs of the cluster, which has had pods."""
        return self.model.hadoops[self.uid]

    async def hosts(self) -> dict[str, dict[str, Any]]:
        """The cluster's pods by host."""
        labels = f"{names.LABEL_JOB_UID}={self.uid},{LABEL_HOST}"
        found = (await self.api.list(catalogue.PODS.untyped(), lab.NAMESPACE, labels=labels)).items
        return {pod["metadata"]["labels"][LABEL_HOST]: dict(pod) for pod in found}

    def has(self, *, core: int, transient: int) -> Callable[[], Any]:
        """Whether the cluster is ready with so many nodes, nothing leaves, and no other pods exist."""

        async def holds() -> bool:
            status, hosts = await self.status(), await self.hosts()
            self.cluster_id = self.cluster_id or status.get("clusterID", "")
            ready = {role: (status.get(role) or {}).get("ready", 0) for role in ("core", "transient")}
            return (
                status.get("phase") == "Ready"
                and ready == {"core": core, "transient": transient}
                and len(hosts) == 1 + core + transient
                and not status.get("leaving")
            )

        return holds

    async def is_rolled_out(self) -> bool:
        """Whether all nodes have the settings of the spec."""
        body = await self.api.get(MRCLUSTERS, self.name, lab.NAMESPACE)
        status = body.get("status") or {}
        done = any((one["type"], one["status"]) == ("RolledOut", "True") for one in status.get("conditions") or ())
        return done and status.get("observedGeneration") == body["metadata"]["generation"]

    async def policies(self) -> dict[str, Any]:
        """The specs of the cluster's NetworkPolicies by name."""
        label = f"{names.LABEL_JOB_UID}={self.uid}"
        found = (await self.api.list(catalogue.NETWORK_POLICIES, lab.NAMESPACE, labels=label)).items
        return {policy["metadata"]["name"]: policy["spec"] for policy in found}

    async def kill_pod(self, host: str) -> None:
        """Delete a host's pod at once."""
        pod = (await self.hosts())[host]["metadata"]["name"]
        await self.api.delete(catalogue.PODS, pod, lab.NAMESPACE, grace_period_s=0)

    def write_blocks(self, count: int) -> None:
        """Write blocks to the core nodes that the NameNode knows."""
        for _ in range(count):
            self.hadoop.hdfs.write(set(self.hadoop.hdfs.disks))

    def load(self, *tasks_s: float) -> Application:
        """Submit an application that is no job's; returns it."""
        yarn = self.hadoop.yarn
        name = yarn.submit(f"by-hand-{next(_NUMBERS)}-1", tasks_s, self.hadoop.now_s)
        return yarn.applications[name]

    def agent_version(self) -> Version:
        """The version of the orders that the agent holds."""
        return self.model.version(self.uid)

    # Jobs

    async def submit_job(self) -> str:
        """Apply a job on the cluster; returns its name."""
        name = f"words-{next(_NUMBERS)}"
        await self.api.create(MRJOBS, clusters.mrjob_on(self.name, name, lab.NAMESPACE, f"/out/{name}"), lab.NAMESPACE)
        self.jobs.append(name)
        return name

    async def job_status(self, name: str) -> dict[str, Any]:
        """The status of a job; empty when it is gone."""
        with contextlib.suppress(errors.NotFound):
            return (await self.api.get(MRJOBS, name, lab.NAMESPACE)).get("status") or {}
        return {}

    def job_is(self, name: str, *phases: str) -> Callable[[], Any]:
        """Whether a job is in one of these phases."""

        async def holds() -> bool:
            return (await self.job_status(name)).get("phase") in phases

        return holds

    async def patch_job(self, name: str, **spec: Any) -> None:
        """Change the spec of a job."""
        await self.api.patch(MRJOBS, name, {"spec": spec}, lab.NAMESPACE)

    async def delete_job(self, name: str) -> None:
        """Delete a job."""
        await self.api.delete(MRJOBS, name, lab.NAMESPACE)

    def job_gone(self, name: str) -> Callable[[], Any]:
        """Whether a job is deleted."""

        async def holds() -> bool:
            try:
                await self.api.get(MRJOBS, name, lab.NAMESPACE)
            except errors.NotFound:
                return True
            return False

        return holds

    def applications(self) -> list[Application]:
        """The applications of all jobs, in the order of their submission."""
        return list(self.clients.submitted.values())

    # The end

    async def judge_cluster(self, *, core: int, transient: int) -> None:
        """I1, I2, I4, I6, I11 and I15 to I19, and that the cluster became what its spec says."""
        await self.until(self.has(core=core, transient=transient), f"it has {core} core, {transient} transient nodes")
        status = await self.status()
        assert status["clusterID"] == self.cluster_id
        assert self.hadoop.formats == [self.cluster_id]
        assert self.hadoop.hdfs.missing(set(self.hadoop.hdfs.disks)) == []
        audit, changes = self.lab.new_audit_events(), self.recording.changes()
        assert self.violations(audit, status) == []
        assert invariants.hosts_used_twice(changes) == []
        assert self.model.violations == []
        await self.discard()
        await self.until(self.nothing_owned, "all that was made for the cluster is gone")

    @property
    def recording(self) -> faults.Recording:
        """All changes of pods."""
        return self._recording

    async def nothing_owned(self) -> bool:
        """Whether nothing has the cluster's label."""
        label = f"{names.LABEL_JOB_UID}={self.uid}"
        for resource in _OWNED:
            if (await self.api.list(resource.untyped(), lab.NAMESPACE, labels=label)).items:
                return False
        return await self.nothing_left()

    async def discard(self) -> None:
        """Delete the jobs and the cluster, if they are there."""
        for name in self.jobs:
            with contextlib.suppress(errors.NotFound):
                await self.api.delete(MRJOBS, name, lab.NAMESPACE)
        await super().discard()


def _cluster(name: str, **spec: Any) -> dict[str, Any]:
    """Return an MRCluster of two core nodes that fits on three small nodes, as do three more of its nodes."""
    fields = {"resizing": {"drainTimeoutSeconds": 60}, **spec}
    return clusters.mrcluster(name, lab.NAMESPACE, cpu="250m", volume=_VOLUME, **fields)


def _volume(name: str) -> dict[str, Any]:
    spec = {
        "capacity": {"storage": "256Mi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": CLASS,
        "hostPath": {"path": "/nowhere"},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    return {"metadata": {"name": name}, "spec": spec}


def _storage_class() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS},
        "provisioner": views.NO_PROVISIONER,
        "volumeBindingMode": "Immediate",
    }


class Tokens:
    """Tokens that are bound to pods, as kubelets request them."""

    def __init__(self, place: lab.Lab) -> None:
        self._lab = place

    async def of(self, pod: dict[str, Any]) -> str:
        """Return a token of a pod for the operator.

        Raises:
            errors.NotFound: The pod was deleted; another one may have its name.
        """
        try:
            return await asyncio.to_thread(self._create, pod)
        except ClusterError as error:
            if any(text in str(error).lower() for text in ("not found", "does not match the uid")):
                raise errors.NotFound(404, "NotFound", str(error)) from None
            raise

    def _create(self, pod: dict[str, Any]) -> str:
        metadata, account = pod["metadata"], pod["spec"].get("serviceAccountName", "default")
        bound = ("--bound-object-kind=Pod", f"--bound-object-name={metadata['name']}")
        return self._lab.cluster.run(
            *("create", "token", account, "-n", metadata["namespace"]),
            *(f"--audience={names.TOKEN_AUDIENCE}", *bound, f"--bound-object-uid={metadata['uid']}"),
        ).strip()


@contextlib.asynccontextmanager
async def trying(place: lab.Lab) -> AsyncIterator[ClusterTrial]:
    """A trial of clusters, until the block ends; what went wrong with the model is raised then."""
    place.new_audit_events()  # what another test did is judged there
    place.cluster.apply(_storage_class())
    with faults.recording(place.cluster) as recording:
        async with (
            client.ApiClient(config.from_kubeconfig(place.cluster.kubeconfig)) as api,
            kubelets.running(api, place) as nodes,
        ):
            tokens = Tokens(place)
            folder = place.folder / f"hadoop-{next(_NUMBERS)}"

            def ports() -> list[int]:
                return [one.port for one in nodes.operators]

            async def authorities() -> str:
                bundle = await api.get(catalogue.CONFIG_MAPS, names.PROGRESS_CA_CONFIG_MAP, lab.NAMESPACE)
                return str(bundle["data"][names.PROGRESS_CA_KEY])

            model = HadoopPods(api, folder / "masters", token_of=tokens.of, ports=ports, namespace=lab.NAMESPACE)
            leave = Leave(folder / "clients", token_of=tokens.of, authorities=authorities, ports=ports)
            clients = HadoopClients(api, lambda: model.hadoops, leave.ask, namespace=lab.NAMESPACE)
            one = ClusterTrial(place, api, nodes, recording, model, clients)
            one.begin(model.run())
            one.begin(clients.run())
            yield one
            if one.has_job:
                await one.discard()
