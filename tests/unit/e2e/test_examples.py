"""The examples for Spark agree with one another."""

import pytest
import yaml

from boathouse.resources.sparkapp.status import SparkApp
from boathouse_e2e import paths

FOLDER = paths.REPOSITORY / "examples" / "spark"


@pytest.mark.parametrize("program", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_the_manifest_of_an_example_holds_its_program(program):
    config_map, application = yaml.safe_load_all(program.with_suffix(".yaml").read_text())
    assert config_map["data"] == {program.name: program.read_text()}
    assert application["spec"]["volumes"][0]["configMapName"] == config_map["metadata"]["name"]
    assert application["spec"]["mainApplicationFile"].endswith(f"/{program.name}")
    SparkApp.model_validate(application)
