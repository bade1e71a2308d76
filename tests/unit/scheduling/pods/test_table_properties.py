"""The pod table beside an API server whose watches are behind and whose answers come late."""

import collections
import datetime as dt

import hypothesis
import msgspec
from hypothesis import stateful, strategies as st

from boathouse.cluster import wire
from boathouse.scheduling.pods import ownership
from boathouse.scheduling.pods.states import PodState
from boathouse_policies import framework
from tests.builders.operators.pod_tables import JOB, NODES, PodWorld, shown, task_id

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
numbers = st.integers(0, 2)
node_names = st.sampled_from([node.name for node in NODES])


class Cluster:
    """Pods as the API server stores them, and the events that each watch has yet to deliver."""

    def __init__(self) -> None:
        self.pods = {}
        self.revision = 0
        self.live = collections.deque()
        self.ended = collections.deque()

    def create(self, number, node, *, is_task=True):
        self.revision += 1
        uid = f"uid-{self.revision}"
        pod = shown(number, node or "", uid=uid, revision=self.revision, is_task=is_task)
        self._store(None, pod)
        return pod

    def change(self, pod, deletion=None, **fields):
        self.revision += 1
        deletion = deletion or pod.metadata.deletion_timestamp
        version = {"resource_version": str(self.revision), "deletion_timestamp": deletion}
        metadata = msgspec.structs.replace(pod.metadata, **version)
        changed = msgspec.structs.replace(pod, metadata=metadata, **fields)
        self._store(pod, changed)
        return changed

    def end(self, pod):
        return self.change(pod, status=wire.PodStatus(phase="Succeeded"))

    def delete(self, pod):
        former = self.pods.pop(pod.id)
        self.revision += 1
        metadata = msgspec.structs.replace(former.metadata, resource_version=str(self.revision))
        if not former.is_terminal:
            self.live.append((former, msgspec.structs.replace(former, metadata=metadata), "left"))

    def _store(self, former, pod):
        self.pods[pod.id] = pod
        self.live.append((former, pod, "left" if pod.is_terminal else "shown"))
        if pod.is_terminal:
            self.ended.append(pod)

    def write(self, operation):
        """Carry an operation out; return whether it was accepted, and the pod in the answer."""
        row, pod = operation.row, self.pods.get(operation.row.id)
        if operation.task.pod_uid is None:
            return (False, pod) if pod is not None else (True, self.create(int(row.id[-1]), operation.node))
        if pod is None or pod.metadata.uid != operation.task.pod_uid:
            return False, None
        if pod.is_terminal or pod.node_name:
            return False, pod
        return True, self.change(pod, node_name=operation.node)


class TableMachine(stateful.RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = PodWorld()
        self.table = self.world.table
        self.cluster = Cluster()
        self.wanted = set()
        self.operations = []
        self.answers = []
        self.newest = {}

    # The owner and the decisions

    @stateful.rule(wanted=st.sets(numbers))
    def submit(self, wanted):
        self.world.submit(*sorted(wanted))
        self.wanted = {task_id(number) for number in wanted}

    @stateful.rule()
    def withdraw(self):
        self.wanted = set()
        self.table.withdraw(JOB.id)

    @stateful.rule(number=numbers, node=node_names)
    def decide(self, number, node):
        if node in self.table.nodes and (row := self.table.get(task_id(number))) and row.may_be_placed:
            self._queue(self.world.decide(number, node))

    @stateful.rule(number=numbers)
    def decide_ahead(self, number):
        self._queue(self.world.decide_ahead(number))

    def _queue(self, operation):
        if operation is not None:
            self.operations.append(operation)

    # The executor

    @stateful.precondition(lambda self: self.operations)
    @stateful.rule(data=st.data(), is_refused=st.booleans())
    def write(self, data, is_refused):
        operation = self.operations.pop(data.draw(st.integers(0, len(self.operations) - 1)))
        if operation.is_current:
            result = (False, None) if is_refused else self.cluster.write(operation)
            self.answers.append((operation, *result))

    @stateful.precondition(lambda self: self.answers)
    @stateful.rule(data=st.data())
    def answer(self, data):
        self._answer(*self.answers.pop(data.draw(st.integers(0, len(self.answers) - 1))))

    def _answer(self, operation, is_accepted, pod):
        if not is_accepted:
            self.table.refuse(operation, has_failed=True)
            if pod is not None:
                self.table.answered(operation.row, pod)
        elif operation.placement is None:
            self.table.accept_ahead(operation, pod)
        else:
            self.table.accept(operation)

    # The cluster

    @stateful.rule(number=numbers, node=st.none() | node_names, is_task=st.booleans())
    def a_pod_is_created(self, number, node, is_task):
        if task_id(number) not in self.cluster.pods:
            self.cluster.create(number, node, is_task=is_task)

    @stateful.precondition(lambda self: self.cluster.pods)
    @stateful.rule(data=st.data(), is_deleted=st.booleans())
    def a_pod_ends(self, data, is_deleted):
        pod = self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))]
        if is_deleted and pod.node_name and pod.metadata.deletion_timestamp is None:
            self.cluster.change(pod, NOON)
        elif is_deleted:
            self.cluster.delete(pod)
        elif not pod.is_terminal:
            self.cluster.end(pod)

    @stateful.precondition(lambda self: self.cluster.pods)
    @stateful.rule(data=st.data(), is_resizing=st.booleans())
    def a_pod_is_resized(self, data, is_resizing):
        pod = self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))]
        if pod.node_name and not pod.is_terminal:
            self.cluster.change(pod, is_resizing=is_resizing)

    @stateful.precondition(lambda self: self.cluster.pods)
    @stateful.rule(data=st.data(), is_resizing=st.booleans())
    def a_resize_is_answered_before_the_watch_shows_it(self, data, is_resizing):
        pod = self.cluster.pods[data.draw(st.sampled_from(sorted(self.cluster.pods)))]
        row = self.table.get(pod.id)
        if row is not None and row.is_on_node and not pod.is_terminal:
            changed = self.cluster.change(pod, is_resizing=is_resizing)
            self.table.answered(row, changed)
            self.newest[changed.metadata.uid] = changed.revision

    @stateful.rule(count=st.integers(1, 3))
    def the_watch_of_live_pods_delivers(self, count):
        for _ in range(min(count, len(self.cluster.live))):
            former, pod, kind = self.cluster.live.popleft()
            self.table.left(pod) if kind == "left" else self.table.observe(pod, former)

    @stateful.rule(count=st.integers(1, 3))
    def the_watch_of_ended_pods_delivers(self, count):
        for _ in range(min(count, len(self.cluster.ended))):
            self.table.end(self.cluster.ended.popleft())

    @stateful.rule(node=node_names)
    def a_node_is_lost(self, node):
        self.table.remove_node(node)

    @stateful.rule(node=st.sampled_from(NODES))
    def a_node_is_back(self, node):
        self.table.set_node(node)

    @stateful.rule()
    def unconfirmed_pods_are_read(self):
        for row in self.table.unconfirmed():
            pod = self.cluster.pods.get(row.id)
            if pod is None or pod.is_terminal:
                self.table.lose(row)
            else:
                self.table.show(row, pod)

    @stateful.invariant()
    def the_invariants_hold(self):
        self.world.check()

    @stateful.invariant()
    def what_an_answer_showed_is_not_taken_back(self):
        on_node = [row.facts for row in map(self.table.get, map(task_id, range(3))) if row and row.is_on_node]
        assert all(pod.revision >= self.newest.get(pod.metadata.uid, 0) for pod in on_node)

    @stateful.invariant()
    def every_submitted_task_waits_for_its_name_or_has_it(self):
        indexes = (self.table._by_job, self.table._ended, self.table._displaced)
        assert self.wanted <= {task for index in indexes for task in index.get(JOB.id, ())}

    def teardown(self):
        """Deliver everything: the table must then equal the cluster."""
        while self.answers:
            self._answer(*self.answers.pop())
        self.the_watch_of_live_pods_delivers(len(self.cluster.live))
        self.the_watch_of_ended_pods_delivers(len(self.cluster.ended))
        for operation in self.operations:
            self.table.refuse(operation)
        self.world.check()
        live = {name: pod for name, pod in self.cluster.pods.items() if not pod.is_terminal}
        placed = {name: pod.node_name for name, pod in live.items() if pod.node_name}
        ledger = self.world.ledger
        confirmed = {task for task in map(task_id, range(3)) if ledger.state(task) is framework.State.CONFIRMED}
        assert {task: ledger.account(task).node for task in confirmed} == placed
        here = [pod for pod in live.values() if pod.node_name in self.table.nodes]
        holders = collections.Counter(ownership.holder_of(pod) for pod in here)
        assert dict(self.table.holders.top("pods", "demo").named) == holders
        pending = {name for name, pod in live.items() if not pod.node_name and not self._has_used_its_name(pod)}
        assert {row.id for row in self.table.waiting()} == pending
        assert not self.table.unconfirmed()
        assert all(row.state is not PodState.GONE or row.has_ended for row in map(self.table.get, live) if row)

    def _has_used_its_name(self, pod):
        """Say whether the name of somebody else's pod is that of a task whose pod ended."""
        row = self.table.get(pod.id)
        return pod.task_of is None and row is not None and row.has_ended


TestTable = TableMachine.TestCase
TestTable.settings = hypothesis.settings(max_examples=150, stateful_step_count=40, deadline=None)
