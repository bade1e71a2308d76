"""The first jobs of docs/getting-started.md, by the commands that are there, without an object store."""

import collections
import re

import pytest
import yaml

from boathouse_e2e import paths
from e2e.tests import command_line, hadoop_harness, harness, local_volumes, spark_harness

pytestmark = pytest.mark.cluster

PAGE = "docs/getting-started.md"


@pytest.mark.short  # on kind the claim gets a volume of the default StorageClass
def test_the_first_mrjob_counts_the_words_of_a_config_map(place: harness.Place) -> None:
    config_map = next(yaml.safe_load_all((paths.REPOSITORY / "examples" / "first-mrjob.yaml").read_text()))
    expected = collections.Counter(re.findall("[a-z]+", config_map["data"]["text.txt"].lower()))
    with local_volumes.reserved(place.cluster, place.namespace, "first-mrjob"):
        said = command_line.followed(place, PAGE, "Run a job", timeout_s=harness.TIMEOUT_S)
    assert {word: int(count) for word, count in re.findall(r"^([a-z]+)\t(\d+)$", said, re.MULTILINE)} == expected


PI, SQL = "python/pi.py", "spark/sql.py"


def submitted(apps: spark_harness.Applications, *, without: str) -> str:
    """What the section on Spark prints without one of its two applications, which take half a minute each."""
    section, limit_s = "Run a Spark application", spark_harness.TIMEOUT_S
    return command_line.followed(apps.place, PAGE, section, timeout_s=limit_s, without=without)


@pytest.mark.alone
def test_the_first_spark_application_computes_pi(apps: spark_harness.Applications) -> None:
    assert "Pi is roughly 3.1" in submitted(apps, without=SQL)


@pytest.mark.long
def test_a_local_spark_program_queries_the_rows_that_it_generates(apps: spark_harness.Applications) -> None:
    found = re.findall(r"\| *(east|north|south|west)\| *200000\|", submitted(apps, without=PI))
    assert found == ["east", "west", "north", "south"]


@pytest.mark.long
def test_the_first_hadoop_cluster_computes_pi(hadoop: hadoop_harness.Clusters) -> None:
    said = command_line.followed(hadoop.place, PAGE, "Run a Hadoop cluster", timeout_s=hadoop_harness.TIMEOUT_S)
    assert re.search(r"Estimated value of Pi is 3\.1", said)
