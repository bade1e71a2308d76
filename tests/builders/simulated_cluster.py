"""A simulated cluster with its pods and agent, and an operator that may die between any two writes."""

import dataclasses

from msgspec import structs

from boathouse.resources.mrcluster.names import Reason, Role
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.mrcluster.files import Rendered
from boathouse.services.mrcluster.model import MASTER, ClusterState, from_status, number_of, role_of, to_status
from boathouse.services.mrcluster.planning import planner, sizing
from boathouse.services.mrcluster.planning.observation import Marks, NodePod, Observation, Plan, Target
from boathouse_task.cluster_contract import AgentReport, Version
from tests.builders import mrclusters
from tests.builders.frame import condition_of
from tests.builders.simulated_hadoop import Agent, Hdfs, Yarn

BEGIN_S = 1_000_000.0


class ProcessEndedError(Exception):
    """The operator's process ended."""


class SimulatedCluster:
    """One cluster. `reconcile` is the operator; all else is Kubernetes, Hadoop and time.

    Attributes:
        status: As the API server has it.
        revision: Of the status.
        pods: By host; objects that exist.
        submitted: Hosts that the scheduler may create pods of.
        lost_claims: Hosts whose claims no pod can mount.
        used: All names that pods of transient nodes ever had, by UID.
        formats: The IDs in the status when the NameNode's volume was formatted.
    """

    def __init__(self, **spec) -> None:
        self.spec = {"resizing": {"policy": "GSP"}, "core": {"count": 3}, "transient": {"maximum": 8}} | spec
        self.now_s, self.digest, self.generation = BEGIN_S, "first", 1
        self.status: dict = {}
        self.revision, self.epoch, self.serial = 1, 1, 0
        self.pods: dict[str, NodePod] = {}
        self.formats_allowed: dict[str, bool] = {}
        self.formats: list[str] = []
        self.lost_claims: set[str] = set()
        self.used: dict[str, str] = {}
        self.hdfs, self.yarn = Hdfs(), Yarn()
        self.agent = Agent(self.hdfs, self.yarn)
        self.ordered = (Version(), frozenset[str]())
        self.deaths_in = 0
        self.forget()

    # The operator

    def forget(self) -> None:
        """A new process: it knows what the API server has."""
        self.marks, self.report, self.reported_s = Marks(), None, 0.0
        self.held: frozenset[str] = frozenset()
        self.target: Target | None = None
        self.submitted: set[str] = set()
        self.published = False
        self.events: list = []

    @property
    def model(self):
        return mrclusters.cluster(metadata={"generation": self.generation}, status=self.status, **self.spec)

    @property
    def state(self) -> ClusterState:
        return from_status(self.status)

    def observation(self) -> Observation:
        return Observation(
            cluster=self.model,
            state=self.state,
            now_s=self.now_s,
            nodes=list(self.pods.values()),
            report=self.report,
            report_age_s=None if self.report is None else self.now_s - self.reported_s,
            is_ordered=self.held == {node.host for node in self.state.leaving},
            taken=frozenset(self.submitted - self.pods.keys()),
            target=self.target,
            lost_claims=self.lost_claims,
            rendered=Rendered(files={}, digest=self.digest, overridden=()),
            marks=self.marks,
        )

    def reconcile(self, deaths_in: int = 0) -> Plan | None:
        """Reconcile once; the process dies at the given write, if it gets that far."""
        self.deaths_in = deaths_in
        try:
            return self._reconcile()
        except ProcessEndedError:
            self.forget()
            self.epoch += 1
            return None

    def _reconcile(self) -> Plan:
        plan = planner.plan(self.observation())
        self.marks = plan.marks
        self.submitted &= set(plan.submit) | self.pods.keys()
        self._write()
        status = to_status(plan.state)
        if status != self.status:
            self.status, self.revision = status, self.revision + 1
        if self.target is plan.consumed:
            self.target = None
        for pod in plan.delete:
            self._write()
            self.delete(pod.host)
        self._write()
        leaving = frozenset(node.host for node in self.state.leaving)
        self.ordered, self.published = (Version(self.epoch, self.revision), leaving), True
        self._write()
        self.submitted = set(plan.submit)
        self.events += plan.events
        return plan

    def _write(self) -> None:
        self.deaths_in -= 1
        if self.deaths_in == 0:
            raise ProcessEndedError

    # Kubernetes

    def create(self, host: str) -> None:
        """The scheduler creates a pod that was submitted."""
        if host not in self.submitted or host in self.pods or host in self.lost_claims:
            return
        self.submitted.discard(host)
        self.serial += 1
        role = role_of(host)
        assert role is not None
        uid = f"uid-{self.serial}"
        if role is Role.TRANSIENT:
            assert host not in self.used, f"{host} was used before"
            self.used[host] = uid
        self.formats_allowed[uid] = not self.state.cluster_id
        self.pods[host] = NodePod(
            name=f"etl-{host}",
            uid=uid,
            host=host,
            role=role,
            number=number_of(host),
            node=f"node-{self.serial}",
            settings=self.digest,
            life=PodLife.STARTING,
        )

    def change(self, host: str, **fields) -> None:
        self.pods[host] = dataclasses.replace(self.pods[host], **fields)

    def start(self, host: str) -> None:
        """The containers of a pod become ready; the NameNode formats its volume if it may."""
        pod = self.pods[host]
        if pod.is_over or pod.is_ready:
            return
        if pod.role is Role.MASTER:
            if not self.hdfs.cluster_id:
                if not self.formats_allowed[pod.uid]:
                    problem = Problem(reason=Reason.NAME_VOLUME_EMPTY, message="no VERSION")
                    self.change(host, life=PodLife.RUNNING, problem=problem)
                    return
                self.formats.append(self.state.cluster_id)
                self.hdfs.cluster_id = "CID-1"
            self.hdfs.started_s = self.now_s
        self.change(host, life=PodLife.RUNNING, is_ready=True)
        if pod.role is Role.CORE:
            self.hdfs.disks.setdefault(host, set())

    def delete(self, host: str) -> None:
        if host in self.pods and self.pods[host].deleting_since_s is None:
            self.change(host, deleting_since_s=self.now_s, is_ready=False)
            self.yarn.containers.pop(host, None)

    def vanish(self, host: str) -> None:
        """Remove the object of a pod that is being deleted."""
        if host in self.pods and self.pods[host].deleting_since_s is not None:
            del self.pods[host]

    def lose_node(self, host: str) -> None:
        """Remove the Kubernetes node of a pod; the pod follows later."""
        self.change(host, node_gone=True, is_ready=False)
        self.yarn.containers.pop(host, None)

    @property
    def up(self) -> set[str]:
        """Hosts whose DataNode or NodeManager runs."""
        return {host for host, pod in self.pods.items() if pod.is_ready and not pod.is_over and host != MASTER}

    # The agent

    def exchange(self, *, arrives: bool = True, answered: bool = True) -> AgentReport | None:
        """The agent reports and carries out the answer; report or answer may get lost."""
        master = self.pods.get(MASTER)
        if master is None or master.is_over or not master.is_ready:
            return None
        report = self.agent.report(self.up, self.now_s)
        if not self.spec.get("compute", True):
            report = structs.replace(report, yarn=None)
        if arrives:
            self.report, self.reported_s, self.held = report, self.now_s, self.agent.leaving
        if arrives and answered and self.published:
            self.agent.take(*self.ordered)
        return report

    # Time

    def settle(self, rounds: int = 60, *, write: bool = False) -> None:
        """Let time pass without faults."""
        for _ in range(rounds):
            self.turn()
            if write:
                self.hdfs.write(self.up & self.hdfs.disks.keys())

    def pass_quiet_time(self) -> None:
        """Let 200 s pass in few turns, in which nodes start and grace periods end."""
        self.settle(4)
        self.turn(150.0)
        self.turn()

    def turn(self, seconds: float = 10.0) -> None:
        self.now_s += seconds
        self.exchange()
        self.agent.refresh()
        self.hdfs.copy({host for host in self.up if host.startswith("c")})
        self.yarn.run(self.up)
        for host in list(self.pods):
            if self.pods[host].node_gone:
                self.delete(host)
            self.vanish(host)
        self.exchange()
        self.reconcile()
        for host in sorted(self.submitted):
            self.create(host)
        for host in list(self.pods):
            self.start(host)

    def decide(self, nodes: int, *, stores: bool = False) -> None:
        """The policy decides how many nodes the cluster keeps, if it may."""
        plan = planner.plan(self.observation())
        if sizing.for_policy(self.observation(), Plan(state=plan.state, marks=plan.marks)) is not None:
            self.target = Target(nodes=nodes, stores=stores, reason="by the test")

    def condition(self, condition_type: str) -> tuple[str, str] | None:
        """Return the status and the reason of a condition."""
        return condition_of(self.state, condition_type)

    @property
    def event_reasons(self) -> set[str]:
        return {event.reason for event in self.events}

    def hosts(self, role: Role) -> list[str]:
        return sorted(host for host, pod in self.pods.items() if pod.role is role and not pod.is_over)


def ready_cluster(**spec) -> SimulatedCluster:
    """Return a cluster that has become ready."""
    cluster = SimulatedCluster(**spec)
    cluster.pass_quiet_time()
    assert cluster.state.phase == "Ready", cluster.state.conditions
    return cluster
