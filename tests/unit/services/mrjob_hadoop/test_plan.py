"""The decisions of the planner, one by one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from boathouse.resources.names import ConditionType, Reason
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.hadoop import TagView
from boathouse.services.mrjob import job_state
from boathouse.services.mrjob.attempt_pods import Ending
from boathouse.services.mrjob.hadoop import plan
from boathouse.services.mrjob.hadoop.observation import ClientPod, Desired, HadoopObservation, Submission
from boathouse.services.mrjob.job_state import HadoopState, JobState
from boathouse.services.mrjob.settle import Limits
from tests.builders import mrjobs
from tests.builders.frame import condition_of
from tests.builders.mrclusters import application
from tests.builders.simulated_hadoop_job import CLUSTER, NOW_S

if TYPE_CHECKING:
    from boathouse_task.cluster_contract import ApplicationFigures

LONG_AGO_S = NOW_S - 600
JAR = {"jar": {"url": "local:///opt/job.jar"}}
LIMITS = Limits(start_timeout_s=300, image_pull_timeout_s=300, max_infrastructure=3)


def attempt_state(number: int = 1, **more: Any) -> HadoopState:
    return HadoopState(
        **({"attempt": number, "tag": job_state.hadoop_tag(mrjobs.UID, number), "since_s": LONG_AGO_S} | more)
    )


def client_pod(state: PodLife = PodLife.RUNNING, number: int = 1, **more: Any) -> ClientPod:
    return ClientPod(
        **({"name": f"client-a{number}", "uid": "p", "attempt": number, "state": state, "placed_s": NOW_S - 5} | more)
    )


def failed_client(*, user: bool, number: int = 1) -> ClientPod:
    ending = Ending(reason="TaskFailed" if user else "PodLost", message="it failed", user_error=user, exit_code=1)
    return client_pod(PodLife.FAILED, number, ending=ending)


def succeeded_application(**more: Any) -> ApplicationFigures:
    return application(state="FINISHED", final="SUCCEEDED", counters={"g": {"n": 2}}, **more)


def tag_views(
    *applications: ApplicationFigures, number: int = 1, began_s: float = NOW_S, rm_started_s: float = 0.0
) -> Any:
    """Return reports about all tags up to that of an attempt, which has these applications."""
    return {
        job_state.hadoop_tag(mrjobs.UID, attempt): TagView(
            began_s=began_s,
            rm_started_s=rm_started_s,
            applications=applications if attempt == number else (),
        )
        for attempt in range(1, number + 1)
    }


def plan_job(hadoop: HadoopState | None = None, **observed: Any) -> Desired:
    state = JobState(hadoop=hadoop) if hadoop else JobState()
    values = {
        "job": mrjobs.cluster_job(),
        "state": state,
        "now_s": NOW_S,
        "limits": LIMITS,
        "cluster": CLUSTER,
        "clientless_s": NOW_S,
    }
    return plan.plan(HadoopObservation(**(values | observed)))


# Start


def test_the_number_of_an_attempt_is_in_the_state_before_its_client_is_submitted() -> None:
    desired = plan_job()
    assert desired.state.hadoop == attempt_state(since_s=NOW_S, cluster=CLUSTER.uid)
    assert not desired.submits


def test_the_first_client_is_submitted_without_a_report() -> None:
    assert plan_job(attempt_state(), submission=Submission.NONE).submits


@pytest.mark.parametrize(
    ("facts", "condition", "expected"),
    [
        (None, ConditionType.SCHEDULED, ("False", "ClusterNotReady")),
        (dataclasses.replace(CLUSTER, is_ready=False), ConditionType.SCHEDULED, ("False", "ClusterNotReady")),
        (dataclasses.replace(CLUSTER, has_compute=False), ConditionType.SCHEDULED, ("False", "NoCompute")),
    ],
    ids=["not reconciled", "not ready", "without YARN"],
)
def test_a_job_waits_for_its_cluster(facts: Any, condition: ConditionType, expected: tuple[str, str]) -> None:
    desired = plan_job(cluster=facts)
    assert condition_of(desired.state, condition) == expected
    assert (desired.state.phase, desired.state.hadoop) == ("Pending", None)


@pytest.mark.parametrize(("name", "facts"), [("lake", None), ("pond", CLUSTER)], ids=["its own", "of its URLs"])
def test_a_cluster_is_absent_only_if_the_api_server_has_none(name: str, facts: Any) -> None:
    absent, late = plan_job(cluster=facts, unknown={name: None}), plan_job(cluster=facts, unknown={name: "c-2"})
    assert condition_of(absent.state, ConditionType.ADMITTED) == ("False", "ClusterNotFound")
    assert condition_of(late.state, ConditionType.SCHEDULED) == ("False", "ClusterNotReady")
    assert condition_of(late.state, ConditionType.ADMITTED) == ("True", "Admitted")


@pytest.mark.parametrize(
    ("answers", "clientless_s"),
    [
        ({job_state.hadoop_tag(mrjobs.UID, 1): None}, LONG_AGO_S),
        (tag_views(began_s=NOW_S - 1), NOW_S - 5),
        (tag_views(rm_started_s=NOW_S - 10), LONG_AGO_S),
        (tag_views(), None),
    ],
    ids=["no answer", "report too early", "the ResourceManager recovers", "a client may still submit"],
)
def test_a_leader_that_did_not_begin_the_attempt_waits_for_a_report(answers: Any, clientless_s: float | None) -> None:
    desired = plan_job(attempt_state(), views=answers, clientless_s=clientless_s)
    assert not desired.submits
    assert desired.state.reason == Reason.APPLICATIONS_UNKNOWN


def test_it_submits_once_the_resource_manager_knows_no_application() -> None:
    assert plan_job(attempt_state(), views=tag_views(), clientless_s=LONG_AGO_S).submits


def test_a_second_attempt_is_not_submitted_without_a_report_about_the_first() -> None:
    second = {
        job_state.hadoop_tag(mrjobs.UID, 2): tag_views(number=2)[job_state.hadoop_tag(mrjobs.UID, 2)],
        job_state.hadoop_tag(mrjobs.UID, 1): None,
    }
    desired = plan_job(attempt_state(2), views=second, clientless_s=LONG_AGO_S, submission=Submission.NONE)
    assert not desired.submits
    assert desired.state.reason == Reason.APPLICATIONS_UNKNOWN


def test_an_application_of_an_earlier_attempt_is_adopted() -> None:
    answers = tag_views(number=2) | tag_views(application())
    desired = plan_job(attempt_state(2), views=answers, clientless_s=LONG_AGO_S)
    assert desired.state.hadoop is not None
    assert (desired.state.hadoop.attempt, desired.submits) == (1, False)


def test_a_condition_names_the_settings_that_are_ignored() -> None:
    desired = plan_job(job=mrjobs.cluster_job(hadoop={"settings": {"mapreduce.framework.name": "local", "a.b": "c"}}))
    condition = desired.state.condition(ConditionType.SETTINGS_OVERRIDDEN)
    assert condition is not None
    assert condition.message == "Boathouse sets mapreduce.framework.name itself: remove them from the spec"
    assert plan_job().state.condition(ConditionType.SETTINGS_OVERRIDDEN) is None


MISSING = ['file a: there is no ConfigMap "a"']


@pytest.mark.parametrize("hadoop", [None, attempt_state()], ids=["before", "in an attempt"])
def test_a_job_without_the_config_map_of_its_files_is_pending(hadoop: HadoopState | None) -> None:
    desired = plan_job(hadoop, missing=MISSING, submission=Submission.NONE)
    assert condition_of(desired.state, ConditionType.ADMITTED) == ("False", "ConfigMapNotFound")
    assert (desired.state.phase, desired.submits) == ("Pending", False)


def test_it_fails_after_the_time_in_which_a_pod_must_start() -> None:
    desired = plan_job(state=JobState(start_s=NOW_S - 300), missing=MISSING)
    assert (desired.state.phase, desired.state.reason) == ("Failed", "ConfigMapNotFound")


def test_the_time_begins_anew_with_the_end_of_an_attempt() -> None:
    lost = attempt_state(ended_s=NOW_S - 5)
    assert not plan_job(state=JobState(start_s=NOW_S - 3600, hadoop=lost), missing=MISSING).state.finished


# The cluster is deleted


ON_CLUSTER = attempt_state(cluster=CLUSTER.uid)
GONE: list[Any] = [{"cluster": None, "unknown": {"lake": None}}, {"cluster": dataclasses.replace(CLUSTER, uid="c-2")}]
of_gone = pytest.mark.parametrize("facts", GONE, ids=["deleted", "created again"])


@of_gone
def test_an_attempt_whose_cluster_was_deleted_is_not_the_users_failure(facts: dict[str, Any]) -> None:
    desired = plan_job(ON_CLUSTER, pods=[failed_client(user=True)], views=tag_views(), clientless_s=LONG_AGO_S, **facts)
    assert (desired.state.finished, desired.state.past_failures) == (False, (0, 1))
    assert desired.state.hadoop == attempt_state(cluster=CLUSTER.uid, ended_s=NOW_S)
    assert [failure.reason for failure in desired.state.last_failures] == ["ClusterNotFound"]


@of_gone
def test_its_client_ends_before_the_next_attempt(facts: dict[str, Any]) -> None:
    live = client_pod()
    desired = plan_job(ON_CLUSTER, pods=[live], clientless_s=None, **facts)
    assert list(desired.delete) == [live]
    assert (desired.state.hadoop or ON_CLUSTER).is_stopping
    later = plan_job(state=desired.state, **facts)
    assert (later.state.hadoop or ON_CLUSTER).ended_s == NOW_S


@of_gone
def test_a_job_that_had_succeeded_before_has_succeeded(facts: dict[str, Any]) -> None:
    mirrored = plan_job(
        ON_CLUSTER, pods=[client_pod()], views=tag_views(application(state="FINISHED", final="SUCCEEDED"))
    )
    assert mirrored.state.phase != "Succeeded"
    assert plan_job(state=mirrored.state, **facts).state.phase == "Succeeded"


@of_gone
def test_a_deleted_job_does_not_wait_for_applications_of_a_deleted_cluster(facts: dict[str, Any]) -> None:
    deleted = dataclasses.replace(mrjobs.cluster_job(), deleting_since_s=NOW_S)
    desired = plan_job(ON_CLUSTER, job=deleted, views={ON_CLUSTER.tag: None}, **facts)
    assert (desired.is_ending, condition_of(desired.state, ConditionType.CLEANED_UP)) == (False, None)


@pytest.mark.parametrize("unknown", [{}, {"lake": CLUSTER.uid}], ids=["not read", "there is one"])
def test_a_cluster_that_a_new_leader_does_not_know_is_not_gone(unknown: Any) -> None:
    facts: dict[str, Any] = {"cluster": None, "unknown": unknown, "views": {ON_CLUSTER.tag: None}}
    assert plan_job(
        ON_CLUSTER, job=dataclasses.replace(mrjobs.cluster_job(), deleting_since_s=NOW_S), **facts
    ).is_ending
    running = plan_job(ON_CLUSTER, pods=[client_pod()], **facts)
    assert not running.state.last_failures
    assert not running.delete


def test_the_cluster_of_an_attempt_survives_the_status() -> None:
    written = job_state.to_status(JobState(hadoop=ON_CLUSTER))
    assert job_state.from_status(written, reduces=0).hadoop == ON_CLUSTER


# Running


def test_the_tasks_of_an_application_are_mirrored() -> None:
    running = application(maps=(4, 4), reduces=(1, 2), progress=60)
    desired = plan_job(attempt_state(), pods=[client_pod()], views=tag_views(running))
    assert (desired.state.phase, desired.state.percent) == ("Reduce", 83)
    assert job_state.progress(desired.state) == "maps 4/4, reduces 1/2"


def test_a_client_that_was_lost_does_not_matter_while_its_application_runs() -> None:
    desired = plan_job(attempt_state(), pods=[failed_client(user=False)], views=tag_views(application()))
    assert (desired.state.past_failures, desired.kill, desired.submits) == ((0, 0), [], False)


def test_an_application_of_another_attempt_is_killed() -> None:
    answers = tag_views(application(number=2), number=2) | tag_views(application(number=1))
    assert plan_job(attempt_state(2), pods=[client_pod(number=2)], views=answers).kill == ["application_1_1"]


def test_a_client_that_cannot_start_fails_the_job_after_a_while() -> None:
    problem = Problem(reason="ImagePullFailed", message="no such image")
    stuck = client_pod(PodLife.STARTING, placed_s=NOW_S - 301, problem=problem)
    desired = plan_job(attempt_state(), pods=[stuck])
    assert (desired.state.phase, desired.state.reason, list(desired.delete)) == ("Failed", "ImagePullFailed", [stuck])


@pytest.mark.parametrize("state", [PodLife.UNPLACED, PodLife.STARTING])
def test_a_client_with_settings_that_the_cluster_had_before_is_replaced(state: PodLife) -> None:
    old = client_pod(state, settings="lake-conf-0")
    desired = plan_job(attempt_state(), pods=[old], clientless_s=None)
    assert (list(desired.delete), desired.submits) == ([old], False)
    later = plan_job(state=desired.state, views=tag_views(), clientless_s=NOW_S - 60)
    assert (later.state.past_failures, (later.state.hadoop or attempt_state()).ended_s) == ((0, 0), NOW_S)
    assert (plan_job(state=later.state).state.hadoop or attempt_state()).attempt == 2


@pytest.mark.parametrize(
    "pod",
    [client_pod(PodLife.STARTING, settings=CLUSTER.settings), client_pod(PodLife.RUNNING, settings="lake-conf-0")],
    ids=["current", "running"],
)
def test_other_clients_stay(pod: ClientPod) -> None:
    assert not plan_job(attempt_state(), pods=[pod], clientless_s=None).delete


# Endings


def test_the_application_decides_about_a_streaming_job() -> None:
    desired = plan_job(attempt_state(), pods=[client_pod(PodLife.SUCCEEDED)], views=tag_views(succeeded_application()))
    assert (desired.state.phase, desired.state.percent, desired.state.counters) == ("Succeeded", 100, {"g": {"n": 2}})


def test_its_counters_are_awaited_for_a_while() -> None:
    bare = application(state="FINISHED", final="SUCCEEDED")
    early = plan_job(attempt_state(), views=tag_views(bare), all_ended_s=NOW_S - 5)
    late = plan_job(attempt_state(), views=tag_views(bare), all_ended_s=NOW_S - 30)
    assert (early.state.finished, late.state.phase) == (False, "Succeeded")


def test_a_failed_application_fails_the_job_with_the_diagnostics_of_yarn() -> None:
    ended = application(state="FAILED", final="FAILED", diagnostics="Task failed task_1", counters={"g": {"n": 1}})
    desired = plan_job(attempt_state(), pods=[client_pod(PodLife.FAILED)], views=tag_views(ended))
    assert (desired.state.phase, desired.state.reason) == ("Failed", "ApplicationFailed")
    assert "Task failed task_1" in desired.state.last_failures[0].message


def test_a_client_that_failed_without_an_application_fails_the_job() -> None:
    desired = plan_job(attempt_state(), pods=[failed_client(user=True)], views=tag_views(), clientless_s=NOW_S - 60)
    assert (desired.state.phase, desired.state.reason, desired.state.past_failures) == ("Failed", "TaskFailed", (1, 0))


def test_such_a_client_does_not_fail_the_job_before_the_resource_manager_has_reported() -> None:
    assert (
        plan_job(attempt_state(), pods=[failed_client(user=True)], views={}, clientless_s=None).state.phase != "Failed"
    )


def test_a_lost_client_without_an_application_costs_an_attempt() -> None:
    desired = plan_job(attempt_state(), pods=[failed_client(user=False)], views=tag_views(), clientless_s=NOW_S - 60)
    assert desired.state.past_failures == (0, 1)
    assert desired.state.hadoop == attempt_state(ended_s=NOW_S)
    later = plan_job(desired.state.hadoop, now_s=NOW_S + 10, state=desired.state)
    assert (later.state.hadoop or attempt_state()).attempt == 2


def test_a_job_whose_clients_are_lost_too_often_fails() -> None:
    state = JobState(hadoop=attempt_state(3), past_failures=(0, 2))
    desired = plan_job(
        state=state, pods=[failed_client(user=False, number=3)], views=tag_views(number=3), clientless_s=NOW_S - 60
    )
    assert (desired.state.phase, desired.state.reason) == ("Failed", "PodLost")


def test_the_exit_of_the_client_decides_about_a_job_from_a_jar() -> None:
    applications = tag_views(succeeded_application(number=1), succeeded_application(number=2))
    done = plan_job(
        attempt_state(), job=mrjobs.cluster_job(**JAR), pods=[client_pod(PodLife.SUCCEEDED)], views=applications
    )
    still = plan_job(
        attempt_state(), job=mrjobs.cluster_job(**JAR), pods=[client_pod()], views=applications, clientless_s=None
    )
    assert (done.state.phase, still.state.finished) == ("Succeeded", False)


def test_the_applications_of_a_jars_lost_client_are_killed_before_the_next_attempt() -> None:
    lost = failed_client(user=False)
    desired = plan_job(
        attempt_state(),
        job=mrjobs.cluster_job(**JAR),
        pods=[lost],
        views=tag_views(application()),
        clientless_s=NOW_S - 60,
    )
    assert desired.state.hadoop == attempt_state(
        is_stopping=True, applications=(desired.state.hadoop or attempt_state()).applications
    )
    assert desired.kill == ["application_1_1"]


# Stopping


def test_a_suspended_job_is_killed_and_its_attempt_stays_open_until_it_has_ended() -> None:
    suspended = mrjobs.cluster_job(suspend=True)
    desired = plan_job(
        attempt_state(), job=suspended, pods=[client_pod()], views=tag_views(application()), clientless_s=None
    )
    assert (desired.state.phase, desired.kill) == ("Suspended", ["application_1_1"])
    killed = tag_views(application(state="KILLED", final="KILLED"))
    later = plan_job(state=desired.state, job=suspended, views=killed, clientless_s=NOW_S - 60)
    assert (later.state.hadoop or attempt_state()).ended_s == NOW_S


def test_a_job_that_is_resumed_begins_another_attempt() -> None:
    closed = attempt_state(is_stopping=True, ended_s=NOW_S - 1)
    assert (plan_job(closed).state.hadoop or attempt_state()).attempt == 2


def test_a_job_that_succeeded_while_it_was_suspended_has_succeeded() -> None:
    stopping = attempt_state(is_stopping=True)
    assert (
        plan_job(stopping, job=mrjobs.cluster_job(suspend=True), views=tag_views(succeeded_application())).state.phase
        == "Succeeded"
    )


def test_a_job_beyond_its_deadline_fails_and_is_not_deleted_before_its_application_has_ended() -> None:
    state = JobState(hadoop=attempt_state(), start_s=NOW_S - 61)
    desired = plan_job(state=state, job=mrjobs.cluster_job(activeDeadlineSeconds=60), views=tag_views(application()))
    assert (desired.state.reason, desired.kill, desired.is_ending) == ("DeadlineExceeded", ["application_1_1"], True)


def test_a_deleted_job_waits_for_its_application_for_two_minutes() -> None:
    deleted = dataclasses.replace(mrjobs.cluster_job(), deleting_since_s=NOW_S - 119)
    waiting = plan_job(attempt_state(), job=deleted, views=tag_views(application()))
    gone = plan_job(attempt_state(), job=deleted, views=tag_views(application()), now_s=NOW_S + 1)
    assert (waiting.is_ending, gone.is_ending) == (True, False)
    assert condition_of(gone.state, ConditionType.CLEANED_UP) == ("False", "CleanUpFailed")


def test_a_deleted_job_that_never_began_is_not_held() -> None:
    assert not plan_job(job=dataclasses.replace(mrjobs.cluster_job(), deleting_since_s=NOW_S)).is_ending
