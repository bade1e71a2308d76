"""The life of an application, decision by decision."""

import dataclasses

import pytest

from boathouse.resources.sparkapp.names import ConditionType
from boathouse.resources.sparkapp.status import ExecutorCounts
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.sparkapp import conditions, model, planner, rest
from boathouse.services.sparkapp.kind import SparkAppKind
from boathouse.services.sparkapp.model import AppState
from boathouse.services.sparkapp.observation import Ending, Observation
from boathouse.services.sparkapp.rest import Report
from tests.builders.frame import condition_of
from tests.builders.sparkapps import STARTED_S, app, driver_pod
from tests.wire.fake_api.merging import merge

NOW = STARTED_S
CRASH = Ending(reason="Error", message="exit code 1", exit_code=1, log="Traceback\nValueError")
EVICTED = Ending(reason="Evicted", message="out of disk", is_infrastructure=True)
ON_FAILURE = {"type": "OnFailure", "onFailureRetries": 2, "onInfrastructureFailureRetries": 3}
ALWAYS = {"type": "Always"}


def failed_driver(attempt=1, ending=CRASH, **fields):
    return driver_pod(PodLife.FAILED, attempt, ending=ending, **fields)


class Life:
    """An application whose plans are carried out at once."""

    def __init__(self, **spec):
        self.spec = spec
        self.state, self.status = AppState(), {}
        self.now_s = NOW

    def plan(self, *drivers, after_s=0.0, **observed):
        self.now_s += after_s
        observation = Observation(app=app(**self.spec), state=self.state, now_s=self.now_s, drivers=drivers, **observed)
        found = planner.plan(observation)
        self.status = merge(self.status, model.to_status(found.state))
        self.state = model.from_status(self.status)
        assert self.state == found.state
        assert planner.plan(dataclasses.replace(observation, state=found.state)).state.phase == found.state.phase
        return found

    def running(self, **observed):
        """Let the driver of the first attempt run."""
        self.plan()
        self.plan(driver_pod(), **observed)
        return self

    def condition(self, condition_type):
        return condition_of(self.state, condition_type)


def test_a_new_application_begins_its_first_attempt():
    life = Life()
    plan = life.plan()
    assert (plan.submit, plan.reserve) == (1, 2)
    assert life.state.phase == "Pending"
    assert life.state.application_id == "spark-0a1b2c3d4e5f6789abcdef0123456789-1"
    assert life.condition(ConditionType.ADMITTED) == ("True", "Admitted")


def test_an_attempt_that_has_no_pod_yet_is_submitted_again_and_no_other():
    life = Life()
    life.plan()
    assert life.plan().submit == 1
    assert life.plan(diagnosis=Problem(reason="NeverFits", message="too large")).state.attempt == 1
    assert life.condition(ConditionType.SCHEDULED) == ("False", "NeverFits")
    assert life.state.reason == "NeverFits"
    assert SparkAppKind.note(None, app(), life.state) == "too large"


def test_the_phase_follows_the_driver():
    life = Life()
    life.plan()
    assert life.plan(driver_pod(PodLife.UNPLACED)).state.phase == "Pending"
    assert life.plan(driver_pod(PodLife.STARTING)).state.phase == "Starting"
    assert life.condition(ConditionType.SCHEDULED) == ("True", "DriverPlaced")
    assert life.plan(driver_pod()).state.phase == "Running"
    assert life.state.driver.node == "n1"
    assert life.plan(driver_pod(PodLife.SUCCEEDED)).state.phase == "Succeeded"
    assert life.condition(ConditionType.SUCCEEDED) == ("True", "Succeeded")
    assert life.state.progress_percent == 100
    assert life.plan(driver_pod(PodLife.SUCCEEDED)).submit is None


def test_a_failure_is_final_without_a_restart_policy():
    life = Life().running()
    plan = life.plan(failed_driver())
    assert plan.state.phase == "Failed"
    assert life.condition(ConditionType.FAILED) == ("True", "ApplicationFailed")
    assert life.state.last_log == "Traceback\nValueError"
    assert life.state.past_attempts[-1].exit_code == 1


def test_a_failed_application_is_restarted_with_backoff_as_another_attempt():
    life = Life(restartPolicy=ON_FAILURE).running()
    plan = life.plan(failed_driver())
    assert (plan.state.phase, plan.submit, plan.requeue_s) == ("Restarting", None, NOW + 10)
    assert life.plan(failed_driver(), after_s=9).submit is None
    assert life.plan(failed_driver(), after_s=1).submit == 2
    assert life.state.application_id.endswith("-2")
    life.plan(failed_driver(), driver_pod(attempt=2))
    assert life.plan(failed_driver(), failed_driver(2)).requeue_s == life.now_s + 20


def test_the_restarts_are_limited():
    life = Life(restartPolicy=ON_FAILURE).running()
    for attempt in (1, 2):
        assert life.plan(failed_driver(attempt)).state.phase == "Restarting"
        life.plan(after_s=100)
    assert life.plan(failed_driver(3)).state.phase == "Failed"
    assert "(attempt 3)" in life.state.condition(ConditionType.FAILED).message


def test_failures_of_the_infrastructure_have_a_limit_of_their_own():
    life = Life(restartPolicy=ON_FAILURE).running()
    for attempt in (1, 2, 3):
        assert life.plan(failed_driver(attempt, EVICTED)).state.phase == "Restarting"
        life.plan(after_s=1000)
    assert life.state.failures.application == 0
    assert life.plan(failed_driver(4, EVICTED)).state.phase == "Failed"
    assert life.condition(ConditionType.FAILED) == ("True", "Evicted")


def test_a_driver_that_never_ran_is_repeated_even_without_a_restart_policy():
    life = Life()
    life.plan()
    rejected = failed_driver(ending=EVICTED, started_s=None)
    assert life.plan(rejected).state.phase == "Restarting"
    assert life.plan(rejected, after_s=10).submit == 2


def test_a_driver_that_ran_is_not_repeated_without_a_restart_policy():
    life = Life().running()
    assert life.plan(failed_driver(ending=EVICTED)).state.phase == "Failed"


def test_a_streaming_application_is_restarted_after_a_success():
    life = Life(restartPolicy=ALWAYS).running()
    assert life.plan(driver_pod(PodLife.SUCCEEDED)).state.phase == "Restarting"
    assert life.plan(driver_pod(PodLife.SUCCEEDED), after_s=10).submit == 2


def test_a_long_run_resets_the_counts():
    life = Life(restartPolicy=ON_FAILURE).running()
    life.plan(failed_driver())
    life.plan(failed_driver(), after_s=10)
    second = driver_pod(attempt=2, started_s=life.now_s)
    life.plan(second)
    plan = life.plan(failed_driver(2, started_s=second.started_s), after_s=3600)
    assert plan.state.failures.application == 1


def test_out_of_memory_is_the_applications():
    life = Life().running()
    life.plan(failed_driver(ending=Ending(reason="OOMKilled", exit_code=137)))
    assert life.condition(ConditionType.FAILED) == ("True", "OOMKilled")


def test_a_driver_that_is_gone_is_lost():
    life = Life(restartPolicy=ON_FAILURE).running()
    assert life.plan().state.phase == "Restarting"
    assert life.state.past_attempts[-1].reason == "DriverLost"
    assert life.plan(after_s=10).submit == 2


def test_no_attempt_starts_while_the_pod_of_a_lost_driver_is_there():
    life = Life(restartPolicy=ON_FAILURE).running()
    leaving = driver_pod(deleting_since_s=NOW)
    assert life.plan(leaving, after_s=299).state.phase == "Running"
    assert life.plan(leaving, after_s=1).state.phase == "Restarting"
    assert life.plan(leaving, after_s=10).submit == 2


def test_a_removed_node_ends_the_wait_for_its_driver():
    life = Life(restartPolicy=ON_FAILURE).running()
    leaving = driver_pod(deleting_since_s=NOW, node_gone=True)
    life.plan(leaving, after_s=1)
    assert life.state.phase == "Restarting"
    assert life.plan(leaving, after_s=10).submit == 2


def test_the_next_attempt_waits_for_a_driver_whose_removed_node_came_back():
    life = Life(restartPolicy=ON_FAILURE).running()
    life.plan(driver_pod(deleting_since_s=NOW, node_gone=True))
    life.plan(driver_pod(deleting_since_s=NOW, node_gone=True), after_s=10)
    assert life.plan(driver_pod(deleting_since_s=NOW)).submit is None
    assert life.plan().submit == 2


def test_the_next_attempt_waits_for_the_driver_that_timed_out():
    life = Life(restartPolicy=ON_FAILURE)
    life.plan()
    stuck = driver_pod(PodLife.STARTING, problem=Problem(reason="CreateContainerError", message="no such volume"))
    plan = life.plan(stuck, after_s=600)
    assert (plan.state.phase, plan.delete) == ("Restarting", [stuck])
    assert "CreateContainerError: no such volume" in life.state.past_attempts[-1].message
    leaving = dataclasses.replace(stuck, deleting_since_s=life.now_s)
    assert life.plan(leaving, after_s=30).submit is None
    assert life.plan(after_s=1).submit == 2


def test_an_image_that_cannot_be_pulled_is_the_applications_fault():
    life = Life()
    life.plan()
    stuck = driver_pod(PodLife.STARTING, problem=Problem(reason="ImagePullFailed", message="not found"))
    assert life.plan(stuck, after_s=10).state.reason == "ImagePullFailed"
    assert life.plan(stuck, after_s=300).state.phase == "Failed"
    assert "correct spec.image" in life.state.condition(ConditionType.FAILED).message


def test_executors_that_do_not_start_end_the_attempt():
    life = Life(restartPolicy=ON_FAILURE).running()
    partial = ExecutorCounts(pending=1, running=1)
    assert life.plan(driver_pod(), executors=partial).state.phase == "Running"
    assert life.condition(ConditionType.EXECUTORS_READY) == ("False", "WaitingForExecutors")
    plan = life.plan(driver_pod(), executors=partial, after_s=600)
    assert (plan.state.phase, life.state.past_attempts[-1].reason) == ("Restarting", "ExecutorStartTimeout")
    assert [pod.attempt for pod in plan.delete] == [1]


def test_executors_that_are_lost_later_are_replaced_by_the_driver():
    life = Life().running(executors=ExecutorCounts(running=2))
    assert life.condition(ConditionType.EXECUTORS_READY) == ("True", "MinimumRunning")
    assert life.plan(driver_pod(), executors=ExecutorCounts(pending=2), after_s=5000).state.phase == "Running"
    assert life.condition(ConditionType.EXECUTORS_READY) == ("True", "MinimumRunning")


def test_the_reservation_of_a_driver_that_requests_nothing_expires():
    life = Life().running()
    assert life.plan(driver_pod(), after_s=299).reserve == 2
    assert life.plan(driver_pod(), after_s=1).reserve == 0
    assert life.condition(ConditionType.EXECUTORS_READY) == ("False", "NoExecutorsRequested")
    assert life.plan(driver_pod(), after_s=5000).state.phase == "Running"


def test_the_reservation_of_a_driver_that_requests_one_executor_and_no_more_expires_without_a_timeout_too():
    life = Life(timeouts={"executorStartSeconds": 0}).running()
    assert life.plan(driver_pod(), executors=ExecutorCounts(pending=1), after_s=599).reserve == 2
    plan = life.plan(driver_pod(), executors=ExecutorCounts(pending=1), after_s=1)
    assert (plan.reserve, plan.state.phase) == (0, "Running")


def test_nothing_is_reserved_for_a_driver_whose_program_sets_a_master_of_its_own():
    life = Life().running()
    assert life.plan(driver_pod(), report=Report(overridden=("spark.executor.memory",))).reserve == 2
    assert life.plan(driver_pod(), report=Report(overridden=("spark.master",))).reserve == 0
    assert life.condition(ConditionType.EXECUTORS_READY) == ("False", "NoExecutorsRequested")


def test_nothing_is_reserved_for_a_driver_that_ended_before_it_requested_executors():
    life = Life(restartPolicy=ON_FAILURE).running()
    assert life.plan(failed_driver(), after_s=100).reserve == 0


def test_a_suspended_application_has_no_driver_and_resumes_with_another_attempt():
    life = Life().running()
    life.spec["suspend"] = True
    plan = life.plan(driver_pod())
    assert (plan.state.phase, [pod.attempt for pod in plan.delete], plan.submit) == ("Suspended", [1], None)
    assert life.state.start_s is None
    life.spec["suspend"] = False
    assert life.plan(driver_pod(deleting_since_s=life.now_s), after_s=5).submit is None
    plan = life.plan(after_s=5)
    assert (plan.submit, plan.state.start_s) == (2, life.now_s)
    assert plan.state.failures.application + plan.state.failures.infrastructure == 0
    assert life.condition(ConditionType.SUSPENDED) == ("False", "Resumed")


def test_an_application_that_is_created_suspended_uses_no_number():
    life = Life(suspend=True)
    assert life.plan().submit is None
    life.spec["suspend"] = False
    assert life.plan().submit == 1


def test_the_deadline_counts_all_attempts():
    life = Life(activeDeadlineSeconds=100, restartPolicy=ON_FAILURE).running()
    life.plan(failed_driver(), after_s=60)
    life.plan(failed_driver(), after_s=20)
    second = driver_pod(attempt=2)
    plan = life.plan(failed_driver(), second, after_s=20)
    assert (plan.state.phase, plan.delete) == ("Failed", [second])
    assert life.condition(ConditionType.FAILED) == ("True", "DeadlineExceeded")


def test_the_driver_of_a_finished_application_is_deleted():
    life = Life(activeDeadlineSeconds=10).running()
    life.plan(driver_pod(), after_s=10)
    assert [pod.attempt for pod in life.plan(driver_pod()).delete] == [1]
    assert life.plan(driver_pod(deleting_since_s=NOW)).delete == []


def test_only_five_attempts_are_kept():
    life = Life(restartPolicy=ALWAYS | {"onFailureRetries": 1000}).running()
    for attempt in range(1, 9):
        life.plan(failed_driver(attempt))
        life.plan(after_s=1000)
    assert [past_attempt.number for past_attempt in life.state.past_attempts] == [4, 5, 6, 7, 8]
    assert life.state.attempt == 9


@pytest.mark.parametrize(
    "status", [{"attempt": "x", "pastAttempts": [{"number": []}], "phase": 3}, {"conditions": 1}, None]
)
def test_a_status_that_cannot_be_read_is_left_out(status):
    assert model.from_status(status) == AppState()


def test_the_number_of_an_attempt_is_not_used_again_where_only_the_history_has_it():
    status = {"pastAttempts": [{"number": 7, "applicationId": "spark-x-7"}]}
    assert model.from_status(status).attempt == 7


def test_texts_of_drivers_can_be_left_out_of_a_status():
    life = Life().running()
    life.plan(failed_driver())
    bare = model.without_free_parts(life.state)
    assert "Traceback" in str(model.to_status(life.state))
    assert not {"Traceback", "exit code 1"} & set(map(str, (bare.last_log, bare.past_attempts[-1].message)))


def test_an_application_that_cannot_run_waits_with_the_reason():
    refusal = Refusal(reason="InvalidSpec", message="no image")
    state = conditions.refused(AppState(), refusal, 3, NOW)
    assert (state.phase, state.reason, state.observed_generation) == ("Pending", "InvalidSpec", 3)
    assert conditions.refused(AppState(phase="Failed"), refusal, 3, NOW) == AppState(phase="Failed")


MISSING = Refusal(reason="ServiceAccountNotFound", message="create it")


def test_an_attempt_waits_for_what_it_needs():
    life = Life()
    found = life.plan(refusal=MISSING)
    assert (found.submit, life.state.attempt, found.requeue_s) == (None, 0, NOW + planner.REFUSED_REQUEUE_S)
    assert life.condition(ConditionType.ADMITTED) == ("False", "ServiceAccountNotFound")
    assert life.plan().submit == 1
    assert life.plan(refusal=MISSING).submit is None
    assert life.plan().submit == 1
    assert life.condition(ConditionType.ADMITTED) == ("True", "Admitted")


def test_a_driver_that_runs_is_not_stopped_by_what_refuses_a_new_one():
    found = Life().running().plan(driver_pod(), refusal=MISSING)
    assert (found.submit, found.state.phase) == (1, "Running")


def test_the_next_attempt_waits_for_the_response_to_the_create_of_an_earlier_driver():
    life = Life(restartPolicy=ON_FAILURE)
    life.plan()
    life.plan(is_lost=True)
    assert life.plan(after_s=100, is_in_flight=True).submit is None
    assert life.plan().submit == 2


def test_executors_of_drivers_that_ended_are_orphaned():
    life = Life(restartPolicy=ON_FAILURE).running()
    assert life.plan(driver_pod()).orphaned == []
    assert [pod.attempt for pod in life.plan(failed_driver()).orphaned] == [1]
    life.plan(failed_driver(), after_s=100)
    assert [pod.attempt for pod in life.plan(failed_driver(), driver_pod(PodLife.UNPLACED, 2)).orphaned] == [1]


def test_requests_and_the_address_of_the_ui_are_in_the_status():
    life = Life(restartPolicy=ON_FAILURE)
    life.plan()
    assert life.status["requests"]["executor"] == {"cpu": "1", "memory": "1433Mi"}
    assert life.state.driver.ui_address is None
    life.plan(driver_pod(), has_service=True)
    assert life.status["driver"]["uiAddress"].startswith(f"http://{life.status['driver']['serviceName']}.")
    life.plan(failed_driver())
    life.plan(failed_driver(), after_s=100)
    assert life.state.driver.ui_address is not None
    life.plan(failed_driver(), driver_pod(attempt=2), has_service=False)
    assert life.state.driver.ui_address is None


def test_a_secret_that_stays_missing_is_the_applications_fault():
    stuck = driver_pod(PodLife.STARTING, problem=Problem(reason="SecretNotFound", message='secret "keys" not found'))
    life = Life()
    life.plan()
    assert life.plan(stuck, after_s=100).state.phase == "Starting"
    found = life.plan(stuck, after_s=60)
    assert (found.state.phase, found.state.reason) == ("Failed", "SecretNotFound")
    assert found.delete == [stuck]


def test_what_a_driver_reports_is_in_the_status_until_the_next_attempt():
    progress = rest.progress(b'[{"numTasks": 8, "numCompletedTasks": 2, "numActiveStages": 1}]')
    life = Life(restartPolicy=ON_FAILURE).running()
    life.plan(driver_pod(), report=Report(progress=progress, overridden=("spark.executor.memory",)))
    assert (life.state.progress_percent, life.state.tasks.total, life.state.stages.active) == (25, 8, 1)
    assert life.condition(ConditionType.CONFIG_OVERRIDDEN) == ("True", "PropertiesChangedInProgram")
    life.plan(driver_pod())
    assert life.state.progress_percent == 25
    life.plan(failed_driver())
    assert (life.state.progress_percent, life.state.tasks, life.state.stages) == (None, None, None)
    life.plan(failed_driver(), after_s=100)
    assert (life.state.attempt, life.state.progress_percent) == (2, None)
    life.plan(failed_driver(), driver_pod(attempt=2), report=Report(overridden=()))
    assert life.condition(ConditionType.CONFIG_OVERRIDDEN) == ("False", "DriverRunning")
