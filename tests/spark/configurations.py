"""The configurations that are recorded: a command line of spark-submit, and the SparkApp that means the same."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

NAMESPACE = "team"
NAME = "pi"
IMAGE = "spark:4.3.0"
NEWEST = "4.3"
ACCOUNT = "boathouse-spark"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Configuration:
    """One application, twice.

    Attributes:
        options: Options of spark-submit, beside those that all configurations have.
        application: The file, and its arguments.
        spec: The spec of the SparkApp, without the image.
        profile: A resource profile that the program requests for a stage, by the names of `ExecutorResourceRequests`.
    """

    name: str
    options: Sequence[str]
    application: Sequence[str]
    spec: Mapping[str, Any]
    profile: Mapping[str, Any] | None = None


PYTHON_FILE = "local:///opt/spark/examples/src/main/python/pi.py"
JAR_FILE = "local:///opt/app/app.jar"
_PYTHON = {"type": "Python", "mainApplicationFile": PYTHON_FILE}
_JAR = {"type": "Scala", "mainApplicationFile": JAR_FILE, "mainClass": "org.example.Main"}


def _conf(properties: Mapping[str, str]) -> list[str]:
    return [part for key, value in properties.items() for part in ("--conf", f"{key}={value}")]


def _python(
    name: str,
    properties: Mapping[str, str] | None = None,
    *,
    options: Sequence[str] = (),
    arguments: Sequence[str] = (),
    profile: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Configuration:
    given = {"arguments": list(arguments)} if arguments else {}
    return Configuration(
        name=name,
        options=[*options, *_conf(properties or {})],
        application=[PYTHON_FILE, *arguments],
        spec={**_PYTHON, **given, **spec},
        profile=profile,
    )


def _jar(
    name: str, properties: Mapping[str, str] | None = None, *, options: Sequence[str] = (), **spec: Any
) -> Configuration:
    return Configuration(
        name=name,
        options=["--class", "org.example.Main", *options, *_conf(properties or {})],
        application=[JAR_FILE],
        spec={**_JAR, **spec},
    )


def _plain(name: str, properties: Mapping[str, str], *, jar: bool = False) -> Configuration:
    """Properties that the SparkApp has in `sparkConf` as they are."""
    return (_jar if jar else _python)(name, properties, sparkConf=dict(properties))


_MEMORY = (
    _python("python", arguments=["10"]),
    _jar("jar"),
    _python("python-driver-memory", {"spark.driver.memory": "2g"}, driver={"memory": "2g"}),
    _python("python-small-driver", {"spark.driver.memory": "512m"}, driver={"memory": "512m"}),
    _jar("jar-driver-memory", {"spark.driver.memory": "8g"}, driver={"memory": "8g"}),
    _jar("jar-driver-below-minimum-overhead", {"spark.driver.memory": "3000m"}, driver={"memory": "3000m"}),
    _python("python-executor-memory", {"spark.executor.memory": "4g"}, executor={"memory": "4g"}),
    _jar("jar-executor-memory", {"spark.executor.memory": "4g"}, executor={"memory": "4g"}),
    _jar("jar-executor-below-minimum-overhead", {"spark.executor.memory": "1000m"}, executor={"memory": "1000m"}),
    _python("python-executor-below-minimum-overhead", {"spark.executor.memory": "900m"}, executor={"memory": "900m"}),
    _python("kibibytes", {"spark.executor.memory": "2097152k"}, executor={"memory": "2097152k"}),
    _python("upper-case", {"spark.driver.memory": "2G"}, driver={"memory": "2Gi"}),
    _plain("memory-in-spark-conf", {"spark.driver.memory": "1500", "spark.executor.memory": "3gb"}),
    _jar("rounding-down", {"spark.executor.memory": "4099m"}, executor={"memory": "4099m"}),
    _jar(
        "rounding-of-a-factor",
        {"spark.executor.memory": "11111m", "spark.kubernetes.memoryOverheadFactor": "0.15"},
        executor={"memory": "11111m"},
        memoryOverheadFactor="0.15",
    ),
    _jar(
        "factor-that-is-no-binary-fraction",
        {"spark.executor.memory": "10000m", "spark.executor.memoryOverheadFactor": "0.29"},
        executor={"memory": "10000m", "memoryOverheadFactor": "0.29"},
    ),
)

_CORES = (
    _python("driver-cores", {"spark.driver.cores": "2"}, driver={"cores": 2}),
    _python("driver-core-request", {"spark.kubernetes.driver.request.cores": "500m"}, driver={"coreRequest": "500m"}),
    _python(
        "driver-core-limit",
        {"spark.driver.cores": "2", "spark.kubernetes.driver.limit.cores": "3"},
        driver={"cores": 2, "coreLimit": "3"},
    ),
    _python("executor-cores", {"spark.executor.cores": "4"}, executor={"cores": 4}),
    _python(
        "executor-core-request", {"spark.kubernetes.executor.request.cores": "0.5"}, executor={"coreRequest": "0.5"}
    ),
    _jar(
        "executor-core-request-and-limit",
        {
            "spark.executor.cores": "2",
            "spark.kubernetes.executor.request.cores": "1500m",
            "spark.kubernetes.executor.limit.cores": "2",
        },
        executor={"cores": 2, "coreRequest": "1500m", "coreLimit": "2"},
    ),
)

_OVERHEAD = (
    _python("driver-overhead", {"spark.driver.memoryOverhead": "512m"}, driver={"memoryOverhead": "512m"}),
    _python("executor-overhead", {"spark.executor.memoryOverhead": "768m"}, executor={"memoryOverhead": "768m"}),
    _plain("overhead-without-a-unit", {"spark.executor.memoryOverhead": "700"}),
    _python(
        "factor-of-a-python-application", {"spark.kubernetes.memoryOverheadFactor": "0.2"}, memoryOverheadFactor="0.2"
    ),
    _jar(
        "factor-of-a-jar",
        {"spark.kubernetes.memoryOverheadFactor": "0.5", "spark.driver.memory": "4g"},
        memoryOverheadFactor="0.5",
        driver={"memory": "4g"},
    ),
    _python(
        "driver-factor",
        {"spark.driver.memoryOverheadFactor": "0.3", "spark.driver.memory": "4g"},
        driver={"memory": "4g", "memoryOverheadFactor": "0.3"},
    ),
    _python(
        "executor-factor",
        {"spark.executor.memoryOverheadFactor": "0.25", "spark.executor.memory": "4g"},
        executor={"memory": "4g", "memoryOverheadFactor": "0.25"},
    ),
    _jar(
        "all-factors",
        {
            "spark.kubernetes.memoryOverheadFactor": "0.6",
            "spark.driver.memoryOverheadFactor": "0.7",
            "spark.executor.memoryOverheadFactor": "0.8",
        },
        memoryOverheadFactor="0.6",
        driver={"memoryOverheadFactor": "0.7"},
        executor={"memoryOverheadFactor": "0.8"},
    ),
    _python("driver-minimum-overhead", {"spark.driver.minMemoryOverhead": "1g"}, driver={"minMemoryOverhead": "1g"}),
    _python(
        "executor-minimum-overhead",
        {"spark.executor.minMemoryOverhead": "600m"},
        executor={"minMemoryOverhead": "600m"},
    ),
    _jar("low-minimum-overhead", {"spark.executor.minMemoryOverhead": "64m"}, executor={"minMemoryOverhead": "64m"}),
    _jar(
        "low-minimum-overhead-of-the-driver",
        {"spark.driver.minMemoryOverhead": "64m"},
        driver={"minMemoryOverhead": "64m"},
    ),
)

_OTHER_MEMORY = (
    _python("pyspark-memory", {"spark.executor.pyspark.memory": "1g"}, executor={"pysparkMemory": "1g"}),
    _plain("pyspark-memory-of-a-jar", {"spark.executor.pyspark.memory": "1g"}, jar=True),
    _python(
        "pyspark-memory-of-more-cores",
        {"spark.executor.pyspark.memory": "1500m", "spark.executor.cores": "3"},
        executor={"pysparkMemory": "1500m", "cores": 3},
    ),
    _jar(
        "off-heap",
        {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"},
        executor={"offHeapMemory": "1g"},
    ),
    _plain("off-heap-disabled", {"spark.memory.offHeap.size": "1g"}, jar=True),
    _plain(
        "off-heap-in-bytes",
        {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1500000000"},
        jar=True,
    ),
    _python(
        "all-memory",
        {
            "spark.executor.memory": "3g",
            "spark.executor.memoryOverhead": "1g",
            "spark.executor.pyspark.memory": "2g",
            "spark.memory.offHeap.enabled": "true",
            "spark.memory.offHeap.size": "512m",
        },
        executor={"memory": "3g", "memoryOverhead": "1g", "pysparkMemory": "2g", "offHeapMemory": "512m"},
    ),
)

_EXECUTORS = (
    _python("instances", {"spark.executor.instances": "5"}, executor={"instances": 5}),
    _python(
        "dynamic-allocation",
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "1",
            "spark.dynamicAllocation.maxExecutors": "10",
        },
        dynamicAllocation={"enabled": True, "minExecutors": 1, "maxExecutors": 10},
    ),
    _python(
        "dynamic-allocation-with-initial-executors",
        {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.timeout": "600s",
            "spark.dynamicAllocation.minExecutors": "0",
            "spark.dynamicAllocation.initialExecutors": "3",
            "spark.dynamicAllocation.maxExecutors": "4",
        },
        dynamicAllocation={
            "enabled": True,
            "minExecutors": 0,
            "initialExecutors": 3,
            "maxExecutors": 4,
            "shuffleTrackingTimeoutSeconds": 600,
        },
    ),
    _python(
        "executor-gpus",
        {"spark.executor.resource.gpu.amount": "2", "spark.executor.resource.gpu.vendor": "nvidia.com"},
        sparkConf={"spark.executor.resource.gpu.amount": "2", "spark.executor.resource.gpu.vendor": "nvidia.com"},
    ),
    _python(
        "driver-gpu",
        {
            "spark.driver.resource.gpu.amount": "1",
            "spark.driver.resource.gpu.vendor": "nvidia.com",
        },
        sparkConf={"spark.driver.resource.gpu.amount": "1", "spark.driver.resource.gpu.vendor": "nvidia.com"},
    ),
    _python(
        "decommissioning",
        {"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"},
        sparkConf={"spark.decommission.enabled": "true", "spark.storage.decommission.enabled": "true"},
    ),
    _python(
        "resource-profile",
        profile={
            "cores": 2,
            "memory": "2g",
            "memoryOverhead": "512m",
            "pysparkMemory": "256m",
            "offheapMemory": "128m",
        },
        properties={
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        },
        dynamicAllocation={"enabled": True},
    ),
    _python(
        "resource-profile-of-memory-alone",
        profile={"memory": "3g"},
        properties={
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.kubernetes.executor.request.cores": "250m",
            "spark.executor.memoryOverhead": "1g",
            "spark.executor.cores": "3",
        },
        dynamicAllocation={"enabled": True},
        executor={"coreRequest": "250m", "cores": 3, "memoryOverhead": "1g"},
    ),
    _python(
        "resource-profile-with-a-factor",
        profile={"memory": "4g", "cores": 1},
        properties={
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.executor.memoryOverheadFactor": "0.3",
            "spark.executor.pyspark.memory": "512m",
        },
        dynamicAllocation={"enabled": True},
        executor={"memoryOverheadFactor": "0.3", "pysparkMemory": "512m"},
    ),
)

_ELASTIC = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "true"}
_OFF_HEAP = {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"}
_PROFILES = (
    _python(
        "resource-profile-without-off-heap",
        {**_ELASTIC, **_OFF_HEAP},
        profile={"memory": "2g", "cores": 1},
        dynamicAllocation={"enabled": True},
        executor={"offHeapMemory": "1g"},
    ),
    _python(
        "resource-profile-with-off-heap",
        {**_ELASTIC, **_OFF_HEAP, "spark.executor.memory": "6g"},
        profile={"memory": "2g", "cores": 1, "offheapMemory": "256m"},
        dynamicAllocation={"enabled": True},
        executor={"offHeapMemory": "1g", "memory": "6g"},
    ),
)

_PODS = (
    _python(
        "environment",
        {
            "spark.kubernetes.driverEnv.WHERE": "driver $(SPARK_USER)",
            "spark.executorEnv.WHERE": "executor",
            "spark.executorEnv.OTHER": "a=b",
        },
        driver={"env": [{"name": "WHERE", "value": "driver $(SPARK_USER)"}]},
        executor={"env": [{"name": "WHERE", "value": "executor"}, {"name": "OTHER", "value": "a=b"}]},
    ),
    _jar(
        "java-options",
        {
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Da='b c'",
            "spark.executor.extraJavaOptions": "-XX:+UseG1GC -Dexecutor={{EXECUTOR_ID}}",
        },
        driver={"javaOptions": "-XX:+UseSerialGC -Da='b c'"},
        executor={"javaOptions": "-XX:+UseG1GC -Dexecutor={{EXECUTOR_ID}}"},
    ),
    _python(
        "dependencies",
        options=[
            *("--jars", "local:///opt/app/a.jar,local:///opt/app/b.jar"),
            *("--py-files", "local:///opt/app/a.py,local:///opt/app/b.zip"),
            *("--files", "local:///opt/app/lookup.csv"),
            *("--archives", "local:///opt/app/environment.tar.gz#environment"),
        ],
        deps={
            "jars": ["local:///opt/app/a.jar", "local:///opt/app/b.jar"],
            "pyFiles": ["local:///opt/app/a.py", "local:///opt/app/b.zip"],
            "files": ["local:///opt/app/lookup.csv"],
            "archives": ["local:///opt/app/environment.tar.gz#environment"],
        },
    ),
    _python(
        "arguments",
        arguments=["--verbose", "a b", "", "$(HOME)", "quote'\"", "--conf", "spark.executor.memory=9g", "é\\n"],
    ),
    _python(
        "volume",
        {
            f"spark.kubernetes.{role}.volumes.persistentVolumeClaim.storage.{key}": value
            for role in ("driver", "executor")
            for key, value in {"options.claimName": "books", "mount.path": "/data"}.items()
        },
        storage={"volume": {"claimName": "books"}},
    ),
    _python("node-selector", {"spark.kubernetes.node.selector.disk": "ssd"}, nodeSelector={"disk": "ssd"}),
    _python(
        "pulling",
        {
            "spark.kubernetes.container.image.pullPolicy": "Always",
            "spark.kubernetes.container.image.pullSecrets": "one,two",
        },
        imagePullPolicy="Always",
        imagePullSecrets=[{"name": "one"}, {"name": "two"}],
    ),
    _python(
        "properties-that-need-escapes",
        {"spark.my.text": "a=b:c #d!e\\f\té \u4e2d", "spark.my key": " leading and trailing "},
        sparkConf={"spark.my.text": "a=b:c #d!e\\f\té \u4e2d", "spark.my key": " leading and trailing "},
    ),
    _python(
        "hadoop-configuration",
        {"spark.hadoop.fs.s3a.path.style.access": "true"},
        hadoopConf={"fs.s3a.path.style.access": "true"},
    ),
    _plain("user-interface-port", {"spark.ui.port": "4050"}),
)

ALL: tuple[Configuration, ...] = (*_MEMORY, *_CORES, *_OVERHEAD, *_OTHER_MEMORY, *_EXECUTORS, *_PROFILES, *_PODS)

OF_EACH_VERSION = {
    *("python", "all-factors", "low-minimum-overhead", "all-memory", "executor-core-request-and-limit"),
    *("dynamic-allocation", "resource-profile", "java-options", "volume"),
}
"""Names of the configurations that are recorded of every supported version."""
