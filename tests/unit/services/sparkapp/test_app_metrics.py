"""What is counted of attempts and executors."""

import dataclasses

import prometheus_client
import pytest

from boathouse.services.sparkapp.app_metrics import AppMetrics
from boathouse.services.sparkapp.state.app_state import AppState, EndedAttempt
from boathouse.telemetry import gauges


@pytest.fixture
def scraped():
    """The metrics, and a reader of one value."""
    registry, scrape = prometheus_client.CollectorRegistry(), gauges.ScrapeGauges()
    registry.register(scrape)
    metrics = AppMetrics(registry, scrape, lambda: (3, 7))
    return metrics, lambda name, **labels: registry.get_sample_value(name, labels)


def ended(number, **fields):
    return EndedAttempt(number=number, application_id=f"spark-{number}", **fields)


def test_each_attempt_is_counted_when_it_begins_and_when_it_ends(scraped):
    metrics, value = scraped
    begun = AppState(attempt=1)
    failed = dataclasses.replace(begun, ended=(ended(1, cause="Infrastructure", reason="DriverLost"),))
    again = dataclasses.replace(failed, attempt=2)
    for before, after in ((AppState(), begun), (begun, begun), (begun, failed), (failed, failed), (failed, again)):
        metrics.changed(before, after)
    assert value("boathouse_sparkapp_attempts_total") == 2
    assert value("boathouse_sparkapp_attempts_ended_total", cause="infrastructure", reason="DriverLost") == 1


def test_success_has_no_cause_and_a_reason_that_is_not_known_makes_no_label(scraped):
    metrics, value = scraped
    metrics.changed(AppState(attempt=1), AppState(attempt=1, ended=(ended(1),)))
    metrics.changed(AppState(attempt=1), AppState(attempt=1, ended=(ended(1, cause="Application", reason="X1"),)))
    assert value("boathouse_sparkapp_attempts_ended_total", cause="none", reason="") == 1
    assert value("boathouse_sparkapp_attempts_ended_total", cause="application", reason="other") == 1


def test_executors_are_counted_at_scrape(scraped):
    _, value = scraped
    assert [value("boathouse_spark_executors", state=state) for state in ("pending", "running")] == [3, 7]
