"""The page of fields names every field there is, and only reasons that exist."""

import json
import pathlib
import re

import pytest
import yaml

from boathouse.resources import names
from boathouse.resources.mrjob import definition
from boathouse.scheduling.tenants import refusals, variety
from boathouse_policies import model
from boathouse_task import contract

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "mrjob-fields.md"
CREATION, LATER = PAGE.read_text().split("## Detected after creation")
ROWS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (.+) \|$", CREATION, re.MULTILINE)


def fields(schema, path=""):
    """The paths of all fields that hold a value, without those of steps, which are the same again."""
    if schema.get("type") == "array" and schema["items"].get("type") == "object":
        schema, path = schema["items"], f"{path}[]"
    if "properties" not in schema:
        return [path]
    return [
        found
        for name, each in schema["properties"].items()
        for found in fields(each, f"{path}.{name}".lstrip("."))
        if not found.startswith("steps[].")
    ]


def spec_schema():
    (version,) = definition.MRJOB.manifest()["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]


def test_every_field_of_the_crd_has_a_row():
    """A new field needs one: a wrong value of it, and what the API server answers."""
    assert sorted({*fields(spec_schema()), "steps"}) == sorted({field for field, _, _ in ROWS})


def test_a_steps_fields_are_those_of_the_spec():
    assert spec_schema()["properties"]["steps"]["items"]["properties"].keys() <= spec_schema()["properties"].keys()


@pytest.mark.parametrize(("field", "wrong"), [(field, wrong) for field, wrong, _ in ROWS])
def test_the_wrong_value_of_a_row_is_json_and_is_about_its_field(field, wrong):
    fragment = json.loads(wrong.replace("\\|", "|"))
    assert field.split(".")[0].removesuffix("[]") in fragment or "storage" in fragment or field == "steps"


def test_the_reasons_are_those_that_conditions_have():
    named = set(re.findall(r"\| `([A-Z][A-Za-z]+)` \|", LATER))
    scheduling = (*refusals.REASONS, model.Code.NEVER_FITS, variety.TOO_COMPLEX)
    known = {str(each) for each in (*names.Reason, *contract.Reason, *scheduling)}
    assert len(named) > 15
    assert named <= known


def test_the_page_can_be_read_by_yaml_as_kubectl_would_take_it():
    assert all(isinstance(yaml.safe_load(wrong.replace("\\|", "|")), dict) for _, wrong, _ in ROWS)
