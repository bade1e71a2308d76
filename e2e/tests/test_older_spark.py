"""SparkApps with the oldest supported Spark: executors find the driver, S3A commits, executors come and go."""

import pytest

from boathouse_e2e import images
from e2e.tests import spark_harness
from e2e.tests.spark_harness import Applications, s3a

pytestmark = [pytest.mark.cluster, pytest.mark.long]

VERSION = "3.5"
PROGRAM = """\
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(100_000).repartition(8).selectExpr("id % 7 AS seven").groupBy("seven").count().write.orc(sys.argv[1])
assert spark.read.orc(sys.argv[1]).agg({"count": "sum"}).first()[0] == 100_000
print("version", spark.version)
"""


def test_spark_3_5_counts_the_words_of_s3a_and_commits_them_by_magic(apps: Applications) -> None:
    images.load(apps.place.cluster, [images.OLDER_SPARK])
    apps.place.put("in/text", spark_harness.TEXT)
    program = apps.program((spark_harness.FOLDER / "wordcount.py").read_text())
    arguments = [s3a(apps.place, "in"), s3a(apps.place, "out")]
    apps.start("words", image=images.OLDER_SPARK, mainApplicationFile=program, arguments=arguments)
    apps.succeed("words")
    success, words = spark_harness.output(apps.place, "out")
    assert words == spark_harness.COUNTED
    assert success["committer"] == "magic"


def test_spark_3_5_requests_executors_for_its_tasks_and_reads_what_it_wrote(apps: Applications) -> None:
    images.load(apps.place.cluster, [images.OLDER_SPARK])
    allocation = {"enabled": True, "minExecutors": 0, "maxExecutors": 2}
    apps.start(
        "rows",
        image=images.OLDER_SPARK,
        mainApplicationFile=apps.program(PROGRAM),
        arguments=[s3a(apps.place, "rows")],
        executor=spark_harness.SMALL_EXECUTOR,
        dynamicAllocation=allocation,
    )
    apps.succeed("rows")
    drivers = [pod for pod in apps.raw_pods("rows") if pod["metadata"]["labels"]["spark-role"] == "driver"]
    log = apps.place.cluster.run("logs", "-n", apps.place.namespace, drivers[-1]["metadata"]["name"])
    assert f"version {VERSION}." in log
