"""SparkApps as the API server has them, their models, their drivers, and recordings of Spark's own submission."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import TYPE_CHECKING, Any

import pytest

from boathouse.resources.config import OperatorConfig, SparkDefaults
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.pod_life import PodLife
from boathouse.services.sparkapp import model, objects, pods
from boathouse.services.sparkapp.model import AttemptNames
from boathouse.services.sparkapp.observation import DriverPod
from tests.spark import configurations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse.services.hadoop import ClusterFacts

UID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"
CONFIG = OperatorConfig(spark=SparkDefaults(image=configurations.IMAGE))
ATTEMPT = AttemptNames.of("pi", UID, 1)
STARTED_S = 1_000_000.0


def sparkapp(
    *,
    name: str = configurations.NAME,
    uid: str = UID,
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a SparkApp in Python as the API server has it."""
    own = {"name": name, "namespace": configurations.NAMESPACE, "uid": uid, "generation": 1}
    own |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    fields = {"type": "Python", "mainApplicationFile": configurations.PYTHON_FILE} | spec
    return {"metadata": own | (metadata or {}), "spec": fields, "status": status or {}}


def app(**fields: Any) -> model.App:
    """Return the model of a SparkApp with these fields."""
    found = model.from_resource(sparkapp(**fields), CONFIG)
    assert not isinstance(found, Refusal), found
    return found


def app_refusal(**fields: Any) -> Refusal:
    """Return why a SparkApp with these fields cannot run."""
    found = model.from_resource(sparkapp(**fields), CONFIG)
    assert isinstance(found, Refusal)
    return found


@dataclasses.dataclass(frozen=True)
class Submission:
    """What the operator creates for an attempt."""

    names: AttemptNames
    config_map: dict[str, Any]
    service: dict[str, Any] | None
    driver: dict[str, Any]


def submission(submitted: model.App, attempt: int = 1, clusters: Sequence[ClusterFacts] = ()) -> Submission:
    """Return the objects of an attempt that sees these clusters."""
    names = submitted.attempt(attempt)
    return Submission(
        names=names,
        config_map=objects.config_map(submitted, names, clusters),
        service=objects.service(submitted, names) if submitted.has_service else None,
        driver=pods.driver(submitted, names),
    )


def driver_pod(state: PodLife = PodLife.RUNNING, attempt: int = 1, **fields: Any) -> DriverPod:
    """Return the pod of a driver, placed and started at `STARTED_S` as far as its state says."""
    values = {"attempt": attempt, "name": f"pi-a{attempt}-driver", "uid": f"u{attempt}", "state": state}
    if state is not PodLife.UNPLACED:
        values |= {"node": "n1", "placed_s": STARTED_S}
        values |= {} if state is PodLife.STARTING else {"started_s": STARTED_S}
    return DriverPod(**(values | fields))


_RECORDED = pathlib.Path(__file__).parents[1] / "spark/recorded"
VERSIONS = sorted(folder.name for folder in _RECORDED.iterdir() if folder.is_dir())
"""The recorded minor versions of Spark."""


def _recorded(version: str, file: str) -> dict[str, Any]:
    path = _RECORDED / version / file
    return json.loads(path.read_text())["configurations"] if path.exists() else {}


def _submissions(version: str) -> list[tuple[configurations.Configuration, dict[str, Any]]]:
    submitted, ours = _recorded(version, "submission.json"), _recorded(version, "executors.json")
    return [
        (configuration, {**submitted[configuration.name], "version": version, "ours": ours[configuration.name]})
        for configuration in configurations.ALL
        if configuration.name in submitted and configuration.name in ours
    ]


SUBMISSIONS = [submission for version in VERSIONS for submission in _submissions(version)]
"""Each configuration with what Spark's own submission created for it, and the executors of `ours`, by version."""


of_each_submission = pytest.mark.parametrize(
    ("configuration", "recording"),
    SUBMISSIONS,
    ids=[f"{recording['version']}-{configuration.name}" for configuration, recording in SUBMISSIONS],
)
"""Parametrize a test with each recorded submission."""


def only_container(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the only container of a manifest."""
    (found,) = pod["spec"]["containers"]
    return found
