"""The life of an application, decision by decision."""

import dataclasses

import pytest

from boathouse.resources.sparkapp.names import ConditionType
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife, Problem
from boathouse.services.sparkapp.planning import conditions, planner
from boathouse.services.sparkapp.planning.observation import DriverPod, Ending, Executors, Observation
from boathouse.services.sparkapp.rest import answers
from boathouse.services.sparkapp.rest.reports import Report
from boathouse.services.sparkapp.state import app_state
from boathouse.services.sparkapp.state.app_state import AppState
from tests.unit.services.sparkapp.builders import app

NOW = 1_000_000.0
CRASH = Ending(reason="Error", message="exit code 1", exit_code=1, log="Traceback\nValueError")
EVICTED = Ending(reason="Evicted", message="out of disk", is_infrastructure=True)
ON_FAILURE = {"type": "OnFailure", "onFailureRetries": 2, "onInfrastructureFailureRetries": 3}
ALWAYS = {"type": "Always"}


def driver(state=PodLife.RUNNING, attempt=1, **fields):
    known = {"attempt": attempt, "name": f"pi-a{attempt}-driver", "uid": f"u{attempt}", "state": state}
    if state is not PodLife.UNPLACED:
        known |= {"node": "n1", "placed_s": NOW}
        known |= {} if state is PodLife.STARTING else {"started_s": NOW}
    return DriverPod(**(known | fields))


def crashed(attempt=1, ending=CRASH, **fields):
    return driver(PodLife.FAILED, attempt, ending=ending, **fields)


def patched(value, patch):
    """The JSON merge patch that the API server applies (RFC 7396)."""
    result = dict(value) if isinstance(value, dict) else {}
    for key, each in patch.items():
        if each is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), each) if isinstance(each, dict) else each
    return result


class World:
    """An application between reconciles: what the planner says is done at once."""

    def __init__(self, **spec):
        self.spec = spec
        self.state, self.status = AppState(), {}
        self.now_s = NOW

    def plan(self, *drivers, after_s=0.0, **seen):
        self.now_s += after_s
        observation = Observation(app=app(**self.spec), state=self.state, now_s=self.now_s, drivers=drivers, **seen)
        found = planner.plan(observation)
        self.status = patched(self.status, app_state.to_status(found.state))
        self.state = app_state.from_status(self.status)
        assert self.state == found.state
        assert planner.plan(dataclasses.replace(observation, state=found.state)).state.phase == found.state.phase
        return found

    def running(self, **seen):
        """The world with the driver of its first attempt running."""
        self.plan()
        self.plan(driver(), **seen)
        return self

    def reason(self, condition_type):
        condition = self.state.condition(condition_type)
        return condition and (condition.status, condition.reason)


def test_a_new_application_begins_its_first_attempt():
    world = World()
    plan = world.plan()
    assert (plan.submit, plan.reserve) == (1, 2)
    assert world.state.phase == "Pending"
    assert world.state.application_id == "spark-0a1b2c3d4e5f6789abcdef0123456789-1"
    assert world.reason(ConditionType.ADMITTED) == ("True", "Admitted")


def test_an_attempt_that_has_no_pod_yet_is_submitted_again_and_no_other():
    world = World()
    world.plan()
    assert world.plan().submit == 1
    assert world.plan(diagnosis=Problem(reason="NeverFits", message="too large")).state.attempt == 1
    assert world.reason(ConditionType.SCHEDULED) == ("False", "NeverFits")
    assert world.state.reason == "NeverFits"


def test_the_phase_follows_the_driver():
    world = World()
    world.plan()
    assert world.plan(driver(PodLife.UNPLACED)).state.phase == "Pending"
    assert world.plan(driver(PodLife.STARTING)).state.phase == "Starting"
    assert world.reason(ConditionType.SCHEDULED) == ("True", "DriverPlaced")
    assert world.plan(driver()).state.phase == "Running"
    assert world.state.driver.node == "n1"
    assert world.plan(driver(PodLife.SUCCEEDED)).state.phase == "Succeeded"
    assert world.reason(ConditionType.SUCCEEDED) == ("True", "Succeeded")
    assert world.state.progress_percent == 100
    assert world.plan(driver(PodLife.SUCCEEDED)).submit is None


def test_a_failure_is_final_without_a_restart_policy():
    world = World().running()
    plan = world.plan(crashed())
    assert plan.state.phase == "Failed"
    assert world.reason(ConditionType.FAILED) == ("True", "ApplicationFailed")
    assert world.state.last_log == "Traceback\nValueError"
    assert world.state.ended[-1].exit_code == 1


def test_a_failed_application_is_restarted_with_backoff_as_another_attempt():
    world = World(restartPolicy=ON_FAILURE).running()
    plan = world.plan(crashed())
    assert (plan.state.phase, plan.submit, plan.requeue_s) == ("Restarting", None, NOW + 10)
    assert world.plan(crashed(), after_s=9).submit is None
    assert world.plan(crashed(), after_s=1).submit == 2
    assert world.state.application_id.endswith("-2")
    world.plan(crashed(), driver(attempt=2))
    assert world.plan(crashed(), crashed(2)).requeue_s == world.now_s + 20


def test_the_restarts_are_limited():
    world = World(restartPolicy=ON_FAILURE).running()
    for attempt in (1, 2):
        assert world.plan(crashed(attempt)).state.phase == "Restarting"
        world.plan(after_s=100)
    assert world.plan(crashed(3)).state.phase == "Failed"
    assert "(attempt 3)" in world.state.condition(ConditionType.FAILED).message


def test_failures_of_the_infrastructure_have_a_limit_of_their_own():
    world = World(restartPolicy=ON_FAILURE).running()
    for attempt in (1, 2, 3):
        assert world.plan(crashed(attempt, EVICTED)).state.phase == "Restarting"
        world.plan(after_s=1000)
    assert world.state.application_failures == 0
    assert world.plan(crashed(4, EVICTED)).state.phase == "Failed"
    assert world.reason(ConditionType.FAILED) == ("True", "Evicted")


def test_a_driver_that_never_ran_is_repeated_even_without_a_restart_policy():
    world = World()
    world.plan()
    rejected = crashed(ending=EVICTED, started_s=None)
    assert world.plan(rejected).state.phase == "Restarting"
    assert world.plan(rejected, after_s=10).submit == 2


def test_a_driver_that_ran_is_not_repeated_without_a_restart_policy():
    world = World().running()
    assert world.plan(crashed(ending=EVICTED)).state.phase == "Failed"


def test_a_streaming_application_is_restarted_after_a_success():
    world = World(restartPolicy=ALWAYS).running()
    assert world.plan(driver(PodLife.SUCCEEDED)).state.phase == "Restarting"
    assert world.plan(driver(PodLife.SUCCEEDED), after_s=10).submit == 2


def test_a_long_run_resets_the_counts():
    world = World(restartPolicy=ON_FAILURE).running()
    world.plan(crashed())
    world.plan(crashed(), after_s=10)
    second = driver(attempt=2, started_s=world.now_s)
    world.plan(second)
    plan = world.plan(crashed(2, started_s=second.started_s), after_s=3600)
    assert plan.state.application_failures == 1


def test_out_of_memory_is_the_applications():
    world = World().running()
    world.plan(crashed(ending=Ending(reason="OOMKilled", exit_code=137)))
    assert world.reason(ConditionType.FAILED) == ("True", "OOMKilled")


def test_a_driver_that_is_gone_is_lost():
    world = World(restartPolicy=ON_FAILURE).running()
    assert world.plan().state.phase == "Restarting"
    assert world.state.ended[-1].reason == "DriverLost"
    assert world.plan(after_s=10).submit == 2


def test_no_attempt_starts_while_the_pod_of_a_lost_driver_is_there():
    world = World(restartPolicy=ON_FAILURE).running()
    leaving = driver(deleting_since_s=NOW)
    assert world.plan(leaving, after_s=299).state.phase == "Running"
    assert world.plan(leaving, after_s=1).state.phase == "Restarting"
    assert world.plan(leaving, after_s=10).submit == 2


def test_a_removed_node_ends_the_wait():
    world = World(restartPolicy=ON_FAILURE).running()
    leaving = driver(deleting_since_s=NOW, node_gone=True)
    world.plan(leaving, after_s=1)
    assert world.state.phase == "Restarting"
    assert world.plan(leaving, after_s=10).submit == 2


def test_the_next_attempt_waits_for_a_driver_whose_removed_node_came_back():
    world = World(restartPolicy=ON_FAILURE).running()
    world.plan(driver(deleting_since_s=NOW, node_gone=True))
    world.plan(driver(deleting_since_s=NOW, node_gone=True), after_s=10)
    assert world.plan(driver(deleting_since_s=NOW)).submit is None
    assert world.plan().submit == 2


def test_the_next_attempt_waits_for_the_driver_that_timed_out():
    world = World(restartPolicy=ON_FAILURE)
    world.plan()
    stuck = driver(PodLife.STARTING, problem=Problem(reason="CreateContainerError", message="no such volume"))
    plan = world.plan(stuck, after_s=600)
    assert (plan.state.phase, plan.delete) == ("Restarting", [stuck])
    assert "CreateContainerError: no such volume" in world.state.ended[-1].message
    leaving = dataclasses.replace(stuck, deleting_since_s=world.now_s)
    assert world.plan(leaving, after_s=30).submit is None
    assert world.plan(after_s=1).submit == 2


def test_an_image_that_cannot_be_pulled_is_the_applications_fault():
    world = World()
    world.plan()
    stuck = driver(PodLife.STARTING, problem=Problem(reason="ImagePullFailed", message="not found"))
    assert world.plan(stuck, after_s=10).state.reason == "ImagePullFailed"
    assert world.plan(stuck, after_s=300).state.phase == "Failed"
    assert "correct spec.image" in world.state.condition(ConditionType.FAILED).message


def test_executors_that_do_not_start_end_the_attempt():
    world = World(restartPolicy=ON_FAILURE).running()
    partial = Executors(pending=1, running=1)
    assert world.plan(driver(), executors=partial).state.phase == "Running"
    assert world.reason(ConditionType.EXECUTORS_READY) == ("False", "WaitingForExecutors")
    plan = world.plan(driver(), executors=partial, after_s=600)
    assert (plan.state.phase, world.state.ended[-1].reason) == ("Restarting", "ExecutorStartTimeout")
    assert [pod.attempt for pod in plan.delete] == [1]


def test_executors_that_are_lost_later_are_the_drivers_to_replace():
    world = World().running(executors=Executors(running=2))
    assert world.reason(ConditionType.EXECUTORS_READY) == ("True", "MinimumRunning")
    assert world.plan(driver(), executors=Executors(pending=2), after_s=5000).state.phase == "Running"
    assert world.reason(ConditionType.EXECUTORS_READY) == ("True", "MinimumRunning")


def test_the_reservation_of_a_driver_that_requests_nothing_expires():
    world = World().running()
    assert world.plan(driver(), after_s=299).reserve == 2
    assert world.plan(driver(), after_s=1).reserve == 0
    assert world.reason(ConditionType.EXECUTORS_READY) == ("False", "NoExecutorsRequested")
    assert world.plan(driver(), after_s=5000).state.phase == "Running"


def test_nothing_is_reserved_for_a_driver_whose_program_sets_a_master_of_its_own():
    world = World().running()
    assert world.plan(driver(), report=Report(overridden=("spark.executor.memory",))).reserve == 2
    assert world.plan(driver(), report=Report(overridden=("spark.master",))).reserve == 0
    assert world.reason(ConditionType.EXECUTORS_READY) == ("False", "NoExecutorsRequested")


def test_nothing_is_reserved_for_a_driver_that_ended_before_it_requested_executors():
    world = World(restartPolicy=ON_FAILURE).running()
    assert world.plan(crashed(), after_s=100).reserve == 0


def test_a_suspended_application_has_no_driver_and_resumes_with_another_attempt():
    world = World().running()
    world.spec["suspend"] = True
    plan = world.plan(driver())
    assert (plan.state.phase, [pod.attempt for pod in plan.delete], plan.submit) == ("Suspended", [1], None)
    assert world.state.start_s is None
    world.spec["suspend"] = False
    assert world.plan(driver(deleting_since_s=world.now_s), after_s=5).submit is None
    plan = world.plan(after_s=5)
    assert (plan.submit, plan.state.start_s) == (2, world.now_s)
    assert plan.state.application_failures + plan.state.infrastructure_failures == 0
    assert world.reason(ConditionType.SUSPENDED) == ("False", "Resumed")


def test_an_application_that_is_created_suspended_uses_no_number():
    world = World(suspend=True)
    assert world.plan().submit is None
    world.spec["suspend"] = False
    assert world.plan().submit == 1


def test_the_deadline_counts_all_attempts():
    world = World(activeDeadlineSeconds=100, restartPolicy=ON_FAILURE).running()
    world.plan(crashed(), after_s=60)
    world.plan(crashed(), after_s=20)
    second = driver(attempt=2)
    plan = world.plan(crashed(), second, after_s=20)
    assert (plan.state.phase, plan.delete) == ("Failed", [second])
    assert world.reason(ConditionType.FAILED) == ("True", "DeadlineExceeded")


def test_a_finished_application_has_its_left_driver_deleted():
    world = World(activeDeadlineSeconds=10).running()
    world.plan(driver(), after_s=10)
    assert [pod.attempt for pod in world.plan(driver()).delete] == [1]
    assert world.plan(driver(deleting_since_s=NOW)).delete == []


def test_only_five_attempts_are_kept():
    world = World(restartPolicy=ALWAYS | {"onFailureRetries": 1000}).running()
    for attempt in range(1, 9):
        world.plan(crashed(attempt))
        world.plan(after_s=1000)
    assert [each.number for each in world.state.ended] == [4, 5, 6, 7, 8]
    assert world.state.attempt == 9


@pytest.mark.parametrize(
    "status", [{"attempt": "x", "pastAttempts": [{"number": []}], "phase": 3}, {"conditions": 1}, None]
)
def test_a_status_that_cannot_be_read_is_left_out(status):
    assert app_state.from_status(status) == AppState()


def test_the_number_of_an_attempt_is_not_used_again_where_only_the_history_has_it():
    status = {"pastAttempts": [{"number": 7, "applicationId": "spark-x-7"}]}
    assert app_state.from_status(status).attempt == 7


def test_what_comes_from_drivers_can_be_left_out_of_a_status():
    world = World().running()
    world.plan(crashed())
    bare = app_state.without_free_parts(world.state)
    assert "Traceback" in str(app_state.to_status(world.state))
    assert not {"Traceback", "exit code 1"} & set(map(str, (bare.last_log, bare.ended[-1].message)))


def test_an_application_that_cannot_run_waits_with_the_reason():
    refusal = Refusal(reason="InvalidSpec", message="no image")
    state = conditions.refused(AppState(), refusal, 3, NOW)
    assert (state.phase, state.reason, state.observed_generation) == ("Pending", "InvalidSpec", 3)
    assert conditions.refused(AppState(phase="Failed"), refusal, 3, NOW) == AppState(phase="Failed")


MISSING = Refusal(reason="ServiceAccountNotFound", message="create it")


def test_an_attempt_waits_for_what_it_needs():
    world = World()
    found = world.plan(refusal=MISSING)
    assert (found.submit, world.state.attempt, found.requeue_s) == (None, 0, NOW + planner.REFUSED_REQUEUE_S)
    assert world.reason(ConditionType.ADMITTED) == ("False", "ServiceAccountNotFound")
    assert world.plan().submit == 1
    assert world.plan(refusal=MISSING).submit is None
    assert world.plan().submit == 1
    assert world.reason(ConditionType.ADMITTED) == ("True", "Admitted")


def test_a_driver_that_runs_goes_on_without_what_others_would_need():
    found = World().running().plan(driver(), refusal=MISSING)
    assert (found.submit, found.state.phase) == (1, "Running")


def test_the_next_attempt_waits_for_the_answer_to_the_creation_of_an_earlier_driver():
    world = World(restartPolicy=ON_FAILURE)
    world.plan()
    world.plan(is_lost=True)
    assert world.plan(after_s=100, is_in_flight=True).submit is None
    assert world.plan().submit == 2


def test_executors_of_drivers_that_ended_are_orphaned():
    world = World(restartPolicy=ON_FAILURE).running()
    assert world.plan(driver()).orphaned == []
    assert [pod.attempt for pod in world.plan(crashed()).orphaned] == [1]
    world.plan(crashed(), after_s=100)
    assert [pod.attempt for pod in world.plan(crashed(), driver(PodLife.UNPLACED, 2)).orphaned] == [1]


def test_requests_and_the_address_of_the_ui_are_in_the_status():
    world = World(restartPolicy=ON_FAILURE)
    world.plan()
    assert world.status["requests"]["executor"] == {"cpu": "1", "memory": "1433Mi"}
    assert world.state.driver.ui_address is None
    world.plan(driver(), has_service=True)
    assert world.status["driver"]["uiAddress"].startswith(f"http://{world.status['driver']['serviceName']}.")
    world.plan(crashed())
    world.plan(crashed(), after_s=100)
    assert world.state.driver.ui_address is not None
    world.plan(crashed(), driver(attempt=2), has_service=False)
    assert world.state.driver.ui_address is None


def test_a_secret_that_stays_missing_is_the_applications_fault():
    stuck = driver(PodLife.STARTING, problem=Problem(reason="SecretNotFound", message='secret "keys" not found'))
    world = World()
    world.plan()
    assert world.plan(stuck, after_s=100).state.phase == "Starting"
    found = world.plan(stuck, after_s=60)
    assert (found.state.phase, found.state.reason) == ("Failed", "SecretNotFound")
    assert found.delete == [stuck]


def test_what_a_driver_reports_is_in_the_status_until_the_next_attempt():
    progress = answers.progress(b'[{"numTasks": 8, "numCompletedTasks": 2, "numActiveStages": 1}]')
    world = World(restartPolicy=ON_FAILURE).running()
    world.plan(driver(), report=Report(progress=progress, overridden=("spark.executor.memory",)))
    assert (world.state.progress_percent, world.state.tasks.total, world.state.stages.active) == (25, 8, 1)
    assert world.reason(ConditionType.CONFIG_OVERRIDDEN) == ("True", "PropertiesChangedInProgram")
    world.plan(driver())
    assert world.state.progress_percent == 25
    world.plan(crashed())
    assert (world.state.progress_percent, world.state.tasks, world.state.stages) == (None, None, None)
    world.plan(crashed(), after_s=100)
    assert (world.state.attempt, world.state.progress_percent) == (2, None)
    world.plan(crashed(), driver(attempt=2), report=Report(overridden=()))
    assert world.reason(ConditionType.CONFIG_OVERRIDDEN) == ("False", "DriverRunning")
