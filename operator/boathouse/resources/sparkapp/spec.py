"""The spec of a SparkApp. Its rules are CEL, checked by the API server; their messages say what to do."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from boathouse.resources.base import DnsLabel, rule, rules
from boathouse.resources.immutability import with_immutability
from boathouse.resources.pods.environment import Environment
from boathouse.resources.pods.storage import Storage
from boathouse.resources.pods.template import NodeLabels, TemplateFields, Tolerations
from boathouse.resources.sparkapp.closed_conf import (
    MAX_PROPERTIES,
    MAX_VALUE,
    hadoop_conf_rules,
    spark_conf_rules,
)
from boathouse.resources.sparkapp.fields import field_rules
from boathouse.resources.sparkapp.hadoop import HadoopFields
from boathouse.resources.sparkapp.lifetime import ALWAYS_MUTABLE, MUTABLE_WHILE_SUSPENDED, Life
from boathouse.resources.sparkapp.program import Program, program_rules
from boathouse.resources.sparkapp.roles import Driver, DynamicAllocation, Executor
from boathouse.resources.sparkapp.sizes import OverheadFactor
from boathouse.resources.sparkapp.volumes import Monitoring, UserInterface, Volumes, file_rules

Value = Annotated[str, Field(max_length=MAX_VALUE)]
SparkConf = Annotated[dict[str, Value], Field(max_length=MAX_PROPERTIES, json_schema_extra=spark_conf_rules)]
HadoopConf = Annotated[dict[str, Value], Field(max_length=MAX_PROPERTIES, json_schema_extra=hadoop_conf_rules)]

RESERVED_VARIABLES = (
    "SPARK_(APPLICATION_ID|CONF_DIR|DRIVER_.*|EXECUTOR_.*|JAVA_OPT_.*|LOCAL_DIRS|RESOURCE_PROFILE_ID|USER)"
    "|_SPARK_AUTH_SECRET"
)


_BLANK = r"[\\x00-\\x20\\x7f]"
"""What no property may have in which Boathouse puts the text of a field."""


def _environment_rule(path: str, *parents: str) -> dict[str, str]:
    absent = " || ".join(f"!has(self.{each})" for each in (*parents, path))
    return rule(
        f"{absent} || self.{path}.all(e, !e.name.matches('^({RESERVED_VARIABLES})$'))",
        f"spec.{path}: the names SPARK_APPLICATION_ID, SPARK_CONF_DIR, SPARK_LOCAL_DIRS, SPARK_USER and those that "
        "begin with SPARK_DRIVER_, SPARK_EXECUTOR_ or SPARK_JAVA_OPT_ belong to Spark: choose others",
    )


_rules = (
    *program_rules,
    *file_rules,
    *field_rules,
    rule(
        "!has(self.dynamicAllocation) || !self.dynamicAllocation.enabled || !has(self.executor) || "
        "!has(self.executor.instances)",
        "spec.executor.instances is for a fixed number of executors: remove it, or dynamicAllocation",
    ),
    rule(
        "!has(self.executor) || !has(self.executor.pysparkMemory) || self.type == 'Python'",
        "spec.executor.pysparkMemory is for Python applications: remove it",
    ),
    rule(
        "!has(self.serviceAccountName) || !self.serviceAccountName.matches('^boathouse-spark(-.*)?$')",
        "spec.serviceAccountName is the executors', who may not have a driver's rights: name another account, or set "
        "spec.driver.serviceAccountName",
    ),
    rule(
        "!has(self.storage) || !has(self.storage.s3) || !(self.storage.s3.region + "
        f"(has(self.storage.s3.endpointURL) ? self.storage.s3.endpointURL : '')).matches('{_BLANK}')",
        "spec.storage.s3: endpointURL and region have no spaces and no control characters: remove them",
    ),
    _environment_rule("env"),
    _environment_rule("driver.env", "driver"),
    _environment_rule("executor.env", "executor"),
    rule(
        "!has(self.hadoopConf) || !has(self.sparkConf) || "
        "self.hadoopConf.all(key, !(('spark.hadoop.' + key) in self.sparkConf))",
        "a property is in spec.hadoopConf and, with spark.hadoop. before it, in spec.sparkConf: keep one of them",
    ),
)


class SparkAppSpec(Life, TemplateFields, Program, HadoopFields):
    """Desired state of the job. Most fields are immutable after creation."""

    model_config = ConfigDict(
        json_schema_extra=with_immutability(
            *_rules,
            always_mutable=ALWAYS_MUTABLE,
            mutable_while_suspended=MUTABLE_WHILE_SUSPENDED,
            noun="application",
        )
    )
    queue: DnsLabel | None = Field(
        default=None, description="Queue of the job. Absent: the namespace's default queue, or that of the chart."
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        json_schema_extra=rules(
            rule(f"!self.matches('{_BLANK}')", "an image has no spaces and no control characters: remove them")
        ),
        description="An image with Spark's own contract (entrypoint with driver and executor). Absent: the chart's.",
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="When the kubelet pulls the image."
    )
    spark_conf: SparkConf | None = Field(
        default=None, description="Any property of Spark but those that Boathouse sets."
    )
    hadoop_conf: HadoopConf | None = Field(default=None, description="Of Hadoop, without spark.hadoop. before the key.")
    memory_overhead_factor: OverheadFactor | None = Field(
        default=None, description="Of driver and executors. Absent: 0.4 for Python, else 0.1."
    )
    driver: Driver | None = None
    executor: Executor | None = None
    dynamic_allocation: DynamicAllocation | None = None
    env: Environment | None = Field(default=None, description="Of driver and executors.")
    storage: Storage | None = None
    volumes: Volumes | None = None
    node_selector: NodeLabels | None = Field(default=None, description="Labels that nodes of the pods must have.")
    tolerations: Tolerations | None = Field(default=None, description="Taints of nodes that the pods tolerate.")
    monitoring: Monitoring | None = None
    ui: UserInterface | None = None
