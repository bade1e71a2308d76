"""What the attacks of Hadoop clusters send is what they say: checked without an API server."""

from __future__ import annotations

import msgspec
import pytest

from boathouse.services.mrcluster import files
from boathouse_task.cluster_contract import REPORT_MAX_BYTES, AgentReport
from tests.builders.mrclusters import cluster
from tests.hostile import reports
from tests.hostile.attacks import clusters

DECODER = msgspec.json.Decoder(AgentReport)


def test_a_report_that_lies_is_one_that_the_endpoint_accepts():
    found = DECODER.decode(reports.report(version=[clusters.MOST, 0], tags={"a-1": [clusters.APPLICATION]}))
    assert [node.host for node in found.nodes] == ["c0", "c1"]


@pytest.mark.parametrize("body", clusters.MALFORMED, ids=range(len(clusters.MALFORMED)))
def test_malformed_reports_are_small_and_malformed(body):
    assert len(body) <= REPORT_MAX_BYTES
    with pytest.raises((msgspec.DecodeError, RecursionError)):
        DECODER.decode(body)


def test_an_attackers_cluster_is_admitted_and_its_closed_settings_are_ignored():
    found = cluster(**clusters.mrcluster(**clusters.EVERYTHING)["spec"])
    assert set(files.render(found).overridden) == set(clusters.CLOSED)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (clusters.service, lambda names: names.service),
        (clusters.network_policy, lambda names: names.named("cluster")),
        (clusters.claim, lambda names: names.named("master")),
        (clusters.pod, lambda names: names.named("master")),
    ],
)
def test_what_takes_a_name_has_it(make, name):
    found = cluster(**clusters.mrcluster()["spec"])
    assert make(found)["metadata"]["name"] == name(found)
