"""SparkApps that run, on a real cluster."""

import pytest

from boathouse_e2e import sparkjar
from e2e.tests import spark_harness
from e2e.tests.spark_harness import Applications

pytestmark = pytest.mark.cluster


def test_a_python_application_counts_the_words_of_s3a_and_commits_them_by_magic(apps: Applications) -> None:
    place = apps.place
    place.put("in/text", spark_harness.TEXT)
    program = apps.program((spark_harness.FOLDER / "wordcount.py").read_text())
    arguments = [spark_harness.s3a(place, "in"), spark_harness.s3a(place, "out")]
    apps.succeed(apps.start("python", mainApplicationFile=program, arguments=arguments))
    success, words = spark_harness.output(place, "out")
    assert success["committer"] == "magic"
    assert words == spark_harness.COUNTED


def test_a_jar_in_s3a_counts_the_same_words(apps: Applications) -> None:
    place = apps.place
    place.put("in/text", spark_harness.TEXT)
    place.put("wordcount.jar", sparkjar.ensure().read_bytes())
    apps.start(
        "jar",
        type="Java",
        mainClass="WordCount",
        mainApplicationFile=spark_harness.s3a(place, "wordcount.jar"),
        arguments=[spark_harness.s3a(place, "in"), spark_harness.s3a(place, "out")],
        volumes=None,
    )
    apps.succeed("jar")
    _, words = spark_harness.output(place, "out")
    assert words == spark_harness.COUNTED
