"""The page of fields names every field that MRClusters do not share with MRJobs."""

import json
import pathlib
import re

import pytest

from boathouse.resources import schema
from boathouse.resources.mrcluster.definition import MRCLUSTER
from tests.unit.resources.test_mrjob_fields import fields

PAGE = pathlib.Path(__file__).parents[4] / "docs/reference/mrcluster-fields.md"
ROWS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
SHARED = {
    *("queue", "image", "imagePullPolicy", "imagePullSecrets", "env", "envFrom", "nodeSelector", "tolerations"),
    *("podTemplate", "serviceAccountName"),
}


def own_fields():
    spec = schema.structural(MRCLUSTER.model)["properties"]["spec"]
    return {field for field in fields(spec) if field.split(".")[0].removesuffix("[]") not in SHARED}


def test_every_field_has_a_row():
    assert own_fields() <= {field for field, _, _ in ROWS}


@pytest.mark.parametrize(("field", "wrong"), [(field, wrong) for field, wrong, _ in ROWS])
def test_the_wrong_value_of_a_row_is_about_its_field(field, wrong):
    assert field.split(".")[0] in json.loads(wrong)
