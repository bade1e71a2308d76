"""What is converted is accepted by a real API server, CEL rules included."""

import pytest
from hypothesis import HealthCheck, given, settings

from boathouse.cluster import errors
from tests.builders import conversion_strategies, conversions
from tests.contract.test_sparkapp_crd import SPARKAPPS
from tests.spark import configurations

pytestmark = pytest.mark.usefixtures("crds")

SAMPLES = 150


def submissions():
    """Command lines, the same ones each time."""
    found = []

    @settings(max_examples=SAMPLES, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(conversion_strategies.command_lines())
    def collect(words):
        found.append(words)

    collect()
    return found


async def problem_of(api, manifest):
    metadata = {**manifest["metadata"], "namespace": "default"}
    try:
        await api.create(SPARKAPPS, {**manifest, "metadata": metadata}, "default", dry_run=True)
    except errors.Invalid as error:
        return error.message
    return None


async def test_submissions_are_accepted_as_they_are_converted(api):
    tried, problems = 0, {}
    for words in submissions():
        found = conversions.converted_line(*words[1:])
        if found.manifest is not None:
            tried += 1
            if (problem := await problem_of(api, found.manifest)) is not None:
                problems[" ".join(words)] = problem
    assert tried > SAMPLES / 2
    assert problems == {}


@pytest.mark.parametrize("configuration", configurations.ALL, ids=lambda configuration: configuration.name)
async def test_recorded_submissions_are_accepted_as_they_are_converted(api, configuration):
    found = conversions.converted_line(*conversions.COMMON, *configuration.options, *configuration.application)
    assert await problem_of(api, found.manifest) is None


async def test_a_manifest_with_all_that_has_a_counterpart_is_accepted(api):
    found = conversions.converted_application(
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "books"}}],
        mainApplicationFile="file:///data/main.py",
        hadoopConfigMap="hadoop",
        restartPolicy={"type": "Always", "onFailureRetryInterval": 600},
        batchSchedulerOptions={"queue": "analytics", "priorityClassName": "high"},
        **conversions.both_roles(
            volumeMounts=[{"name": "data", "mountPath": "/data"}],
            configMaps=[{"name": "settings", "path": "/mnt/settings"}],
            gpu={"name": "nvidia.com/gpu", "quantity": 1},
            podSecurityContext={"fsGroup": 2000},
            labels={"version": 4.3},
        ),
    )
    assert found.notes == ()
    assert await problem_of(api, found.manifest) is None
