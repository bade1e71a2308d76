"""What the commands print of a SparkApp."""

import pytest

from boathouse_cli import explain, kinds, model, reading, sparkapps, tables
from boathouse_cli.errors import CommandError, ExitCode
from boathouse_cli.printing_logs import Selection
from tests.builders import cli
from tests.builders.cli import condition, printed

NOW_S = cli.START_S + 90
RUNNING = condition("Running", "True", "DriverRunning", "attempt 1")
READY = condition("ExecutorsReady", "True", "MinimumRunning")


def explained(*conditions, pods=(), **status):
    app = sparkapps.read(cli.sparkapp(conditions=list(conditions), **status))
    return explain.explain_job(app, [model.task_pod(pod) for pod in pods], None, now_s=NOW_S)


def headline(*conditions, **status):
    return explained(*conditions, **status).headline


def test_an_application_without_room_has_the_schedulers_reason():
    waits = condition("Scheduled", "False", "InsufficientCPU", "the driver and 3 executors have no room: cpu")
    starting = condition("Running", "False", "DriverStarting", "attempt 1 has no node yet")
    expected = "sparkapp/pi is pending: the driver and 3 executors have no room: cpu"
    assert headline(waits, starting, phase="Pending") == expected


def test_a_running_application_says_how_far_it_is():
    line = headline(RUNNING, READY, phase="Running", executors={"running": 3}, progressPercent=45)
    assert line == "sparkapp/pi is in phase Running (45 % of the active stages, 3 executors running)"


def test_a_driver_without_its_executors_says_what_it_waits_for():
    missing = condition("ExecutorsReady", "False", "WaitingForExecutors", "1 of 3 run")
    line = headline(RUNNING, missing, phase="Running", executors={"running": 1})
    assert line == "sparkapp/pi is in phase Running (1 executors running) and is pending: 1 of 3 run"


def test_an_application_that_is_not_admitted_says_what_to_do():
    refused = condition("Admitted", "False", "ServiceAccountNotFound", "run kubectl boathouse enable-spark -n demo")
    expected = "sparkapp/pi was not admitted: ServiceAccountNotFound: run kubectl boathouse enable-spark -n demo"
    assert headline(refused, phase="Pending") == expected


def test_a_suspended_application_says_how_it_resumes():
    suspended = condition("Suspended", "True", "Suspended", "spec.suspend is true: set it to false to resume")
    line = headline(suspended, condition("Scheduled", "False", "Suspended"), phase="Suspended")
    assert line == "sparkapp/pi is suspended: spec.suspend is true: set it to false to resume"


def test_a_driver_that_cannot_start_names_the_reason():
    stuck = condition("Running", "False", "ImagePullFailed", "spark:9 is not found")
    assert headline(stuck, phase="Starting") == "sparkapp/pi is blocked: ImagePullFailed: spark:9 is not found"


def test_an_application_that_succeeded_says_how_long_it_took():
    done = condition("Succeeded", "True", "Succeeded")
    assert headline(done, phase="Succeeded", attempt=2, completionTime=cli.time(75)) == (
        "sparkapp/pi succeeded in 1m15s (attempt 2)"
    )


def test_attempts_that_ended_say_whose_fault_they_were():
    attempts = [
        {"number": 1, "node": "node-0", "cause": "Infrastructure", "reason": "DriverLost", "message": "node removed"},
        {"number": 2, "cause": "Application", "reason": "OOMKilled"},
        {"number": 3},
    ]
    rows = [text for what, text in explained(RUNNING, READY, pastAttempts=attempts).details if what == "attempt"]
    assert rows == [
        "1 on node-0: DriverLost: node removed (the infrastructure's fault)",
        "2: OOMKilled (the application's fault)",
        "3: succeeded",
    ]


def test_details_name_driver_executors_tasks_and_what_a_program_changed():
    changed = condition("ConfigOverridden", "True", "PropertiesChangedInProgram", "spark.executor.memory is 9g")
    status = {
        "attempt": 1,
        "driver": {"podName": "pi-driver", "node": "node-0", "uiAddress": "http://pi-ui.demo:4040"},
        "executors": {"running": 2, "pending": 1, "minimum": 2},
        "tasks": {"total": 100, "completed": 45, "active": 8},
        "requests": {"driver": {"cpu": "1", "memory": "1433Mi"}},
        "lastLog": "Traceback\nValueError: no\n",
    }
    details = dict(explained(RUNNING, READY, changed, phase="Running", **status).details)
    assert details["driver"] == "attempt 1, pod pi-driver on node-0, UI at http://pi-ui.demo:4040 in the cluster"
    assert details["executors"] == "2 running, 1 pending, 0 failed; the driver starts with room for 2"
    assert details["tasks"] == "45/100, 8 running"
    assert details["requests"] == "driver: 1 cpu, 1433Mi memory"
    assert details["overridden"] == "spark.executor.memory is 9g"
    assert details["last log"] == "Traceback\nValueError: no"


def test_the_list_has_jobs_of_all_kinds():
    refused = [condition("Admitted", "False", "ExceedsQuota")]
    jobs = [kinds.read(cli.mrjob()), kinds.read(cli.sparkapp(conditions=refused))]
    table = printed(tables.jobs(jobs, namespaces=False, now_s=NOW_S))
    assert "mrjob/wordcount" in table
    assert "sparkapp/pi" in table
    assert "ExceedsQuota" in table


def test_live_progress_draws_tasks_and_counts_executors():
    app = sparkapps.read(cli.sparkapp(phase="Running", executors={"running": 2}, tasks={"total": 8, "completed": 2}))
    progress = printed(reading.draw_job(app, now_s=NOW_S))
    assert "2 running, 0 pending" in progress
    assert "2/8, 0 running" in progress
    assert reading.job_line(app, now_s=NOW_S) == "sparkapp/pi Running 2 executors running 1m30s"


def test_executors_are_named_by_their_number_and_belong_to_their_drivers_attempt():
    pods = [model.task_pod(pod) for pod in (cli.driver_pod(attempt=2), cli.executor_pod(7, attempt=2))]
    assert [(pod.task, pod.attempt) for pod in pods] == [("driver", 2), ("executor-7", 2)]


def test_pods_that_only_bear_the_labels_are_not_the_applications():
    own, foreign = cli.driver_pod(), cli.driver_pod(attempt=2, owner="another")
    child, orphan = cli.executor_pod(1), cli.executor_pod(2, attempt=2)
    placeholder = cli.driver_pod()
    placeholder["metadata"]["labels"]["boathouse.dev/task-type"] = "placeholder"
    app = sparkapps.read(cli.sparkapp())
    assert sparkapps.own_pods(app, [own, foreign, child, orphan, placeholder]) == [own, child]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), "pi-0a1b2c3d-a2-driver"),
        (Selection(attempt=1), "pi-0a1b2c3d-a1-driver"),
        (Selection(executor=3), "pi-0a1b2c3d-a2-exec-3"),
        (Selection(executor=3, attempt=1), "pi-0a1b2c3d-a1-exec-3"),
    ],
)
def test_logs_are_of_the_driver_or_of_one_executor(selection, expected):
    raw = [
        pod
        for attempt in (1, 2)
        for pod in (
            cli.driver_pod(attempt=attempt, created_s=attempt * 10),
            cli.executor_pod(3, attempt=attempt, created_s=attempt * 10 + 5),
            cli.executor_pod(4, attempt=attempt, created_s=attempt * 10 + 5),
        )
    ]
    (pod,) = selection.of(kinds.SPARKAPP, [model.task_pod(manifest) for manifest in raw])
    assert pod.name == expected


@pytest.mark.parametrize(
    ("kind", "selection"),
    [
        (kinds.SPARKAPP, Selection(task="m-00000")),
        (kinds.MRJOB, Selection(executor=1)),
        (kinds.MRJOB, Selection(follow=True)),
    ],
)
def test_an_option_of_another_kind_is_refused_with_the_right_one(kind, selection):
    with pytest.raises(CommandError, match="--task") as caught:
        selection.check(kind)
    assert caught.value.code is ExitCode.USAGE
