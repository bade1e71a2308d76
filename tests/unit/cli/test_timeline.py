import pytest

from boathouse_cli import model, mrjobs, timeline
from boathouse_cli.timeline import Activity
from tests.builders import cli
from tests.builders.cli import wall_seconds

SETUP = cli.ended_task_pod(cli.task_pod("setup", created_s=1), ("list", 2, 2.5), ("post", 2.5, 3))


def map_pod(index=0, *, created_s=3, read_s=5.0, sorted_s=6.0, end_s=7.0):
    phases = (("read", created_s + 1, read_s), ("sort", read_s, sorted_s), ("upload", sorted_s, end_s))
    return cli.ended_task_pod(cli.task_pod(index=index, created_s=created_s), *phases)


def job_line(*pods, end_s=10, now_s=0, **status):
    completed = {} if end_s is None else {"completionTime": cli.time(end_s)}
    raw = cli.mrjob(**(completed | status))
    return timeline.build(mrjobs.read(raw), map(model.task_pod, pods), now_s=cli.START_S + now_s)


def test_the_critical_path_adds_up_to_the_jobs_duration():
    line = job_line(SETUP, map_pod(0), map_pod(1, end_s=8.0), end_s=12)
    assert sum(wall_seconds(line).values()) == pytest.approx(line.duration_s) == pytest.approx(12)


def test_the_critical_path_follows_the_attempt_that_ended_last():
    line = job_line(
        SETUP, map_pod(0, read_s=5, sorted_s=6, end_s=7), map_pod(1, read_s=5, sorted_s=6, end_s=8.5), end_s=9
    )
    assert wall_seconds(line)[Activity.UPLOAD] == 2.5


def test_time_before_the_first_pod_and_after_the_last_is_waiting():
    assert wall_seconds(job_line(SETUP, end_s=5))[Activity.WAITING] == 3  # one second before it, two after


def test_a_reducers_wait_is_charged_to_the_map_it_waited_for():
    reducer = cli.ended_task_pod(
        cli.task_pod("reduce", created_s=3), ("wait", 4, 7.5), ("shuffle", 7.5, 8), ("reduce", 8, 9)
    )
    seconds = wall_seconds(job_line(SETUP, map_pod(0, end_s=7), reducer, end_s=9))
    assert seconds[Activity.MAP] == 1
    assert seconds[Activity.WAIT_FOR_MAPS] == 0.5  # from the map's end until the reducer knew it
    assert sum(seconds.values()) == 9


def test_a_pod_created_in_the_second_in_which_another_ended_came_after_it():
    first = map_pod(0, created_s=3, end_s=7.8)
    second = map_pod(1, created_s=7, read_s=9.0, sorted_s=9.5, end_s=10)
    line = job_line(SETUP, first, second, end_s=10)
    assert line.critical_path[-1].end_s - line.critical_path[0].start_s == 10
    assert wall_seconds(line)[Activity.STARTING] == pytest.approx(1 + 1 + 0.2)


def test_a_killed_attempt_has_no_phases_and_counts_as_running():
    bar = timeline.bar(
        model.task_pod(cli.terminated_pod(cli.task_pod(created_s=3), start_s=4, end_s=6, exit_code=137)), now_s=0
    )
    assert [(segment.activity, segment.duration_s) for segment in bar.segments] == [
        (Activity.STARTING, 1),
        (Activity.RUNNING, 2),
    ]


def test_a_pod_without_a_node_waits_until_now():
    bar = timeline.bar(model.task_pod(cli.task_pod(node=None, created_s=3)), now_s=cli.START_S + 9)
    assert [(segment.activity, segment.duration_s) for segment in bar.segments if segment.duration_s] == [
        (Activity.WAITING, 6)
    ]


def test_time_that_a_pod_was_kept_pending_ahead_is_waiting_and_not_starting():
    ahead = cli.bound_pod(map_pod(1, created_s=3, read_s=9, sorted_s=9.5, end_s=10), at_s=7)
    seconds = wall_seconds(job_line(SETUP, ahead, end_s=10))
    assert seconds[Activity.WAITING] == 1 + (7 - 3)  # before the setup task, and after it


def test_a_running_jobs_timeline_ends_now():
    line = job_line(SETUP, cli.running_pod(cli.task_pod(created_s=3), since_s=4), end_s=None, now_s=8)
    assert line.duration_s == 8
    assert wall_seconds(line)[Activity.RUNNING] == 4


def test_the_setup_tasks_phases_are_all_setup():
    bar = timeline.bar(model.task_pod(SETUP), now_s=0)
    assert {segment.activity for segment in bar.segments} == {Activity.STARTING, Activity.SETUP}


def test_a_job_without_pods_only_waits():
    assert wall_seconds(job_line(end_s=None, now_s=4)) == {Activity.WAITING: 4}
