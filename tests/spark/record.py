"""`python -m tests.spark.record --pyspark VENV`: record what Spark's own submission creates, for each configuration.

Needs a virtual environment with a pyspark of a supported version (450 MB), and Java 17. Nothing leaves the machine:
Spark talks to a stand-in for the API server on loopback. Takes about ten minutes on two cores.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import javaproperties

from tests.spark import configurations, keys, ours, stand_in
from tests.spark.configurations import Configuration

FOLDER = pathlib.Path(__file__).parent / "recorded"
"""With a folder for each minor version of Spark, such as 3.5."""
SUBMISSIONS = "submission.json"
EXECUTORS = "executors.json"
_COMMON = {
    "spark.kubernetes.namespace": configurations.NAMESPACE,
    "spark.kubernetes.container.image": configurations.IMAGE,
    "spark.kubernetes.authenticate.driver.serviceAccountName": configurations.ACCOUNT,
    "spark.kubernetes.scheduler.name": "boathouse",
    "spark.kubernetes.submission.waitAppCompletion": "false",
}
_SUBMIT_S = 600
_PODS_S = 300
_RANDOM = (
    (r"spark-[0-9a-f]{32}", "APPLICATION-ID"),
    (rf"\b{configurations.NAME}-[0-9a-f]{{16}}", "PREFIX"),
    (r"spark-(drv|exec)-[0-9a-f]{16}", r"spark-\1-HASH"),
    (r"spark-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "LOCAL-DIR"),
    (r"http(\\?):(\\?)//127\.0\.0\.1(\\?):\d+", "API-SERVER"),
    (r"CoarseGrainedScheduler@127\.0\.0\.1:\d+", "CoarseGrainedScheduler@DRIVER"),
    (r'("_SPARK_AUTH_SECRET", "value": ")[0-9a-f]+', r"\1SECRET"),
    (r"-Dspark\.driver\.(port|blockManager\.port)=\d+", r"-Dspark.driver.\1=PORT"),
)
_JVM_ONLY = re.compile(r"--(add|enable|sun)-|-XX:\+IgnoreUnrecognizedVMOptions|-D(java|jdk|io\.netty)\.")
"""Options by which every Spark runs on its Java; they say nothing of a configuration."""


class Spark:
    """An installed pyspark.

    Args:
        environment: The virtual environment that has it.
    """

    def __init__(self, environment: pathlib.Path, home: str) -> None:
        self._python = str(environment / "bin/python")
        self._home = subprocess.run(
            [self._python, "-c", "import pyspark; print(pyspark.__path__[0])"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        self._environ = {
            **{name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ},
            "HOME": home,
            "KUBECONFIG": "/nonexistent",
            "LANG": "C.UTF-8",
            "SPARK_HOME": self._home,
            "SPARK_LOCAL_HOSTNAME": "127.0.0.1",  # as Boathouse sets it: executors reach the driver there
            "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # these processes live for seconds
            "SPARK_USER": "spark",
        }

    @property
    def home(self) -> pathlib.Path:
        return pathlib.Path(self._home)

    @property
    def version(self) -> str:
        return subprocess.run(
            [self._python, "-c", "import pyspark; print(pyspark.__version__)"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def submit(self, server: stand_in.StandIn, configuration: Configuration) -> list[dict[str, Any]]:
        """Submit an application in cluster mode; return what was created."""
        common = [part for key, value in _COMMON.items() for part in ("--conf", f"{key}={value}")]
        subprocess.run(
            [
                *(f"{self._home}/bin/spark-submit", "--master", f"k8s://{server.url}", "--deploy-mode", "cluster"),
                *("--name", configurations.NAME, *common, *configuration.options, *configuration.application),
            ],
            env=self._environ,
            check=True,
            stderr=subprocess.DEVNULL,
            timeout=_SUBMIT_S,
        )
        return server.take()

    @contextlib.contextmanager
    def drivers(self) -> Iterator[Callable[[str], str]]:
        """Run a process that starts a SparkContext for each line; yield what sends a line and returns the answer."""
        command = [self._python, "-W", "ignore", str(pathlib.Path(__file__).with_name("executors.py"))]
        process = subprocess.Popen(
            command,
            env=self._environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def send(line: str) -> str:
            stdin.write(line + "\n")
            stdin.flush()
            answer = stdout.readline().strip()
            if not answer:
                raise RuntimeError("the process that starts SparkContexts ended")
            return answer

        try:
            yield send
        finally:
            stdin.close()
            process.kill()
            process.wait()


def record(spark: Spark, chosen: Sequence[Configuration]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the recording of each configuration, with its name."""
    with stand_in.running() as server, spark.drivers() as send:
        for number, configuration in enumerate(chosen, 1):
            sys.stdout.write(f"{number}/{len(chosen)} {configuration.name}\n")
            sys.stdout.flush()
            created = {manifest["kind"]: manifest for manifest in spark.submit(server, configuration)}
            given = javaproperties.loads(created["ConfigMap"]["data"]["spark.properties"])
            driver = created["Pod"]
            executors = list(executors_of(server, send, driver, given, configuration.profile))
            recording = {
                "driver": driver,
                "service": created["Service"],
                "properties": given,
                "executors": executors,
            }
            yield configuration.name, steady(recording)


def record_ours(
    spark: Spark, chosen: Sequence[Configuration], folder: pathlib.Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the executors that Spark creates from the properties and the template of Boathouse."""
    template = folder / "executor.yaml"
    with stand_in.running() as server, spark.drivers() as send:
        for number, configuration in enumerate(chosen, 1):
            sys.stdout.write(f"{number}/{len(chosen)} ours: {configuration.name}\n")
            sys.stdout.flush()
            submission = ours.submission(configuration)
            data = submission.config_map["data"]
            template.write_text(data["executor.yaml"])
            given = javaproperties.loads(data["spark.properties"]) | {
                "spark.kubernetes.executor.podTemplateFile": str(template),
                "spark.master": f"k8s://{server.url}",
            }
            driver = {**submission.driver, "status": {"podIP": "10.0.0.9"}}
            executors = list(executors_of(server, send, driver, given, configuration.profile))
            recording = steady({"properties": {}, "executors": executors})
            yield configuration.name, {"digest": ours.digest(configuration), "executors": recording["executors"]}


def executors_of(
    server: stand_in.StandIn,
    send: Callable[[str], str],
    driver: Mapping[str, Any],
    given: Mapping[str, str],
    profile: Mapping[str, Any] | None,
) -> Iterator[dict[str, Any]]:
    """Return the executor pods that a driver with these properties creates: the first of each resource profile."""
    path = f"/api/v1/namespaces/{configurations.NAMESPACE}/pods/{driver['metadata']['name']}"
    server.put(path, {**driver, "apiVersion": "v1"})
    server.written.clear()
    is_dynamic = given.get("spark.dynamicAllocation.enabled") == "true"
    first = (given.get(f"spark.dynamicAllocation.{name}Executors", "0") for name in ("min", "initial"))
    reached = {"spark.kubernetes.driver.master": server.url}
    assert send(json.dumps({"properties": {**given, **reached}, "profile": profile})) == "started"
    if not is_dynamic or profile or any(number != "0" for number in first):
        server.wait("Pod", 1, _PODS_S)
    assert send("") == "stopped"
    seen: set[str] = set()
    for pod in server.take():
        if pod["kind"] != "Pod":
            continue
        resource_profile = pod["metadata"]["labels"]["spark-exec-resourceprofile-id"]
        if resource_profile not in seen:
            seen.add(resource_profile)
            yield pod


def steady(recording: dict[str, Any]) -> dict[str, Any]:
    """Return a recording without what differs from run to run."""
    recording["properties"].pop("spark.app.submitTime", None)
    for executor in recording["executors"]:
        for container in executor["spec"]["containers"]:
            variables = [
                _unnumbered(variable) for variable in container["env"] if not _JVM_ONLY.match(variable.get("value", ""))
            ]
            container["env"] = sorted(variables, key=json.dumps)
    text = json.dumps(recording, ensure_ascii=False, sort_keys=True)
    for pattern, replacement in _RANDOM:
        text = re.sub(pattern, replacement, text)
    return json.loads(text)


def _unnumbered(variable: dict[str, Any]) -> dict[str, Any]:
    """Return a variable without the number of an option for Java: the order is that of a hash table."""
    return {**variable, "name": re.sub(r"^(SPARK_JAVA_OPT)_\d+$", r"\1", variable["name"])}


def write(path: pathlib.Path, version: str, recorded: Mapping[str, Any]) -> None:
    """Write the recordings, one configuration on a line."""
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(recording, ensure_ascii=False, sort_keys=True, separators=(',', ':'))}"
        for name, recording in recorded.items()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"spark": "{version}", "configurations": {{\n{lines}\n}}}}\n')


def read(path: pathlib.Path) -> dict[str, Any]:
    """Return the recordings of a file by name."""
    return json.loads(path.read_text())["configurations"] if path.exists() else {}


def chosen(minor: str) -> Sequence[Configuration]:
    """Return what is recorded of a version: everything of the newest, of others what a version may do differently."""
    names = configurations.OF_EACH_VERSION
    is_newest = minor == configurations.NEWEST
    return (
        configurations.ALL
        if is_newest
        else [configuration for configuration in configurations.ALL if configuration.name in names]
    )


def extend(path: pathlib.Path, version: str, recordings: Iterator[tuple[str, dict[str, Any]]]) -> None:
    """Add recordings to a file one by one, so that an interrupted run goes on where it was."""
    recorded = read(path)
    for name, recording in recordings:
        recorded[name] = recording
        in_order = {
            configuration.name: recorded[configuration.name]
            for configuration in configurations.ALL
            if configuration.name in recorded
        }
        write(path, version, in_order)


def main() -> None:
    """Record what the files do not have, or have of another submission of ours."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.record", description=__doc__)
    parser.add_argument("--pyspark", type=pathlib.Path, required=True, help="a virtual environment with pyspark")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        spark = Spark(options.pyspark, home)
        minor = spark.version.rpartition(".")[0]
        keys.record(minor, spark.home)
        submissions, executors = FOLDER / minor / SUBMISSIONS, FOLDER / minor / EXECUTORS
        submitted, created, wanted = read(submissions), read(executors), chosen(minor)
        missing = [configuration for configuration in wanted if configuration.name not in submitted]
        stale = [
            configuration
            for configuration in wanted
            if created.get(configuration.name, {}).get("digest") != ours.digest(configuration)
        ]
        extend(submissions, spark.version, record(spark, missing))
        extend(executors, spark.version, record_ours(spark, stale, pathlib.Path(home)))


if __name__ == "__main__":
    main()
