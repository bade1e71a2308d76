"""Spec of an MRJob: a MapReduce job with Hadoop Streaming's contract and a pod for each task attempt."""

from typing import Final, Literal

from pydantic import Field

from boathouse.resources import base
from boathouse.resources.mrjob.formats import Formats, format_rules
from boathouse.resources.mrjob.hadoop import DataUrl, HadoopFields, cluster_rules, url_rules, volume_rules
from boathouse.resources.mrjob.steps import MAX_STEPS, Step, StepFields, Uber, spec_step_rules
from boathouse.resources.pod_environment import Environment, KeyRef, Storage
from boathouse.resources.pod_template import NodeLabels, TemplateFields, Tolerations

ALWAYS_MUTABLE: Final = frozenset({"suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "cleanUp"})
"""Fields that are also mutable in a batch/Job, and `cleanUp`."""
MUTABLE_WHILE_SUSPENDED: Final = frozenset({"queue", "nodeSelector", "tolerations", "podTemplate"})
"""Fields that queueing systems set when they admit a job. While it is suspended no pod with the old values exists."""


class Life(base.Model):
    """Suspension, deadlines and timeouts of a job."""

    suspend: bool = Field(
        default=False,
        description="Suspends the job, like batch/Job: running pods are deleted, results of finished tasks are kept.",
    )
    active_deadline_seconds: int | None = base.optional(
        "The job fails this long after status.startTime, which a resume resets.", ge=1, le=10 * 365 * 86400
    )
    ttl_seconds_after_finished: int | None = base.optional(
        "The job, its pods and their logs are deleted this many seconds after it finished. Its "
        "output is kept. Absent: the job is kept.",
        ge=0,
        le=10 * 365 * 86400,
    )
    clean_up: Literal["OnEnd", "OnDelete", "Never"] = Field(
        default="OnEnd",
        description="When a task removes the work folder (OUTPUT/_temporary/boathouse-UID) of a job that did not "
        "succeed. OnEnd: when it fails, before it expires. OnDelete: when it is deleted; a finalizer waits for this at "
        "most 10 minutes. Never: the folder is kept. A job that succeeds leaves no work folder.",
    )
    task_timeout_seconds: int = Field(
        default=600,
        ge=0,
        le=30 * 86400,
        description="An attempt fails if its command neither reads, writes nor reports for this long, like "
        "mapreduce.task.timeout. 0: never.",
    )
    slow_start_completed_maps_percent: int = Field(
        default=100,
        ge=0,
        le=100,
        description="Reduces start when this share of the maps is done, like the fraction "
        "mapreduce.job.reduce.slowstart.completedmaps. 100: after the last map.",
    )


MAX_MAPS = 40_000
"""With this many tasks, bitmaps and attempts fit into the 32 KiB of a status."""


class File(base.Model):
    """An executable file in the task's working folder, like Hadoop's -files."""

    model_config = base.checked(
        base.rule(
            "has(self.configMapKeyRef) != has(self.url)",
            "'file ' + self.name + ': set exactly one of configMapKeyRef and url'",
        ),
        base.rule("self.name != '.' && self.name != '..'", "a file's name cannot be . or .."),
    )
    name: base.Key = Field(description="Name in the working folder, without slashes.")
    config_map_key_ref: KeyRef | None = None
    url: base.Url | None = base.optional("URL of the file.")


class MRJobSpec(Life, TemplateFields, Formats, StepFields, HadoopFields):
    """Desired state of the job. Most fields are immutable after creation."""

    model_config = base.spec_config(
        *spec_step_rules,
        *url_rules,
        *cluster_rules,
        *volume_rules,
        *format_rules,
        always_mutable=ALWAYS_MUTABLE,
        mutable_while_suspended=MUTABLE_WHILE_SUSPENDED,
    )
    queue: base.DnsLabel | None = base.optional(
        "Queue of the job. Absent: the namespace's default queue, or that of the chart."
    )
    image: str | None = base.optional(
        "Image with boathouse-task and the job's commands. Absent: the operator's task image.",
        min_length=1,
        max_length=512,
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
        json_schema_extra=base.ATOMIC,
    )
    output: DataUrl = Field(
        default_factory=str,
        description="URL of a new folder. Output files are part-00000 and so on; _SUCCESS is written last.",
    )
    steps: list[Step] | None = base.optional(
        "Several map and reduce steps; each reads the output of the previous step. mapper, combiner and "
        "reducer in spec define a single step.",
        min_length=1,
        max_length=MAX_STEPS,
        json_schema_extra=base.ATOMIC,
    )
    max_record_bytes: base.RecordSize = Field(
        default="16Mi",
        description="Maximum length of a line; a longer line fails the job. A task needs a few times this memory.",
    )
    uber: Uber | None = base.optional("If present, even empty, small steps run in one pod.")
    probing: Literal["IfUnknown", "Never"] = Field(
        default="IfUnknown",
        description="IfUnknown: with a profile that orders jobs by size, a probe runs the job's commands once more on "
        "a sample of its input, if the job's size is unknown. It writes no output. Never: the job is not probed.",
    )
    split_max_size: base.SplitSize = Field(
        default="64Mi", description="Like mapreduce.input.fileinputformat.split.maxsize."
    )
    files: list[File] | None = base.optional(
        "Files in the working folder of tasks.", max_length=64, json_schema_extra=base.map_list("name")
    )
    env: Environment | None = base.optional("Variables of the commands.")
    storage: Storage | None = None
    node_selector: NodeLabels | None = base.optional("Labels that nodes of the pods must have.")
    tolerations: Tolerations | None = base.optional("Taints of nodes that the pods tolerate.")
