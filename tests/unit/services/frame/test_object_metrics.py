"""What is counted of the objects of a kind."""

import prometheus_client
import pytest

from boathouse.services.frame.metrics import ObjectMetrics
from boathouse.services.mrjob.kind import MRJOB
from boathouse.telemetry import gauges


@pytest.fixture
def scraped():
    """The metrics, and a reader of one value."""
    registry, scrape = prometheus_client.CollectorRegistry(), gauges.ScrapeGauges()
    registry.register(scrape)
    return ObjectMetrics(MRJOB, registry, scrape), lambda name, **labels: registry.get_sample_value(name, labels)


def test_objects_are_counted_by_phase_at_scrape(scraped):
    metrics, value = scraped
    metrics.phases["a"] = "Map"
    assert (value("boathouse_mrjobs", phase="Map"), value("boathouse_mrjobs", phase="Failed")) == (1, 0)


def test_the_end_of_an_object_is_counted_with_its_duration(scraped):
    metrics, value = scraped
    metrics.ended("Failed", 1000.0)
    assert value("boathouse_mrjobs_finished_total", result="failed") == 1
    assert value("boathouse_mrjob_duration_seconds_sum", result="failed") == 1000
