"""A shadow profile beside a running scheduler, and the command that shows what it would have decided."""

from __future__ import annotations

import json

from boathouse.resources import names
from boathouse.scheduling import shadow
from boathouse.services import observers
from boathouse.telemetry import metrics
from boathouse_policies import profiles
from tests.builders import manifests
from tests.builders.cli import said
from tests.builders.operators.schedulers import scheduling


def published(client, subject):
    scrape = metrics.ScrapeGauges()
    return observers.PublishedShadow(client, names.OPERATOR_NAMESPACE, "fifo", subject, lambda: True, scrape)


async def test_the_command_shows_what_the_shadow_decided_otherwise(api, run, eventually):
    api.add(manifests.node("n1", cpu="2"))
    subject = shadow.Shadow(profiles.build("fair"), since_s=0.0, cpu_s=lambda: 0.0)
    async with scheduling(api, profile=profiles.build("fifo"), shadow=subject, pending_ahead=0, coalesce_s=0.05) as w:
        w.submit("first", 2)
        w.submit("second", 2)
        await eventually(lambda: len(w.placed()) == 2)
        assert set(w.placed()) == {"demo/first-00000", "demo/first-00001"}
        await eventually(lambda: subject.differed)
    async with api.client() as client:
        await published(client, subject).save()
    shown = (await run("shadow")).stdout
    assert all(word in shown for word in ("SHADOW FAIR", "demo/second map", "n1 (1 CPU, 1.0 GiB)"))
    found = json.loads((await run("shadow", "-o", "json")).stdout)
    assert (found["differed"], found["error"]) == (subject.differed, "")
    assert {one["node"] for difference in found["differences"] for one in difference["shadow"]["places"]} == {"n1"}


async def test_the_report_is_written_only_when_it_has_changed(api):
    async with api.client() as client:
        report = published(client, shadow.Shadow(profiles.build("fair")))
        await report.save()
        await report.save()
    assert len(api.called("create configmaps")) == 1


async def test_the_command_says_where_there_is_no_shadow_and_who_may_not_read_it(api, run):
    missing = await run("shadow")
    assert "a shadow runs with the chart's shadowProfile" in said(missing)
    assert missing.exception.code == 3
    api.fail_next("get configmaps", status=403, reason="Forbidden")
    assert "you lack permission to read configmap/boathouse-shadow" in said(await run("shadow"))
