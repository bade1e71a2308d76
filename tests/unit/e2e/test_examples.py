"""The examples for Spark agree with one another."""

import yaml

from boathouse_e2e import paths

FOLDER = paths.REPOSITORY / "examples" / "spark"


def test_the_manifest_of_the_word_count_holds_the_program():
    config_map, application = yaml.safe_load_all((FOLDER / "wordcount.yaml").read_text())
    assert config_map["data"] == {"wordcount.py": (FOLDER / "wordcount.py").read_text()}
    assert application["spec"]["volumes"][0]["configMapName"] == config_map["metadata"]["name"]
