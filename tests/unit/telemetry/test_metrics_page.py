"""The documented metrics are those that a scraper finds."""

import re

from prometheus_client import exposition

from boathouse.telemetry import metrics
from boathouse_e2e import metrics_page


async def test_the_page_is_what_the_operator_would_print():
    assert metrics_page.PAGE.read_text() == await metrics_page.page(), "run make manifests"


async def test_every_documented_name_is_scraped(monkeypatch):
    scraped = []
    monkeypatch.setattr(metrics, "page", lambda source: scraped.append(exposition.generate_latest(source)) or "")
    await metrics_page.page()
    documented = set(re.findall(r"^\| `(\w+)`", metrics_page.PAGE.read_text(), re.MULTILINE))
    found = set(re.findall(r"^# TYPE (\w+)", scraped[0].decode(), re.MULTILINE))
    assert documented
    assert documented <= found


def test_a_page_names_the_labels_of_what_has_no_sample_yet():
    subject = metrics.Metrics()
    subject.gauges.add(metrics.Gauge(name="boathouse_x", documentation="x", labels=("queue",), read=dict))
    assert "| `boathouse_x` | gauge | `queue` | x |" in metrics.page(subject.registry)
