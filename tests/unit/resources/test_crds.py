"""The CRDs: equal to what the models say, structural, and small."""

import json
import pathlib

import pydantic
import pytest

from boathouse.resources import generate, schema
from boathouse.resources.mrjob import definition

ROOT = pathlib.Path(__file__).parents[3]


def nodes(value):
    """Every schema below a schema."""
    yield value
    for child in value.get("properties", {}).values():
        yield from nodes(child)
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            yield from nodes(value[key])


def unbounded(value, path):
    """The paths of strings, arrays and maps below a schema that may hold any amount."""
    bounds = {"string": "maxLength", "array": "maxItems"}
    if value.get("type") in bounds and bounds[value["type"]] not in value and not {"enum", "format"} & set(value):
        yield path
    if isinstance(value.get("additionalProperties"), dict):
        if "maxProperties" not in value:
            yield path
        yield from unbounded(value["additionalProperties"], f"{path}.*")
    if "items" in value:
        yield from unbounded(value["items"], f"{path}[]")
    for name, child in value.get("properties", {}).items():
        yield from unbounded(child, f"{path}.{name}")


@pytest.fixture
def mrjob():
    return schema.structural(definition.MRJOB.model)


def test_the_files_in_the_repository_are_those_that_the_models_generate(capsys):
    assert generate.main(["--check", "--root", str(ROOT)]) == 0, capsys.readouterr().out + "run `make manifests`"


def test_check_names_each_stale_file(tmp_path, capsys):
    assert generate.main(["--check", "--root", str(tmp_path)]) == 1
    assert "stale" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_the_template_is_kept_on_uninstall_and_can_be_left_out():
    text = generate.templates()["boathouse.dev_mrjobs.yaml"]
    assert "helm.sh/resource-policy: keep" in text
    assert "{{- if .Values.crds.install }}" in text


def test_every_node_of_the_schema_has_one_type_and_no_reference(mrjob):
    for node in nodes(mrjob):
        assert ("type" in node) != bool(node.get("x-kubernetes-int-or-string")), node
        assert not {"$ref", "$defs", "title", "oneOf", "allOf"} & set(node)


def test_every_string_array_and_map_has_a_bound(mrjob):
    schemas = {name: mrjob["properties"][name] for name in ("spec", "status")}
    assert [path for name, value in schemas.items() for path in unbounded(value, name)] == []


def test_every_map_of_a_spec_bounds_its_names(mrjob):
    maps = [node for node in nodes(mrjob["properties"]["spec"]) if "additionalProperties" in node]
    rules = [" ".join(rule["rule"] for rule in node["x-kubernetes-validations"]) for node in maps]
    assert len(maps) > 3
    assert all("key.size() <= 317" in text or "name == 'cpu'" in text or "key.matches" in text for text in rules)


def undescribed(value, path):
    """The paths of fields below a schema without a description, which `kubectl explain` shows as empty."""
    for name, child in value.get("properties", {}).items():
        if not child.get("description"):
            yield f"{path}.{name}"
        yield from undescribed(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            yield from undescribed(value[key], f"{path}[]")


@pytest.mark.parametrize("resource", generate.ALL, ids=lambda resource: resource.kind)
def test_every_field_has_a_description(resource):
    properties = schema.structural(resource.model)["properties"]
    assert [path for name in ("spec", "status") for path in undescribed(properties[name], name)] == []


def test_no_default_is_null(mrjob):
    assert all(node.get("default", ...) is not None for node in nodes(mrjob))


def test_every_rule_has_a_message(mrjob):
    found = [rule for node in nodes(mrjob) for rule in node.get("x-kubernetes-validations", [])]
    assert len(found) > 15
    assert all("message" in rule or "messageExpression" in rule for rule in found)


def test_people_see_phase_queue_progress_and_age():
    columns = definition.MRJOB.manifest()["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [column["name"] for column in columns if not column.get("priority")]
    assert shown == ["Phase", "Queue", "%", "Progress", "Age"]


def test_a_union_of_two_types_is_refused_with_its_path():
    class Bad(pydantic.BaseModel):
        field: int | str

    with pytest.raises(ValueError, match=r"Bad\.field"):
        schema.structural(Bad)


def test_the_manifest_is_plain_json():
    assert json.loads(json.dumps(definition.MRJOB.manifest())) == definition.MRJOB.manifest()
