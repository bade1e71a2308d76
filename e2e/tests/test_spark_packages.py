"""SparkApps whose drivers resolve packages from a Maven repository in the cluster."""

import pathlib
from typing import Any

import pytest

from boathouse.resources import names
from boathouse_e2e import mavenrepository, sparkjar
from boathouse_e2e.mavenrepository import Package
from e2e.tests import harness, spark_harness
from e2e.tests.spark_harness import Applications
from e2e.tests.spark_programs import ONE_EXECUTOR

pytestmark = [pytest.mark.cluster, pytest.mark.long]

PROGRAM = """
import sys
from pyspark.sql import SparkSession

source, target = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.udf.registerJavaFunction("reverse_letters", "Reverse")
spark.read.text(source).selectExpr("reverse_letters(value)").write.text(target)
spark.stop()
"""
MISSING = "dev.boathouse.tests:missing:1.0"


@pytest.fixture
def package(apps: Applications) -> Package:
    """A package with a function of SQL, served in the namespace."""
    jar = sparkjar.ensure(pathlib.Path(__file__).with_name("Reverse.java"))
    package = Package(group="dev.boathouse.tests", artifact="reverse", version="1.0", jar=jar)
    namespace = apps.place.namespace
    apps.place.cluster.apply(*mavenrepository.manifests(package, namespace=namespace))
    ready = ("wait", f"pod/{mavenrepository.NAME}", "-n", namespace, "--for=condition=Ready")
    apps.place.cluster.run(*ready, f"--timeout={harness.TIMEOUT_S}s", timeout_s=harness.TIMEOUT_S + 10)
    return package


def start(apps: Applications, name: str, package: str) -> None:
    """Start an application that reverses words with a package; an empty folder is its central repository."""
    repository = mavenrepository.url(apps.place.namespace)
    central = [{"name": "DEFAULT_ARTIFACT_REPOSITORY", "value": f"{repository}/none"}]
    driver: dict[str, Any] = {**spark_harness.SMALL_DRIVER, "env": central}
    apps.start(
        name,
        mainApplicationFile=apps.program(PROGRAM),
        arguments=[spark_harness.s3a(apps.place, "words"), spark_harness.s3a(apps.place, name)],
        deps={"packages": [package], "repositories": [repository]},
        driver=driver,
        executor=ONE_EXECUTOR,
    )


def test_a_package_is_resolved_by_the_driver_and_one_that_is_missing_is_named(
    apps: Applications, package: Package
) -> None:
    apps.place.put("words/text", b"stressed\nlived\n")
    start(apps, "resolved", package.coordinates)
    start(apps, "unresolved", MISSING)
    failed = apps.finish("unresolved")
    condition = failed.condition(names.ConditionType.FAILED)
    assert condition is not None
    assert (failed.phase, condition.reason) == ("Failed", "ApplicationFailed")
    assert "dev.boathouse.tests#missing;1.0: not found" in failed.last_log
    apps.succeed("resolved")
    files = spark_harness.files(apps.place, "resolved")
    assert b"".join(data for name, data in files.items() if name.startswith("part-")) == b"desserts\ndevil\n"
