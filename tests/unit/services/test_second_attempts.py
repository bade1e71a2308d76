"""Second attempts of slow tasks: when they may begin, and how two attempts of a task are settled."""

import dataclasses
import types

import pytest

from boathouse.services.frame.pod_life import PodLife
from boathouse.services.mrjob import pod_builder, submission
from boathouse.services.mrjob.second_attempts import PENDING_S, SecondAttempts
from boathouse_policies import model
from boathouse_task.contract import TaskType
from tests.builders import mrjobs

SECOND = mrjobs.attempt(number=2)


def desired_of(job, *pods, state=None, seconds=()):
    return mrjobs.desired(job, *pods, state=state or mrjobs.mapping(job, splits=1), seconds=seconds)


def map_states(desired):
    return desired.state.stages[TaskType.MAP]


# Settling


def test_a_requested_second_attempt_is_pending_beside_the_first(job):
    desired = desired_of(job, mrjobs.attempt_pod("m-0"), seconds=[SECOND])
    assert (list(desired.waiting), mrjobs.deleted_pods(desired)) == ([SECOND], [])
    assert desired.state.condition("Scheduled").status == "True"


def test_two_attempts_run_side_by_side_and_the_task_counts_once(job):
    desired = desired_of(job, mrjobs.attempt_pod("m-0"), mrjobs.attempt_pod("m-0", 2), seconds=[SECOND])
    assert (list(desired.waiting), mrjobs.deleted_pods(desired), desired.state.active[TaskType.MAP]) == ([], [], (0, 1))
    assert (map_states(desired).settled(0), map_states(desired).last) == (0, [2])


def test_a_second_attempt_without_a_node_is_pending_with_its_pod(job):
    pod = mrjobs.attempt_pod("m-0", 2, PodLife.UNPLACED, node=None)
    desired = desired_of(job, mrjobs.attempt_pod("m-0"), pod)
    assert [(attempt.number, attempt.pod_uid) for attempt in desired.waiting] == [(2, pod.uid)]


@pytest.mark.parametrize("winner", [1, 2])
def test_the_first_to_end_wins_and_the_other_is_ended(job, winner):
    other = 3 - winner
    desired = desired_of(job, mrjobs.succeeded_pod("m-0", winner), mrjobs.attempt_pod("m-0", other))
    assert (map_states(desired).winner, mrjobs.deleted_pods(desired), len(desired.settlement.results)) == (
        [winner],
        [f"m-0-a{other}"],
        1,
    )


def test_a_second_attempt_that_fails_is_settled_after_the_first(job):
    failed = mrjobs.failed_pod("m-0", 2)
    first = desired_of(job, mrjobs.attempt_pod("m-0"), failed)
    assert (map_states(first).user_failures, list(first.settlement.failures)) == ([0], [])
    both = desired_of(job, mrjobs.failed_pod("m-0", 1), failed, state=first.state)
    assert (map_states(both).user_failures, [failure.attempt for failure in both.settlement.failures]) == ([2], [1, 2])


def test_the_second_attempt_keeps_running_when_the_first_fails_or_is_lost(job):
    for first in ([mrjobs.failed_pod("m-0")], []):
        desired = desired_of(job, *first, mrjobs.attempt_pod("m-0", 2))
        assert (map_states(desired).settled(0), list(desired.waiting), mrjobs.deleted_pods(desired)) == (1, [], [])


def test_a_suspended_job_has_no_second_attempts():
    desired = desired_of(
        mrjobs.job(suspend=True), mrjobs.attempt_pod("m-0"), mrjobs.attempt_pod("m-0", 2), seconds=[SECOND]
    )
    assert (list(desired.waiting), sorted(mrjobs.deleted_pods(desired))) == ([], ["m-0-a1", "m-0-a2"])


# Requests


class Requests:
    """Requests of second attempts for a job, with its pods and a clock."""

    def __init__(self, job):
        self.job, self.now_s, self.marked = job, 0.0, []
        self.pods = []
        index = types.SimpleNamespace(find=self._find, of=lambda _: self.pods)
        self.seconds = SecondAttempts(index, self.marked.append, lambda: self.now_s)
        self.update(mrjobs.mapping(job, splits=1))

    def _find(self, _uid, name):
        return next((pod for pod in self.pods if pod.name == name), None)

    def update(self, state):
        self.seconds.update(self.job, state)

    def request(self, *pods, avoids=()):
        self.pods = list(pods)
        return self.seconds.request(self.job.uid, f"demo/{pods[0].name}", avoids)

    def avoided(self, attempt=SECOND):
        """Return the nodes on which a pending attempt must not run."""
        self.pending()
        return set(self.seconds.avoided(self.job.uid, [attempt]).get(attempt, ()))

    def pending(self):
        return list(self.seconds.pending(self.job.uid))


@pytest.fixture
def requests(job):
    return Requests(job)


def test_a_running_map_may_have_a_second_attempt(job, requests):
    assert requests.request(mrjobs.attempt_pod("m-0")) == f"demo/{pod_builder.pod_name(job, SECOND)}"
    assert (requests.pending(), requests.marked) == ([SECOND], [job.uid])


def test_a_repeated_request_changes_nothing(requests):
    assert requests.request(mrjobs.attempt_pod("m-0")) == requests.request(mrjobs.attempt_pod("m-0"))
    assert len(requests.marked) == 1


def test_a_request_ends_when_its_pod_exists_or_after_a_time(requests):
    requests.request(mrjobs.attempt_pod("m-0"))
    requests.pods.append(mrjobs.attempt_pod("m-0", 2))
    assert requests.pending() == []
    requests.request(mrjobs.attempt_pod("m-0"))
    requests.now_s = PENDING_S
    assert requests.pending() == []


def test_some_tasks_have_no_second_attempt(job, requests):
    starting, setup = mrjobs.attempt_pod("m-0", state=PodLife.STARTING), mrjobs.attempt_pod("setup")
    for pods in (
        [starting],
        [setup],
        [mrjobs.attempt_pod("m-0"), mrjobs.attempt_pod("m-0", 2)],
        [mrjobs.attempt_pod("m-7")],
    ):
        assert requests.request(*pods) is None
    assert requests.request(mrjobs.attempt_pod("m-0"), mrjobs.failed_pod("m-0", 2)) is None
    requests.update(mrjobs.desired(job, mrjobs.succeeded_pod("m-0"), state=mrjobs.mapping(job, splits=1)).state)
    assert requests.request(mrjobs.attempt_pod("m-0")) is None
    requests.seconds.forget(job.uid)
    assert requests.request(mrjobs.attempt_pod("m-0")) is None


def test_a_task_close_to_its_most_failures_has_no_second_attempt():
    requests = Requests(mrjobs.job(mapper={"command": ["cat"], "maxAttempts": 1}))
    assert requests.request(mrjobs.attempt_pod("m-0")) is None


# Nodes


def test_a_second_attempt_avoids_the_node_of_the_first_and_those_of_its_request(requests):
    requests.request(mrjobs.attempt_pod("m-0", node="n1"), avoids=["n4", "n5"])
    assert requests.avoided() == {"n1", "n4", "n5"}


def test_a_request_is_kept_until_the_pod_of_the_attempt_has_a_node(requests):
    requests.request(mrjobs.attempt_pod("m-0", node="n1"), avoids=["n4"])
    ahead = mrjobs.attempt_pod("m-0", 2, PodLife.UNPLACED, node=None)
    requests.pods.append(ahead)
    requests.now_s = PENDING_S
    assert requests.avoided(dataclasses.replace(SECOND, pod_uid=ahead.uid)) == {"n1", "n4"}
    requests.pods[1] = mrjobs.attempt_pod("m-0", 2, node="n2")
    requests.pending()
    assert requests.seconds._jobs[requests.job.uid].requests == {}


def test_another_leader_still_avoids_the_node_of_the_first(requests):
    requests.pods = [mrjobs.attempt_pod("m-0", node="n1"), mrjobs.attempt_pod("m-0", 2, PodLife.UNPLACED, node=None)]
    assert requests.avoided() == {"n1"}


def test_an_attempt_after_a_failure_runs_anywhere(requests):
    requests.pods = [mrjobs.failed_pod("m-0")]
    assert requests.avoided() == set()


def test_attempts_that_avoid_nodes_have_a_class_of_their_own_behind_the_others():
    job, other = mrjobs.job(), mrjobs.attempt(TaskType.REDUCE)
    avoided = {SECOND: frozenset({"n1", "n2"})}
    classes = submission.classes_in_use(job, [SECOND, other], (), avoided)
    assert [task_class.stage for task_class in classes] == [model.Stage.MAP, model.Stage.REDUCE, model.Stage.MAP]
    elsewhere = model.Expression(key="metadata.name", operator=model.Operator.NOT_IN, values=("n1", "n2"))
    assert classes[2].constraints.affinity == (model.AffinityTerm(fields=(elsewhere,)),)
    factory = submission.Factory(types.SimpleNamespace(job=job), [SECOND, other], avoided=avoided)
    assert [task.task_class for task in factory.tasks(None, {}.get)] == [classes[2].id, classes[1].id]
