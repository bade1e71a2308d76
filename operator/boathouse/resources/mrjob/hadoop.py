"""Fields of an MRJob that runs on an MRCluster, and the rules of a job's URLs, which agree with its storage."""

from typing import Annotated, Final

from pydantic import Field
from pydantic.alias_generators import to_camel

from boathouse.resources import base
from boathouse.resources.base import ATOMIC, DnsLabel, HadoopSettings, Model, arguments, holds, optional, rule, rules
from boathouse.resources.mrjob.formats import Formats
from boathouse.resources.mrjob.steps import Argument, StepFields
from boathouse_task import contract

_OWN_FILES: Final = f"file://{contract.FILES_PATH}/"
IS_OWN: Final = f"startsWith('{_OWN_FILES}')"
"""Whether a URL is that of a file of the job itself, which tasks mount."""
_FILE = "startsWith('file://')"
_ON_VOLUME = "startsWith('file://' + self.storage.volume.mountPath + '/')"
_INPUT = "(has(self.input) ? self.input : [])"
_OUTPUT = "(has(self.output) ? self.output : '')"
_HAS_VOLUME = "(has(self.storage) && has(self.storage.volume))"
volume_rules = (
    rule(
        f"{_HAS_VOLUME} || !({_OUTPUT}.{_FILE} || {_INPUT}.exists(url, url.{_FILE} && !url.{IS_OWN}))",
        "file:/// URLs need spec.storage.volume: set claimName there",
    ),
    rule(
        f"!{_HAS_VOLUME} || !{_OUTPUT}.{_FILE} || {_OUTPUT}.{_ON_VOLUME}",
        "output must lie on the volume: begin it with file:// and spec.storage.volume.mountPath",
    ),
    rule(
        f"!{_HAS_VOLUME} || {_INPUT}.all(url, !url.{_FILE} || url.{IS_OWN} || url.{_ON_VOLUME})",
        "input must lie on the volume: begin it with file:// and spec.storage.volume.mountPath",
    ),
    rule(
        f"{_INPUT}.all(url, !url.{IS_OWN} || (has(self.files) && "
        f"self.files.exists(file, has(file.configMapKeyRef) && url == '{_OWN_FILES}' + file.name)))",
        "an input below file:///files is one of spec.files: write file:///files/NAME, and name its ConfigMap in the "
        "configMapKeyRef of that file",
    ),
)

_CLUSTER: Final = "hdfs://[a-z]([-a-z0-9]*[a-z0-9])?/"

DataUrl = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1024,
        json_schema_extra=rules(
            rule(
                f"self.matches('^(s3a?://|file:///|/|{_CLUSTER})')",
                "'\"' + self + '\" has no scheme that tasks can read: write s3://BUCKET/PATH (or file:///PATH), or "
                "hdfs://CLUSTER/PATH for the HDFS of an MRCluster of this namespace'",
            ),
            rule(r"!self.matches('[\\x00-\\x1f\\x7f]')", "a URL has no control characters: remove them"),
        ),
    ),
]


class ClusterRef(Model):
    """An MRCluster in the job's namespace."""

    name: DnsLabel = Field(description="Name of the MRCluster.")


_Arguments = Annotated[list[Argument], Field(max_length=256, json_schema_extra=arguments("in total"))]


class Jar(Model):
    """A program of Hadoop."""

    url: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            json_schema_extra=holds(
                f"self.matches('^(s3://|local:///|{_CLUSTER})[^\\\\x00-\\\\x20\\\\x7f]+$')",
                "'\"' + self + '\" is not the URL of a jar: write s3://BUCKET/PATH, hdfs://CLUSTER/PATH, or "
                "local:///PATH for a file in the cluster\\'s image'",
            ),
        ),
    ] = Field(description="The jar: s3://BUCKET/PATH, hdfs://CLUSTER/PATH, or local:///PATH in the cluster's image.")
    main_class: base.MainClass | None = optional("Absent: that of the jar's manifest.")
    arguments: _Arguments | None = optional("Arguments of the main class.")


_Archive = Annotated[str, Field(max_length=1024, pattern=r"^(s3a|hdfs)://[^, #]+(#[-._a-zA-Z0-9]+)?$")]
_Archives = Annotated[list[_Archive], Field(max_length=64, json_schema_extra=ATOMIC)]


class HadoopOptions(Model):
    """Options of a job on an MRCluster."""

    settings: HadoopSettings | None = optional("Settings of the job; those that Boathouse sets are ignored.")
    archives: _Archives | None = optional("Unpacked in the working folder of tasks, like -archives: URL or URL#NAME.")


class HadoopFields(Model):
    """Fields of a spec for a job on an MRCluster."""

    cluster_ref: ClusterRef | None = optional(
        "Runs the job on this MRCluster of the namespace, by Hadoop Streaming or from a jar. Absent: "
        "Boathouse runs each task in a pod."
    )
    jar: Jar | None = optional("With clusterRef: a program that reads and writes by itself.")
    hadoop: HadoopOptions | None = optional("With clusterRef.")


_OF_COMMANDS: Final = (
    *("input", "output", "steps"),
    *map(to_camel, StepFields.model_fields),
    *(to_camel(name) for name, field in Formats.model_fields.items() if field.default is None and name != "conf"),
)
_JAR_LEAVES_OUT: Final = " || ".join(f"has(self.{field})" for field in _OF_COMMANDS)
_JAR_HAS_DEFAULTS: Final = (
    "self.inputFormat == 'TextInputFormat' && !self.keyOnlyOutput && !self.lazyOutput && self.nonZeroExitIsFailure"
)
_NATIVE_URL: Final = "matches('^(s3|file|hdfs)://')"
_HADOOP_URL: Final = f"matches('^(s3a://|/|{_CLUSTER})')"

url_rules = (
    rule("has(self.jar) || (has(self.input) && has(self.output))", "spec.input and spec.output are missing: set both"),
    rule(
        f"has(self.clusterRef) || ({_INPUT}.all(url, url.{_NATIVE_URL}) && "
        f"(!has(self.output) || self.output.{_NATIVE_URL}))",
        "a URL has no scheme that tasks can read: write s3://BUCKET/PATH (or file:///PATH), or hdfs://CLUSTER/PATH; "
        "/PATH and s3a://BUCKET/PATH are for jobs with clusterRef",
    ),
    rule(
        f"!has(self.clusterRef) || ({_INPUT}.all(url, url.{_HADOOP_URL}) && "
        f"(!has(self.output) || self.output.{_HADOOP_URL}))",
        "a job with clusterRef reads and writes /PATH, hdfs://CLUSTER/PATH or s3a://BUCKET/PATH: change input or "
        "output, or remove clusterRef",
    ),
    rule(
        "(has(self.storage) && has(self.storage.s3)) || "
        f"!((has(self.output) && self.output.startsWith('s3://')) || {_INPUT}.exists(url, url.startsWith('s3://')) || "
        "(has(self.jar) && self.jar.url.startsWith('s3://')) || "
        "(has(self.files) && self.files.exists(file, has(file.url) && file.url.startsWith('s3://'))) || "
        "(has(self.archives) && self.archives.exists(archive, archive.url.startsWith('s3://'))))",
        "s3:// URLs need spec.storage.s3: set endpointURL and secretRef there",
    ),
    rule(
        "has(self.clusterRef) || !has(self.input) || !has(self.output) || self.input.size() == 0 || "
        f"self.input[0].{IS_OWN} || "
        "self.output.split(':')[0] == self.input[0].split(':')[0]",
        "input and output must have the same scheme: tasks read and write one kind of storage",
    ),
    rule(
        f"!has(self.output) || !{_INPUT}.exists(url, url == self.output)",
        "output is also an input: choose an output URL that does not exist yet",
    ),
)
cluster_rules = (
    rule(
        "has(self.clusterRef) || (!has(self.jar) && !has(self.hadoop))",
        "spec.jar and spec.hadoop are for jobs with clusterRef: name an MRCluster there, or remove them",
    ),
    rule(
        "!has(self.clusterRef) || !(has(self.uber) || has(self.podTemplate) || "
        "(has(self.storage) && has(self.storage.volume)))",
        "a job with clusterRef has no pods of its own: remove uber, podTemplate and storage.volume",
    ),
    rule(
        "!has(self.jar) || !has(self.conf)",
        "spec.conf is for commands: write the settings of a job with jar to spec.hadoop.settings",
    ),
    rule(
        "!has(self.clusterRef) || !has(self.recordDelimiter) || self.recordDelimiter != 'LF'",
        "recordDelimiter LF is for tasks of Boathouse, Hadoop ends the lines of commands at CR too: remove it",
    ),
    rule(
        "!has(self.clusterRef) || !has(self.archives)",
        "a job with clusterRef unpacks spec.hadoop.archives: name them there",
    ),
    rule(
        "!has(self.clusterRef) || !has(self.steps) || self.steps.size() == 1",
        "a job with clusterRef has one step: create a job for each",
    ),
    rule(
        f"!has(self.jar) || (!({_JAR_LEAVES_OUT}) && {_JAR_HAS_DEFAULTS})",
        "a job with jar gets its input, output and commands by jar.arguments: remove input, output, mapper, reducer, "
        "steps and their settings",
    ),
)
