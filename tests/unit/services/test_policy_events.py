"""What observers are told, from one look at a job's pods to the next."""

import dataclasses

import pytest

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.hadoop import directory
from boathouse.services.mrjob import policy_events
from boathouse.services.mrjob.placement import submission
from boathouse.services.mrjob.planning import steps
from boathouse_policies import framework, model, run_times
from boathouse_task import contract
from boathouse_task.contract import TaskReport, TaskType, Timing
from tests.unit.services.hadoop import builders as hadoop


class Witness(framework.Observer):
    def __init__(self):
        self.events = []

    def observe(self, event):
        self.events.append(event)

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


class WithoutSearch(dict):
    __iter__ = keys = values = items = None


@pytest.fixture
def witness():
    return Witness()


@pytest.fixture
def learner():
    return run_times.Learner()


@pytest.fixture
def clusters():
    return directory.Directory()


@pytest.fixture
def told(witness, learner, clusters):
    return policy_events.PolicyEvents((witness,), learner, lambda: 7.0, clusters)


def look(build, told, learner, state, job, *pods):
    """One look, as the reconciler does it; returns the record."""
    desired = build.look(job, *pods, state=state)
    classes = submission.step_classes(job, 0, steps.stages(desired.state, job), None, learner)
    told.update(job, desired.state, pods, classes)
    return desired.state


def test_a_job_comes_with_its_classes_and_what_is_left_of_each(build, witness, told, learner):
    job = build.job(numReduceTasks=2)
    look(build, told, learner, build.mapping(job, splits=3), job, build.pod("m-0"))
    (submitted,) = witness.of(model.Submitted)
    assert [one.stage for one in submitted.classes] == [model.Stage.MAP, model.Stage.REDUCE, model.Stage.COMMIT]
    assert list(submitted.tasks.values()) == [3, 2, 1]  # the map that runs is told as placed next


def test_what_is_left_less_what_is_placed_is_what_waits(build, witness, told, learner):
    job = build.job()
    pods = [build.won("m-0"), build.failed("m-1"), build.pod("m-2")]
    look(build, told, learner, build.mapping(job, splits=4), job, *pods)
    left = next(iter(witness.of(model.Submitted)[0].tasks.values()))
    assert left - len(witness.of(model.Placed)) + len(witness.of(model.Failed)) == 2  # m-1 again, and m-3


def test_a_pod_is_placed_started_and_finished_once_however_often_it_is_seen(build, witness, told, learner):
    job = build.job()
    state = build.mapping(job, splits=1)
    won = build.replace(build.won("m-0", timings=[Timing("read", 0, 2000)]), uid="same")
    for pod in (build.pod("m-0", state=PodLife.STARTING, uid="same"), build.pod("m-0", uid="same"), won, won):
        state = look(build, told, learner, state, job, pod)
    kinds = [type(event).__name__ for event in witness.events if not isinstance(event, model.Submitted)]
    assert kinds == ["Placed", "Started", "Finished"]
    assert witness.of(model.Finished)[0].duration_s == 2.0


def test_the_wait_of_a_reduce_is_no_work(build, witness, told, learner):
    job = build.job()
    pod = build.won("r-0", timings=[Timing("wait", 0, 9000), Timing("reduce", 9000, 10_000)])
    look(build, told, learner, build.reducing(job), job, pod)
    assert witness.of(model.Finished)[0].duration_s == 1.0


def test_a_pod_that_vanished_has_failed(build, witness, told, learner):
    job = build.job()
    state = look(build, told, learner, build.mapping(job, splits=1), job, build.pod("m-0"))
    look(build, told, learner, state, job)
    assert [event.reason for event in witness.of(model.Failed)] == ["PodLost"]


def test_pods_with_less_memory_are_new_once(build, told):
    job = build.job()
    pod = build.pod("m-0", memory_bytes=128 << 20, ideal_memory_bytes=512 << 20)
    assert told.update(job, build.mapping(job), [pod], []) == [pod]
    assert told.update(job, build.mapping(job), [pod], []) == []


def test_a_map_is_as_far_as_the_closest_node_with_its_split(build, witness, told, clusters):
    splits = [contract.Split(url="u", offset_bytes=0, length_bytes=9, size_bytes=9, locations=n) for n in (0, 1, 2, -1)]
    plan = contract.Plan(splits=splits, location_sets=[["c1.lake"], ["c2.lake", "c3.lake"], ["c3.lake"]])
    for name in ("n1", "n2"):
        node = model.Node(name=name, allocatable=model.Resources(), rack="r1")
        told.node_changed(name, node)
    job = build.job()
    facts = hadoop.cluster(namespace=job.namespace, hosts={"c1": "n1", "c2": "n2", "c3": "gone"})
    clusters.put(dataclasses.replace(facts, domain="lake"))
    told.update(job, build.mapping(job, 4), [build.pod(f"m-{index}") for index in range(4)], [], plan)
    far = model.Distance
    assert [event.distance for event in witness.of(model.Placed)] == [far.NODE, far.RACK, far.ANYWHERE, far.ANYWHERE]


def test_a_report_has_the_names_that_policies_read(build, witness, told):
    job = build.job()
    told.update(job, build.mapping(job), [build.pod("r-0", resources=model.Resources(cpu_milli=500))], [])
    report = TaskReport(phase="wait", progress=0.1, bytes_in=600, maps_done=2, maps_total=3)
    told.report(job.uid, build.pod("r-0").name, report)
    (progress,) = witness.of(model.Progress)
    assert (progress.phase, progress.counters["cpu_milli"], progress.counters["input_bytes"]) == ("shuffle", 500, 900)


def test_a_task_killed_with_less_memory_keeps_its_stage_from_getting_less(build, told, learner):
    job = build.job(mapper={"command": ["cat"], "elasticMemory": {"min": "128Mi"}})
    stage = submission.run_times_stage(job, TaskType.MAP, 0)
    learner.learn(stage, seconds=10, input_bytes=0, less=False)
    assert not isinstance(learner.estimates(stage, 0), model.Fixed)
    pod = build.replace(
        build.failed("m-0", user=False, reason="OOMKilled"),
        ideal_memory_bytes=512 << 20,
        resources=model.Resources(memory_bytes=200 << 20),
    )
    told.update(job, build.mapping(job), [pod], [])
    assert isinstance(learner.estimates(stage, 0), model.Fixed)
    learner.forget(stage.job)
    assert learner.estimates(stage, 0).least_bytes >= 264 << 20


def test_the_learner_reads_what_a_task_did_with_its_memory(build, told, learner):
    job = build.job(mapper={"command": ["cat"], "elasticMemory": {"min": "128Mi"}})
    counters = {"Boathouse": {"Peak memory bytes": 100 << 20, "Spilled bytes": 64 << 20, "Spill milliseconds": 1000}}
    pod = build.won("m-0", counters=counters, timings=[Timing("read", 0, 2000)])
    told.update(job, build.mapping(job), [pod], [])
    stage = submission.run_times_stage(job, TaskType.MAP, 0)
    assert learner.estimates(stage, 0).least_bytes >= (48 + 220) << 20
    assert learner.dump()["rate"] == 128 << 20


def test_a_pod_that_came_and_ended_between_two_looks_is_told_of_at_the_jobs_end(build, witness, told, learner):
    job = build.job()
    look(build, told, learner, build.mapping(job), job)
    told.ended(job.uid, succeeded=True, pods=[build.won("commit")])
    assert [type(event).__name__ for event in witness.events[1:]] == ["Placed", "Started", "Finished", "Ended"]


def test_a_jobs_end_is_told_once_and_only_of_jobs_that_were_told(build, witness, told, learner):
    job = build.job()
    told.ended("stranger", succeeded=True)
    look(build, told, learner, build.mapping(job), job, build.pod("m-0"))
    told.ended(job.uid, succeeded=False)
    told.ended(job.uid, succeeded=False)
    assert [event.succeeded for event in witness.of(model.Ended)] == [False]
    assert len(witness.of(model.Failed)) == 1


def test_a_report_finds_its_pod_without_a_search(build, witness, told, learner):
    job = build.job()
    look(build, told, learner, build.mapping(job, splits=2), job, build.pod("m-0"), build.pod("m-1"))
    events = told._jobs[job.uid].pods
    events._pods = WithoutSearch(events._pods)
    told.report(job.uid, build.pod("m-1").name, TaskReport(phase="read", progress=0.5))
    assert [event.fraction for event in witness.of(model.Progress)] == [0.5]


def test_a_report_of_a_pod_that_vanished_is_dropped(build, witness, told, learner):
    job = build.job()
    state = look(build, told, learner, build.mapping(job, splits=1), job, build.pod("m-0"))
    look(build, told, learner, state, job)
    told.report(job.uid, build.pod("m-0").name, TaskReport(phase="read", progress=0.5))
    assert witness.of(model.Progress) == []


def test_a_pod_placed_beside_an_earlier_attempt_repeats_it(build, witness, told):
    job = build.job()
    first, second = (
        build.replace(build.pod("m-0", number), name=f"wordcount-0a1b2c3d-s0-m-00000-a{number}") for number in (1, 2)
    )
    told.update(job, build.mapping(job), [first, second], [])
    assert [event.second_of for event in witness.of(model.Placed)] == [None, f"demo/{first.name}"]
