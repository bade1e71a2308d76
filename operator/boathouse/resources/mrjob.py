"""The MRJob resource: a MapReduce job with Hadoop Streaming's contract, one pod a task attempt.

The spec's rules are CEL, checked by the API server; their messages say what to do.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from boathouse.resources.base import (
    DnsLabel,
    Key,
    Model,
    ObjectName,
    Quantity,
    SplitSize,
    Url,
    rule,
    rules,
)
from boathouse.resources.mrjob_life import Life, with_immutability
from boathouse.resources.quantity_rules import limits_rules, requests_rules

MAX_MAPS = 40_000
"""Bitmaps and attempts of so many tasks fit into the 32 KiB that a status may have."""

MAX_REDUCES = 10_000

Argument = Annotated[str, Field(max_length=4096)]
Command = Annotated[list[Argument], Field(min_length=1, max_length=64)]
_atomic: JsonDict = {"x-kubernetes-list-type": "atomic"}


class ResourceRequirements(Model):
    """What each task of a stage asks for."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.limits) || !('cpu' in self.limits) || !has(self.requests) || !('cpu' in self.requests) || "
                "!isQuantity(string(self.limits['cpu'])) || !isQuantity(string(self.requests['cpu'])) || "
                "quantity(string(self.limits['cpu'])).compareTo(quantity(string(self.requests['cpu']))) >= 0",
                "limits.cpu is less than requests.cpu: raise the limit or lower the request",
            )
        )
    )
    requests: Annotated[dict[str, Quantity], Field(max_length=16, json_schema_extra=rules(*requests_rules))] = Field(
        default={"cpu": "1", "memory": "512Mi"},
        description="cpu (absent: 1), memory (absent: 512Mi; also the limit), ephemeral-storage (scratch space), "
        "extended resources.",
    )
    limits: Annotated[dict[str, Quantity], Field(max_length=16, json_schema_extra=rules(*limits_rules))] | None = Field(
        default=None, description="cpu only: a task may use more CPU than it asked for, up to this."
    )


_DEFAULT_RESOURCES: JsonDict = {"default": {"requests": {"cpu": "1", "memory": "512Mi"}}}


class TaskTemplate(Model):
    """The mapper or the reducer: a command that reads lines and writes `key<TAB>value` lines."""

    command: Command = Field(description="The command and its arguments; no shell.", json_schema_extra=_atomic)
    resources: ResourceRequirements = Field(default_factory=ResourceRequirements, json_schema_extra=_DEFAULT_RESOURCES)
    max_attempts: int = Field(
        default=4,
        ge=1,
        le=20,
        description="The job fails when a task failed so often by its own fault (as mapreduce.map.maxattempts).",
    )


class Combiner(Model):
    """Runs over each sorted run of a map's output, inside the map task."""

    command: Command = Field(description="The command and its arguments; no shell.", json_schema_extra=_atomic)


class Partitioner(Model):
    """Which reduce gets a key."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.options) || self.type == 'KeyFieldBasedPartitioner'",
                "options are for type KeyFieldBasedPartitioner: set the type or remove the options",
            )
        )
    )
    type: Literal["HashPartitioner", "KeyFieldBasedPartitioner"] = "HashPartitioner"
    options: str | None = Field(
        default=None,
        max_length=64,
        pattern=r"^-k[0-9]+(\.[0-9]+)?(,[0-9]+(\.[0-9]+)?)?( +-k[0-9]+(\.[0-9]+)?(,[0-9]+(\.[0-9]+)?)?)*$",
        description='The key fields that choose the reduce, as mapreduce.partition.keypartitioner.options: "-k1,2".',
    )


class KeyRef(Model):
    """A key of a ConfigMap or a Secret in the job's namespace."""

    name: ObjectName
    key: Key


class File(Model):
    """A file in the task's working folder, as Hadoop's -files; executable."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.configMapKeyRef) != has(self.url)",
                "'file ' + self.name + ': set exactly one of configMapKeyRef and url'",
            ),
            rule("self.name != '.' && self.name != '..'", "a file's name cannot be . or .."),
        )
    )
    name: Key = Field(description="The name in the working folder; no slashes.")
    config_map_key_ref: KeyRef | None = None
    url: Url | None = None


class EnvVarSource(Model):
    """Where the value of an environment variable comes from."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.secretKeyRef) != has(self.configMapKeyRef)",
                "set exactly one of secretKeyRef and configMapKeyRef",
            )
        )
    )
    secret_key_ref: KeyRef | None = None
    config_map_key_ref: KeyRef | None = None


class EnvVar(Model):
    """An environment variable of the user's commands."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!(has(self.value) && has(self.valueFrom))", "'env ' + self.name + ': set value or valueFrom, not both'"
            ),
            rule(
                "!self.name.startsWith('BOATHOUSE_')",
                "'env ' + self.name + ': names that begin with BOATHOUSE_ belong to the task runtime; choose another'",
            ),
        )
    )
    name: str = Field(min_length=1, max_length=128, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")
    value: str | None = Field(default=None, max_length=8192)
    value_from: EnvVarSource | None = None


class SecretRef(Model):
    """A Secret in the job's namespace."""

    name: ObjectName


class S3(Model):
    """An S3 endpoint; conditional writes (If-None-Match: *) are required of it."""

    endpoint_url: str | None = Field(
        default=None,
        alias="endpointURL",
        max_length=1024,
        description="Absent: AWS's own endpoint of the region.",
        json_schema_extra=rules(
            rule(
                "self.startsWith('http://') || self.startsWith('https://')",
                "'\"' + self + '\" must begin with http:// or https://'",
            )
        ),
    )
    region: str = Field(default="us-east-1", min_length=1, max_length=64)
    secret_ref: SecretRef | None = Field(
        default=None,
        description="Keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; only the kubelet reads it. Absent: unsigned.",
    )


class Storage(Model):
    """How tasks reach the URLs."""

    s3: S3 | None = None


class Toleration(Model):
    """A Kubernetes toleration."""

    key: str | None = Field(default=None, max_length=316)
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = Field(default=None, max_length=63)
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = Field(default=None, ge=0)


class MRJobSpec(Life):
    """What the user wants. Most of it is immutable after creation; the API server names the field."""

    model_config = ConfigDict(
        json_schema_extra=with_immutability(
            rule(
                "has(self.reducer) || !has(self.numReduceTasks) || self.numReduceTasks == 0",
                "numReduceTasks asks for reduces, but there is no reducer: add spec.reducer, or remove numReduceTasks",
            ),
            rule(
                "!has(self.combiner) || (has(self.reducer) && (!has(self.numReduceTasks) || self.numReduceTasks > 0))",
                "a combiner needs reduces to combine for: add spec.reducer and numReduceTasks, or remove the combiner",
            ),
            rule(
                "(has(self.storage) && has(self.storage.s3)) || !(self.output.startsWith('s3://') || "
                "self.input.exists(url, url.startsWith('s3://')) || "
                "(has(self.files) && self.files.exists(file, has(file.url) && file.url.startsWith('s3://'))))",
                "s3:// URLs need spec.storage.s3: set endpointURL and secretRef there",
            ),
            rule(
                "self.output.startsWith('s3://') == self.input[0].startsWith('s3://')",
                "input and output must have the same scheme: tasks read and write one kind of storage",
            ),
            rule(
                "!self.input.exists(url, url == self.output)",
                "output is also an input: choose an output URL that does not exist yet",
            ),
        )
    )
    queue: DnsLabel | None = Field(
        default=None, description="Absent: the namespace's default queue of the chart, or the chart's default queue."
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        description="Holds boathouse-task and the job's commands. Absent: the operator's task image.",
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    input: list[Url] = Field(
        min_length=1,
        max_length=64,
        description="Files, folders (recursively, without _* and .* names) or globs.",
        json_schema_extra=_atomic,
    )
    output: Url = Field(
        description="A folder that does not exist yet; results are part-00000 and so on, _SUCCESS last."
    )
    mapper: TaskTemplate
    combiner: Combiner | None = None
    reducer: TaskTemplate | None = Field(
        default=None, description="Absent: a map-only job, whose maps write the output."
    )
    num_reduce_tasks: int | None = Field(
        default=None, ge=0, le=MAX_REDUCES, description="Absent: 1 with a reducer. 0: a map-only job."
    )
    partitioner: Partitioner = Field(
        default_factory=Partitioner, json_schema_extra={"default": {"type": "HashPartitioner"}}
    )
    split_max_size: SplitSize = Field(default="64Mi", description="As mapreduce.input.fileinputformat.split.maxsize.")
    files: list[File] | None = Field(
        default=None,
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    env: list[EnvVar] | None = Field(
        default=None,
        max_length=128,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    storage: Storage | None = None
    node_selector: dict[str, Annotated[str, Field(max_length=63)]] | None = Field(default=None, max_length=32)
    tolerations: list[Toleration] | None = Field(default=None, max_length=32, json_schema_extra=_atomic)
