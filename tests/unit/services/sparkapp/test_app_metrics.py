"""Metrics of attempts and executors."""

import dataclasses

import pytest

from boathouse.resources.sparkapp.status import Attempt
from boathouse.services.sparkapp.app_metrics import AppMetrics
from boathouse.services.sparkapp.model import AppState


@pytest.fixture
def app_metrics(scrape):
    return AppMetrics(scrape, lambda: [(1, 7, 0), (2, 0, 1)])


def ended_attempt(number, **fields):
    return Attempt(number=number, application_id=f"spark-{number}", **fields)


def test_each_attempt_is_counted_when_it_begins_and_when_it_ends(scrape, app_metrics):
    begun = AppState(attempt=1)
    failed = dataclasses.replace(begun, past_attempts=(ended_attempt(1, cause="Infrastructure", reason="DriverLost"),))
    again = dataclasses.replace(failed, attempt=2)
    for before, after in ((AppState(), begun), (begun, begun), (begun, failed), (failed, failed), (failed, again)):
        app_metrics.changed(before, after)
    assert scrape.value("sparkapp_attempts_total") == 2
    assert scrape.value("sparkapp_attempts_ended_total", cause="infrastructure", reason="DriverLost") == 1


def test_success_has_no_cause_and_a_reason_that_is_not_known_makes_no_label(scrape, app_metrics):
    app_metrics.changed(AppState(attempt=1), AppState(attempt=1, past_attempts=(ended_attempt(1),)))
    app_metrics.changed(
        AppState(attempt=1), AppState(attempt=1, past_attempts=(ended_attempt(1, cause="Application", reason="X1"),))
    )
    assert scrape.value("sparkapp_attempts_ended_total", cause="none", reason="") == 1
    assert scrape.value("sparkapp_attempts_ended_total", cause="application", reason="other") == 1


def test_executors_are_counted_at_scrape(scrape, app_metrics):
    assert app_metrics
    assert [scrape.value("spark_executors", state=state) for state in ("pending", "running")] == [3, 7]
