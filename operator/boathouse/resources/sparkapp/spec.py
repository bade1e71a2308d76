"""The spec of a SparkApp. Its rules are CEL, checked by the API server; their messages say what to do."""

from typing import Annotated, Final, Literal

from pydantic import Field

from boathouse.resources.base import DnsLabel, Model, checked, holds, optional, rule, spec_config, whole
from boathouse.resources.pod_environment import Environment, Storage
from boathouse.resources.pod_template import NodeLabels, TemplateFields, Tolerations
from boathouse.resources.sparkapp import fields
from boathouse.resources.sparkapp.program import Monitoring, Program, UserInterface, Volumes, file_rules, program_rules
from boathouse.resources.sparkapp.roles import Driver, DynamicAllocation, Executor, OverheadFactor

ALWAYS_MUTABLE: Final = frozenset({"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished"})
MUTABLE_WHILE_SUSPENDED: Final = frozenset(
    {
        *("queue", "nodeSelector", "tolerations", "podTemplate", "driver", "executor", "dynamicAllocation"),
        *("restartPolicy", "timeouts"),
    }
)
_LONG: Final = 10 * 365 * 86400


class RestartPolicy(Model):
    """Whether a driver that ended is started again, as a new attempt with an application ID of its own."""

    model_config = checked(
        rule(
            "self.maxRetryIntervalSeconds >= self.onFailureRetryInterval",
            "restartPolicy.maxRetryIntervalSeconds is less than onFailureRetryInterval: raise it",
        )
    )
    type: Literal["Never", "OnFailure", "Always"] = Field(
        default="Never", description="Always: also after a success, for streaming applications."
    )
    on_failure_retries: int = Field(
        default=3, ge=0, le=1000, description="Restarts after failures of the application itself."
    )
    on_infrastructure_failure_retries: int = Field(
        default=10, ge=0, le=1000, description="Restarts after lost nodes, evictions, rejections and start timeouts."
    )
    on_failure_retry_interval: int = Field(
        default=10, ge=1, le=86400, description="Seconds before the first restart; doubled for each further one."
    )
    max_retry_interval_seconds: int = Field(
        default=300, ge=1, le=86400, description="The longest time between two restarts, in seconds."
    )
    reset_after_seconds: int = Field(
        default=3600, ge=1, le=_LONG, description="An attempt that ran so long sets the counts of failures to 0."
    )


class Timeouts(Model):
    """How long each part may take; 0: no limit."""

    driver_start_seconds: int = Field(
        default=600, ge=0, le=_LONG, description="From a node for the driver until its container runs."
    )
    executor_start_seconds: int = Field(
        default=600, ge=0, le=_LONG, description="From a running driver until its minimum of executors runs."
    )
    driver_lost_seconds: int = Field(
        default=300,
        ge=1,
        le=_LONG,
        description="When the driver's node does not answer: how long to wait for the end of its pod before the next "
        "attempt. The old driver may still run where its node cannot be reached.",
    )


class Life(Model):
    """The life of an application as a whole."""

    suspend: bool = Field(
        default=False,
        description="As of a batch/Job: while true, no driver runs. One that runs is deleted, and its work is lost.",
    )
    active_deadline_seconds: int | None = optional(
        "The application fails when it has been active for so long since status.startTime (set anew by a "
        "resume), attempts and waiting included.",
        ge=1,
        le=_LONG,
    )
    ttl_seconds_after_finished: int | None = optional(
        "The application is deleted this many seconds after it finished, with its pods and their logs. "
        "Absent: it stays.",
        ge=0,
        le=_LONG,
    )
    restart_policy: RestartPolicy = whole(RestartPolicy)
    timeouts: Timeouts = whole(Timeouts)


class HadoopFields(Model):
    """Fields of a spec for the Hadoop clusters of the namespace."""

    hadoop_clusters: (
        Annotated[list[DnsLabel], Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "set"})] | None
    ) = optional("MRClusters of the namespace whose HDFS the application reads and writes as hdfs://NAME/PATH.")


Value = Annotated[str, Field(max_length=fields.MAX_VALUE)]
SparkConf = Annotated[
    dict[str, Value], Field(max_length=fields.MAX_PROPERTIES, json_schema_extra=fields.spark_conf_rules)
]
HadoopConf = Annotated[
    dict[str, Value], Field(max_length=fields.MAX_PROPERTIES, json_schema_extra=fields.hadoop_conf_rules)
]

RESERVED_VARIABLES = (
    "SPARK_(APPLICATION_ID|CONF_DIR|DRIVER_.*|EXECUTOR_.*|JAVA_OPT_.*|LOCAL_DIRS|RESOURCE_PROFILE_ID|USER)"
    "|_SPARK_AUTH_SECRET"
)

_BLANK = r"[\\x00-\\x20\\x7f]"
"""What no property may have in which Boathouse puts the text of a field."""


def _environment_rule(path: str, *parents: str) -> dict[str, str]:
    absent = " || ".join(f"!has(self.{field})" for field in (*parents, path))
    return rule(
        f"{absent} || self.{path}.all(e, !e.name.matches('^({RESERVED_VARIABLES})$'))",
        f"spec.{path}: the names SPARK_APPLICATION_ID, SPARK_CONF_DIR, SPARK_LOCAL_DIRS, SPARK_USER and those that "
        "begin with SPARK_DRIVER_, SPARK_EXECUTOR_ or SPARK_JAVA_OPT_ belong to Spark: choose others",
    )


_rules = (
    *program_rules,
    *file_rules,
    *fields.field_rules,
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

    model_config = spec_config(
        *_rules, always_mutable=ALWAYS_MUTABLE, mutable_while_suspended=MUTABLE_WHILE_SUSPENDED, noun="application"
    )
    queue: DnsLabel | None = optional("Queue of the job. Absent: the namespace's default queue, or that of the chart.")
    image: str | None = optional(
        "An image with Spark's own contract (entrypoint with driver and executor). Absent: the chart's.",
        min_length=1,
        max_length=512,
        json_schema_extra=holds(
            f"!self.matches('{_BLANK}')", "an image has no spaces and no control characters: remove them"
        ),
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="When the kubelet pulls the image."
    )
    spark_conf: SparkConf | None = optional("Any property of Spark but those that Boathouse sets.")
    hadoop_conf: HadoopConf | None = optional("Of Hadoop, without spark.hadoop. before the key.")
    memory_overhead_factor: OverheadFactor | None = optional(
        "Of driver and executors. Absent: 0.4 for Python, else 0.1."
    )
    driver: Driver | None = None
    executor: Executor | None = None
    dynamic_allocation: DynamicAllocation | None = None
    env: Environment | None = optional("Of driver and executors.")
    storage: Storage | None = None
    volumes: Volumes | None = None
    node_selector: NodeLabels | None = optional("Labels that nodes of the pods must have.")
    tolerations: Tolerations | None = optional("Taints of nodes that the pods tolerate.")
    monitoring: Monitoring | None = None
    ui: UserInterface | None = None
