"""The properties that no attempt changes, such as defaults, fields, `sparkConf`; their file; a driver's ports. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

import javaproperties

from boathouse.resources.pod_environment import S3
from boathouse.resources.sparkapp.fields import FIELDS
from boathouse.resources.sparkapp.spec import SparkAppSpec
from boathouse.services import hadoop
from boathouse.services.sparkapp import sizing

DRIVER_PORT: Final = 7078
BLOCK_MANAGER_PORT: Final = 7079
UI_PORT: Final = 4040
UI: Final = "spark-ui"
_SIZES: Final = ("emory", "emoryOverhead")
_COMMITTERS: Final = "org.apache.spark.internal.io.cloud"
_FORBIDDEN: Final = re.compile(r"[\x00\r\n]")
_PENDING_PODS: Final = 5
"""Pending executors of an application beyond its minimum; more would only load the API server."""

_ELASTIC: Final = {
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
}
"""Without an external shuffle service, executors are only let go if their shuffle data is tracked or moved."""
_SINK: Final = "spark.metrics.conf.*.sink.prometheusServlet"
_PROMETHEUS: Final = {
    "spark.ui.prometheus.enabled": "true",
    f"{_SINK}.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    f"{_SINK}.path": "/metrics/prometheus",
}
_EVENT_LOG: Final = {"spark.eventLog.enabled": "true", "spark.eventLog.rolling.enabled": "true"}


def ports(conf: Mapping[str, str]) -> dict[str, int]:
    """Return the ports that the properties say, by name; 0 is one that Spark chooses when it starts.

    That of the UI also has the REST interface. Raises a ValueError if one of them is not a port.
    """
    block_manager = _port(conf, "spark.blockManager.port", BLOCK_MANAGER_PORT)
    return {
        "driver-rpc-port": _port(conf, "spark.driver.port", DRIVER_PORT),
        "blockmanager": _port(conf, "spark.driver.blockManager.port", block_manager),
        UI: _port(conf, "spark.ui.port", UI_PORT),
    }


def _port(conf: Mapping[str, str], key: str, default: int) -> int:
    return sizing.whole(key, conf, default, what="a port", most=2**16 - 1)


def of(spec: SparkAppSpec) -> dict[str, str]:
    """Return the properties of an application; later ones in this function win."""
    user = {
        **_fields(spec),
        **(spec.spark_conf or {}),
        **{f"spark.hadoop.{key}": value for key, value in (spec.hadoop_conf or {}).items()},
    }
    is_python, monitoring = spec.type == "Python", spec.monitoring
    conf = {
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        **(_ELASTIC if sizing.is_dynamic(user) else {}),
        **(_s3(spec.storage.s3) if spec.storage and spec.storage.s3 else {}),
        **(_PROMETHEUS if monitoring and monitoring.prometheus else {}),
        **(_EVENT_LOG if monitoring and monitoring.event_log_dir else {}),
        **user,
    }
    pending = str(max(sizing.minimum_executors(conf), _PENDING_PODS))
    conf.setdefault("spark.kubernetes.allocation.maxPendingPods", pending)
    conf["spark.kubernetes.memoryOverheadFactor"] = sizing.default_factor(conf, is_python=is_python)
    if not is_python:
        conf["spark.jars"] = ",".join(filter(None, (conf.get("spark.jars"), spec.main_application_file)))
    return conf


def _fields(spec: SparkAppSpec) -> dict[str, str]:
    given = spec.model_dump(by_alias=True, exclude_none=True)
    properties = {key: _text(path, value) for path, key in FIELDS.items() if (value := _at(given, path)) is not None}
    if "spark.memory.offHeap.size" in properties:
        properties["spark.memory.offHeap.enabled"] = "true"
    return properties


def _at(given: Mapping[str, Any], path: str) -> Any:
    value: Any = given
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _text(path: str, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case list():
            return ",".join(value)
        case int() if path.endswith("Seconds"):
            return f"{value}s"
    return sizing.spark_size(value) if path.endswith(_SIZES) else str(value)


def _s3(s3: S3) -> dict[str, str]:
    # A class of the first AWS SDK, which Hadoop 3.3 has (Spark 3.5). Later ones replace the name by that of the second.
    provider = "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"
    settings = {
        **hadoop.s3_settings(s3, provider),
        "fs.s3a.committer.name": "magic",
        # Hadoop 3.3 (Spark 3.5) deletes the markers of all parents with each file, unlike later ones: slow, and some
        # stores refuse to delete a folder that has files.
        "fs.s3a.directory.marker.retention": "keep",
        "mapreduce.outputcommitter.factory.scheme.s3a": "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory",
    }
    return {
        **{f"spark.hadoop.{key}": value for key, value in settings.items()},
        "spark.sql.parquet.output.committer.class": f"{_COMMITTERS}.BindingParquetOutputCommitter",
        "spark.sql.sources.commitProtocolClass": f"{_COMMITTERS}.PathOutputCommitProtocol",
    }


def render(properties: Mapping[str, str]) -> str:
    """Return a file with these properties, sorted by key; raise a ValueError if one has a line end or a NUL."""
    for text in (*properties, *properties.values()):
        if _FORBIDDEN.search(text):
            raise ValueError(f"{text[:64]!r} has a line end or a NUL: remove it")
    return javaproperties.dumps(properties, timestamp=False, sort_keys=True)
