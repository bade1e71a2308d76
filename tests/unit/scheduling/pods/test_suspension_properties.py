"""CPU is never counted twice: suspensions and resumes in any order, beside a kubelet and a watch that are behind."""

import collections

import hypothesis
from hypothesis import stateful, strategies as st

from boathouse.cluster import wire
from boathouse.resources import names
from boathouse.suspension import suspending
from boathouse.suspension.stages import SUSPENDED_SIZE, CpuSize, Stage
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators.pod_tables import PodWorld, record_of, shown, task_id

ROOM = 2010
"""CPU of the node: of two tasks, and a little, for a suspended task keeps 1m."""
ORIGINAL = CpuSize(1000, 1500)
CONTINUED = CpuSize(SUSPENDED_SIZE.request_milli, ORIGINAL.limit_milli)
SHRUNK = (Stage.SHRINKING, Stage.SUSPENDED)
NODE = model.Node(
    name=model.NodeName("n0"), allocatable=model.Resources(cpu_milli=ROOM, memory_bytes=1 << 40), max_pods=100
)
numbers = st.integers(0, 3)


class Pod:
    """A pod as the API server has it, and what its kubelet has allocated and actuated."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.spec, self.record = ORIGINAL, ""
        self.allocated = self.actual = ORIGINAL.request_milli

    def shown(self, revision: int):
        limits = {"cpu": f"{self.spec.limit_milli}m"}
        requests = {"cpu": f"{self.spec.request_milli}m", "memory": "1Gi"}
        task = wire.Container(
            name=names.CONTAINER, resources=wire.ResourceRequirements(requests=requests, limits=limits)
        )
        actual, allocated = ({"cpu": f"{amount}m", "memory": "1Gi"} for amount in (self.actual, self.allocated))
        status = manifests.container_status(names.CONTAINER, actuated=actual, allocated=allocated)
        noted = {names.ANNOTATION_SUSPENSION: self.record} if self.record else {}
        uid = f"uid-{self.number}"
        return shown(
            self.number, "n0", uid=uid, revision=revision, containers=(task,), statuses=(status,), annotations=noted
        )

    @property
    def most(self) -> int:
        return max(self.spec.request_milli, self.allocated, self.actual)


class SuspensionMachine(stateful.RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pods: dict[int, Pod] = {}
        self.revision = 10
        self.begin_again()

    @stateful.rule()
    def begin_again(self):
        """Kill the operator, and let another begin with a list."""
        self.world = PodWorld()
        self.table = self.world.table
        self.table.remove_node(model.NodeName("n1"))
        self.table.set_node(NODE)
        self.world.submit(*range(4))
        self.shown, self.events = {}, collections.deque()
        self.growing: set[int] = set()  # written and not shown
        for pod in self.pods.values():
            self._store(pod)
        while self.events:
            self.the_watch_delivers()

    def _store(self, pod):
        self.revision += 1
        self.events.append(pod.shown(self.revision))

    def _choose(self, data, *stages):
        """Return a task that the watch shows in one of these stages."""
        return data.draw(st.sampled_from(self._in(*stages)))

    def _in(self, *stages):
        return sorted(number for number, pod in self.shown.items() if pod.stage in stages)

    # Our writes, judged by what the watch has shown

    @stateful.rule(number=numbers)
    def create(self, number):
        free = self.table.ledger.free(NODE.name)[0]
        if free >= ORIGINAL.request_milli and (operation := self.world.decide(number)):
            self.table.accept(operation)
            self.pods[number] = Pod(number)
            assert sum(pod.most for pod in self.pods.values()) <= ROOM
            self._store(self.pods[number])

    @stateful.precondition(lambda self: self._in(Stage.NONE))
    @stateful.rule(data=st.data())
    def suspend(self, data):
        number = self._choose(data, Stage.NONE)
        self.pods[number].record = record_of(ORIGINAL.request_milli, ORIGINAL.limit_milli).text()
        self._resize(number, SUSPENDED_SIZE)

    @stateful.precondition(lambda self: self._in(*SHRUNK))
    @stateful.rule(data=st.data())
    def resume(self, data):
        number = self._choose(data, *SHRUNK)
        self.table.charge_at_least(self.world.row(number), model.Resources(cpu_milli=1000, memory_bytes=1 << 30))
        self._resize(number, CONTINUED)

    @stateful.precondition(lambda self: self._in(Stage.CONTINUING))
    @stateful.rule(data=st.data())
    def grow(self, data):
        number = self._choose(data, Stage.CONTINUING)
        waiting = [other for other in self._in(Stage.CONTINUING) if other not in {number, *self.growing}]
        debts = sum(suspending.ungrown_milli(self.world.row(other)) for other in waiting)
        if self.table.ledger.free(NODE.name)[0] + debts >= 0:
            self.growing.add(number)
            self._resize(number, ORIGINAL)
            assert sum(pod.most for pod in self.pods.values()) <= ROOM

    @stateful.precondition(lambda self: self._in(Stage.GROWING))
    @stateful.rule(data=st.data())
    def shrink_back(self, data):
        self._resize(self._choose(data, Stage.GROWING), CONTINUED)

    def _resize(self, number, size):
        self.pods[number].spec = size
        self._store(self.pods[number])

    # The kubelet and the watch

    @stateful.precondition(lambda self: self.pods)
    @stateful.rule(data=st.data(), is_allocation=st.booleans())
    def the_kubelet_acts(self, data, is_allocation):
        pod = self.pods[data.draw(st.sampled_from(sorted(self.pods)))]
        if is_allocation:
            pod.allocated = pod.spec.request_milli
        else:
            pod.actual = pod.allocated
        self._store(pod)

    @stateful.precondition(lambda self: self.pods)
    @stateful.rule(data=st.data())
    def a_task_ends(self, data):
        pod = self.pods.pop(data.draw(st.sampled_from(sorted(self.pods))))
        while self.events:
            self.the_watch_delivers()
        self.revision += 1
        self.table.left(pod.shown(self.revision))
        self.shown.pop(pod.number, None)

    @stateful.rule()
    def all_is_settled(self):
        for pod in self.pods.values():
            pod.allocated = pod.actual = pod.spec.request_milli
            self._store(pod)
        while self.events:
            self.the_watch_delivers()

    @stateful.rule()
    def the_watch_delivers(self):
        if self.events:
            pod = self.events.popleft()
            number = int(pod.metadata.name[1:])
            self.table.observe(pod, self.shown.get(number))
            self.growing -= {number} if pod.stage is not Stage.CONTINUING else set()
            self.shown[number] = pod

    @stateful.invariant()
    def no_cpu_is_counted_twice(self):
        charged = ROOM - self.table.ledger.free(NODE.name)[0]
        assert charged >= sum(pod.most for pod in self.pods.values())
        self.world.check()
        listed = {row.id for row in self.table.suspensions()}
        assert listed == {
            task_id(number) for number, pod in self.shown.items() if pod.stage not in {Stage.NONE, Stage.FOREIGN}
        }


SuspensionMachine.TestCase.settings = hypothesis.settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSuspension = SuspensionMachine.TestCase
