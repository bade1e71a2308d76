"""What the watches say of pods and nodes, taken into the ledger: one path for all pods of all schedulers.

Synchronous: each change is in the account before the next await. What follows from a change is told to a listener.
"""

import collections
from typing import Protocol, assert_never

from boathouse.cluster import boundary, catalogue, store, wire
from boathouse.resources import names
from boathouse.scheduling import kept
from boathouse.scheduling.pods import holders, mounts, ownership, translate
from boathouse_policies import framework, model

_NOMINATED = "nominated:"
_ENDED_KEPT = 4096
"""UIDs of pods that ended: as many as may end while the answer to a write is on its way."""


class Listener(Protocol):
    """Who acts on changes."""

    def room_freed(self, freed: framework.Freed) -> None:
        """Somebody who waits may fit now."""

    def nodes_changed(self) -> None:
        """A node came, changed or went."""

    def placements_lost(self, tasks: tuple[model.TaskId, ...]) -> None:
        """The node that these were assumed on is gone."""

    def pod_waits(self, pod: wire.PodView) -> None:
        """A pod for our scheduler has no node, or changed while it has none."""

    def pod_placed(self, pod: wire.PodView, *, known: bool) -> None:
        """A pod of ours is on a node (told with each of its changes); `known` if we had it there, or meant it to be."""

    def pod_gone(self, pod: wire.PodView) -> None:
        """A pod of ours, or one that waited, ended or was deleted."""


class Observed:
    """The scheduler's picture of the cluster.

    Attributes:
        ledger: What nodes hold.
        holders: Who holds it.
        mounts: Whose claims are mounted where.
        waiting: Pods for our scheduler without a node, by task.
        nodes: As they were last seen.
        keep: What of a pod to keep. A watch applies it before it reports the pod.
    """

    def __init__(
        self,
        book: framework.Ledger,
        listener: Listener,
        *,
        scheduler_name: str = names.SCHEDULER_NAME,
        queue_of: ownership.ChargedQueueOf = ownership.default_queue,
        aside: boundary.Boundary | None = None,
    ) -> None:
        self.keep = kept.pods(scheduler_name, self._offered)
        self.ledger = book
        self.holders = holders.Holders()
        self.mounts = mounts.Mounts()
        self.waiting: dict[model.TaskId, wire.PodView] = {}
        self.nodes: dict[model.NodeName, model.Node] = {}
        self._listener = listener
        self._scheduler_name = scheduler_name
        self._queue_of = queue_of
        self._aside = aside or boundary.Boundary()
        self._nominated: dict[model.TaskId, tuple[int, framework.Account]] = {}
        self._floor_priority = 0
        self._revision = 0
        self._ended: collections.deque[str] = collections.deque(maxlen=_ENDED_KEPT)

    # Watches

    def on_node(self, change: store.Change[wire.NodeView]) -> None:
        """Take in a change of a node."""
        match change:
            case store.Added() | store.Modified():
                node = self._node(change.new)
                self.nodes[node.name] = node
                self.holders.node_came(node.name)
                if self.ledger.set_node(node):
                    self._listener.nodes_changed()
            case store.Deleted():
                name = model.NodeName(change.key)
                self.nodes.pop(name, None)
                queues = self.ledger.queues_on(name)
                lost = self.ledger.remove_node(name)
                self.holders.node_went(name)
                for queue in queues:  # what pods hold of a node that does not exist is not charged
                    self._listener.room_freed(framework.Freed(name, queue))
                self._listener.nodes_changed()
                self._listener.placements_lost(lost)
            case _:
                assert_never(change)

    def _node(self, view: wire.NodeView) -> model.Node:
        try:
            return translate.node(view)
        except ValueError as error:
            self._aside.set_aside(catalogue.NODES, view.metadata, boundary.Reason.TRANSLATION, error)
            return translate.unusable(view)

    def _offered(self) -> frozenset[str]:
        """Return the names of the extended resources that nodes have."""
        return frozenset(name for node in self.nodes.values() for name, _ in node.allocatable.extended)

    def on_pod(self, change: store.Change[wire.PodView]) -> None:
        """Take in a change of a pod that is not terminal; one that ends comes as Deleted."""
        pod = (change.final or change.old) if isinstance(change, store.Deleted) else change.new
        went_back = isinstance(change, store.Modified) and _revision(change.new) < _revision(change.old)
        self._revision = _revision(pod) if went_back else max(self._revision, _revision(pod))  # etcd was restored
        match change:
            case store.Modified() if _takes_the_same(change.old, change.new):
                pass  # most changes are of this kind: a kubelet tells how its pod fares
            case store.Added() | store.Modified():
                self.apply(pod)
            case store.Deleted():
                self._ended.append(pod.metadata.uid)
                self.gone(pod)
            case _:
                assert_never(change)

    def answered(self, pod: wire.PodView) -> None:
        """Take in what a write brought, unless the watch has shown more since: the pod on a node, or its end.

        An end may be news to its task, which can have been submitted after the watch showed it.
        """
        with self._aside.guard(catalogue.PODS, pod.metadata, boundary.Reason.HANDLING):
            self._answered(self.keep(pod))

    def _answered(self, pod: wire.PodView) -> None:
        if pod.is_terminal or pod.metadata.uid in self._ended:
            if not self._is_followed(pod):
                self.gone(pod)
        elif _revision(pod) >= self._revision or ownership.task_id(pod) not in self.ledger:
            self.apply(pod)

    def _is_followed(self, pod: wire.PodView) -> bool:
        """Say whether another pod has the name by now."""
        task = ownership.task_id(pod)
        waiting, account = self.waiting.get(task), self.ledger.account(task)
        known = {waiting.metadata.uid if waiting is not None else "", (account and account.uid) or ""}
        return bool(known - {"", pod.metadata.uid})

    def read(self, pod: wire.PodView) -> None:
        """Take in the truth about a pod from a GET."""
        with self._aside.guard(catalogue.PODS, pod.metadata, boundary.Reason.HANDLING):
            self.apply(self.keep(pod))

    def apply(self, pod: wire.PodView) -> None:
        """Take in the truth about a pod, from a watch or a GET."""
        if pod.is_terminal:
            self.gone(pod)
            return
        account = self._account(pod)
        known = account.id in self.ledger
        self._freed(self.ledger.observe(account))
        self._nominate(pod, account)
        if account.node is not None:
            self.waiting.pop(account.id, None)
            self.holders.set(account.id, ownership.holder_of(pod), account.resources, account.node)
            if claims := translate.claims_of(pod):
                self.mounts.add(account.id, account.node, claims)
            if self.is_ours(pod):
                self._listener.pod_placed(pod, known=known)
        elif pod.spec.scheduler_name == self._scheduler_name and account.id not in self.ledger:
            self.waiting[account.id] = pod
            self._listener.pod_waits(pod)

    def gone(self, pod: wire.PodView) -> None:
        """A pod ended or was deleted: what it held is free, whatever state it was in."""
        task = ownership.task_id(pod)
        known = self.waiting.get(task)
        if known is not None and known.metadata.uid == pod.metadata.uid:
            del self.waiting[task]
        self._unnominate(task)
        self._freed(self.ledger.gone(task, model.PodUid(pod.metadata.uid)))
        if task not in self.ledger:
            self.holders.remove(task)
            if self.mounts.remove(task):
                self._listener.nodes_changed()
        if self.is_ours(pod):
            self._listener.pod_gone(pod)

    def _account(self, pod: wire.PodView) -> framework.Account:
        """Return a pod's account; of a pod whose requests cannot be computed one that fills its node."""
        try:
            return ownership.of(pod, scheduler_name=self._scheduler_name, queue_of=self._queue_of)
        except (ValueError, ArithmeticError) as error:
            self._aside.set_aside(catalogue.PODS, pod.metadata, boundary.Reason.TRANSLATION, error)
            return ownership.unknown(pod)

    def is_ours(self, pod: wire.PodView) -> bool:
        """Say whether we placed a pod, or are to place it."""
        return ownership.is_task(pod) or pod.spec.scheduler_name == self._scheduler_name

    def _freed(self, freed: framework.Freed | None) -> None:
        if freed is not None:
            self._listener.room_freed(freed)

    # Nominations: a pod that another scheduler is about to put on a node, at the cost of others if need be

    def heed_nominations(self, lowest_priority: int) -> None:
        """Count nominated pods whose priority is at least the lowest among our own that wait."""
        if lowest_priority == self._floor_priority:
            return
        self._floor_priority = lowest_priority
        for priority, account in self._nominated.values():
            self._count_nomination(priority, account)

    def _nominate(self, pod: wire.PodView, account: framework.Account) -> None:
        node = pod.status.nominated_node_name
        if account.node is not None or not node or pod.spec.scheduler_name == self._scheduler_name:
            self._unnominate(account.id)
            return
        counted = framework.Account(
            id=model.TaskId(_NOMINATED + account.id),
            node=model.NodeName(node),
            resources=account.resources,
            uid=account.uid,
            host_ports=account.host_ports,
        )
        self._nominated[account.id] = (pod.spec.priority, counted)
        self._count_nomination(pod.spec.priority, counted)

    def _count_nomination(self, priority: int, account: framework.Account) -> None:
        if priority >= self._floor_priority:
            self._freed(self.ledger.observe(account))
        else:
            self._freed(self.ledger.gone(account.id))

    def _unnominate(self, task: model.TaskId) -> None:
        if (nominated := self._nominated.pop(task, None)) is not None:
            self._freed(self.ledger.gone(nominated[1].id))

    # What the ledger must equal

    def expected(self, pods: list[wire.PodView]) -> list[framework.Account]:
        """Return the accounts for these pods, and the nominations counted now."""
        counted = [account for priority, account in self._nominated.values() if priority >= self._floor_priority]
        return [self._account(pod) for pod in pods if pod.spec.node_name] + counted


def _revision(pod: wire.PodView) -> int:
    return int(pod.metadata.resource_version or 0)


def _takes_the_same(old: wire.PodView, new: wire.PodView) -> bool:
    """Say whether a pod on a node takes of it, and is charged to, the same as before."""
    return (
        bool(old.spec.node_name)
        and not new.is_terminal
        and old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.metadata.owner_references == new.metadata.owner_references
        and _in_force(old.status) == _in_force(new.status)
    )


def _in_force(status: wire.PodStatus) -> list[object]:
    """What the request formula reads of a status."""
    statuses = (*status.container_statuses, *status.init_container_statuses)
    sizes = [(one.name, one.resources, one.allocated_resources) for one in statuses if one.resources is not None]
    resizing = [one.reason for one in status.conditions if one.type == "PodResizePending"]
    return [sizes, resizing, status.resources, status.allocated_resources]
