"""Hadoop clusters on the fake API server: a small operator submits their nodes and reports their load."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING
from unittest import mock

from boathouse.resources.config import OperatorConfig
from boathouse.resources.mrcluster.names import Role
from boathouse.scheduling import scheduler
from boathouse.services.frame.kind import ObjectUid, Refusal
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrcluster import files, placement
from boathouse.services.mrcluster.model import MASTER, from_resource, host_of, role_of
from boathouse.services.mrcluster.placement import NodePods
from boathouse.services.mrcluster.planning.observation import NodePod, Target
from boathouse.services.mrcluster.scaling import Scaling
from boathouse_policies import framework, koala, model, profiles
from tests.builders import manifests, mrclusters
from tests.builders.operators import schedulers
from tests.wire import fake_api

if TYPE_CHECKING:
    from tests.builders.operators.schedulers import RunningScheduler
    from tests.wire import fake_api

ONE = {"cpu": "1", "memory": "2Gi"}
"""The size of every pod, and of a node of Kubernetes with room for one."""
PERIOD_S = 30.0
SLOTS = 2
"""Of each node of a cluster."""
_POD = {"volume": {"emptyDir": True}, "resources": ONE}


class Witness(framework.Observer):
    """Keeps the refusals that observers are notified of."""

    def __init__(self) -> None:
        self.refused: list[tuple[str, str]] = []

    def observe(self, event: model.Event) -> None:
        if isinstance(event, model.Refused) and isinstance(event.decision, model.Scale):
            self.refused.append((event.decision.job, event.reason))


class AdvancedClock:
    """A scheduler's clock, which a test may advance."""

    def __init__(self) -> None:
        self.skipped_s = 0.0
        self._steady = scheduler.steady_clock()

    def __call__(self) -> float:
        return self._steady() + self.skipped_s


class Cluster:
    """A cluster whose nodes run tasks as soon as they are placed.

    Attributes:
        hosts: Those that shall have a pod.
        tasks: That run, or could run at once.
        targets: What its policy decided.
    """

    def __init__(self, name: str, *, core: int, namespace: str, most: int, config: OperatorConfig, **spec) -> None:
        roles = {"master": _POD, "core": {**_POD, "count": core}, "transient": {"maximum": most, "resources": ONE}}
        body = mrclusters.mrcluster(
            name=name,
            uid=f"uid-{namespace}-{name}",
            metadata={"namespace": namespace},
            dataPolicy="Delete",
            **roles,
            **spec,
        )
        found = from_resource(body, config.model_copy(update={"hadoop": mrclusters.DEFAULTS}))
        assert not isinstance(found, Refusal), found
        self.pods = NodePods(cluster=found, rendered=files.render(found), may_format=False)
        self.uid, self.core, self.most = ObjectUid(found.uid), core, most
        self.hosts = [MASTER, *(host_of(Role.CORE, number) for number in range(core))]
        self.next, self.tasks = 0, 0
        self.targets: list[Target] = []

    @property
    def transient(self) -> list[str]:
        return [host for host in self.hosts if role_of(host) is Role.TRANSIENT]

    def key(self, host: str) -> str:
        return str(self.pods.task(host))

    def resize(self, nodes: int) -> None:
        """Have so many nodes, the master not counted."""
        while nodes > self.core + len(self.transient):
            self.hosts.append(host_of(Role.TRANSIENT, self.next))
            self.next += 1
        self.hosts = self.hosts[: 1 + nodes]


class Operator:
    """Does for clusters what their kind does, without Hadoop."""

    def __init__(
        self,
        world: RunningScheduler,
        profile: framework.Profile,
        witness: Witness,
        config: OperatorConfig,
        clock: AdvancedClock,
    ) -> None:
        self._config, self._clock = config, clock
        self.world, self.clusters, self.refused = world, dict[ObjectUid, Cluster](), witness.refused
        self.scaling = Scaling(profile, profile.observers, world.scheduler.state.clock, lambda _: None)
        world.scheduler.adjuster.scaler = self.scaling.take

    def add(self, name: str = "etl", *, core: int = 1, namespace: str = "demo", most: int = 8, **spec) -> Cluster:
        made = Cluster(name, core=core, namespace=namespace, most=most, config=self._config, **spec)
        self.clusters[made.uid] = made
        return made

    def turn(self, later_s: float = 0.0) -> bool:
        """Reconcile all clusters once, let their masters report, and let time pass. Returns True, for conditions."""
        for cluster in self.clusters.values():
            self._reconcile(cluster)
            self._report(cluster)
        self._clock.skipped_s += later_s
        return True

    def placed(self, cluster: Cluster, role: Role | None = None) -> dict[str, str]:
        """Return the nodes of a cluster's pods by host."""
        placed = self.world.placed()
        hosts = (host for host in cluster.hosts if role in {None, role_of(host)})
        return {host: placed[key] for host in hosts if (key := cluster.key(host)) in placed}

    def publish(self, job: model.Job, classes_: list[model.TaskClass]) -> None:
        """Let the policies know of another job."""
        tasks = {one.id: one.gang_min for one in classes_}
        event = model.Submitted(now_s=self.world.now_s, job=job, classes=tuple(classes_), tasks=tasks)
        for observer in self.world.scheduler.state.profile.observers:
            observer.observe(event)

    def _reconcile(self, cluster: Cluster) -> None:
        target = self.scaling.target(cluster.uid)
        if target is not None:
            cluster.targets.append(target)
            cluster.resize(target.nodes)
        self.scaling.use(cluster.uid, target)
        needed = {cluster.key(host) for host in cluster.hosts}
        for key, pod in list(self.world.api.objects("pods").items()):
            if pod["metadata"]["labels"].get("boathouse.dev/job-uid") == cluster.uid and key not in needed:
                self.world.api.remove("pods", key)
        pods = self.world.api.objects("pods")
        wanted = [host for host in cluster.hosts if cluster.key(host) not in pods]
        nodes = placement.of(
            cluster.pods, wanted, [_node_pod(pods[cluster.key(host)]) for host in self._existing(cluster)]
        )
        self.scaling.submit(cluster.uid, nodes.submission(koala.Config(gsp_every_s=PERIOD_S)))
        placement.submit(self.world.scheduler, nodes)

    def _existing(self, cluster: Cluster) -> list[str]:
        pods = self.world.api.objects("pods")
        return [host for host in cluster.hosts if cluster.key(host) in pods]

    def _report(self, cluster: Cluster) -> None:
        placed = self.placed(cluster)
        node = placed.pop(MASTER, None)
        transient = sum(role_of(host) is Role.TRANSIENT for host in placed)
        slots, pending = SLOTS * len(placed), len(cluster.hosts) - 1 - len(placed)
        load = koala.Cluster(
            name=model.JobId(cluster.uid),
            running_tasks=min(cluster.tasks, slots),
            runnable_tasks=max(0, cluster.tasks - slots),
            slots=slots,
            node_slots=SLOTS,
            core_nodes=len(placed) - transient,
            transient_nodes=transient,
            first_core_nodes=cluster.core,
            pending_nodes=pending,
            most_nodes=len(cluster.hosts) - 1 if pending else cluster.core + cluster.most,
            weight=cluster.pods.cluster.spec.weight,
        )
        self.scaling.report(cluster.uid, load, master=model.TaskId(cluster.key(MASTER)), node=node)


def _node_pod(manifest) -> NodePod:
    metadata, node = manifest["metadata"], manifest["spec"].get("nodeName")
    host = metadata["labels"]["boathouse.dev/host"]
    role = role_of(host)
    assert role is not None
    life = PodLife.RUNNING if node else PodLife.UNPLACED
    return NodePod(name=metadata["name"], uid=metadata["uid"], host=host, role=role, node=node, life=life)


def add_nodes(api: fake_api.FakeApi, count: int, rooms: int = 1) -> None:
    """Add nodes of Kubernetes with room for so many pods each."""
    for i in range(count):
        api.add(manifests.node(f"n{i}", cpu=str(rooms), memory=f"{2 * rooms}Gi"))


@contextlib.asynccontextmanager
async def scaling(
    api: fake_api.FakeApi, *, profile: str = "boathouse", config: OperatorConfig | None = None, **options
):
    """Run a scheduler whose profile resizes clusters; yield their operator."""
    switches = profiles.Switches(scale=True)
    built, witness = profiles.build(profile, switches=switches), Witness()
    observed = dataclasses.replace(built, observers=(*built.observers, witness))
    config, clock = config or OperatorConfig(), AdvancedClock()
    running = schedulers.scheduling(api, profile=observed, config=config, switches=switches, **options)
    with mock.patch.object(scheduler, "steady_clock", return_value=clock):
        async with running as w:
            yield Operator(w, observed, witness, config, clock)
