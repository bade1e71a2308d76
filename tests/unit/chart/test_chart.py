"""What the chart's files promise, checked without helm."""

import json
import re
from pathlib import Path

import pytest
import yaml

from boathouse.resources import config

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts" / "boathouse"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
OPERATOR = config.OperatorConfig.model_json_schema(by_alias=True)


def resolved(node):
    return SCHEMA["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def paths(schema, values, prefix=""):
    """Every value that the schema knows, and every one that values.yaml sets, as dotted paths."""
    in_schema, in_values = set(), set()
    for name, child in schema.get("properties", {}).items():
        in_schema.add(f"{prefix}{name}")
        if isinstance(values, dict) and name in values:
            more_in_schema, more_in_values = paths(resolved(child), values[name], f"{prefix}{name}.")
            in_schema, in_values = in_schema | more_in_schema, in_values | more_in_values | {f"{prefix}{name}"}
    return in_schema, in_values


def test_every_value_of_the_schema_has_a_default_that_people_can_read():
    in_schema, in_values = paths(SCHEMA, VALUES)
    assert in_schema - in_values == {"global", "resources.claims"}


def test_every_section_refuses_what_it_does_not_know():
    for name, child in SCHEMA["properties"].items():
        if "properties" in resolved(child):
            assert resolved(child)["additionalProperties"] is False, name


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (SCHEMA["properties"]["profile"], OPERATOR["properties"]["profile"]),
        (SCHEMA["properties"]["log"]["properties"]["level"], OPERATOR["properties"]["logLevel"]),
        (SCHEMA["properties"]["log"]["properties"]["format"], OPERATOR["properties"]["logFormat"]),
        (
            SCHEMA["$defs"]["image"]["properties"]["pullPolicy"],
            OPERATOR["$defs"]["TaskDefaults"]["properties"]["imagePullPolicy"],
        ),
    ],
    ids=["profile", "log level", "log format", "pull policy"],
)
def test_the_choices_are_those_of_the_operator(value, field):
    assert set(value["enum"]) == set(field["enum"])


def test_a_shadow_is_off_or_one_of_the_profiles():
    assert VALUES["shadowProfile"] == ""
    assert set(SCHEMA["properties"]["shadowProfile"]["enum"]) == {"", *config.PROFILES}


def test_the_comment_on_the_profile_names_every_choice():
    before = (CHART / "values.yaml").read_text().partition("\nprofile:")[0]
    comment = before.rpartition("\n# -- ")[2]
    assert {name for name in config.PROFILES if not re.search(rf"\b{name}\b", comment)} == set()


def test_the_dashboard_shows_metrics_that_exist():
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    used = {name for query in queries for name in re.findall(r"\bboathouse_\w+", query)}
    exist = set(re.findall(r"`(boathouse_\w+)`", (ROOT / "docs" / "reference" / "metrics.md").read_text()))
    assert len(queries) > 15
    assert {re.sub(r"_bucket$", "", name) for name in used} <= exist


def test_no_panel_covers_another():
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text())
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in dashboard["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
