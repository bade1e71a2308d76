"""MRCluster's CRD: immutable fields, and defaults."""

import pytest

from boathouse.resources.mrcluster.nodes import Resizing
from boathouse_policies.koala.config import Config
from tests.builders.crds import schema_nodes, spec_schema

SPEC = spec_schema("MRCluster")


def test_only_the_queue_the_version_compute_and_the_data_policy_are_immutable_as_a_whole():
    messages = [rule.get("message", "") for rule in SPEC["x-kubernetes-validations"]]
    fixed = [message.split()[0] for message in messages if " is immutable: " in message]
    assert fixed == ["spec.queue", "spec.version", "spec.compute", "spec.dataPolicy"]


def test_the_volumes_of_nodes_are_immutable():
    for role in ("master", "core"):
        volume = SPEC["properties"][role]["properties"]["volume"]
        assert "self == oldSelf" in [rule["rule"] for rule in volume["x-kubernetes-validations"]]


def test_a_default_of_an_object_names_all_defaults_of_its_fields():
    for node in schema_nodes(SPEC):
        for name, field in node.get("properties", {}).items():
            given = node.get("default", {})
            assert "default" not in node or "default" not in field or given[name] == field["default"], name


def test_the_constants_of_the_paper_are_the_defaults():
    resizing, paper = Resizing(), Config()
    assert resizing.grow_above_percent == 100 * paper.grow_above
    assert resizing.shrink_below_percent == 100 * paper.shrink_below
    assert (resizing.grow_by, resizing.shrink_by, resizing.offer_nodes) == (
        paper.grow_by,
        paper.shrink_by,
        paper.offer_nodes,
    )


@pytest.mark.parametrize(
    ("fields", "period_s"), [({"policy": "GSP"}, 30), ({"policy": "GGP"}, 120), ({"policy": "GGDP"}, 120)]
)
def test_the_period_is_that_of_the_policy_unless_it_is_given(fields, period_s):
    assert Resizing.model_validate(fields).period_s == period_s
    assert Resizing.model_validate(fields | {"periodSeconds": 7}).period_s == 7
