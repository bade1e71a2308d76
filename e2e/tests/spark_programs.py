"""A program for tests of Spark applications that takes as long as they need: it adds up squares."""

from collections.abc import Mapping
from typing import Any

from e2e.tests import spark_harness
from e2e.tests.spark_harness import Applications

SQUARES = """
import sys, time
from pyspark.sql import SparkSession

tasks, seconds, target, idle, *properties = sys.argv[1:]


def square(number):
    time.sleep(float(seconds))
    return number * number


builder = SparkSession.builder
for each in properties:
    builder = builder.config(*each.split("=", 1))
spark = builder.getOrCreate()
total = spark.sparkContext.parallelize(range(int(tasks)), int(tasks)).map(square).sum()
time.sleep(float(idle))
spark.sparkContext.parallelize([str(total)], 1).saveAsTextFile(target)
spark.stop()
"""
TASKS = 12
EXPECTED = sum(number * number for number in range(TASKS))
ONE_EXECUTOR = {"instances": 1, **spark_harness.SMALL_EXECUTOR}


def squares(
    apps: Applications,
    name: str,
    *,
    seconds: float = 0.1,
    idle: float = 0,
    properties: Mapping[str, str] | None = None,
    **spec: Any,
) -> str:
    """Start an application that adds up squares, each in a task of so many seconds, and then is idle.

    `properties` are those that the program sets itself.
    """
    own = [f"{key}={value}" for key, value in (properties or {}).items()]
    arguments = [str(TASKS), str(seconds), spark_harness.s3a(apps.place, name), str(idle), *own]
    return apps.start(name, mainApplicationFile=apps.program(SQUARES), arguments=arguments, **spec)


def total(apps: Applications, name: str) -> int:
    """The sum that an application wrote."""
    files = spark_harness.files(apps.place, name)
    return int(b"".join(data for path, data in files.items() if path.startswith("part-")))
