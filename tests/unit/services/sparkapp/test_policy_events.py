"""Events about applications, drivers and executors, as a profile's observers get them."""

import dataclasses

import pytest

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import gang, observation
from boathouse.services.sparkapp.observation import AppPod
from boathouse.services.sparkapp.policy_events import PolicyEvents
from boathouse_policies import model, run_times
from tests.builders.observers import Recorder, event_kinds
from tests.builders.sparkapps import UID, app

SIZE = model.Resources(cpu_milli=1000, memory_bytes=2**30)


class Published(Recorder):
    """The events that are published about one application, with a clock that the test turns."""

    def __init__(self, **executor):
        super().__init__()
        self.now_s = 100.0
        self.app = app(executor={"instances": 2, **executor})
        self.learner = run_times.Learner()
        self.publisher = PolicyEvents([self], self.learner, lambda: self.now_s, lambda: self.now_s + 1000)

    def update(self, *pods, **changed):
        found = dataclasses.replace(self.app, **changed)
        self.publisher.update(UID, gang.of(found, 1, minimum=found.minimum), pods)
        return self.take()

    def end(self, *pods, succeeded=True):
        self.publisher.ended(UID, succeeded=succeeded, pods=pods)
        return self.take()


def app_pod_of(stage, name, state, **fields):
    values = {"node": "n1", "resources": SIZE, "placed_s": 1050.0} | fields
    return AppPod(name=name, uid=f"u-{name}", stage=stage, state=state, **values)


def driver(state=PodLife.RUNNING, **fields):
    return app_pod_of(model.Stage.DRIVER, "driver", state, **fields)


def executor(number=1, state=PodLife.RUNNING, **fields):
    return app_pod_of(model.Stage.EXECUTOR, f"exec-{number}", state, **fields)


@pytest.fixture
def app_events():
    return Published()


def test_an_application_is_submitted_with_its_driver_and_the_minimum_of_its_executors(app_events):
    (event,) = app_events.update()
    assert [task_class.stage for task_class in event.classes] == [model.Stage.DRIVER, model.Stage.EXECUTOR]
    assert list(event.tasks.values()) == [1, 2]
    assert event.job.kind.startswith("team/")
    assert app_events.update() == []


def test_pods_are_placed_and_started_under_the_classes_of_the_application(app_events):
    app_events.update()
    events = app_events.update(driver(), executor(1, PodLife.STARTING))
    assert event_kinds(events) == ["Placed", "Started", "Placed"]
    assert [event.task_class for event in events[::2]] == [f"{UID}/driver", f"{UID}/executor"]
    assert (events[2].task, events[2].node, events[2].resources) == ("team/exec-1", "n1", SIZE)


def test_a_pod_without_a_node_is_no_event(app_events):
    app_events.update()
    assert app_events.update(driver(PodLife.UNPLACED, node=None)) == []


def test_an_executor_that_its_driver_deleted_has_finished_with_its_run_time(app_events):
    app_events.update(driver(), executor())
    app_events.now_s = 150.0
    (event,) = app_events.update(driver(), executor(state=PodLife.SUCCEEDED))
    assert (event_kinds([event]), event.duration_s) == (["Finished"], 100.0)


def test_an_executor_that_failed_has_a_reason(app_events):
    app_events.update(driver(), executor())
    (event,) = app_events.update(driver(), executor(state=PodLife.FAILED, reason="Evicted"))
    assert (event_kinds([event]), event.reason) == (["Failed"], "Evicted")


def test_more_executors_than_the_minimum_are_submitted_before_they_are_placed(app_events):
    app_events.update(driver(), executor(1), executor(2))
    events = app_events.update(driver(), *map(executor, range(1, 6)))
    assert event_kinds(events) == ["Submitted", *["Placed", "Started"] * 3]
    assert list(events[0].tasks.values()) == [0, 3]


def test_executors_that_are_gone_without_an_end_are_lost(app_events):
    app_events.update(driver(), executor(1), executor(2))
    events = app_events.update(driver(), executor(2))
    assert [(event.task, event.reason) for event in events] == [("team/exec-1", "PodLost")]


def test_executors_of_another_size_are_submitted_again(app_events):
    app_events.update(driver())
    less = dataclasses.replace(app_events.app.executor, memory_mib=700)
    (event,) = app_events.update(driver(), executor=less)
    assert event.classes[1].resources.memory_bytes == 700 * 2**20
    assert list(event.tasks.values()) == [0, 2]


def test_executors_that_still_exist_when_their_application_succeeds_have_finished(app_events):
    app_events.update(driver(), executor())
    events = app_events.end(driver(PodLife.SUCCEEDED, ended_s=1080.0), executor())
    assert event_kinds(events) == ["Finished", "Finished", "Ended"]
    assert [event.duration_s for event in events[:2]] == [30.0, 50.0]


def test_executors_of_an_application_that_failed_are_lost(app_events):
    app_events.update(driver(), executor())
    events = app_events.end(driver(PodLife.FAILED, reason="Error"), executor(), succeeded=False)
    assert event_kinds(events) == ["Failed", "Failed", "Ended"]
    assert not events[-1].succeeded


class Elastic(Published):
    """The events that are published about an application whose executors may have less memory."""

    def __init__(self):
        super().__init__(memory="4g", elasticMemory={"min": "2g"})

    def size(self, share=1.0):
        memory_mib = int(self.app.executor.memory_mib * share)
        return dataclasses.replace(self.app.executor, memory_mib=memory_mib)

    def run(self, share=1.0, seconds=50.0, reason=""):
        """Let an executor with this share of its memory run and end."""
        size = self.size(share)
        chosen = {"executor": size, "ideal_executor": self.app.executor} if share < 1 else {}
        held = model.Resources(cpu_milli=1000, memory_bytes=size.memory_bytes)
        pod = dataclasses.replace(executor(), resources=held)
        self.now_s = 50.0 + seconds
        for pods in ([pod], [observation.ended(pod, reason)], []):
            self.update(driver(), *pods, **chosen)

    @property
    def estimates(self):
        return self.learner.estimates(gang.executor_stage(self.app), 0.0)


@pytest.fixture
def elastic():
    return Elastic()


def test_a_program_with_elastic_memory_is_sized_once_it_ran_with_all_its_memory(elastic):
    assert elastic.estimates is model.UNKNOWN
    elastic.run()
    assert elastic.estimates.ideal_bytes == elastic.app.executor.memory_bytes
    assert elastic.estimates.run(elastic.app.elastic.least.memory_bytes)[0] == 75.0


def test_the_slowdown_of_executors_with_less_memory_is_measured(elastic):
    elastic.run()
    elastic.run(share=0.75, seconds=60.0)
    assert elastic.estimates.run(elastic.app.elastic.least.memory_bytes)[0] == 60.0


def test_a_program_whose_executor_failed_with_less_memory_gets_more_from_then_on(elastic):
    elastic.run()
    elastic.run(share=0.75, reason=observation.EXECUTOR_FAILED)
    assert isinstance(elastic.estimates, model.Fixed)
    elastic.end()
    assert elastic.estimates.least_bytes > elastic.size(0.75).memory_bytes


def test_an_executor_that_was_evicted_says_nothing_about_memory(elastic):
    elastic.run()
    elastic.run(share=0.75, reason="Evicted")
    assert elastic.estimates.least_bytes < elastic.size(0.75).memory_bytes


def test_nothing_is_learned_of_an_application_without_elastic_memory(app_events):
    app_events.update(driver(), executor())
    app_events.update(driver(), executor(state=PodLife.SUCCEEDED))
    assert app_events.learner.dump()["full"] == {}


def test_the_end_is_published_once_and_only_of_what_was_submitted(app_events):
    assert app_events.end() == []
    app_events.update()
    assert event_kinds(app_events.end()) == ["Ended"]
    assert app_events.end() == []


def test_after_a_restart_everything_that_exists_is_published_at_once(app_events):
    events = app_events.update(driver(), executor(1), executor(2))
    assert event_kinds(events) == ["Submitted", *["Placed", "Started"] * 3]
    assert list(events[0].tasks.values()) == [1, 2]


def test_between_two_attempts_only_pods_are_published(app_events):
    app_events.update(driver())
    app_events.publisher.update_pods(UID, [driver(PodLife.FAILED, reason="OOMKilled")])
    assert event_kinds(app_events.take()) == ["Failed"]
    app_events.publisher.update_pods("another", [driver()])
    assert app_events.take() == []
