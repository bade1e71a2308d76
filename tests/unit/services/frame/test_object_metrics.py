"""Metrics of the objects of a kind."""

import pytest

from boathouse.services.frame.reconciler import ObjectMetrics
from boathouse.services.mrjob.kind import MRJOB


@pytest.fixture
def object_metrics(scrape):
    return ObjectMetrics(MRJOB, scrape.registry, scrape.gauges)


def test_objects_are_counted_by_phase_at_scrape(scrape, object_metrics):
    object_metrics.phases["a"] = "Map"
    assert (scrape.value("mrjobs", phase="Map"), scrape.value("mrjobs", phase="Failed")) == (1, 0)


def test_the_end_of_an_object_is_counted_with_its_duration(scrape, object_metrics):
    object_metrics.ended("Failed", 1000.0)
    assert scrape.value("mrjobs_finished_total", result="failed") == 1
    assert scrape.value("mrjob_duration_seconds_sum", result="failed") == 1000
