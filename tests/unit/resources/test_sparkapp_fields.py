"""The page of fields names every field that SparkApps do not share with MRJobs."""

import json
import pathlib
import re

import pytest

from boathouse.resources import schema
from boathouse.resources.sparkapp.definition import SPARKAPP
from tests.unit.resources.test_mrjob_fields import fields

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "sparkapp-fields.md"
ROWS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
SHARED = {
    *("queue", "image", "imagePullPolicy", "imagePullSecrets", "env", "envFrom", "nodeSelector", "tolerations"),
    *("podTemplate", "storage"),
}


def own_fields():
    spec = schema.structural(SPARKAPP.model)["properties"]["spec"]
    for field in fields(spec):
        parts = [part.removesuffix("[]") for part in field.split(".")]
        if parts[0] not in SHARED and not (parts[0] in {"driver", "executor"} and parts[1] in SHARED):
            yield field


def test_every_field_has_a_row():
    assert set(own_fields()) <= {field for field, _, _ in ROWS}


@pytest.mark.parametrize(("field", "wrong"), [(field, wrong) for field, wrong, _ in ROWS])
def test_the_wrong_value_of_a_row_is_about_its_field(field, wrong):
    fragment = json.loads(wrong.replace("\\|", "|"))
    assert field.split(".")[0].removesuffix("[]") in fragment or "type" in fragment
