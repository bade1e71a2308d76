"""Spec of an MRJob: a MapReduce job with Hadoop Streaming's contract and a pod for each task attempt.

The API server checks the spec's CEL rules.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from boathouse.resources.base import (
    SHORT_KEYS,
    DnsLabel,
    Key,
    Model,
    ObjectName,
    RecordSize,
    SplitSize,
    Url,
    at_most_bytes,
    rule,
    rules,
)
from boathouse.resources.mrjob.lifetime import Life, with_immutability
from boathouse.resources.mrjob.pod_template import TemplateFields
from boathouse.resources.mrjob.steps import ATOMIC, MAX_STEPS, Step, StepFields, Uber, spec_step_rules
from boathouse.resources.mrjob.storage import Storage, volume_rules

MAX_MAPS = 40_000
"""With this many tasks, bitmaps and attempts fit into the 32 KiB of a status."""


MAX_ENV_BYTES = 128 * 1024


class KeyRef(Model):
    """A key of a ConfigMap or a Secret in the job's namespace."""

    name: ObjectName
    key: Key


class File(Model):
    """An executable file in the task's working folder, like Hadoop's -files."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.configMapKeyRef) != has(self.url)",
                "'file ' + self.name + ': set exactly one of configMapKeyRef and url'",
            ),
            rule("self.name != '.' && self.name != '..'", "a file's name cannot be . or .."),
        )
    )
    name: Key = Field(description="Name in the working folder, without slashes.")
    config_map_key_ref: KeyRef | None = None
    url: Url | None = None


class EnvVarSource(Model):
    """Source of an environment variable's value."""

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


class Toleration(Model):
    """A Kubernetes toleration."""

    key: str | None = Field(default=None, max_length=316)
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = Field(default=None, max_length=63)
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = Field(default=None, ge=0)


class MRJobSpec(Life, TemplateFields, StepFields):
    """Desired state of the job. Most fields are immutable after creation."""

    model_config = ConfigDict(
        json_schema_extra=with_immutability(
            *spec_step_rules,
            rule(
                "(has(self.storage) && has(self.storage.s3)) || !(self.output.startsWith('s3://') || "
                "self.input.exists(url, url.startsWith('s3://')) || "
                "(has(self.files) && self.files.exists(file, has(file.url) && file.url.startsWith('s3://'))))",
                "s3:// URLs need spec.storage.s3: set endpointURL and secretRef there",
            ),
            *volume_rules,
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
        default=None, description="Queue of the job. Absent: the namespace's default queue, or that of the chart."
    )
    image: str | None = Field(
        default=None,
        min_length=1,
        max_length=512,
        description="Image with boathouse-task and the job's commands. Absent: the operator's task image.",
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    input: list[Url] = Field(
        min_length=1,
        max_length=64,
        description="URLs of files, folders (recursive, without names _* and .*) or globs.",
        json_schema_extra=ATOMIC,
    )
    output: Url = Field(
        description="URL of a new folder. Output files are part-00000 and so on; _SUCCESS is written last."
    )
    steps: list[Step] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_STEPS,
        description="Several map and reduce steps; each reads the output of the previous step. mapper, combiner and "
        "reducer in spec define a single step.",
        json_schema_extra=ATOMIC,
    )
    input_format: Literal["TextInputFormat", "CombineTextInputFormat"] = Field(
        default="TextInputFormat",
        description="CombineTextInputFormat: a map reads several small files, up to splitMaxSize.",
    )
    output_compression: Literal["gzip", "bzip2", "zstd"] | None = Field(
        default=None, description="Compression of output files, named part-00000.gz, .bz2 or .zst. Absent: none."
    )
    max_record_bytes: RecordSize = Field(
        default="16Mi",
        description="Maximum length of a line; a longer line fails the job. A task needs a few times this memory.",
    )
    uber: Uber | None = Field(default=None, description="If present, even empty, small steps run in one pod.")
    split_max_size: SplitSize = Field(default="64Mi", description="Like mapreduce.input.fileinputformat.split.maxsize.")
    files: list[File] | None = Field(
        default=None,
        max_length=64,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    env: list[EnvVar] | None = Field(
        default=None,
        max_length=128,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            **rules(at_most_bytes("self.map(e, bytes(e.name + (has(e.value) ? e.value : '')))", MAX_ENV_BYTES, "env")),
        },
    )
    storage: Storage | None = None
    node_selector: dict[str, Annotated[str, Field(max_length=63)]] | None = Field(
        default=None, max_length=32, json_schema_extra=rules(SHORT_KEYS)
    )
    tolerations: list[Toleration] | None = Field(default=None, max_length=32, json_schema_extra=ATOMIC)
