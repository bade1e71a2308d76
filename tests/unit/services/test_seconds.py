"""Second attempts of slow tasks: when they may begin, and how two attempts of a task are settled."""

import dataclasses
import types

import pytest

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob.attempts.settle import Attempt
from boathouse.services.mrjob.placement import pod_builder, submission
from boathouse.services.mrjob.placement.seconds import PENDING_S, SecondAttempts
from boathouse_policies import model
from boathouse_task.contract import TaskType

SECOND = Attempt(task_type=TaskType.MAP, index=0, number=2)


@pytest.fixture
def job(build):
    return build.job()


def looked(build, job, *pods, state=None, seconds=()):
    return build.look(job, *pods, state=state or build.mapping(job, splits=1), seconds=seconds)


def deleted(desired):
    return [pod.name for pod in desired.delete]


def maps(desired):
    return desired.state.stages[TaskType.MAP]


# Settling


def test_a_requested_second_attempt_is_pending_beside_the_first(build, job):
    desired = looked(build, job, build.pod("m-0"), seconds=[SECOND])
    assert (list(desired.waiting), deleted(desired)) == ([SECOND], [])
    assert desired.state.condition("Scheduled").status == "True"


def test_two_attempts_run_side_by_side_and_the_task_counts_once(build, job):
    desired = looked(build, job, build.pod("m-0"), build.pod("m-0", 2), seconds=[SECOND])
    assert (list(desired.waiting), deleted(desired), desired.state.active[TaskType.MAP]) == ([], [], (0, 1))
    assert (maps(desired).settled(0), maps(desired).last) == (0, [2])


def test_a_second_attempt_without_a_node_is_pending_with_its_pod(build, job):
    pod = build.pod("m-0", 2, PodLife.UNPLACED, node=None)
    desired = looked(build, job, build.pod("m-0"), pod)
    assert [(each.number, each.pod_uid) for each in desired.waiting] == [(2, pod.uid)]


@pytest.mark.parametrize("winner", [1, 2])
def test_the_first_to_end_wins_and_the_other_is_ended(build, job, winner):
    other = 3 - winner
    desired = looked(build, job, build.won("m-0", winner), build.pod("m-0", other))
    assert (maps(desired).winner, deleted(desired), len(desired.results)) == ([winner], [f"m-0-a{other}"], 1)


def test_a_second_attempt_that_fails_is_settled_after_the_first(build, job):
    failed = build.failed("m-0", 2)
    first = looked(build, job, build.pod("m-0"), failed)
    assert (maps(first).user_failures, list(first.failures)) == ([0], [])
    both = looked(build, job, build.failed("m-0", 1), failed, state=first.state)
    assert (maps(both).user_failures, [each.attempt for each in both.failures]) == ([2], [1, 2])


def test_the_second_attempt_goes_on_when_the_first_fails_or_is_lost(build, job):
    for first in ([build.failed("m-0")], []):
        desired = looked(build, job, *first, build.pod("m-0", 2))
        assert (maps(desired).settled(0), list(desired.waiting), deleted(desired)) == (1, [], [])


def test_a_suspended_job_has_no_second_attempts(build):
    paused = build.job(suspend=True)
    desired = looked(build, paused, build.pod("m-0"), build.pod("m-0", 2), seconds=[SECOND])
    assert (list(desired.waiting), sorted(deleted(desired))) == ([], ["m-0-a1", "m-0-a2"])


# Requests


class World:
    def __init__(self, build, job):
        self.build, self.job, self.now_s, self.marked = build, job, 0.0, []
        self.pods = []
        index = types.SimpleNamespace(find=self._find, of=lambda _: self.pods)
        self.seconds = SecondAttempts(index, self.marked.append, lambda: self.now_s)
        self.update(build.mapping(job, splits=1))

    def _find(self, _uid, name):
        return next((pod for pod in self.pods if pod.name == name), None)

    def update(self, state):
        self.seconds.update(self.job, state)

    def request(self, *pods, avoids=()):
        self.pods = list(pods)
        return self.seconds.request(self.job.uid, f"demo/{pods[0].name}", avoids)

    def avoided(self, attempt=SECOND):
        """The nodes on which an attempt that is pending must not run."""
        self.pending()
        return set(self.seconds.avoided(self.job.uid, [attempt]).get(attempt, ()))

    def pending(self):
        return list(self.seconds.pending(self.job.uid))


@pytest.fixture
def world(build, job):
    return World(build, job)


def test_a_running_map_may_have_a_second_attempt(build, job, world):
    assert world.request(build.pod("m-0")) == f"demo/{pod_builder.pod_name(job, SECOND)}"
    assert (world.pending(), world.marked) == ([SECOND], [job.uid])


def test_a_repeated_request_changes_nothing(build, world):
    assert world.request(build.pod("m-0")) == world.request(build.pod("m-0"))
    assert len(world.marked) == 1


def test_a_request_is_over_when_its_pod_exists_or_after_a_time(build, world):
    world.request(build.pod("m-0"))
    world.pods.append(build.pod("m-0", 2))
    assert world.pending() == []
    world.request(build.pod("m-0"))
    world.now_s = PENDING_S
    assert world.pending() == []


def test_some_tasks_have_no_second_attempt(build, job, world):
    starting, setup = build.pod("m-0", state=PodLife.STARTING), build.pod("setup")
    for pods in ([starting], [setup], [build.pod("m-0"), build.pod("m-0", 2)], [build.pod("m-7")]):
        assert world.request(*pods) is None
    assert world.request(build.pod("m-0"), build.failed("m-0", 2)) is None
    world.update(build.look(job, build.won("m-0"), state=build.mapping(job, splits=1)).state)
    assert world.request(build.pod("m-0")) is None
    world.seconds.forget(job.uid)
    assert world.request(build.pod("m-0")) is None


def test_a_task_close_to_its_most_failures_has_no_second_attempt(build):
    world = World(build, build.job(mapper={"command": ["cat"], "maxAttempts": 1}))
    assert world.request(build.pod("m-0")) is None


# Nodes


def test_a_second_attempt_avoids_the_node_of_the_first_and_those_of_its_request(build, world):
    world.request(build.pod("m-0", node="n1"), avoids=["n4", "n5"])
    assert world.avoided() == {"n1", "n4", "n5"}


def test_a_request_is_kept_until_the_pod_of_the_attempt_has_a_node(build, world):
    world.request(build.pod("m-0", node="n1"), avoids=["n4"])
    ahead = build.pod("m-0", 2, PodLife.UNPLACED, node=None)
    world.pods.append(ahead)
    world.now_s = PENDING_S
    assert world.avoided(dataclasses.replace(SECOND, pod_uid=ahead.uid)) == {"n1", "n4"}
    world.pods[1] = build.pod("m-0", 2, node="n2")
    world.pending()
    assert world.seconds._jobs[world.job.uid].requests == {}


def test_another_leader_still_avoids_the_node_of_the_first(build, world):
    world.pods = [build.pod("m-0", node="n1"), build.pod("m-0", 2, PodLife.UNPLACED, node=None)]
    assert world.avoided() == {"n1"}


def test_an_attempt_after_a_failure_runs_anywhere(build, world):
    world.pods = [build.failed("m-0")]
    assert world.avoided() == set()


def test_attempts_that_avoid_nodes_have_a_class_of_their_own_behind_the_others(build):
    job, other = build.job(), Attempt(task_type=TaskType.REDUCE, index=0, number=1)
    avoided = {SECOND: frozenset({"n1", "n2"})}
    classes = submission.classes_in_use(job, [SECOND, other], (), avoided)
    assert [one.stage for one in classes] == [model.Stage.MAP, model.Stage.REDUCE, model.Stage.MAP]
    elsewhere = model.Expression(key="metadata.name", operator=model.Operator.NOT_IN, values=("n1", "n2"))
    assert classes[2].constraints.affinity == (model.AffinityTerm(fields=(elsewhere,)),)
    factory = submission.Factory.of(types.SimpleNamespace(job=job), [SECOND, other], avoided=avoided)
    assert [task.task_class for task in factory.tasks(None, {}.get)] == [classes[2].id, classes[1].id]
