"""Which field of a SparkApp is which property of Spark, for the fields that say one thing each."""

from typing import Final

from boathouse.resources.base import rule

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
"""Path of the field below `spec`, and the property."""


def _once(field: str, key: str) -> dict[str, str]:
    parents = field.split(".")
    given = " && ".join(f"has(self.{'.'.join(parents[: depth + 1])})" for depth in range(len(parents)))
    return rule(
        f"!(has(self.sparkConf) && '{key}' in self.sparkConf && {given})",
        f"spec.{field} and {key} in spec.sparkConf are the same setting: keep one of them",
    )


field_rules = tuple(_once(field, key) for field, key in FIELDS.items())
"""Nothing may be said twice: users would not know which counts."""
