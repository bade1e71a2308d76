"""What Spark's own submission created, as recorded by `python -m tests.spark.record`."""

import json
import pathlib

from tests.spark import configurations

RECORDED = json.loads((pathlib.Path(__file__).parents[3] / "spark/recorded/submission.json").read_text())
PAIRS = [(each, RECORDED["configurations"][each.name]) for each in configurations.ALL]
NAMES = [each.name for each in configurations.ALL]


def container(pod):
    (only,) = pod["spec"]["containers"]
    return only


def is_python(recording):
    return recording["properties"]["spark.kubernetes.resource.type"] == "python"
