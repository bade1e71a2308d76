"""Executors, counted by the driver that made them."""

import pytest

from boathouse.cluster import store, wire
from boathouse.scheduling.pods import facts
from boathouse.services.sparkapp.executor_pods import ExecutorPods


def executor_facts(name="e1", phase="Running", driver="d1", namespace="demo", role="executor", kind="Pod", node=""):
    owner = wire.OwnerReference(api_version="v1", kind=kind, name="d", uid=driver, controller=True)
    metadata = wire.ObjectMeta(
        name=name, namespace=namespace, uid=f"u-{name}", labels={"spark-role": role}, owner_references=(owner,)
    )
    return facts.PodFacts(metadata=metadata, status=wire.PodStatus(phase=phase), node_name=node)


class Index:
    """Executors whose delayed calls the test runs."""

    def __init__(self):
        self.changes, self.calls = [], []
        self.pods = ExecutorPods(lambda _, uid: self.changes.append(uid), lambda _, call: self.calls.append(call))

    def add(self, *pods):
        for pod in pods:
            self.pods.on_pod(store.Added(key=pod.metadata.key, new=pod))

    def remove(self, *pods):
        for pod in pods:
            self.pods.on_pod(store.Deleted(key=pod.metadata.key, old=pod))

    def end(self, *pods):
        for pod in pods:
            self.pods.on_ended(store.Added(key=pod.metadata.key, new=pod))

    def run_calls(self):
        calls, self.calls = self.calls, []
        for call in calls:
            call()


@pytest.fixture
def index():
    return Index()


def test_executors_are_counted_by_state(index):
    index.add(executor_facts("e1"), executor_facts("e2", "Pending"), executor_facts("e3", "Pending"))
    index.add(executor_facts("e2", "Running"))
    assert index.pods.count("demo", "d1") == (1, 2)
    index.remove(executor_facts("e1"), executor_facts("e2"), executor_facts("e3"))
    assert index.pods.count("demo", "d1") == (0, 0)
    index.pods.take("demo", "d1")
    assert not index.pods._drivers


@pytest.mark.parametrize("wrong", [{"namespace": "elsewhere"}, {"role": "driver"}, {"kind": "Job"}, {"driver": "d2"}])
def test_a_pod_that_only_looks_like_an_executor_is_not_counted(index, wrong):
    index.add(executor_facts(**wrong))
    assert index.pods.count("demo", "d1") == (0, 0)
    assert index.pods.some("demo", "d1", 10) == ()


def test_many_changes_of_one_driver_are_reported_once(index):
    index.add(*(executor_facts(f"e{number}") for number in range(100)))
    index.run_calls()
    assert index.changes == ["d1"]
    index.add(executor_facts("e1"))  # as it was
    index.run_calls()
    assert index.changes == ["d1"]


def take_states(index):
    return sorted((executor.name, executor.state.value) for executor in index.pods.take("demo", "d1"))


def test_executors_that_are_gone_are_taken_once(index):
    index.add(executor_facts("e1", node="n"), executor_facts("e2", node="n"))
    index.remove(executor_facts("e1", node="n"))
    assert take_states(index) == [("e1", "succeeded"), ("e2", "running")]
    assert take_states(index) == [("e2", "running")]


@pytest.mark.parametrize("is_first", [True, False])
def test_an_executor_that_failed_is_not_taken_as_deleted(index, is_first):
    index.add(executor_facts("e1", node="n"))
    steps = [
        lambda: index.end(executor_facts("e1", "Failed", node="n")),
        lambda: index.remove(executor_facts("e1", node="n")),
    ]
    for step in steps if is_first else reversed(steps):
        step()
    assert take_states(index) == [("e1", "failed")]


def test_executors_of_a_forgotten_driver_are_not_kept(index):
    index.add(executor_facts("e1", node="n"))
    index.remove(executor_facts("e1", node="n"))
    index.pods.forget("demo", "d1")
    assert not index.pods._drivers


def test_a_bounded_number_of_executors_is_returned(index):
    index.add(*(executor_facts(f"e{number}") for number in range(100)))
    assert len(index.pods.some("demo", "d1", 7)) == 7


def test_executors_that_failed_are_counted_once_and_others_not(index):
    for pod in (
        executor_facts("e1", "Failed"),
        executor_facts("e2", "Succeeded"),
        executor_facts("e3", "Failed", namespace="elsewhere"),
    ):
        index.pods.on_ended(store.Added(key=pod.metadata.key, new=pod))
        index.pods.on_ended(store.Modified(key=pod.metadata.key, old=pod, new=pod))
        index.pods.on_ended(store.Deleted(key=pod.metadata.key, old=pod))
    assert index.pods.failed("demo", "d1") == 1
    index.run_calls()
    assert index.changes == ["d1", "d1"]
    index.pods.forget("demo", "d1")
    assert index.pods.failed("demo", "d1") == 0
