"""The Spark image by itself: drivers built by hand run executors, in a namespace that enforces `restricted`."""

import json
import pathlib

import pytest

from boathouse_e2e import sparkdriver, sparkjar, waiting
from e2e.tests import harness, spark_harness
from e2e.tests.spark_harness import TEXT, s3a

pytestmark = pytest.mark.long
CHECKS = pathlib.Path(__file__).with_name("spark_checks.py")


@pytest.fixture
def place(place: harness.Place) -> harness.Place:
    """Return a namespace that refuses pods with privileges, on nodes that have the image."""
    spark_harness.prepare(place)
    return place


def succeed(place: harness.Place, application: sparkdriver.Application) -> str:
    """Run a driver to its end; return its log, without Spark's own lines."""
    cluster, pod = place.cluster, ("-n", place.namespace, application.name)
    cluster.apply(*application.manifests())

    def phase() -> str | None:
        now = str(cluster.get("pod", *pod)["status"]["phase"])
        return now if now in {"Succeeded", "Failed"} else None

    ended = waiting.until(phase, f"{application.name} ends", within_s=spark_harness.TIMEOUT_S)
    log = cluster.run("logs", *pod)
    assert ended == "Succeeded", log[-5000:]
    assert "forbidden" not in log
    return log


def test_a_python_application_counts_words_of_s3a_and_commits_them_by_magic(place: harness.Place) -> None:
    place.put("in/text", TEXT)
    arguments = ("/opt/app/wordcount.py", s3a(place, "in"), s3a(place, "out"))
    files = {"wordcount.py": (spark_harness.FOLDER / "wordcount.py").read_text()}
    succeed(
        place,
        sparkdriver.Application(name="python", namespace=place.namespace, arguments=arguments, files=files),
    )
    success, words = spark_harness.output(place, "out")
    assert success["committer"] == "magic"
    assert words == spark_harness.COUNTED


def test_a_jar_in_s3a_runs_as_a_user_whom_the_image_does_not_know(place: harness.Place) -> None:
    place.put("in/text", TEXT)
    place.put("wordcount.jar", sparkjar.ensure().read_bytes())
    jar = s3a(place, "wordcount.jar")
    application = sparkdriver.Application(
        name="jar",
        namespace=place.namespace,
        arguments=("--class", "WordCount", jar, s3a(place, "in"), s3a(place, "out")),
        conf={"spark.jars": jar},  # for the executors: a driver in the cluster does not add its own jar
        uid=4242,
    )
    succeed(place, application)
    _, words = spark_harness.output(place, "out")
    assert words == spark_harness.COUNTED


def test_what_the_image_leaves_out_of_pyspark_is_not_missed(place: harness.Place) -> None:
    files = {"checks.py": CHECKS.read_text()}
    arguments = ("/opt/app/checks.py", s3a(place, "checks"))
    application = sparkdriver.Application(name="checks", namespace=place.namespace, arguments=arguments, files=files)
    lines = [line for line in succeed(place, application).splitlines() if line.startswith('{"check"')]
    print(*lines, sep="\n")
    assert {line["check"]: line["found"] for line in map(json.loads, lines)} == {
        "parquet": [49995000] * 5,
        "sql": [[0, 143, 0, 1, 333, "0"], [1, 143, 2, 2, 333, "1"]],
        "k_means": [0.2, 9.2],
        "page_rank": ["c", "a", "b"],
        "streaming": [[key, 20] for key in range(5)],
        "text_by_rename": 4950,
    }
