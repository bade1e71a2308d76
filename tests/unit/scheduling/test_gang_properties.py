"""Drivers, executors and other pods in a small cluster, with crashes of the operator and deaths of drivers."""

import dataclasses
import itertools

import hypothesis
import msgspec
from hypothesis import stateful, strategies as st

from boathouse.cluster import wire
from boathouse.scheduling import outcomes
from boathouse_policies import model
from tests.builders import manifests
from tests.builders.operators.applications import App, DriverDesk

NODES = ("n1", "n2", "n3")
CORES = 4


@dataclasses.dataclass
class Running:
    """An application in the world: its kind submits it, its driver creates executors when it runs.

    Attributes:
        app: What its kind submits: another one for each attempt.
        minimum: Its minimum; `extra` are the executors that it requests beyond that.
        executors: How many it has requested in this attempt.
        has_lost: Whether an executor of this attempt was lost.
    """

    app: App
    minimum: int
    extra: int
    attempt: int = 1
    executors: int = 0
    has_lost: bool = False
    is_over: bool = False


class GangMachine(stateful.RuleBasedStateMachine):
    profile = "fair"

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.revisions = itertools.count(100)
        self.pods: dict[str, wire.PodView] = {}
        self.apps: list[Running] = []
        self.desk = self._new_desk()
        self.has_restarted = False

    def _new_desk(self) -> DriverDesk:
        desk = DriverDesk(profile=self.profile, pending_ahead=0)
        for node in NODES:
            desk.node(node)
        return desk

    # The API server

    def _show(self, pod: wire.PodView) -> None:
        meta = msgspec.structs.replace(pod.metadata, resource_version=str(next(self.revisions)))
        pod = self.pods[pod.metadata.name] = msgspec.structs.replace(pod, metadata=meta)
        self.desk.show(pod)

    def _delete(self, name: str) -> None:
        self.desk.delete(self.pods.pop(name))

    def _carry_out(self, operation, *, is_refused: bool = False) -> None:
        desk, row = self.desk.scheduler, operation.row
        if not desk.executor._is_valid(operation):
            desk.intake.finished(operation, outcomes.Skipped(), 0.0)
            return
        if is_refused:
            desk.intake.finished(operation, outcomes.NotDone(reason="Conflict", message="refused"), 0.0)
            return
        if operation.task.pod_uid is None:
            pod = self._driver_pod(operation)
            desk.intake.finished(operation, outcomes.Done(pod=pod), 0.0)
        else:
            former = self.pods[row.name]
            spec = msgspec.structs.replace(former.spec, node_name=operation.node)
            pod = msgspec.structs.replace(former, spec=spec)
            desk.intake.finished(operation, outcomes.Done(), 0.0)
        self._show(pod)

    def _driver_pod(self, operation) -> wire.PodView:
        running = next(one for one in self.apps if one.app.driver == operation.row.id)
        pod = running.app.driver_pod(operation.node)
        annotations = self.desk.scheduler.executor._reserved(operation)
        uid = f"uid-{running.app.name}-driver"
        return msgspec.structs.replace(
            pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations, uid=uid)
        )

    def _decide(self, refused=lambda: False) -> None:
        for _ in range(20):
            self.desk.now_s += 11
            operations = self.desk.scheduler.decider.decide()
            for operation in operations:
                self._carry_out(operation, is_refused=refused())
            if not operations:
                return

    # Who makes pods

    @stateful.rule(
        minimum=st.integers(0, 4), cpu=st.integers(1, 3), driver_cpu=st.integers(1, 2), extra=st.integers(0, 2)
    )
    def an_application_arrives(self, minimum, cpu, driver_cpu, extra):
        if sum(not one.is_over for one in self.apps) < 4:
            name = f"a{next(self.numbers)}"
            app = App(name, minimum=minimum, cpu=cpu, driver_cpu=driver_cpu, submitted_s=float(len(self.apps)))
            self.apps.append(Running(app, minimum, extra))
            self.desk.submit_application(app)

    @stateful.rule(cpu=st.integers(1, 3))
    def another_pod_arrives(self, cpu):
        if len(self.pods) < 12:
            name = f"p{next(self.numbers)}"
            self._show(
                manifests.pod_view(
                    name,
                    containers=(manifests.container(cpu=str(cpu), memory="1Mi"),),
                )
            )

    @stateful.rule(data=st.data())
    def another_pod_ends(self, data):
        found = sorted(name for name, pod in self.pods.items() if name.startswith("p") and pod.spec.node_name)
        if found:
            self._delete(data.draw(st.sampled_from(found)))

    def _runs(self, one: Running) -> bool:
        return f"{one.app.name}-driver" in self.pods

    @stateful.rule(data=st.data())
    def a_driver_requests_an_executor(self, data):
        found = [one for one in self.apps if self._runs(one) and one.executors < one.minimum + one.extra]
        if found:
            self._request(data.draw(st.sampled_from(found)))

    def _request(self, one: Running) -> None:
        one.executors += 1
        self._show(one.app.executor_pod(next(self.numbers)))

    def _executors(self, one: Running) -> list[str]:
        return sorted(name for name in self.pods if name.startswith(f"{one.app.name}-exec-"))

    @stateful.rule(data=st.data())
    def an_executor_is_lost(self, data):
        found = [one for one in self.apps if self._runs(one) and self._executors(one)]
        if found:
            one = data.draw(st.sampled_from(found))
            self._delete(data.draw(st.sampled_from(self._executors(one))))
            one.executors -= 1
            one.has_lost = True

    @stateful.rule(data=st.data())
    def a_driver_dies(self, data):
        found = [one for one in self.apps if self._runs(one)]
        if found:
            one = data.draw(st.sampled_from(found))
            self._end(one)
            one.attempt, one.executors, one.has_lost = one.attempt + 1, 0, False
            one.app = App(
                f"{one.app.name.partition('x')[0]}x{one.attempt}",
                minimum=one.minimum,
                cpu=one.app.cpu,
                driver_cpu=one.app.driver_cpu,
                id=one.app.job.id,
                submitted_s=one.app.job.submitted_s,
            )
            self.desk.submit_application(one.app)

    def _end(self, one: Running) -> None:
        self._delete(f"{one.app.name}-driver")
        for name in self._executors(one):
            self._delete(name)

    @stateful.rule(order=st.randoms(use_true_random=False))
    def the_operator_crashes(self, order):
        now_s, self.desk = self.desk.now_s, self._new_desk()
        self.desk.now_s = now_s
        self.desk.scheduler.decider._reservations._began_s = now_s
        listed = sorted(self.pods)
        order.shuffle(listed)
        for name in listed:
            self.desk.show(self.pods[name])
        for operation in self.desk.scheduler.decider.decide():
            self._carry_out(operation)
        for one in self.apps:
            if not one.is_over:
                self.desk.submit_application(one.app)
        self.has_restarted = True

    @stateful.rule(data=st.data())
    def the_scheduler_decides_and_writes_may_fail(self, data):
        self._decide(lambda: data.draw(st.integers(0, 4)) == 0)

    @stateful.rule()
    def the_scheduler_decides(self):
        self._decide()

    # What must hold

    @stateful.invariant()
    def nothing_is_over_committed(self):
        for node in NODES:
            pods = sum(self._cores(pod) for pod in self.pods.values() if pod.spec.node_name == node)
            assert pods <= CORES, node
            free = self.desk.scheduler.state.ledger.free(node)
            assert free is not None
            assert free[model.CPU] >= 0, node

    def _cores(self, pod: wire.PodView) -> int:
        return int(pod.spec.containers[0].resources.requests["cpu"])

    def _check_minimums(self) -> None:
        """After decisions, each driver that runs has its minimum, reserved or on nodes."""
        is_certain = not (self.has_restarted and any(one.has_lost for one in self.apps))
        for one in self.apps if is_certain else ():
            if self._runs(one):
                placed = sum(bool(self.pods[name].spec.node_name) for name in self._executors(one))
                assert placed + len(self.desk.reserved(one.app)) >= one.minimum, one

    @stateful.rule()
    def drivers_have_their_minimum(self):
        self._decide()
        self._check_minimums()

    def teardown(self):
        """All applications that fit finish: each driver ends once it has its minimum."""
        for _ in range(40):
            self._decide()
            for name in [name for name, pod in self.pods.items() if name.startswith("p") and pod.spec.node_name]:
                self._delete(name)
            for one in self.apps:
                if one.is_over or not self._runs(one):
                    continue
                while len(self._executors(one)) < one.minimum:
                    self._request(one)
                placed = sum(bool(self.pods[name].spec.node_name) for name in self._executors(one))
                if placed >= one.minimum:
                    self._end(one)
                    self.desk.scheduler.withdraw(one.app.job.id)
                    one.is_over = True
        left = [one for one in self.apps if not one.is_over]
        assert all(self.desk.reason(one.app) == "NeverFits" for one in left), left


GangMachine.TestCase.settings = hypothesis.settings(
    max_examples=30,
    stateful_step_count=20,
    deadline=None,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.reuse, hypothesis.Phase.generate, hypothesis.Phase.shrink],
)
TestGangs = GangMachine.TestCase


class ReservingMachine(GangMachine):
    """Gangs with a profile that reserves nodes for them by itself."""

    profile = "ikayak"


ReservingMachine.TestCase.settings = GangMachine.TestCase.settings
TestReservedGangs = ReservingMachine.TestCase
