"""kube-score over the rendered chart: what it would have otherwise is explained here, or fails."""

import json
import subprocess

import pytest

from boathouse_e2e import tools
from tests.contract.chart.test_rendering import EVERYTHING

GOOD = 10
EXPLAINED = {
    ("Deployment", "container-resources", "CPU limit is not set"): (
        "a scheduler that is throttled places nothing; its request gives it its share"
    ),
    ("Deployment", "container-image-pull-policy", "ImagePullPolicy is not set to Always"): (
        "the value image.pullPolicy: images that were loaded into the nodes have no registry to be pulled from"
    ),
    ("Deployment", "deployment-has-host-podantiaffinity", "Deployment does not have a host podAntiAffinity set"): (
        "topologySpreadConstraints spread the replicas over nodes and zones, which kube-score does not read"
    ),
    ("Deployment", "pod-networkpolicy", "The pod does not have a matching egress NetworkPolicy"): (
        "the value networkPolicy.egress: off because the chart does not know the API server's address"
    ),
    ("Service", "service-targets-pod", "The services selector does not match any pods"): (
        "boathouse-progress selects the leader, which labels its own pod when it leads"
    ),
}


def findings(manifests: str) -> set[tuple[str, str, str]]:
    """What kube-score finds: kind, check and summary of each that is not its best grade."""
    command = [
        tools.ensure(["kube-score"])["kube-score"],
        "score",
        "--output-format=json",
        "--kubernetes-version=v1.35",
        "-",
    ]
    done = subprocess.run(command, input=manifests, capture_output=True, text=True, check=False)
    objects = json.loads(done.stdout)
    assert len(objects) > 3, done.stderr
    return {
        (one["type_meta"]["kind"], check["check"]["id"], comment["summary"])
        for one in objects
        for check in one["checks"]
        if not check["skipped"] and check["grade"] < GOOD
        for comment in check["comments"] or [{"summary": ""}]
    }


@pytest.mark.parametrize("arguments", [(), ("--values", EVERYTHING)], ids=["defaults", "everything"])
def test_kube_score_finds_nothing_that_is_not_explained(chart, arguments):
    assert findings(chart.text(*arguments)) - EXPLAINED.keys() == set()


def test_no_explanation_is_left_over(chart):
    found = findings(chart.text()) | findings(chart.text("--values", EVERYTHING))
    assert EXPLAINED.keys() - found == set()
