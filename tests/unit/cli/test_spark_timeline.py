import pytest

from boathouse_cli import model, mrjobs, picture, sparkapps, timeline
from boathouse_cli.timeline import Activity
from tests.builders import cli
from tests.builders.cli import wall_seconds


def app_line(*pods, end_s=30, now_s=0, **status):
    completed = {} if end_s is None else {"completionTime": cli.time(end_s)}
    app = sparkapps.read(cli.sparkapp(**(completed | status)))
    return timeline.of_spark(app, map(model.task_pod, pods), now_s=cli.START_S + now_s)


DRIVER = cli.terminated_pod(cli.driver_pod(created_s=2), start_s=5, end_s=28)


def test_the_path_of_an_application_adds_up_to_its_duration():
    executors = [cli.terminated_pod(cli.executor_pod(n, created_s=8), start_s=10 + n, end_s=25 + n) for n in (1, 2)]
    line = app_line(DRIVER, *executors)
    assert wall_seconds(line) == {
        Activity.WAITING: 2 + 2,
        Activity.STARTING: 3,
        Activity.WAIT_FOR_EXECUTORS: 6,
        Activity.EXECUTORS: 16,
        Activity.DRIVER: 1,
    }
    assert sum(wall_seconds(line).values()) == line.duration_s == 30


def test_executors_that_are_gone_leave_the_drivers_time_as_it_is():
    assert wall_seconds(app_line(DRIVER)) == {Activity.WAITING: 4, Activity.STARTING: 3, Activity.DRIVER: 23}


def test_attempts_whose_pods_are_gone_are_drawn_from_the_status():
    lost = {"number": 1, "node": "node-1", "cause": "Infrastructure", "startTime": cli.time(3), "endTime": cli.time(9)}
    second = cli.terminated_pod(cli.driver_pod(attempt=2, created_s=12), start_s=14, end_s=30)
    line = app_line(second, pastAttempts=[lost])
    assert [(bar.pod.attempt, bar.pod.failed) for bar in line.bars] == [(1, True), (2, False)]
    assert wall_seconds(line) == {Activity.WAITING: 3 + 3, Activity.STARTING: 2, Activity.DRIVER: 6 + 16}


def test_an_application_that_runs_ends_now():
    line = app_line(cli.running_pod(cli.driver_pod(created_s=2), since_s=5), end_s=None, now_s=10)
    assert line.duration_s == 10
    assert wall_seconds(line)[Activity.DRIVER] == 5


def test_an_application_without_pods_only_waits():
    assert wall_seconds(app_line(end_s=None, now_s=4)) == {Activity.WAITING: 4}


@pytest.fixture
def two_lines():
    job = mrjobs.read(cli.mrjob(phase="Succeeded", completionTime=cli.time(13)))
    task = model.task_pod(cli.ended_task_pod(cli.task_pod("map", 0, created_s=3), ("read", 4, 8)))
    return timeline.build(job, [task], now_s=0), app_line(DRIVER, cli.running_pod(cli.executor_pod(), since_s=9))


def test_two_jobs_share_nodes_and_the_axis(two_lines):
    drawn = picture.Picture(*two_lines)
    assert [group.name for group in drawn.groups] == ["mrjob/wordcount", "sparkapp/pi", "node-0", "node-1"]
    assert drawn.title == "mrjob/wordcount: Succeeded after 13.0 s; sparkapp/pi: Pending after 30.0 s"
    assert any(rect.title.startswith("sparkapp/pi driver attempt 1: driver running") for rect in drawn.rects)


def test_the_seconds_of_two_jobs_add_up(two_lines):
    assert sum(share.wall_s for share in picture.shares(*two_lines)) == pytest.approx(13 + 30)


def test_the_page_of_two_jobs_names_both(two_lines):
    assert "mrjob/wordcount" in picture.to_html(*two_lines)
    assert "sparkapp/pi" in picture.to_svg(*two_lines)
