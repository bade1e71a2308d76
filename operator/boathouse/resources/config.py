"""The operator's configuration file, which the chart generates. Flags and the environment take precedence over it."""

import pathlib
from collections.abc import Callable
from typing import Annotated, Literal, Self, get_args

import pydantic
from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from boathouse.resources import names, quantity

QuantityText = Annotated[
    str, pydantic.BeforeValidator(str), pydantic.AfterValidator(lambda text: (quantity.parse(text), text)[1])
]
Port = Annotated[int, Field(ge=1, le=65535)]
ProfileName = Literal["boathouse", "fair", "fifo", "fspy", "ikayak", "ila", "srjf", "yarn-me"]
PROFILES: tuple[str, ...] = get_args(ProfileName)
"""Profiles that the operator supports. The others are baselines of the papers, or need inputs of the simulator."""


class _Section(pydantic.BaseModel):
    """A section of the configuration. Unlike a custom resource it rejects unknown fields, so a typo is an error."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid")


NamespaceName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
PriorityClassName = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253)
]


class QueueConfig(_Section):
    """A queue: its weight, its limits, and the jobs and pods that it accepts."""

    name: NamespaceName
    weight: float = Field(default=1.0, gt=0, description="Share relative to the other queues.")
    limits: dict[str, QuantityText] = Field(
        default_factory=dict, description="By resource, extended ones too. Absent: no limit."
    )
    namespaces: list[NamespaceName] = Field(
        default_factory=list, description="Those whose jobs and pods it accepts. Empty: all."
    )
    priority_classes: list[PriorityClassName] = Field(
        default_factory=list, description="Those whose jobs and pods it accepts, beside those without one. Empty: all."
    )

    def accepts_namespace(self, namespace: str) -> bool:
        """Return whether jobs and pods of a namespace may use the queue."""
        return not self.namespaces or namespace in self.namespaces

    def accepts_priority_class(self, priority_class: str) -> bool:
        """Return whether jobs and pods of a PriorityClass may use the queue; always True for "" (no class)."""
        return not self.priority_classes or not priority_class or priority_class in self.priority_classes


class LeaseConfig(_Section):
    """Leader election."""

    name: str = "boathouse"
    duration_seconds: float = Field(default=15, gt=0)
    renew_deadline_seconds: float = Field(default=10, gt=0)
    retry_period_seconds: float = Field(default=2, gt=0)

    @pydantic.model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.duration_seconds > self.renew_deadline_seconds > self.retry_period_seconds:
            why = "durationSeconds must be more than renewDeadlineSeconds, and that more than retryPeriodSeconds"
            raise ValueError(f"lease: {why}")
        return self


class EphemeralStorageConfig(_Section):
    """Ephemeral storage of a task pod whose job requests none."""

    request: Literal[""] | QuantityText = Field(default="1Gi", description="Empty: none.")
    limit: Literal[""] | QuantityText = Field(default="10Gi", description="Empty: none. At least the request.")

    @property
    def request_bytes(self) -> int:
        """Request in bytes; 0 for none."""
        return quantity.units(self.request or 0)

    @property
    def limit_bytes(self) -> int:
        """Limit in bytes; 0 for none."""
        return quantity.units(self.limit or 0)

    @pydantic.model_validator(mode="after")
    def _limit_covers_request(self) -> Self:
        if self.limit and self.limit_bytes < self.request_bytes:
            raise ValueError(f"ephemeralStorage: limit {self.limit} is less than request {self.request}")
        return self


class _PodDefaults(_Section):
    """Defaults of the pods of all kinds. An object without an image is rejected if there is none here either."""

    image: str = ""
    image_pull_secrets: list[str] = Field(default_factory=list)
    ephemeral_storage: EphemeralStorageConfig = Field(default_factory=EphemeralStorageConfig)


class TaskDefaults(_PodDefaults):
    """Defaults of task pods for fields that the job does not set."""

    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    scratch_size: QuantityText = Field(
        default="10Gi", description="Limit of each folder of a pod without an ephemeral-storage request."
    )
    image_pull_timeout_seconds: float = Field(default=300, gt=0)
    start_timeout_seconds: float = Field(default=600, gt=0)
    missing_object_timeout_seconds: float = Field(
        default=120, gt=0, description="How long those that a pod needs may be missing."
    )
    max_infrastructure_failures: int = Field(
        default=50, ge=1, le=10_000, description="Number of one task's failures after which the job fails."
    )
    not_ready_toleration_seconds: int = Field(
        default=60, ge=0, description="How long pods tolerate an unreachable node."
    )


class SparkDefaults(_PodDefaults):
    """What the pods of Spark applications get when the application does not say."""

    service_account: Annotated[str, Field(pattern=r"^boathouse-spark(-[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")] = Field(
        default="boathouse-spark", max_length=63, description="The service account of drivers."
    )
    ui_service: bool = Field(default=True, description="Whether an application has a Service for Spark's UI.")
    missing_object_timeout_seconds: float = Field(
        default=120, gt=0, description="How long those that a pod needs may be missing."
    )
    not_ready_toleration_seconds: int = Field(
        default=60, ge=0, description="How long pods tolerate an unreachable node."
    )


class HadoopDefaults(_PodDefaults):
    """What the pods of Hadoop clusters get when the cluster does not say."""

    partition: Literal["All", "PerSite"] = Field(
        default="All", description="Whether idle nodes are divided among all clusters, or in each zone on its own."
    )
    prefer_ipv4: bool = Field(default=True, description="False in a cluster whose pods have IPv6 addresses only.")


class TenantLimits(_Section):
    """Limits of each namespace, so that no tenant blocks or slows down another."""

    max_unfinished_jobs: int = Field(
        default=1000, ge=1, le=100_000, description="MRJobs that are admitted at once, the oldest first."
    )
    max_job_mebibytes: int = Field(
        default=32, ge=2, le=4096, description="JSON of the specs of admitted unfinished MRJobs."
    )
    max_plan_mebibytes: int = Field(
        default=32, ge=32, le=4096, description="JSON of unfinished jobs' split plans; further setup tasks retry."
    )
    events_per_second: float = Field(
        default=20, gt=0, le=10_000, description="Events about objects; further ones are dropped."
    )
    status_writes_per_second: float = Field(
        default=50,
        gt=0,
        le=10_000,
        description="Of MRJobs, and as many of pods' conditions; further writes are delayed.",
    )
    retries_per_second: float = Field(
        default=20, gt=0, le=10_000, description="Second and later attempts of tasks; further ones are delayed."
    )
    max_shapes: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="Requests and constraints of pending pods; pods beyond get the reason TooComplex.",
    )
    max_constraints: int = Field(
        default=2000, ge=1, le=1_000_000, description="Of these shapes in total; pods beyond get the reason TooComplex."
    )


class ActuatorsConfig(_Section):
    """What policies may do to pods, beside placing them."""

    suspend: bool = Field(default=True, description="Suspend reducers that lack map output.")
    resize: bool = Field(default=True, description="Start tasks with less than they request, and resize running pods.")
    speculate: bool = Field(default=False, description="Start second attempts of slow tasks.")
    scale: bool = Field(default=True, description="Change the size of dynamic clusters.")


class SwitchbackConfig(_Section):
    """Whether parts of the profile act and pause in blocks of time, to measure what they are worth."""

    enabled: bool = False
    block_seconds: float = Field(default=1800, ge=60, le=86400, description="Length of a block.")


class PredictionConfig(_Section):
    """How the size of a job is predicted."""

    probe: bool = Field(default=True, description="Run a job's commands once more on a sample of its input.")
    least_maps: int = Field(default=10, ge=1, description="Jobs with fewer maps are not probed.")
    probe_seconds: float = Field(default=600, gt=0, description="How long a probe may run.")


class KubeletsConfig(_Section):
    """How kubelets are read: directly, at /metrics/resource."""

    enabled: bool = False
    interval_seconds: float = Field(default=15, ge=5, le=300)
    port: int = Field(default=0, ge=0, le=65535, description="0: the port that the node reports.")
    ca_file: str = Field(default="", description="Certificates of the kubelets' authorities.")
    insecure_skip_verify: bool = Field(default=False, description="Accept any certificate.")
    cadvisor: bool = Field(default=False, description="Read /metrics/cadvisor also, for disks and pressure.")
    cpu: Literal["Node", "Pods"] = Field(default="Node", description="Pods: the sum of a node's pods.")

    @pydantic.model_validator(mode="after")
    def _certificates_are_verified_or_not(self) -> Self:
        if self.enabled and bool(self.ca_file) is self.insecure_skip_verify:
            raise ValueError(
                "signals.kubelets: set either caFile (in the chart: caConfigMap) to the authority of the kubelets' "
                "certificates, or insecureSkipVerify: true to accept any certificate"
            )
        return self


class SignalsConfig(_Section):
    """Where the policies' measurements of nodes come from."""

    kubelets: KubeletsConfig = Field(default_factory=KubeletsConfig)


class AutoscalingConfig(_Section):
    """Whether a cluster autoscaler adds nodes, and how it sees that they are missing."""

    enabled: bool = Field(default=True, description="Whether nodes can come: false for a cluster of fixed size.")
    max_placeholders_per_application: int = Field(
        default=500, ge=0, le=10_000, description="Placeholder pods; an application with a larger minimum has none."
    )
    max_placeholders: int = Field(
        default=1000, ge=0, le=100_000, description="Placeholder pods of all applications together."
    )


class OperatorConfig(_Section):
    """All settings of the operator."""

    namespace: str = names.OPERATOR_NAMESPACE
    watch_namespaces: list[str] = Field(default_factory=list, description="Empty: all.")
    queues: list[QueueConfig] = Field(default_factory=lambda: [QueueConfig(name="default")], min_length=1)
    default_queue: str = "default"
    namespace_queues: dict[str, str] = Field(default_factory=dict, description="Default queue by namespace.")
    profile: ProfileName = "boathouse"
    shadow_profile: Literal[""] | ProfileName = Field(
        default="", description="Profile whose decisions are compared with the real ones. Empty: none."
    )
    actuators: ActuatorsConfig = Field(default_factory=ActuatorsConfig)
    switchback: SwitchbackConfig = Field(default_factory=SwitchbackConfig)
    prediction: PredictionConfig = Field(default_factory=PredictionConfig)
    signals: SignalsConfig = Field(default_factory=SignalsConfig)
    autoscaling: AutoscalingConfig = Field(default_factory=AutoscalingConfig)
    pending_ahead: int = Field(default=5, ge=0, le=1000)
    tenant_limits: TenantLimits = Field(default_factory=TenantLimits)
    task: TaskDefaults = Field(default_factory=TaskDefaults)
    spark: SparkDefaults = Field(default_factory=SparkDefaults)
    hadoop: HadoopDefaults = Field(default_factory=HadoopDefaults)
    lease: LeaseConfig = Field(default_factory=LeaseConfig)
    progress_service: str = names.PROGRESS_SERVICE
    progress_port: Port = 8443
    metrics_port: Port = 8080
    health_port: Port = 8081
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"

    @pydantic.model_validator(mode="after")
    def _each_namespace_has_a_queue(self) -> Self:
        queues = {queue.name: queue for queue in self.queues}
        if len(queues) != len(self.queues):
            raise ValueError("queues: two queues have the same name")
        of_namespaces = {f"namespaceQueues[{namespace}]": name for namespace, name in self.namespace_queues.items()}
        for what, name in {"defaultQueue": self.default_queue, **of_namespaces}.items():
            if name not in queues:
                raise ValueError(f'{what} is "{name}", which is not one of the queues {sorted(queues)}')
        for namespace, name in self.namespace_queues.items():
            if not queues[name].accepts_namespace(namespace):
                raise ValueError(
                    f'namespaceQueues[{namespace}] is "{name}", which does not accept the namespace: '
                    f"add {namespace} to the queue's namespaces"
                )
        default = queues[self.default_queue]
        if default.namespaces and not self.watch_namespaces:
            raise ValueError(
                f'defaultQueue is "{default.name}", which accepts only {", ".join(default.namespaces)}: '
                "leave its namespaces empty, or name another default queue"
            )
        for namespace in self.watch_namespaces:
            if namespace not in self.namespace_queues and not default.accepts_namespace(namespace):
                raise ValueError(
                    f'defaultQueue is "{default.name}", which does not accept the namespace {namespace}: '
                    "add it to the queue's namespaces, or give it another queue in namespaceQueues"
                )
        return self

    _label_of: Callable[[str], str | None] | None = pydantic.PrivateAttr(default=None)

    def follow(self, label_of: Callable[[str], str | None]) -> None:
        """Use namespaces' labels from now on: `label_of` returns a namespace's label `boathouse.dev/queue`."""
        self._label_of = label_of

    def queue_for(self, namespace: str, requested: str | None) -> str:
        """Return the queue of a job: its own, else that of its namespace's label or entry here, else the default."""
        labelled = None if self._label_of is None else self._label_of(namespace)
        return requested or labelled or self.namespace_queues.get(namespace, self.default_queue)


def load(path: pathlib.Path) -> OperatorConfig:
    """Read a configuration file (JSON). A `pydantic.ValidationError` names each invalid value."""
    return OperatorConfig.model_validate_json(path.read_text())
