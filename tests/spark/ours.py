"""The submission that Boathouse makes of a configuration."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from tests.builders import sparkapps
from tests.builders.sparkapps import Submission, app
from tests.spark.configurations import Configuration


def submission(configuration: Configuration) -> Submission:
    return submission_of(configuration.spec)


def submission_of(spec: Mapping[str, Any]) -> Submission:
    return sparkapps.submission(app(**spec))


def digest(configuration: Configuration) -> str:
    """Identify all that a driver makes its executors of."""
    data = submission(configuration).config_map["data"]
    text = json.dumps([data["spark.properties"], data["executor.yaml"]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
