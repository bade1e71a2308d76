"""Executors, counted by the driver that made them."""

import pytest

from boathouse.cluster import store, wire
from boathouse.scheduling.pods import facts
from boathouse.services.sparkapp.pods.executor_pods import ExecutorPods


def pod(name="e1", phase="Running", driver="d1", namespace="demo", role="executor", kind="Pod", node=""):
    owner = wire.OwnerReference(api_version="v1", kind=kind, name="d", uid=driver, controller=True)
    metadata = wire.ObjectMeta(
        name=name, namespace=namespace, uid=f"u-{name}", labels={"spark-role": role}, owner_references=(owner,)
    )
    return facts.PodFacts(metadata=metadata, status=wire.PodStatus(phase=phase), node_name=node)


class Index:
    """Executors with a clock that the test turns."""

    def __init__(self):
        self.changes, self._due = [], []
        self.pods = ExecutorPods(lambda _, uid: self.changes.append(uid), lambda _, call: self._due.append(call))

    def add(self, *pods):
        for each in pods:
            self.pods.on_pod(store.Added(key=each.metadata.key, new=each))

    def remove(self, *pods):
        for each in pods:
            self.pods.on_pod(store.Deleted(key=each.metadata.key, old=each))

    def a_moment_later(self):
        due, self._due = self._due, []
        for call in due:
            call()


@pytest.fixture
def index():
    return Index()


def test_executors_are_counted_by_state(index):
    index.add(pod("e1"), pod("e2", "Pending"), pod("e3", "Pending"))
    index.add(pod("e2", "Running"))
    assert index.pods.count("demo", "d1") == (1, 2)
    index.remove(pod("e1"), pod("e2"), pod("e3"))
    assert index.pods.count("demo", "d1") == (0, 0)
    index.pods.take("demo", "d1")
    assert not index.pods._by_driver


@pytest.mark.parametrize("wrong", [{"namespace": "elsewhere"}, {"role": "driver"}, {"kind": "Job"}, {"driver": "d2"}])
def test_a_pod_that_only_looks_like_an_executor_is_not_counted(index, wrong):
    index.add(pod(**wrong))
    assert index.pods.count("demo", "d1") == (0, 0)
    assert index.pods.some("demo", "d1", 10) == ()


def test_many_changes_of_one_driver_are_told_once(index):
    index.add(*(pod(f"e{number}") for number in range(100)))
    index.a_moment_later()
    assert index.changes == ["d1"]
    index.add(pod("e1"))  # as it was
    index.a_moment_later()
    assert index.changes == ["d1"]


def ended(index, *pods):
    for each in pods:
        index.pods.on_ended(store.Added(key=each.metadata.key, new=each))


def states(index):
    return sorted((each.name, each.state.value) for each in index.pods.take("demo", "d1"))


def test_executors_that_are_gone_are_taken_once(index):
    index.add(pod("e1", node="n"), pod("e2", node="n"))
    index.remove(pod("e1", node="n"))
    assert states(index) == [("e1", "succeeded"), ("e2", "running")]
    assert states(index) == [("e2", "running")]


@pytest.mark.parametrize("is_first", [True, False])
def test_an_executor_that_failed_is_not_taken_as_deleted(index, is_first):
    index.add(pod("e1", node="n"))
    steps = [lambda: ended(index, pod("e1", "Failed", node="n")), lambda: index.remove(pod("e1", node="n"))]
    for step in steps if is_first else reversed(steps):
        step()
    assert states(index) == [("e1", "failed")]


def test_executors_of_a_forgotten_driver_are_not_kept(index):
    index.add(pod("e1", node="n"))
    index.remove(pod("e1", node="n"))
    index.pods.forget("demo", "d1")
    assert not index.pods._by_driver


def test_a_bounded_number_of_executors_is_returned(index):
    index.add(*(pod(f"e{number}") for number in range(100)))
    assert len(index.pods.some("demo", "d1", 7)) == 7


def test_executors_that_failed_are_counted_once_and_others_not(index):
    for each in (pod("e1", "Failed"), pod("e2", "Succeeded"), pod("e3", "Failed", namespace="elsewhere")):
        index.pods.on_ended(store.Added(key=each.metadata.key, new=each))
        index.pods.on_ended(store.Modified(key=each.metadata.key, old=each, new=each))
        index.pods.on_ended(store.Deleted(key=each.metadata.key, old=each))
    assert index.pods.failed("demo", "d1") == 1
    index.a_moment_later()
    assert index.changes == ["d1", "d1"]
    index.pods.forget("demo", "d1")
    assert index.pods.failed("demo", "d1") == 0
