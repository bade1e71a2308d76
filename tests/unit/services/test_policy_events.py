"""Events for a profile's observers about the pods of a job, from one reconcile to the next."""

import dataclasses

import pytest

from boathouse.services import hadoop
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import policy_events, submission
from boathouse.services.mrjob.planning import steps
from boathouse_policies import model, run_times
from boathouse_task import contract
from boathouse_task.contract import TaskReport, TaskType, Timing
from tests.builders import mrjobs
from tests.builders.mrclusters import cluster_facts
from tests.builders.observers import Recorder


class WithoutSearch(dict):
    __iter__ = keys = values = items = None


class Published(Recorder):
    """The events that are published about one job."""

    def __init__(self, **spec):
        super().__init__()
        self.job, self.learner, self.clusters = mrjobs.job(**spec), run_times.Learner(), hadoop.Directory()
        self.publisher = policy_events.PolicyEvents((self,), self.learner, lambda: 7.0, self.clusters)
        self.stage = submission.run_times_stage(self.job, TaskType.MAP, 0)

    def reconcile(self, *pods, state=None, splits=3):
        """Publish pods as the reconciler does; return the next state of the job, which is mapping by default."""
        state = mrjobs.desired(self.job, *pods, state=state or mrjobs.mapping(self.job, splits)).state
        classes = submission.step_classes(self.job, 0, steps.stages(state, self.job), None, self.learner)
        self.publisher.update(self.job, state, pods, classes)
        return state

    def update(self, *pods, plan=None):
        return self.publisher.update(self.job, mrjobs.mapping(self.job, 4), pods, [], plan)

    def report(self, task, **report):
        self.publisher.report(self.job.uid, mrjobs.attempt_pod(task).name, TaskReport(**report))

    def end(self, *pods, succeeded):
        self.publisher.ended(self.job.uid, succeeded=succeeded, pods=pods)

    @property
    def least_bytes(self):
        return self.learner.estimates(self.stage, 0).least_bytes


@pytest.fixture
def job_events():
    return Published()


def test_a_job_is_submitted_with_its_classes_and_the_unfinished_tasks_of_each():
    job_events = Published(numReduceTasks=2)
    job_events.reconcile(mrjobs.attempt_pod("m-0"))
    (submitted,) = job_events.of(model.Submitted)
    stages = [task_class.stage for task_class in submitted.classes]
    assert stages == [model.Stage.MAP, model.Stage.REDUCE, model.Stage.COMMIT]
    assert list(submitted.tasks.values()) == [3, 2, 1]  # the map that runs is placed next


def test_tasks_that_ended_under_a_former_leader_count_among_all_tasks_of_their_class():
    job_events = Published(numReduceTasks=2)
    state = job_events.reconcile(mrjobs.succeeded_pod("m-0"))
    successor = Published(numReduceTasks=2)
    successor.reconcile(state=state)
    (submitted,) = successor.of(model.Submitted)
    assert (list(submitted.tasks.values()), list(submitted.totals.values())) == ([2, 2, 1], [3, 2, 1])


def test_unfinished_tasks_less_those_that_are_placed_are_pending(job_events):
    job_events.reconcile(mrjobs.succeeded_pod("m-0"), mrjobs.failed_pod("m-1"), mrjobs.attempt_pod("m-2"), splits=4)
    unfinished = next(iter(job_events.of(model.Submitted)[0].tasks.values()))
    assert unfinished - len(job_events.of(model.Placed)) + len(job_events.of(model.Failed)) == 2  # m-1 again, and m-3


def test_a_pod_is_placed_started_and_finished_once_however_often_it_is_observed(job_events):
    state = mrjobs.mapping(job_events.job, splits=1)
    succeeded = dataclasses.replace(mrjobs.succeeded_pod("m-0", timings=[Timing("read", 0, 2000)]), uid="same")
    starting, running = (
        mrjobs.attempt_pod("m-0", state=life, uid="same") for life in (PodLife.STARTING, PodLife.RUNNING)
    )
    for pod in (starting, running, succeeded, succeeded):
        state = job_events.reconcile(pod, state=state)
    assert [kind for kind in job_events.kinds if kind != "Submitted"] == ["Placed", "Started", "Finished"]
    assert job_events.of(model.Finished)[0].duration_s == 2.0


def test_the_time_in_which_a_reduce_waits_is_no_run_time(job_events):
    pod = mrjobs.succeeded_pod("r-0", timings=[Timing("wait", 0, 9000), Timing("reduce", 9000, 10_000)])
    job_events.reconcile(pod, state=mrjobs.reducing(job_events.job))
    assert job_events.of(model.Finished)[0].duration_s == 1.0


def test_a_pod_that_vanished_has_failed_and_its_reports_are_dropped(job_events):
    state = job_events.reconcile(mrjobs.attempt_pod("m-0"), splits=1)
    job_events.reconcile(state=state)
    assert [event.reason for event in job_events.of(model.Failed)] == ["PodLost"]
    job_events.report("m-0", phase="read", progress=0.5)
    assert job_events.of(model.Progress) == []


def test_pods_with_less_memory_are_new_once(job_events):
    pod = mrjobs.attempt_pod("m-0", memory_bytes=128 << 20, ideal_memory_bytes=512 << 20)
    assert job_events.update(pod) == [pod]
    assert job_events.update(pod) == []


def test_a_map_is_as_far_as_the_closest_node_with_its_split(job_events):
    splits = [mrjobs.split(locations=locations) for locations in (0, 1, 2, -1)]
    plan = contract.Plan(splits=splits, location_sets=[["c1.lake"], ["c2.lake", "c3.lake"], ["c3.lake"]])
    for name in ("n1", "n2"):
        node = model.Node(name=name, allocatable=model.Resources(), rack="r1")
        job_events.publisher.node_changed(name, node)
    facts = cluster_facts(namespace=job_events.job.namespace, hosts={"c1": "n1", "c2": "n2", "c3": "gone"})
    job_events.clusters.put(dataclasses.replace(facts, domain="lake"))
    job_events.update(*(mrjobs.attempt_pod(f"m-{index}") for index in range(4)), plan=plan)
    far = model.Distance
    assert [event.distance for event in job_events.of(model.Placed)] == [far.NODE, far.RACK, far.ANYWHERE, far.ANYWHERE]


def test_a_report_has_the_names_that_policies_read(job_events):
    job_events.update(mrjobs.attempt_pod("r-0", resources=model.Resources(cpu_milli=500)))
    job_events.report("r-0", phase="wait", progress=0.1, bytes_in=600, maps_done=2, maps_total=3)
    (progress,) = job_events.of(model.Progress)
    assert (progress.phase, progress.counters["cpu_milli"], progress.counters["input_bytes"]) == ("shuffle", 500, 900)


ELASTIC_MAPPER = {"command": ["cat"], "elasticMemory": {"min": "128Mi"}}


def test_a_task_killed_with_less_memory_keeps_its_stage_from_getting_less():
    job_events = Published(mapper=ELASTIC_MAPPER)
    learner, stage = job_events.learner, job_events.stage
    learner.learn(stage, seconds=10, input_bytes=0, less=False)
    assert not isinstance(learner.estimates(stage, 0), model.Fixed)
    pod = dataclasses.replace(
        mrjobs.failed_pod("m-0", user=False, reason="OOMKilled"),
        ideal_memory_bytes=512 << 20,
        resources=model.Resources(memory_bytes=200 << 20),
    )
    job_events.update(pod)
    assert isinstance(learner.estimates(stage, 0), model.Fixed)
    learner.forget(stage.job)
    assert job_events.least_bytes >= 264 << 20


def test_the_learner_reads_what_a_task_did_with_its_memory():
    job_events = Published(mapper=ELASTIC_MAPPER)
    counters = {"Boathouse": {"Peak memory bytes": 100 << 20, "Spilled bytes": 64 << 20, "Spill milliseconds": 1000}}
    job_events.update(mrjobs.succeeded_pod("m-0", counters=counters, timings=[Timing("read", 0, 2000)]))
    assert job_events.least_bytes >= (48 + 220) << 20
    assert list(job_events.learner.dump()["rates"].values()) == [128 << 20]


def test_a_pod_that_was_created_and_ended_between_two_reconciles_is_published_at_the_jobs_end(job_events):
    job_events.reconcile()
    job_events.end(mrjobs.succeeded_pod("commit"), succeeded=True)
    assert job_events.kinds[1:] == ["Placed", "Started", "Finished", "Ended"]


def test_the_end_of_a_job_is_published_once_and_only_if_the_job_was_submitted(job_events):
    job_events.publisher.ended("another", succeeded=True)
    job_events.reconcile(mrjobs.attempt_pod("m-0"))
    for _ in range(2):
        job_events.end(succeeded=False)
    assert [event.succeeded for event in job_events.of(model.Ended)] == [False]
    assert len(job_events.of(model.Failed)) == 1


def test_a_report_finds_its_pod_without_a_search(job_events):
    job_events.reconcile(mrjobs.attempt_pod("m-0"), mrjobs.attempt_pod("m-1"), splits=2)
    pods = job_events.publisher._jobs[job_events.job.uid].pods
    pods._pods = WithoutSearch(pods._pods)
    job_events.report("m-1", phase="read", progress=0.5)
    assert [event.fraction for event in job_events.of(model.Progress)] == [0.5]


def test_a_pod_placed_beside_an_earlier_attempt_repeats_it(job_events):
    first, second = (
        mrjobs.attempt_pod("m-0", number, name=f"wordcount-0a1b2c3d-s0-m-00000-a{number}") for number in (1, 2)
    )
    job_events.update(first, second)
    assert [event.second_of for event in job_events.of(model.Placed)] == [None, f"demo/{first.name}"]


def test_a_tick_has_the_time(job_events):
    job_events.publisher.tick()
    assert job_events.of(model.Tick) == [model.Tick(now_s=7.0)]
