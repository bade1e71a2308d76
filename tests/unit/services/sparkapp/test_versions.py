"""The properties that Boathouse sets are properties of every supported version of Spark, but for those listed here."""

import pytest

from boathouse.resources.sparkapp.fields import FIELDS
from boathouse.services.sparkapp import objects
from boathouse_cli.conversion import fields
from tests.builders.sparkapps import ATTEMPT, SUBMISSIONS, VERSIONS, app
from tests.spark import configurations, keys

MINIMUM = {f"spark.{role}.minMemoryOverhead" for role in ("driver", "executor")}
POD_IP = {"spark.kubernetes.executor.useDriverPodIP"}
UNKNOWN = {"3.5": MINIMUM | POD_IP, "4.0": POD_IP, "4.1": set(), "4.2": set(), "4.3": set()}
"""Properties that a version ignores: `convert` leaves the minimum out, SPARK_LOCAL_HOSTNAME is the address."""
ELSEWHERE = ("spark.hadoop.", "spark.sql.", "spark.metrics.conf.")
"""Properties that other modules define: Hadoop's, SQL's, and those of the file of metrics."""
NOT_DECLARED = {
    *("spark.app.id", "spark.app.name", "spark.master", "spark.jars.ivy"),
    *(f"spark.kubernetes.authenticate.{role}.serviceAccountName" for role in ("driver", "executor")),
}
"""Properties that Spark reads by name, without a definition."""


def all_properties():
    """Return the keys of an application that uses every field, and those that fields stand for."""
    monitoring = {"prometheus": True, "eventLogDir": "s3a://books/events"}
    whole = app(dynamicAllocation={"enabled": True}, storage={"s3": {}}, monitoring=monitoring)
    set_keys = {*objects.properties(whole, ATTEMPT), *FIELDS.values()}
    return {key for key in set_keys if not key.startswith(ELSEWHERE)} - NOT_DECLARED


@pytest.mark.parametrize("version", VERSIONS)
def test_what_boathouse_sets_a_version_knows_or_it_is_listed(version):
    table = keys.read()
    assert {key for key in all_properties() if version not in table.get(key, [])} == UNKNOWN[version]


def test_convert_leaves_out_the_fields_that_a_version_ignores():
    since = {FIELDS[field]: version for field, version in fields.SINCE.items()}
    ignored = {key for unknown in UNKNOWN.values() for key in unknown if key in FIELDS.values()}
    assert since.keys() == ignored
    assert all(min(keys.read()[key]) == version for key, version in since.items())


@pytest.mark.parametrize("version", VERSIONS)
def test_executors_reach_the_driver_by_its_address_in_every_version(version):
    (urls,) = {
        variable["value"]
        for _, recording in SUBMISSIONS
        if recording["version"] == version
        for pod in recording["ours"]["executors"]
        for variable in pod["spec"]["containers"][0]["env"]
        if variable["name"] == "SPARK_DRIVER_URL"
    }
    assert urls == "spark://CoarseGrainedScheduler@DRIVER"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_has_all_its_recordings(version):
    found = {configuration.name for configuration, recording in SUBMISSIONS if recording["version"] == version}
    is_newest = version == configurations.NEWEST
    assert found == (
        {configuration.name for configuration in configurations.ALL} if is_newest else configurations.OF_EACH_VERSION
    )
