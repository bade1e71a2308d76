"""What docs/sparkapp.md shows is what happens."""

import pathlib
import re

import pytest
import yaml

from boathouse.resources.sparkapp.status import SparkApp
from boathouse_cli.conversion import manifests
from tests.builders import conversions
from tests.builders.cli import all_keys

PAGE = (pathlib.Path(__file__).parents[4] / "docs" / "sparkapp.md").read_text()
BLOCKS = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]


def specs():
    """Each block as the spec of an application."""
    base = {"type": "Python", "mainApplicationFile": "local:///opt/app/main.py"}
    for block in BLOCKS:
        if block.get("kind") == "SparkApp":
            yield block["spec"]
        elif "kind" not in block:
            yield {**base, **block}


@pytest.mark.parametrize("spec", list(specs()))
def test_every_field_of_the_page_is_known(spec):
    found = SparkApp.model_validate({"spec": spec}).spec
    assert all_keys(found.model_dump(by_alias=True)) >= all_keys(spec)


def test_the_notes_of_the_page_are_those_of_the_command():
    driver = {**conversions.APPLICATION["driver"], "sidecars": [{"name": "proxy"}], "serviceAccount": "spark"}
    found = manifests.convert(conversions.spark_application(**{**conversions.APPLICATION, "driver": driver}))
    assert len(found.notes) == 2
    for note in found.notes:
        assert note.text in PAGE
