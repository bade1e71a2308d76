"""Internal model of an MRJob: its spec with converted values, and steps also for a job with a single step."""

import dataclasses
from typing import Final

from boathouse.cluster import catalogue, wire
from boathouse.resources import names, pod_environment as pod_storage, quantity, statuses
from boathouse.resources.config import EphemeralStorageConfig, OperatorConfig
from boathouse.resources.mrjob import (
    names as mrjob_names,
    spec as mrjob_spec,
    status as mrjob_status,
    steps as mrjob_steps,
)
from boathouse.services.frame.admission import Applicant, applicant
from boathouse.services.frame.kind import Body, ObjectUid, Refusal, refusing
from boathouse.services.mrjob import on_cluster
from boathouse_task import contract

MRJOBS: Final = catalogue.Resource(
    group=names.GROUP, version=names.VERSION, plural=mrjob_names.PLURAL, kind=mrjob_names.KIND, view=wire.Manifest
)
JobUid = ObjectUid
MIB = 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources of a stage's pods.

    The memory request is 1 MiB less than the limit, so that the pod is Burstable whatever its CPU is (a pod's QoS class
    cannot change in a resize).
    """

    cpu_milli: int
    cpu_limit_milli: int
    memory_bytes: int  # the limit
    ephemeral_storage_bytes: int = 0
    ephemeral_storage_limit_bytes: int = 0  # of everything that the pod writes to its node; 0: none
    scratch_bytes: int = 0  # size limit of each folder that the pod writes to; 0: the operator's default
    extended: tuple[tuple[str, int], ...] = ()

    @property
    def memory_request_bytes(self) -> int:
        """The pod's memory request."""
        return self.memory_bytes - MIB


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The mapper or the reducer of a step; setup and commit are stages without a command."""

    resources: Resources
    command: tuple[str, ...] = ()
    max_attempts: int = 4
    failures_max_percent: int = 0
    min_memory_bytes: int = 0  # the smallest limit with which a task may start if memory is scarce; 0: never less
    slowdown: float = 1.5  # ratio of extra run time with less memory, until it has been measured


HOUSEKEEPING = Stage(resources=Resources(cpu_milli=100, cpu_limit_milli=1000, memory_bytes=256 * MIB))
"""Resources of setup, commit and cleanup, which list, write, rename and delete objects."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Maps, then (unless `reduces` is 0) reduces. A mapper without a command passes lines unchanged."""

    mapper: Stage
    reducer: Stage | None
    reduces: int
    combiner: tuple[str, ...] | None = None
    partitioner: contract.Partitioner = contract.Partitioner()  # noqa: RUF009 - frozen
    reduce_fields: contract.ReduceFields = contract.ReduceFields()  # noqa: RUF009 - frozen


_PROGRAM: Final = Step(mapper=HOUSEKEEPING, reducer=None, reduces=0)
"""In place of the step of a job from a jar, whose maps and reduces only the program knows."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job(Applicant):
    """A valid MRJob: its spec, and values that were converted or depend on the operator's configuration."""

    spec: mrjob_spec.MRJobSpec
    image_pull_policy: str
    split_max_bytes: int
    max_record_bytes: int
    uber_max_bytes: int
    steps: tuple[Step, ...]
    housekeeping: Stage
    deleting_since_s: float | None = None
    suspend_reducers_until: str | None = None

    @property
    def cluster(self) -> str:
        """Name of the Hadoop cluster that it runs on; empty if its tasks have pods of their own."""
        return self.spec.cluster_ref.name if self.spec.cluster_ref else ""

    @property
    def s3(self) -> pod_storage.S3 | None:
        """The object storage, if the job uses one."""
        return self.spec.storage.s3 if self.spec.storage else None

    @property
    def secret_variables(self) -> list[str]:
        """The variables whose values come from Secrets."""
        return on_cluster.secret_variables(self.spec)

    @property
    def volume(self) -> pod_storage.StorageVolume | None:
        """The volume with input and output, if the job uses one."""
        return self.spec.storage.volume if self.spec.storage else None

    def stage(self, task_type: contract.TaskType, step: int = 0) -> Stage:
        """Return the stage that tasks of this type belong to."""
        match task_type:
            case contract.TaskType.MAP:
                return self.steps[step].mapper
            case contract.TaskType.REDUCE:
                return self.steps[step].reducer or self.housekeeping
            case contract.TaskType.UBER | contract.TaskType.PROBE:
                return _uber_stage(self.steps[step])
            case contract.TaskType.SETUP | contract.TaskType.COMMIT | contract.TaskType.CLEANUP:
                return self.housekeeping

    def is_uber(self, step: int, splits: int, size_bytes: int) -> bool:
        """Return whether the step, with these splits and bytes, runs in one pod. Not if tasks may fail: it would."""
        limits, current = self.spec.uber, self.steps[step]
        return (
            limits is not None
            and not current.mapper.failures_max_percent
            and not (current.reducer and current.reducer.failures_max_percent)
            and splits <= limits.max_maps
            and current.reduces <= limits.max_reduces
            and size_bytes <= self.uber_max_bytes
        )

    @property
    def input_format(self) -> contract.InputFormat:
        """How the input of the first step is cut into records."""
        spec = self.spec
        kind = "TextInputFormat" if spec.input_format == "CombineTextInputFormat" else spec.input_format
        return contract.InputFormat(
            type=contract.InputFormatType(kind),
            record_delimiter=spec.record_delimiter or "",
            lines_per_map=spec.lines_per_map or 1,
            key_value_separator=spec.key_value_separator or "\t",
            ignore_key=spec.map_input_ignore_key,
            field_separator=spec.map_input_field_separator or "\t",
        )

    @property
    def output_format(self) -> contract.OutputFormat:
        """How the output is written."""
        return contract.OutputFormat(
            separator=self.spec.output_separator or "\t", key_only=self.spec.key_only_output, lazy=self.spec.lazy_output
        )

    @property
    def work_url(self) -> str:
        """URL of the work folder, for everything that is not yet output."""
        return f"{self.spec.output.rstrip('/')}/_temporary/boathouse-{self.uid}"


def _uber_stage(step: Step) -> Stage:
    stages = step.mapper, step.reducer or step.mapper
    both = [stage.resources for stage in stages]
    amounts = [field.name for field in dataclasses.fields(Resources) if field.name != "extended"]
    larger = {name: max(getattr(resources, name) for resources in both) for name in amounts}
    if not all(resources.scratch_bytes for resources in both):
        larger["scratch_bytes"] = 0
    extended: dict[str, int] = {}
    for name, count in (*both[0].extended, *both[1].extended):
        extended[name] = max(extended.get(name, 0), count)
    resources = Resources(**larger, extended=tuple(sorted(extended.items())))
    return Stage(max_attempts=min(stage.max_attempts for stage in stages), resources=resources)


@refusing
def from_resource(body: Body, config: OperatorConfig) -> Job | Refusal:
    """Return the job of a custom resource, with the operator's defaults, or why it cannot run."""
    spec = mrjob_status.MRJob.model_validate({"spec": body.get("spec")}).spec  # the status is another version's too
    fields = applicant(body, spec, config, config.task.image, "task")
    if isinstance(fields, Refusal):
        return fields
    if spec.cluster_ref is not None and (problem := on_cluster.problem(spec)):
        return Refusal(reason=names.Reason.INVALID_SPEC, message=problem)
    metadata, uber = body["metadata"], spec.uber or mrjob_steps.Uber()
    is_operators_image = not spec.image and spec.image_pull_policy == "IfNotPresent"
    return Job(
        **fields,
        deleting_since_s=statuses.epoch(metadata.get("deletionTimestamp")),
        suspend_reducers_until=(metadata.get("annotations") or {}).get(names.ANNOTATION_SUSPEND_UNTIL),
        image_pull_policy=config.task.image_pull_policy if is_operators_image else spec.image_pull_policy,
        split_max_bytes=quantity.units(spec.split_max_size),
        max_record_bytes=quantity.units(spec.max_record_bytes),
        uber_max_bytes=quantity.units(spec.split_max_size if uber.max_bytes is None else uber.max_bytes),
        steps=(_PROGRAM,)
        if spec.cluster_ref is not None and spec.jar is not None
        else tuple(_step(step, config.task.ephemeral_storage) for step in spec.steps or (spec,)),
        housekeeping=dataclasses.replace(
            HOUSEKEEPING, resources=_with_storage(HOUSEKEEPING.resources, 0, config.task.ephemeral_storage)
        ),
    )


def _step(spec: mrjob_steps.StepFields, storage: EphemeralStorageConfig) -> Step:
    reduces = 0 if spec.reducer is None else 1 if spec.num_reduce_tasks is None else spec.num_reduce_tasks
    mapper = _stage(spec.mapper, storage) if spec.mapper else None
    reducer = _stage(spec.reducer, storage) if spec.reducer and reduces else None
    first = mapper or (dataclasses.replace(reducer, command=()) if reducer else None)
    if first is None:
        raise ValueError("spec: a step needs a mapper or a reducer")
    partitioner = spec.partitioner or mrjob_steps.Partitioner()
    return Step(
        mapper=first,
        reducer=reducer,
        reduces=reduces,
        combiner=tuple(spec.combiner.command) if spec.combiner else None,
        partitioner=contract.Partitioner(
            type=partitioner.type,
            options=partitioner.options or "",
            key_field_separator=spec.map_output_key_field_separator or "\t",
            num_key_fields=spec.num_map_output_key_fields or 1,
            field_separator=spec.map_output_field_separator or "\t",
            comparator_options=spec.comparator.options if spec.comparator else None,
        ),
        reduce_fields=contract.ReduceFields(
            input_separator=spec.reduce_input_field_separator or "\t",
            output_separator=spec.reduce_output_field_separator or "\t",
            num_output_key_fields=spec.num_reduce_output_key_fields or 1,
        ),
    )


def _stage(template: mrjob_steps.TaskTemplate, storage: EphemeralStorageConfig) -> Stage:
    elastic = template.elastic_memory
    return Stage(
        command=tuple(template.command),
        max_attempts=template.max_attempts,
        failures_max_percent=template.failures_max_percent,
        resources=_resources(template.resources, storage),
        min_memory_bytes=-(-quantity.units(elastic.min) // MIB) * MIB if elastic else 0,
        slowdown=1 + elastic.slowdown_percent / 100 if elastic else 1.0,
    )


def _resources(requirements: mrjob_steps.ResourceRequirements, storage: EphemeralStorageConfig) -> Resources:
    requests = {"cpu": "1", "memory": "512Mi"} | requirements.requests
    cpu = quantity.milli(requests.pop("cpu"))
    memory = quantity.units(requests.pop("memory"))
    limit = quantity.milli((requirements.limits or {}).get("cpu", 0))
    scratch_bytes = quantity.units(requests.pop("ephemeral-storage", 0))
    resources = Resources(
        cpu_milli=cpu,
        cpu_limit_milli=max(limit, cpu + 1),
        memory_bytes=-(-memory // MIB) * MIB,
        extended=tuple(sorted((name, quantity.units(value)) for name, value in requests.items())),
    )
    return _with_storage(resources, scratch_bytes, storage)


def _with_storage(resources: Resources, scratch_bytes: int, default: EphemeralStorageConfig) -> Resources:
    """Return the resources with the job's request of ephemeral storage, or the operator's default."""
    limit_bytes = default.limit_bytes
    return dataclasses.replace(
        resources,
        ephemeral_storage_bytes=scratch_bytes or default.request_bytes,
        ephemeral_storage_limit_bytes=max(limit_bytes, scratch_bytes) if limit_bytes else 0,
        scratch_bytes=scratch_bytes,
    )
