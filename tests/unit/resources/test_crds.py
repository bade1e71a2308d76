"""The CRDs of all kinds: equal to what the models say, structural, bounded and described."""

import json
import pathlib

import pydantic
import pytest

from boathouse.resources import crd
from boathouse_e2e import crd_files
from tests.builders.crds import schema_nodes, schema_rules, spec_schema, structural_schema

ROOT = pathlib.Path(__file__).parents[3]
KINDS = [definition.kind for definition in crd_files.ALL]
of_each_kind = pytest.mark.parametrize("kind", KINDS)
of_each_definition = pytest.mark.parametrize("definition", crd_files.ALL, ids=KINDS)


def unbounded(value, path):
    """Iterate over the paths of strings, arrays and maps below a schema that may hold any amount."""
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


def undescribed(value, path):
    """Iterate over the paths of fields without a description, which `kubectl explain` shows as empty."""
    for name, child in value.get("properties", {}).items():
        if not child.get("description"):
            yield f"{path}.{name}"
        yield from undescribed(child, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(value.get(key), dict):
            yield from undescribed(value[key], f"{path}[]")


def test_the_files_in_the_repository_are_those_that_the_models_generate(capsys):
    assert crd_files.main(["--check", "--root", str(ROOT)]) == 0, capsys.readouterr().out + "run `make manifests`"


@pytest.fixture
def generated(monkeypatch):
    """Generate two small files."""
    monkeypatch.setattr(crd_files, "manifests", lambda: {"a.yaml": "a"})
    monkeypatch.setattr(crd_files, "templates", lambda: {"b.yaml": "b"})


@pytest.mark.usefixtures("generated")
def test_check_names_each_stale_file_and_writes_none(tmp_path, capsys):
    arguments = ["--root", str(tmp_path)]
    assert crd_files.main(["--check", *arguments]) == 1
    assert capsys.readouterr().out.count("stale /") == 2
    assert list(tmp_path.iterdir()) == []
    assert crd_files.main(arguments) == 0
    assert crd_files.main(["--check", *arguments]) == 0
    (tmp_path / "crds/a.yaml").write_text("b")
    assert crd_files.main(["--check", *arguments]) == 1


@pytest.mark.parametrize("kind", [kind.lower() for kind in KINDS])
def test_the_template_is_kept_on_uninstall_and_can_be_left_out(kind):
    text = (ROOT / f"charts/boathouse/templates/crds/boathouse.dev_{kind}s.yaml").read_text()
    assert "helm.sh/resource-policy: keep" in text
    assert "{{- if .Values.crds.install }}" in text


@of_each_kind
def test_every_node_of_the_schema_has_one_type_and_no_reference(kind):
    for node in schema_nodes(structural_schema(kind)):
        assert ("type" in node) != bool(node.get("x-kubernetes-int-or-string")), node
        assert not {"$ref", "$defs", "title", "oneOf", "allOf"} & set(node)


@of_each_kind
@pytest.mark.parametrize("paths", [unbounded, undescribed], ids=lambda paths: paths.__name__)
def test_no_field_is_unbounded_or_undescribed(kind, paths):
    properties = structural_schema(kind)["properties"]
    assert [path for name in ("spec", "status") for path in paths(properties[name], name)] == []


def test_every_map_of_a_spec_bounds_its_names():
    maps = [node for node in schema_nodes(spec_schema("MRJob")) if "additionalProperties" in node]
    rules = [" ".join(rule["rule"] for rule in node["x-kubernetes-validations"]) for node in maps]
    assert len(maps) > 3
    assert all("key.size() <= 317" in text or "name == 'cpu'" in text or "key.matches" in text for text in rules)


@of_each_kind
def test_no_default_is_null(kind):
    assert all(node.get("default", ...) is not None for node in schema_nodes(structural_schema(kind)))


@pytest.mark.parametrize(("kind", "least"), [("MRJob", 15), ("SparkApp", 100), ("MRCluster", 60)])
def test_every_rule_has_a_message(kind, least):
    rules = schema_rules(structural_schema(kind))
    assert len(rules) > least
    assert all("message" in rule or "messageExpression" in rule for rule in rules)


COLUMNS = {
    "MRJob": ["Phase", "Queue", "%", "Progress", "Age"],
    "SparkApp": ["Phase", "Queue", "Attempt", "Executors", "%", "Age"],
    "MRCluster": ["Phase", "Core", "Transient", "Load%", "Queue", "Age"],
}


@of_each_definition
def test_the_manifest_is_plain_json_with_columns_for_people(definition):
    manifest = definition.manifest()
    assert json.loads(json.dumps(manifest)) == manifest
    columns = manifest["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns if not column.get("priority")] == COLUMNS[definition.kind]


def test_a_union_of_two_types_is_refused_with_its_path():
    class Bad(pydantic.BaseModel):
        field: int | str

    with pytest.raises(ValueError, match=r"Bad\.field"):
        crd.structural_schema(Bad)
