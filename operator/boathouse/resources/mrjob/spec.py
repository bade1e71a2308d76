"""Spec of an MRJob: a MapReduce job with Hadoop Streaming's contract and a pod for each task attempt.

The API server checks the spec's CEL rules.
"""

from typing import Literal

from pydantic import ConfigDict, Field

from boathouse.resources.base import (
    DnsLabel,
    Key,
    Model,
    RecordSize,
    SplitSize,
    Url,
    rule,
    rules,
)
from boathouse.resources.immutability import with_immutability
from boathouse.resources.mrjob.formats import Formats, format_rules
from boathouse.resources.mrjob.hadoop import DataUrl, HadoopFields, cluster_rules, url_rules
from boathouse.resources.mrjob.lifetime import ALWAYS_MUTABLE, MUTABLE_WHILE_SUSPENDED, Life
from boathouse.resources.mrjob.steps import ATOMIC, MAX_STEPS, Step, StepFields, Uber, spec_step_rules
from boathouse.resources.mrjob.storage import volume_rules
from boathouse.resources.pods.environment import Environment, KeyRef
from boathouse.resources.pods.storage import Storage
from boathouse.resources.pods.template import NodeLabels, TemplateFields, Tolerations

MAX_MAPS = 40_000
"""With this many tasks, bitmaps and attempts fit into the 32 KiB of a status."""


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
    url: Url | None = Field(default=None, description="URL of the file.")


class MRJobSpec(Life, TemplateFields, Formats, StepFields, HadoopFields):
    """Desired state of the job. Most fields are immutable after creation."""

    model_config = ConfigDict(
        json_schema_extra=with_immutability(
            *spec_step_rules,
            *url_rules,
            *cluster_rules,
            *volume_rules,
            *format_rules,
            always_mutable=ALWAYS_MUTABLE,
            mutable_while_suspended=MUTABLE_WHILE_SUSPENDED,
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
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="When the kubelet pulls the image."
    )
    input: list[DataUrl] = Field(
        default_factory=list,
        min_length=1,
        max_length=64,
        description="URLs of files, folders (recursive, without names _* and .*) or globs. file:///files/NAME is the "
        "file NAME of spec.files, if it is from a ConfigMap.",
        json_schema_extra=ATOMIC,
    )
    output: DataUrl = Field(
        default_factory=str,
        description="URL of a new folder. Output files are part-00000 and so on; _SUCCESS is written last.",
    )
    steps: list[Step] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_STEPS,
        description="Several map and reduce steps; each reads the output of the previous step. mapper, combiner and "
        "reducer in spec define a single step.",
        json_schema_extra=ATOMIC,
    )
    max_record_bytes: RecordSize = Field(
        default="16Mi",
        description="Maximum length of a line; a longer line fails the job. A task needs a few times this memory.",
    )
    uber: Uber | None = Field(default=None, description="If present, even empty, small steps run in one pod.")
    probing: Literal["IfUnknown", "Never"] = Field(
        default="IfUnknown",
        description="IfUnknown: with a profile that orders jobs by size, a probe runs the job's commands once more on "
        "a sample of its input, if the job's size is unknown. It writes no output. Never: the job is not probed.",
    )
    split_max_size: SplitSize = Field(default="64Mi", description="Like mapreduce.input.fileinputformat.split.maxsize.")
    files: list[File] | None = Field(
        default=None,
        max_length=64,
        description="Files in the working folder of tasks.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    env: Environment | None = Field(default=None, description="Variables of the commands.")
    storage: Storage | None = None
    node_selector: NodeLabels | None = Field(default=None, description="Labels that nodes of the pods must have.")
    tolerations: Tolerations | None = Field(default=None, description="Taints of nodes that the pods tolerate.")
