"""What a driver and an executor get: sizes as Spark writes them (512m, 2g), factors, options."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.config import JsonDict

from boathouse.resources.base import MAX_QUALIFIED_NAME, Cpu, Model, Quantity, checked, holds, optional, rule, rules
from boathouse.resources.pod_environment import Environment
from boathouse.resources.pod_template import Metadata, NodeLabels, Tolerations
from boathouse.resources.sparkapp import names

SIZE_PATTERN = r"^[1-9][0-9]{0,8}[kKmMgGtT]([bB]|iB?)?$"


def binary(path: str) -> str:
    """Return a size as a quantity, in CEL: all of Spark's units are binary."""
    return f"quantity({path}.upperAscii().replace('B', '').replace('I', '') + 'i')"


def is_size(path: str) -> str:
    """Return the CEL expression for whether a text is a size."""
    return f"{path}.matches('{SIZE_PATTERN}')"


_BINARY = binary("self")
_VALID = is_size("self")


def _size(minimum: str, why: str) -> Any:
    return Field(
        max_length=16,
        json_schema_extra=rules(
            rule(_VALID, "'\"' + self + '\" is not a size: write a whole number with a unit, such as 512m, 2g or 2Gi'"),
            rule(
                f"!{_VALID} || {_BINARY}.compareTo(quantity('{minimum}')) >= 0",
                f"'\"' + self + '\" is less than {minimum}: {why}'",
            ),
            rule(
                f"!{_VALID} || {_BINARY}.compareTo(quantity('256Ti')) <= 0",
                "'\"' + self + '\" is more than 256Ti: no node has so much; lower it'",
            ),
        ),
    )


HeapSize = Annotated[str, _size("450Mi", "Spark does not start with less memory")]
Size = Annotated[str, _size("1Mi", "Spark counts in MiB")]
OverheadFactor = Annotated[
    str,
    Field(
        max_length=10,
        pattern=r"^([1-9][0-9]?|0[.]0*[1-9][0-9]*|[1-9][0-9]?[.][0-9]+)$",
        description='A part of the memory, such as "0.2", for what is not on the heap.',
    ),
]

MAX_EXECUTORS = 10_000
_OPTIONS: JsonDict = rules(
    rule(r"!self.matches('[\\x00\\n\\r]')", "options have no line ends and no NUL: separate them by spaces"),
    rule("!self.matches('(^|[ \"])-Xmx')", "the heap is the field memory, and Spark refuses -Xmx: remove it"),
)
JavaOptions = Annotated[str, Field(min_length=1, max_length=8192, json_schema_extra=_OPTIONS)]
_extended_rules = holds(
    f"self.all(name, name.contains('/') && name.size() <= {MAX_QUALIFIED_NAME})",
    f"extendedResources may hold extended resources only (example.com/name, {MAX_QUALIFIED_NAME} characters): "
    "cores and memory have fields",
)


class Role(Metadata):
    """The fields that driver and executors have in common."""

    cores: int | None = optional("As spark.driver.cores or spark.executor.cores. Absent: 1.", ge=1, le=1024)
    core_request: Cpu | None = optional("The pod's CPU request. Absent: cores.")
    core_limit: Cpu | None = optional("The pod's CPU limit. Absent: none.")
    memory: HeapSize | None = optional("The heap, such as 2g. Absent: 1g.")
    memory_overhead: Size | None = optional(
        "Memory beside the heap. Absent: memoryOverheadFactor of it, at least 384m."
    )
    memory_overhead_factor: OverheadFactor | None = None
    min_memory_overhead: Size | None = optional("The least that memoryOverheadFactor gives. Absent: 384m.")
    java_options: JavaOptions | None = optional("As spark.driver.extraJavaOptions.")
    ephemeral_storage: Quantity | None = optional(
        "Request for local files: shuffle, spills, downloads. Absent: the chart's default."
    )
    extended_resources: (
        Annotated[dict[str, Quantity], Field(max_length=8, json_schema_extra=_extended_rules)] | None
    ) = optional("Extended resources of the pod, such as nvidia.com/gpu.")
    env: Environment | None = optional("Beside those of spec.env, which they replace.")
    node_selector: NodeLabels | None = optional("Beside spec.nodeSelector.")
    tolerations: Tolerations | None = optional("Beside spec.tolerations.")


def _limit_rule(role: str) -> dict[str, str]:
    limit, request = "quantity(string(self.coreLimit))", "quantity(string(self.coreRequest))"
    return rule(
        "!has(self.coreLimit) || !isQuantity(string(self.coreLimit)) || (has(self.coreRequest) ? "
        f"(!isQuantity(string(self.coreRequest)) || {limit}.compareTo({request}) >= 0) : "
        f"{limit}.asApproximateFloat() >= (has(self.cores) ? double(self.cores) : 1.0))",
        f"{role}.coreLimit is less than the request: raise it, or lower coreRequest (absent: cores)",
    )


class Driver(Role):
    """The driver: the pod that runs the program and requests executors."""

    model_config = checked(_limit_rule("driver"))
    service_account_name: str | None = optional(
        "An account that may create pods: boathouse-spark, or one that begins with boathouse-spark-. "
        "Absent: that of the chart's spark.serviceAccount.",
        max_length=63,
        json_schema_extra=holds(
            f"self.matches('{names.ACCOUNT_PATTERN}')",
            "drivers run as boathouse-spark or boathouse-spark-NAME: name such an account, or remove the field",
        ),
    )


class ElasticMemory(Model):
    """Reduced memory that executors may start with."""

    min: HeapSize = Field(description="Minimum heap. The program must run with it.")
    slowdown_percent: int = Field(
        default=50,
        ge=0,
        le=1000,
        description="Extra run time of executors with less memory, until Boathouse has measured it for this program.",
    )


_LEAST_HEAP = "self.elasticMemory.min"
_elastic_rule = rule(
    f"!has(self.elasticMemory) || !has(self.memory) || !{is_size(_LEAST_HEAP)} || !{is_size('self.memory')} || "
    f"{binary(_LEAST_HEAP)}.compareTo({binary('self.memory')}) <= 0",
    "executor.elasticMemory.min is more than executor.memory: lower it",
)


class Executor(Role):
    """The executors: the pods that run the stages' tasks."""

    model_config = checked(_limit_rule("executor"), _elastic_rule)
    instances: int | None = optional(
        "How many, without dynamicAllocation; the driver starts when all have room. Absent: 2.", ge=0, le=MAX_EXECUTORS
    )
    pyspark_memory: Size | None = optional("As spark.executor.pyspark.memory: a limit for Python, beside the overhead.")
    off_heap_memory: Size | None = optional("As spark.memory.offHeap.size, enabled.")
    elastic_memory: ElasticMemory | None = optional(
        "Lets all executors start with a smaller heap if memory is scarce and this does not delay the "
        "application (chart value profile: yarn-me or boathouse). It is chosen when the driver starts. Absent: never."
    )


class DynamicAllocation(Model):
    """How the number of executors follows the work."""

    model_config = checked(
        rule(
            "!has(self.minExecutors) || !has(self.maxExecutors) || self.minExecutors <= self.maxExecutors",
            "dynamicAllocation.minExecutors is more than maxExecutors: lower it",
        ),
        rule(
            "!has(self.initialExecutors) || "
            "((!has(self.minExecutors) || self.initialExecutors >= self.minExecutors) && "
            "(!has(self.maxExecutors) || self.initialExecutors <= self.maxExecutors))",
            "dynamicAllocation.initialExecutors is not between minExecutors and maxExecutors: correct it",
        ),
    )
    enabled: bool = Field(default=False, description="Whether it does; otherwise it is executor.instances.")
    min_executors: int | None = optional(
        "The driver starts when so many executors have room. Absent: 0.", ge=0, le=MAX_EXECUTORS
    )
    max_executors: int | None = optional("Absent: no limit.", ge=1, le=MAX_EXECUTORS)
    initial_executors: int | None = optional(
        "How many the driver requests at first. Absent: minExecutors.", ge=0, le=MAX_EXECUTORS
    )
    shuffle_tracking_timeout_seconds: int | None = optional(
        "How long executors with shuffle data are kept idle. Absent: until the data is collected.", ge=1, le=30 * 86400
    )
