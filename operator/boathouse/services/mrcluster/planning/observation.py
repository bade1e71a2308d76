"""What the planner may know of a cluster, how nodes are read from their pods, and what the planner decides.

All of it are values, so that a decision can be repeated.
"""

import collections
import dataclasses
import enum
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from boathouse.cluster import wire
from boathouse.resources.mrcluster.names import ANNOTATION_SETTINGS, LABEL_HOST, EventReason, Reason, Role
from boathouse.resources.mrcluster.status import NodeCounts
from boathouse.resources.names import LABEL_TASK_TYPE
from boathouse.scheduling.pods import facts
from boathouse.scheduling.reasons import JobDiagnosis
from boathouse.services.frame import pod_life
from boathouse.services.frame.status_codec import printable
from boathouse.services.mrcluster import daemons
from boathouse.services.mrcluster.files import Rendered
from boathouse.services.mrcluster.model import Cluster, ClusterState, known_role, number_of, role_of
from boathouse.services.mrcluster.sizes import Sizes
from boathouse_policies import model
from boathouse_task.cluster_contract import AgentReport, DfsState, HdfsFigures, NodeFigures, YarnState

FRESH_S = 15.0
"""Age of a report on which a node may be removed: three periods of the agent."""
READY_S = 30.0
"""Age of a report up to which a cluster counts as ready."""
LATE_S = 60.0
"""Age of a report from which the master counts as not reporting."""
_REFUSALS = frozenset({Reason.NAME_VOLUME_EMPTY, Reason.FOREIGN_CLUSTER})
NO_SIZES = Sizes(core_mb=1024, transient_mb=1024, am_mb=384, map_mb=512)
_REFUSED: Final = 78
"""With what `start.sh` ends if the NameNode must not use its volume."""
_REFUSAL: Final = re.compile(
    rf"(?P<reason>{Reason.NAME_VOLUME_EMPTY}|{Reason.FOREIGN_CLUSTER}): (?P<message>.*)", re.DOTALL
)
_CRASHING: Final = "CrashLoopBackOff"
_MAX_LOG: Final = 400


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NodePod:
    """The pod of a host of a cluster, such as `c0`, which has the number 0, as the master does.

    `settings` is the digest of those that it was created with. After `deleting_since_s` it may linger on a node that
    does not respond. `problem` is why it does not start, or why the NameNode refused its volume.
    """

    name: str
    uid: str
    host: str
    role: Role
    number: int = 0
    node: str | None = None
    address: str = ""
    life: pod_life.PodLife = pod_life.PodLife.RUNNING
    is_ready: bool = False
    settings: str = ""
    deleting_since_s: float | None = None
    node_gone: bool = False
    problem: pod_life.Problem | None = None
    resources: model.Resources = dataclasses.field(default_factory=model.Resources)

    @property
    def is_over(self) -> bool:
        """Return whether it serves no more: it has ended, its node is gone, or its deletion was requested."""
        return not self.life.is_live or self.node_gone or self.deleting_since_s is not None


def node_pod(pod: facts.PodFacts) -> NodePod | None:
    """Return the node of a pod; None if the pod is not a node of a cluster."""
    labels = pod.metadata.labels
    host = labels.get(LABEL_HOST, "")
    role = role_of(host)
    if role is None or labels.get(LABEL_TASK_TYPE) != role:
        return None
    statuses = pod.status.container_statuses
    has_started = any(status.state.running or status.state.terminated for status in statuses)
    life = pod_life.life_by_phase(pod, has_started=has_started)
    return NodePod(
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        host=host,
        role=role,
        number=number_of(host),
        node=pod.node_name or None,
        address=pod.status.pod_ip,
        life=life,
        is_ready=life is pod_life.PodLife.RUNNING and all(status.ready for status in statuses),
        settings=pod.metadata.annotations.get(ANNOTATION_SETTINGS, ""),
        deleting_since_s=pod_life.deleting_since_s(pod),
        problem=_problem(pod) if life.is_live else None,
        resources=pod.resources,
    )


def _problem(pod: facts.PodFacts) -> pod_life.Problem | None:
    """Return why the NameNode does not use its volume, or the first reason why a container does not start."""
    problems = (pod_life.problem(status) or _crash(status) for status in pod.status.container_statuses)
    return _refusal(pod_life.container(pod, daemons.NAME_NODE.container)) or next(filter(None, problems), None)


def _crash(status: wire.ContainerStatus) -> pod_life.Problem | None:
    waiting, ended = status.state.waiting, status.last_state.terminated
    if waiting is None or waiting.reason != _CRASHING or ended is None:
        return None
    last = printable(ended.message.strip()[-_MAX_LOG:], _MAX_LOG)
    message = f"the container {status.name} ended with exit code {ended.exit_code}" + (f": {last}" if last else "")
    return pod_life.Problem(reason=_CRASHING, message=message)


def _refusal(status: wire.ContainerStatus | None) -> pod_life.Problem | None:
    """Return why the NameNode's volume is refused. This holds while its container starts again, until it is ready."""
    ended = (status.state.terminated or status.last_state.terminated) if status else None
    if status is None or status.ready or ended is None or ended.exit_code != _REFUSED:
        return None
    match = _REFUSAL.match(ended.message)
    reason, message = (match["reason"], match["message"]) if match else (Reason.NAME_VOLUME_EMPTY, ended.message)
    return pod_life.Problem(reason=reason, message=printable(message.strip(), pod_life.MAX_MESSAGE))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A policy's decision: how many nodes the cluster keeps, without those that leave, and whether new ones hold data.

    `offer` are the nodes that it accepted of an offer; negative: that it gives back.
    """

    nodes: int
    stores: bool = False
    reason: str = ""
    offer: int = 0


class Step(enum.IntEnum):
    """How much of a decommission is left."""

    COPIED = 0
    COPYING = 1
    NOT_BEGUN = 2
    NO_DATA_NODE = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """What a decommission has left, and since when it is no less.

    `left` are blocks to copy; once all are copied, blocks of HDFS that are missing or corrupt; without a DataNode,
    these and blocks that lack replicas.
    """

    step: Step
    left: int
    since_s: float

    @property
    def is_over(self) -> bool:
        """Return whether HDFS has nothing left to do."""
        return self.step in {Step.COPIED, Step.NO_DATA_NODE} and not self.left

    def replaces(self, former: "Stall") -> bool:
        """Return whether the time counts from now on: less is left, or others copy the blocks of a lost DataNode."""
        has_lost_its_data_node = self.step is Step.NO_DATA_NODE and former.step is not Step.NO_DATA_NODE
        return has_lost_its_data_node or (self.step, self.left) < (former.step, former.left)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """What fails, since when, and when that was last seen."""

    problem: pod_life.Problem
    since_s: float
    seen_s: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What the planner remembers beside the status. It is lost with the process, and observed again.

    Attributes:
        unplaced_s: Hosts without a Kubernetes node, and since when.
        barred: Generation and core nodes with which a decommission stalled: none begins until one of them changes.
        withdrawn_s: When nodes were last withdrawn for want of room.
        idle_s: Since when the cluster has no application and no user.
        no_application_s: Since when the cluster has no application.
        agent_failing: The agent's work, though the daemons respond.
        last_report_s: When the last report arrived; before the first: since when this process waits for one.
    """

    unplaced_s: Mapping[str, float] = dataclasses.field(default_factory=dict)
    stalls: Mapping[str, Stall] = dataclasses.field(default_factory=dict)
    barred: tuple[int, tuple[str, ...]] | None = None
    withdrawn_s: float | None = None
    idle_s: float | None = None
    no_application_s: float | None = None
    container_failing: Failing | None = None
    agent_failing: Failing | None = None
    last_report_s: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a decision may depend on, with the pods that exist and the last report of the agent.

    Attributes:
        is_ordered: Whether its agent held the orders to drain the nodes that leave. If not, what it says of read orders
            is about former ones.
        taken: Hosts whose pods do not exist and may still be created: this process submitted them, and the scheduler
            has them in its queue, or a write of it is in flight.
        lost_claims: Hosts whose claims no pod can ever mount: their volumes were on Kubernetes nodes that do not exist.
        target: The last decision of the policy that no plan has used.
        unreachable: Why its NetworkPolicies or its Service cannot be made those of the spec.
        rendered: The settings that the spec has now.
        users: Jobs with clusterRef, and pods of jobs that read the HDFS.
        probe: What the test of the network has shown: ENFORCED, NOT_ENFORCED or CANNOT_TELL; None: not tested yet.
    """

    cluster: Cluster
    state: ClusterState
    rendered: Rendered
    now_s: float
    nodes: Sequence[NodePod] = ()
    report: AgentReport | None = None
    report_age_s: float | None = None
    is_ordered: bool = False
    taken: frozenset[str] = frozenset()
    lost_claims: Collection[str] = ()
    target: Target | None = None
    diagnosis: pod_life.Problem | JobDiagnosis | None = None
    unreachable: pod_life.Problem | None = None
    sizes: Sizes = NO_SIZES
    users: int = 0
    probe: Reason | None = None
    marks: Marks = Marks()
    _by_host: Mapping[str, NodePod] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_host", {pod.host: pod for pod in self.nodes})

    def pod(self, host: str) -> NodePod | None:
        """Return the pod of a host."""
        return self._by_host.get(host)

    def is_absent(self, host: str) -> bool:
        """Return whether a host has no pod, and gets none from what was submitted."""
        return self.pod(host) is None and host not in self.taken

    def is_unplaced(self, host: str) -> bool:
        """Return whether a host has no Kubernetes node."""
        pod = self.pod(host)
        return pod is None or pod.life is pod_life.PodLife.UNPLACED

    def report_within(self, limit_s: float) -> AgentReport | None:
        """Return the last report if it is recent and about this cluster's HDFS."""
        is_recent = self.report_age_s is not None and self.report_age_s <= limit_s
        return self.report if is_recent and not self.is_foreign else None

    def hdfs_within(self, limit_s: float) -> HdfsFigures | None:
        """Return recent figures of HDFS."""
        report = self.report_within(limit_s)
        return report.hdfs if report else None

    @property
    def is_excluded(self) -> bool:
        """Return whether HDFS and YARN have read which nodes leave."""
        return self.is_ordered and self.report is not None and self.report.refreshed

    @property
    def is_foreign(self) -> bool:
        """Return whether the NameNode reports the ID of another HDFS than the status."""
        cluster_id, hdfs = self.state.cluster_id, self.report.hdfs if self.report else None
        return bool(cluster_id and hdfs and hdfs.cluster_id != cluster_id)

    @property
    def halt(self) -> pod_life.Problem | None:
        """Return why no node may be submitted or removed: the NameNode's volume is empty, or another HDFS's."""
        problem = next((pod.problem for pod in self.nodes if pod.role is Role.MASTER), None)
        if problem is not None and problem.reason in _REFUSALS:
            return problem
        hdfs = self.report.hdfs if self.report else None
        if hdfs is None or not self.is_foreign:
            return None
        message = f"the NameNode has HDFS {hdfs.cluster_id}, and this cluster is {self.state.cluster_id}"
        return pod_life.Problem(reason=Reason.FOREIGN_CLUSTER, message=message)


def figures(report: AgentReport) -> collections.defaultdict[str, NodeFigures]:
    """Return the figures of a report by host, without any for one that neither HDFS nor YARN knows."""
    absent = NodeFigures(host="a", dfs=DfsState.NONE, yarn=YarnState.NONE)
    return collections.defaultdict(lambda: absent, ((node.host, node) for node in report.nodes))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEvent:
    """An event about the cluster, beside those of phases."""

    reason: EventReason
    message: str
    is_warning: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do, in this order: write the state, delete pods, publish orders, have nodes scheduled.

    Each step of the planner adds to the one before it. `marks` are for the next observation. `consumed` is the target
    that was used. `submit` are all hosts that shall have a pod and have none: no other task may be scheduled.
    """

    state: ClusterState
    marks: Marks
    delete: tuple[NodePod, ...] = ()
    events: tuple[ClusterEvent, ...] = ()
    consumed: Target | None = None
    submit: Sequence[str] = ()
    requeue_s: float | None = None

    def with_state(self, **fields: Any) -> "Plan":
        """Return a draft with other fields of the state."""
        return dataclasses.replace(self, state=dataclasses.replace(self.state, **fields))

    def silence_s(self, now_s: float) -> float:
        """Return how long this process has had no report."""
        return now_s - self.marks.last_report_s if self.marks.last_report_s is not None else 0.0

    def with_marks(self, **fields: Any) -> "Plan":
        """Return a draft with other marks."""
        return dataclasses.replace(self, marks=dataclasses.replace(self.marks, **fields))

    def deleting(self, pod: NodePod | None) -> "Plan":
        """Return a draft that also deletes a pod, unless its deletion was requested before."""
        if pod is None or pod.deleting_since_s is not None or pod in self.delete:
            return self
        return dataclasses.replace(self, delete=(*self.delete, pod))

    def with_wanted(self, role: Role, count: int) -> "Plan":
        """Return a draft whose cluster shall have so many nodes of a role."""
        counts = (self.state.core if role is Role.CORE else self.state.transient) or NodeCounts()
        return self.with_state(**{role.value: counts.model_copy(update={"wanted": count})})

    def added(self, role: Role, new: Iterable[int]) -> "Plan":
        """Return a draft with more nodes. The counter passes each number of a transient node: none is used twice."""
        numbers = tuple(sorted({*self.state.numbers(role), *new}))
        if role is Role.CORE:
            return self.with_state(wanted_core=numbers)
        following = max((self.state.next_transient, *(number + 1 for number in numbers)))
        return self.with_state(wanted_transient=numbers, next_transient=following)

    def removed(self, host: str) -> "Plan":
        """Return a draft without a node."""
        role, number = known_role(host), number_of(host)
        left = tuple(other for other in self.state.numbers(role) if other != number)
        return self.kept(host).with_state(**{f"wanted_{role}": left})

    def kept(self, host: str) -> "Plan":
        """Return a draft in which a node does not leave."""
        return self.with_state(leaving=tuple(node for node in self.state.leaving if node.host != host))

    def with_event(self, reason: EventReason, message: str, *, is_warning: bool = False) -> "Plan":
        """Return a draft with another event."""
        event = ClusterEvent(reason=reason, message=message, is_warning=is_warning)
        return dataclasses.replace(self, events=(*self.events, event))
