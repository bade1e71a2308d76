"""SparkApps that run, on a real cluster."""

import pytest

from boathouse_e2e import sparkjar
from e2e.tests import spark_harness
from e2e.tests.spark_harness import Applications

pytestmark = pytest.mark.cluster


def start_python(apps: Applications) -> None:
    program = apps.program((spark_harness.FOLDER / "wordcount.py").read_text())
    arguments = [spark_harness.s3a(apps.place, "in"), spark_harness.s3a(apps.place, "python")]
    apps.start("python", mainApplicationFile=program, arguments=arguments)


def start_jar(apps: Applications) -> None:
    """Run the jar as a user whom the image does not know."""
    place = apps.place
    place.put("wordcount.jar", sparkjar.ensure().read_bytes())
    apps.start(
        "jar",
        type="Java",
        mainClass="WordCount",
        mainApplicationFile=spark_harness.s3a(place, "wordcount.jar"),
        arguments=[spark_harness.s3a(place, "in"), spark_harness.s3a(place, "jar")],
        podTemplate={"securityContext": {"runAsUser": 4242, "runAsGroup": 4242, "fsGroup": 4242}},
        volumes=None,
    )


@pytest.mark.short
@pytest.mark.long  # the next test does the same and more
def test_a_python_program_counts_the_words_of_s3a(apps: Applications) -> None:
    apps.place.put("in/text", spark_harness.TEXT)
    start_python(apps)
    apps.succeed("python")
    assert spark_harness.output(apps.place, "python")[1] == spark_harness.COUNTED


def test_a_python_program_and_a_jar_count_the_words_of_s3a_beside_each_other(apps: Applications) -> None:
    apps.place.put("in/text", spark_harness.TEXT)
    start_python(apps)
    start_jar(apps)
    for name in ("python", "jar"):
        apps.succeed(name)
        _, words = spark_harness.output(apps.place, name)
        assert words == spark_harness.COUNTED
    success, _ = spark_harness.output(apps.place, "python")
    assert success["committer"] == "magic"
