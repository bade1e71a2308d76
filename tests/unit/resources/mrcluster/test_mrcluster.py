"""MRCluster's CRD: structural and bounded, with a message at every rule."""

import json

import pytest

from boathouse.resources import generate, schema
from boathouse.resources.mrcluster.definition import MRCLUSTER
from boathouse.resources.mrcluster.resizing import Resizing
from boathouse_policies.koala.config import Config
from tests.unit.resources.test_crds import nodes, unbounded
from tests.unit.services.mrcluster.builders import resource


@pytest.fixture(scope="module")
def structure():
    return schema.structural(MRCLUSTER.model)


def rules(node):
    return [rule for each in nodes(node) for rule in each.get("x-kubernetes-validations", [])]


def test_every_node_of_the_schema_has_one_type_and_no_reference(structure):
    for node in nodes(structure):
        assert ("type" in node) != bool(node.get("x-kubernetes-int-or-string")), node
        assert not {"$ref", "$defs", "title", "oneOf", "allOf"} & set(node)


def test_every_string_array_and_map_has_a_bound(structure):
    schemas = {name: structure["properties"][name] for name in ("spec", "status")}
    assert [path for name, value in schemas.items() for path in unbounded(value, name)] == []


def test_every_rule_has_a_message(structure):
    assert len(rules(structure)) > 60
    assert all("message" in rule or "messageExpression" in rule for rule in rules(structure))


def test_only_the_queue_the_version_compute_and_the_data_policy_are_immutable_as_a_whole(structure):
    messages = [rule.get("message", "") for rule in structure["properties"]["spec"]["x-kubernetes-validations"]]
    fixed = [message.split()[0] for message in messages if " is immutable: " in message]
    assert fixed == ["spec.queue", "spec.version", "spec.compute", "spec.dataPolicy"]


def test_the_volumes_of_nodes_are_immutable(structure):
    for role in ("master", "core"):
        volume = structure["properties"]["spec"]["properties"][role]["properties"]["volume"]
        assert "self == oldSelf" in [rule["rule"] for rule in volume["x-kubernetes-validations"]]


def test_people_see_phase_nodes_and_load():
    columns = MRCLUSTER.manifest()["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if not column.get("priority")]
    assert shown == ["Phase", "Core", "Transient", "Load%", "Queue", "Age"]


def test_the_manifest_is_plain_json_and_small():
    text = json.dumps(MRCLUSTER.manifest())
    assert json.loads(text) == MRCLUSTER.manifest()
    assert len(text) < generate.MAX_SIZE_BYTES


def test_a_default_of_an_object_names_all_defaults_of_its_fields(structure):
    for node in nodes(structure["properties"]["spec"]):
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
    assert resource(resizing=fields).spec.resizing.period_s == period_s
    assert resource(resizing={**fields, "periodSeconds": 7}).spec.resizing.period_s == 7
