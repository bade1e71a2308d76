"""The submission that Boathouse makes of a configuration."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from boathouse.services.sparkapp import objects
from tests.builders.sparkapps import app
from tests.spark.configurations import Configuration


def submission(configuration: Configuration) -> objects.Submission:
    return submission_of(configuration.spec)


def submission_of(spec: Mapping[str, Any]) -> objects.Submission:
    return objects.of(app(**spec), 1)


def digest(configuration: Configuration) -> str:
    """Identify all that a driver makes its executors of."""
    data = submission(configuration).config_map["data"]
    text = json.dumps([data["spark.properties"], data["executor.yaml"]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
