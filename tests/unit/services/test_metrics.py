"""What is counted of jobs and tasks."""

import prometheus_client
import pytest

from boathouse.resources.mrjob.status import TaskFailure
from boathouse.services.mrjob.metrics import JobMetrics
from boathouse.telemetry import gauges
from boathouse_task import contract
from boathouse_task.contract import TaskType


@pytest.fixture
def scraped():
    """The metrics, and a look at one value."""
    registry, scrape = prometheus_client.CollectorRegistry(), gauges.ScrapeGauges()
    registry.register(scrape)
    return JobMetrics(registry, scrape), lambda name, **labels: registry.get_sample_value(name, labels)


def test_jobs_are_counted_by_phase_at_scrape(scraped, build):
    metrics, value = scraped
    metrics.phase("a", build.mapping(build.job()))
    metrics.phase("b", build.mapping(build.job()))
    metrics.forget("b")
    assert (value("boathouse_mrjobs", phase="Map"), value("boathouse_mrjobs", phase="Failed")) == (1, 0)


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


def test_a_jobs_end_is_counted_with_its_duration(scraped, build):
    metrics, value = scraped
    job = build.job()
    failed = build.look(job, build.failed("setup", reason="InputNotFound")).state
    metrics.ended(job, failed)
    assert value("boathouse_mrjobs_finished_total", result="failed") == 1
    assert value("boathouse_mrjob_duration_seconds_sum", result="failed") == 1000
