"""Which field of a SparkApp is which property of Spark, and closed properties, which Boathouse sets itself."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.resources.base import rule, rules

FIELDS: Final = {
    "memoryOverheadFactor": "spark.kubernetes.memoryOverheadFactor",
    "driver.cores": "spark.driver.cores",
    "driver.coreRequest": "spark.kubernetes.driver.request.cores",
    "driver.coreLimit": "spark.kubernetes.driver.limit.cores",
    "driver.memory": "spark.driver.memory",
    "driver.memoryOverhead": "spark.driver.memoryOverhead",
    "driver.memoryOverheadFactor": "spark.driver.memoryOverheadFactor",
    "driver.minMemoryOverhead": "spark.driver.minMemoryOverhead",
    "driver.javaOptions": "spark.driver.extraJavaOptions",
    "executor.cores": "spark.executor.cores",
    "executor.coreRequest": "spark.kubernetes.executor.request.cores",
    "executor.coreLimit": "spark.kubernetes.executor.limit.cores",
    "executor.memory": "spark.executor.memory",
    "executor.memoryOverhead": "spark.executor.memoryOverhead",
    "executor.memoryOverheadFactor": "spark.executor.memoryOverheadFactor",
    "executor.minMemoryOverhead": "spark.executor.minMemoryOverhead",
    "executor.javaOptions": "spark.executor.extraJavaOptions",
    "executor.instances": "spark.executor.instances",
    "executor.pysparkMemory": "spark.executor.pyspark.memory",
    "executor.offHeapMemory": "spark.memory.offHeap.size",
    "dynamicAllocation.enabled": "spark.dynamicAllocation.enabled",
    "dynamicAllocation.minExecutors": "spark.dynamicAllocation.minExecutors",
    "dynamicAllocation.maxExecutors": "spark.dynamicAllocation.maxExecutors",
    "dynamicAllocation.initialExecutors": "spark.dynamicAllocation.initialExecutors",
    "dynamicAllocation.shuffleTrackingTimeoutSeconds": "spark.dynamicAllocation.shuffleTracking.timeout",
    "deps.jars": "spark.jars",
    "deps.pyFiles": "spark.submit.pyFiles",
    "deps.files": "spark.files",
    "deps.archives": "spark.archives",
    "deps.packages": "spark.jars.packages",
    "deps.excludePackages": "spark.jars.excludes",
    "deps.repositories": "spark.jars.repositories",
    "monitoring.eventLogDir": "spark.eventLog.dir",
}


def _once(field: str, key: str) -> dict[str, str]:
    parents = field.split(".")
    given = " && ".join(f"has(self.{'.'.join(parents[: depth + 1])})" for depth in range(len(parents)))
    return rule(
        f"!(has(self.sparkConf) && '{key}' in self.sparkConf && {given})",
        f"spec.{field} and {key} in spec.sparkConf are the same setting: keep one of them",
    )


field_rules = tuple(_once(field, key) for field, key in FIELDS.items())
"""Nothing may be said twice: users would not know which counts."""
MAX_PROPERTIES, MAX_KEY, MAX_VALUE, MAX_BYTES = 256, 200, 16 * 1024, 128 * 1024
_K8S, _ROLE = r"kubernetes[.]", r"(driver|executor)[.]"
CLOSED: Final[Mapping[str, Sequence[str]]] = {
    "identity": (
        "app[.](id|name|submitTime)",
        "driver[.](host|bindAddress)",
        f"{_K8S}(namespace|context|resource[.]type|submitInDriver)",
        f"{_K8S}driver[.](pod[.]name|resourceNamePrefix)",
        f"{_K8S}executor[.](podNamePrefix|useDriverPodIP)",
    ),
    "master": (
        "master|remote|submit[.]deployMode",
        f"{_K8S}(driver[.]master|trust[.]certificates|submission[.].*|report[.]interval)",
    ),
    "scheduler": (
        f"{_K8S}({_ROLE})?scheduler[.](name|volcano[.].*)",
        f"{_K8S}allocation[.](pods[.]allocator|recoveryMode[.].*)",
    ),
    "labels and fields of pods": (
        f"{_K8S}{_ROLE}(label|annotation|volumes|secrets|secretKeyRef)[.].*",
        f"{_K8S}({_ROLE})?node[.]selector[.].*",
        f"{_K8S}({_ROLE})?container[.]image.*",
        f"{_K8S}(driverEnv[.].*|driver[.]service[.].*|(hadoop[.]|executor[.]hadoopC)onfigMapName)",
        f"{_K8S}hadoop[.]configMapName",
        "executorEnv[.].*",
    ),
    "templates": (
        f"{_K8S}{_ROLE}(podTemplate(File|ContainerName)|pod[.](f|excludedF)eatureSteps)",
        f"{_K8S}(executor[.]disableConfigMap|file[.]upload[.]path|decommission[.]script)",
    ),
    "service account": (
        f"{_K8S}(authenticate|kerberos|legacy)[.].*",
        f"{_K8S}driver[.](own|reuse|waitToReuse)PersistentVolumeClaim",
        "kerberos[.].*",
    ),
    "security": (
        "authenticate([.].*)?",
        "ui[.]killEnabled",
        f"{_K8S}({_ROLE})?securityContext[.].*",
        "jars[.]ivy",
        r"hadoop[.]fs[.]s3a[.](bucket[.][^.]*[.])?(access[.]key|secret[.]key|session[.]token)",
    ),
}
"""Regular expressions of keys without `spark.`, by what they say."""
_EXPRESSION: Final = f"^spark[.]({'|'.join(part for parts in CLOSED.values() for part in parts)})$"
_CLOSED: Final = re.compile(_EXPRESSION)


def is_closed(key: str) -> bool:
    """Return whether Boathouse sets a property itself."""
    return _CLOSED.fullmatch(key) is not None


def _bounds(field: str) -> list[dict[str, str]]:
    return [
        rule(f"self.all(key, key.size() <= {MAX_KEY})", f"a key of {field} has at most {MAX_KEY} characters"),
        rule(
            r"self.all(key, !key.matches('[\\x00-\\x1f\\x7f]') && !self[key].matches('[\\x00\\n\\r]'))",
            f"{field}: keys have no control characters, and values no line ends and no NUL: remove them",
        ),
        rule(
            f"self.map(key, bytes(key).size() + bytes(self[key]).size()).sum() <= {MAX_BYTES}",
            f"{field} may have {MAX_BYTES} bytes in all: put long texts into a file",
        ),
    ]


spark_conf_rules = rules(
    *_bounds("sparkConf"),
    rule("self.all(key, key.startsWith('spark.'))", "keys of sparkConf begin with spark.; others have no effect"),
    rule(
        f"self.all(key, !key.matches('{_EXPRESSION}'))",
        f"'sparkConf: ' + self.filter(key, key.matches('{_EXPRESSION}'))[0] + "
        "' is set by Boathouse: remove it, or use the field of spec that says the same'",
    ),
)
hadoop_conf_rules = rules(
    *_bounds("hadoopConf"),
    rule(
        "self.all(key, !('spark.hadoop.' + key).matches('"
        r"^spark[.]hadoop[.]fs[.]s3a[.](bucket[.][^.]*[.])?(access[.]key|secret[.]key|session[.]token)$'))",
        "hadoopConf: keys of a store belong into a Secret: use spec.storage.s3.secretRef",
    ),
)
