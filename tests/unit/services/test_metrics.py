"""What is counted of tasks."""

import prometheus_client
import pytest

from boathouse.resources.mrjob.status import TaskFailure
from boathouse.services.mrjob.task_metrics import TaskMetrics
from boathouse_task import contract
from boathouse_task.contract import TaskType


@pytest.fixture
def scraped():
    """The metrics, and a look at one value."""
    registry = prometheus_client.CollectorRegistry()
    return TaskMetrics(registry), lambda name, **labels: registry.get_sample_value(name, labels)


def test_attempts_are_counted_by_how_they_ended(scraped):
    metrics, value = scraped
    result = contract.TaskResult(outcome="succeeded", bytes_total=7, timings=[contract.Timing("sort", 0, 1500)])
    failure = TaskFailure(task="m-00001", attempt=1, reason="OutOfMemory")
    metrics.attempts([(TaskType.MAP, result)], [failure])
    assert value("boathouse_mrjob_tasks_total", type="map", result="succeeded", reason="") == 1
    assert value("boathouse_mrjob_tasks_total", type="map", result="failed", reason="OutOfMemory") == 1
    assert value("boathouse_mrjob_task_output_bytes_total", type="map") == 7
    assert value("boathouse_mrjob_task_phase_duration_seconds_sum", type="map", phase="sort") == 1.5


def test_what_a_users_image_says_makes_no_new_labels(scraped):
    metrics, value = scraped
    result = contract.TaskResult(outcome="succeeded", timings=[contract.Timing("x" * 99, 0, 1000)])
    metrics.attempts([(TaskType.MAP, result)], [TaskFailure(task="setup", attempt=1, reason="no such\nthing")])
    assert value("boathouse_mrjob_task_phase_duration_seconds_count", type="map", phase="other") == 1
    assert value("boathouse_mrjob_tasks_total", type="setup", result="failed", reason="other") == 1
