"""Metrics of tasks."""

from boathouse.resources.mrjob.status import TaskFailure
from boathouse.services.mrjob.settle import Settlement
from boathouse.services.mrjob.task_metrics import TaskMetrics
from boathouse_task import contract
from boathouse_task.contract import TaskType


def test_attempts_are_counted_by_how_they_ended(scrape):
    metrics = TaskMetrics(scrape.registry)
    result = contract.TaskResult(outcome="succeeded", bytes_total=7, timings=[contract.Timing("sort", 0, 1500)])
    failure = TaskFailure(task="m-00001", attempt=1, reason="OutOfMemory")
    metrics.attempts(Settlement(results=[(TaskType.MAP, result)], failures=[failure]))
    assert scrape.value("mrjob_tasks_total", type="map", result="succeeded", reason="") == 1
    assert scrape.value("mrjob_tasks_total", type="map", result="failed", reason="OutOfMemory") == 1
    assert scrape.value("mrjob_task_output_bytes_total", type="map") == 7
    assert scrape.value("mrjob_task_phase_duration_seconds_sum", type="map", phase="sort") == 1.5


def test_a_result_of_a_users_image_creates_no_new_labels(scrape):
    metrics = TaskMetrics(scrape.registry)
    result = contract.TaskResult(outcome="succeeded", timings=[contract.Timing("x" * 99, 0, 1000)])
    failure = TaskFailure(task="setup", attempt=1, reason="no such\nthing")
    metrics.attempts(Settlement(results=[(TaskType.MAP, result)], failures=[failure]))
    assert scrape.value("mrjob_task_phase_duration_seconds_count", type="map", phase="other") == 1
    assert scrape.value("mrjob_tasks_total", type="setup", result="failed", reason="other") == 1
