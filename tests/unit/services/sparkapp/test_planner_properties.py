"""Whatever happens, no attempt starts before the one before is over, and no number is used twice."""

import dataclasses

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import model, planner
from boathouse.services.sparkapp.model import AppState
from boathouse.services.sparkapp.observation import DriverPod, Ending, Observation
from tests.builders.sparkapps import app

LOST_S = 300.0
ENDINGS = [None, Ending(reason="Error"), Ending(reason="Evicted", is_infrastructure=True)]
SPECS = [
    app(restartPolicy={"type": kind, "onFailureRetries": 1000, "onInfrastructureFailureRetries": 1000}, suspend=suspend)
    for kind in ("OnFailure", "Always")
    for suspend in (False, True)
]


class Life(RuleBasedStateMachine):
    """Pods live and die, nodes stop responding, the operator forgets what it planned, users suspend."""

    def __init__(self):
        super().__init__()
        self.now_s = 1_000_000.0
        self.app = SPECS[0]
        self.state = AppState()
        self.pods: dict[int, DriverPod] = {}
        self.created: list[int] = []
        self.reconcile("no")
        self.change(self.pods[1], state=PodLife.RUNNING, node="n", placed_s=self.now_s, started_s=self.now_s)

    def change(self, pod, **fields):
        self.pods[pod.attempt] = dataclasses.replace(pod, **fields)

    def live(self):
        return [pod for pod in self.pods.values() if pod.state.is_live]

    @rule(crash=st.sampled_from(["no", "no", "no", "before status", "before create"]))
    def reconcile(self, crash):
        observation = Observation(app=self.app, state=self.state, now_s=self.now_s, drivers=list(self.pods.values()))
        plan = planner.plan(observation)
        if crash == "before status":
            return
        self.state = model.from_status(model.to_status(plan.state))
        for pod in plan.delete:
            if pod.deleting_since_s is None:
                self.change(pod, deleting_since_s=self.now_s)
        if crash == "before create" or plan.submit is None or plan.submit in self.pods:
            return
        assert all(self.is_over(pod) for pod in self.live() if pod.attempt != plan.submit), "two drivers at once"
        self.created.append(plan.submit)
        name = f"pi-a{plan.submit}-driver"
        self.pods[plan.submit] = DriverPod(attempt=plan.submit, name=name, uid=name, state=PodLife.UNPLACED)

    def is_over(self, pod):
        since_s = pod.deleting_since_s
        return pod.node_gone or (since_s is not None and self.now_s >= since_s + LOST_S)

    @rule(seconds=st.sampled_from([1, 10, 60, 299, 301, 700]))
    def time_passes(self, seconds):
        """Let time pass; then the operator reconciles."""
        self.now_s += seconds
        self.reconcile("no")

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def a_driver_progresses(self, data):
        pod = data.draw(st.sampled_from(self.live()))
        match pod.state:
            case PodLife.UNPLACED:
                self.change(pod, state=PodLife.STARTING, node="n", placed_s=self.now_s)
            case PodLife.STARTING:
                self.change(pod, state=PodLife.RUNNING, started_s=self.now_s)
            case _:
                ending = data.draw(st.sampled_from(ENDINGS))
                state = PodLife.FAILED if ending else PodLife.SUCCEEDED
                self.change(pod, state=state, ending=ending, ended_s=self.now_s)

    @precondition(lambda self: self.pods)
    @rule(data=st.data())
    def a_pod_is_removed(self, data):
        del self.pods[data.draw(st.sampled_from(sorted(self.pods)))]

    @precondition(lambda self: self.live())
    @rule(data=st.data(), node_gone=st.booleans())
    def a_node_stops_responding(self, data, node_gone):
        pod = data.draw(st.sampled_from(self.live()))
        self.change(pod, deleting_since_s=pod.deleting_since_s or self.now_s, node_gone=node_gone)

    @rule(spec=st.sampled_from(SPECS))
    def the_user_changes_it(self, spec):
        self.app = spec

    @invariant()
    def numbers_grow(self):
        distinct = list(dict.fromkeys(self.created))
        assert distinct == sorted(distinct)

    @invariant()
    def a_created_attempt_is_in_the_status(self):
        assert not self.created or max(self.created) <= self.state.attempt


Life.TestCase.settings = settings(max_examples=80, stateful_step_count=40)
TestLife = Life.TestCase
