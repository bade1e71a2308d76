"""Start SparkContexts one after another, as a driver in client mode would; run by the interpreter that has pyspark.

Each line of standard input is a JSON object with `properties` and `profile`: a context is started with them, and
`started` is printed. An empty line stops it, and `stopped` is printed.
"""

import json
import sys
import threading
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark.resource import ExecutorResourceRequests, ResourceProfileBuilder

OURS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.kubernetes.allocation.batch.delay": "200ms",
    "spark.scheduler.minRegisteredResourcesRatio": "0",
    "spark.submit.deployMode": "client",
    "spark.ui.enabled": "false",
}
"""So that the context starts here, and does not wait for executors that never come."""
LEFT_OUT = ("spark.jars", "spark.files", "spark.archives", "spark.submit.pyFiles", "spark.driver.resource.")
"""What only matters inside the driver, and needs files that are not here."""


def request(context: pyspark.SparkContext, profile: dict[str, Any]) -> None:
    """Run a stage that needs executors of the profile; it never ends, because none registers."""
    requests = ExecutorResourceRequests()
    for name, value in profile.items():
        getattr(requests, name)(value)
    data = context.parallelize([1], 1).withResources(ResourceProfileBuilder().require(requests).build)
    threading.Thread(target=_count, args=(data,), daemon=True).start()


def _count(data: pyspark.RDD) -> None:
    try:
        data.count()
    except Py4JError:  # the context was stopped
        return


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        task = json.loads(line)
        properties = {k: v for k, v in task["properties"].items() if not k.startswith(LEFT_OUT)} | OURS
        if "spark.driver.host" in properties:  # a Service, which is not here; Boathouse leaves the address to Spark
            properties["spark.driver.host"] = "127.0.0.1"
        conf = pyspark.SparkConf(loadDefaults=False).setAll(list(properties.items()))
        context = pyspark.SparkContext(conf=conf)
        if task["profile"]:
            request(context, task["profile"])
        say("started")
        sys.stdin.readline()
        context.stop()
        say("stopped")


if __name__ == "__main__":
    main()
