"""The pages of fields have a row for every field of a kind, and name only reasons that exist."""

import json
import pathlib
import re

import pytest
import yaml

from boathouse.resources import names
from boathouse.scheduling import limits, refusals
from boathouse_policies import model
from boathouse_task import contract
from tests.builders.crds import field_rows, spec_schema, value_fields

MRJOB_PAGE = pathlib.Path(__file__).parents[3] / "docs/reference/mrjob-fields.md"
SHARED = {
    *("queue", "image", "imagePullPolicy", "imagePullSecrets", "env", "envFrom", "nodeSelector", "tolerations"),
    *("podTemplate", "storage", "serviceAccountName"),
}
"""Fields that other kinds share with MRJobs, whose page describes them."""


def parts_of(field):
    return [part.removesuffix("[]") for part in field.split(".")]


def own_fields(kind):
    for field in value_fields(spec_schema(kind)):
        parts = parts_of(field)
        if parts[0] not in SHARED and not (parts[0] in {"driver", "executor"} and parts[1] in SHARED):
            yield field


def test_every_field_of_a_job_has_a_row():
    """A new field needs one: an invalid value of it, and the error of the API server."""
    rows = {field for field, _, _ in field_rows("MRJob")}
    assert sorted({*value_fields(spec_schema("MRJob")), "steps"}) == sorted(rows)


@pytest.mark.parametrize("kind", ["SparkApp", "MRCluster"])
def test_every_field_of_another_kind_has_a_row_unless_it_is_shared(kind):
    assert set(own_fields(kind)) <= {field for field, _, _ in field_rows(kind)}


def test_a_steps_fields_are_those_of_the_spec():
    properties = spec_schema("MRJob")["properties"]
    assert properties["steps"]["items"]["properties"].keys() <= properties.keys()


@pytest.mark.parametrize(("kind", "others"), [("MRJob", {"storage"}), ("SparkApp", {"type"}), ("MRCluster", set())])
def test_the_invalid_value_of_a_row_is_json_and_is_about_its_field(kind, others):
    rows = [(parts_of(field)[0], json.loads(invalid.replace("\\|", "|"))) for field, invalid, _ in field_rows(kind)]
    assert len(rows) > 70
    assert [field for field, spec in rows if field != "steps" and not spec.keys() & {field, *others}] == []


def test_the_reasons_are_those_that_conditions_have():
    later = MRJOB_PAGE.read_text().split("## Detected after creation")[1]
    named = set(re.findall(r"\| `([A-Z][A-Za-z]+)` \|", later))
    scheduling = (*refusals.REASONS, model.Code.NEVER_FITS, limits.TOO_COMPLEX)
    reasons = {str(reason) for reason in (*names.Reason, *contract.Reason, *scheduling)}
    assert len(named) > 15
    assert named <= reasons


def test_the_invalid_values_are_read_by_yaml_as_kubectl_would_do():
    rows = field_rows("MRJob")
    assert all(isinstance(yaml.safe_load(invalid.replace("\\|", "|")), dict) for _, invalid, _ in rows)
