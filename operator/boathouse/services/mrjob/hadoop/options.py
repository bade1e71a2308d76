"""The settings (`SETTINGS`) and options (`arguments`) of Hadoop that carry out a job's spec. Pure.

A value that is Hadoop's default is left to the cluster.
"""

import dataclasses
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from boathouse.services import hadoop
from boathouse.services.mrjob.model import MIB, Job, Stage, Step
from boathouse.services.mrjob.on_cluster import TAGS, open_settings
from boathouse_task import cluster_contract, contract

STREAMING: Final = "org.apache.hadoop.streaming.HadoopStreaming"
RUN_JAR: Final = "org.apache.hadoop.util.RunJar"
FILES: Final = f"{contract.WORK_PATH}/{cluster_contract.FILES_FOLDER}"
JAR_FILE: Final = "boathouse-job.jar"
SCRIPTS: Final[Mapping[str, str]] = {part: f"boathouse-{part}" for part in ("mapper", "combiner", "reducer")}
"""Names of the scripts in the tasks' working folder, by the option of Hadoop Streaming."""
CODECS: Final[Mapping[str, str]] = {
    "gzip": "org.apache.hadoop.io.compress.GzipCodec",
    "bzip2": "org.apache.hadoop.io.compress.BZip2Codec",
    "zstd": "org.apache.hadoop.io.compress.ZStandardCodec",
    "deflate": "org.apache.hadoop.io.compress.DefaultCodec",
    "snappy": "org.apache.hadoop.io.compress.SnappyCodec",
}
PARTITIONERS: Final[Mapping[str, str]] = {
    "KeyFieldBasedPartitioner": "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
}
COMPARATOR: Final = "org.apache.hadoop.mapred.lib.KeyFieldBasedComparator"
INPUT_FORMATS: Final[Mapping[str, str]] = {
    "CombineTextInputFormat": "org.apache.hadoop.mapred.lib.CombineTextInputFormat",
    "NLineInputFormat": "org.apache.hadoop.mapred.lib.NLineInputFormat",
    "KeyValueTextInputFormat": "org.apache.hadoop.mapred.KeyValueTextInputFormat",
}
NAME: Final = "mapreduce.job.name"
_LINES: Final = "keyonlytext"
"""The lines are the output as they are. By default streaming adds a TAB to one that has none."""
_LOCAL: Final = "local://"
_HDFS_URL: Final = re.compile("hdfs://([a-z](?:[-a-z0-9]*[a-z0-9])?)/")
_IDENTITY: Final = ("cat",)


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """A field of the spec that is a setting of Hadoop, by its name there. None and Hadoop's default are not set."""

    key: str
    field: str
    value: Callable[[Job, Step], object]
    default: str = ""

    def text(self, job: Job, step: Step) -> str | None:
        """Return the value as Hadoop reads it; None if it is not set."""
        value = self.value(job, step)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return None if value is None or text == self.default else text


def _job(path: str) -> Callable[[Job, Step], object]:
    get = operator.attrgetter(path)
    return lambda job, _step: get(job)


def _step(path: str) -> Callable[[Job, Step], object]:
    """Return a function for an attribute of the step, which is None of a reducer that is absent."""
    get = operator.attrgetter(path)
    return lambda _job, step: None if path.startswith("reducer.") and step.reducer is None else get(step)


def _memory_mib(stage: Stage | None) -> int | None:
    return -(-stage.resources.memory_bytes // MIB) if stage else None


def _vcores(stage: Stage | None) -> int | None:
    return -(-stage.resources.cpu_milli // 1000) if stage else None


def _ignores_key(job: Job, _: Step) -> bool | None:
    is_combined = job.spec.input_format == "CombineTextInputFormat"
    return True if job.spec.map_input_ignore_key is None and is_combined else job.spec.map_input_ignore_key


def _lines(job: Job, *, is_last: bool) -> str | None:
    return _LINES if job.spec.key_only_output and is_last else None


_COMPRESS: Final = "mapreduce.output.fileoutputformat.compress"
SETTINGS: Final = (
    Setting("mapreduce.job.reduces", "numReduceTasks", _step("reduces")),
    Setting("mapreduce.map.maxattempts", "mapper.maxAttempts", _step("mapper.max_attempts")),
    Setting("mapreduce.reduce.maxattempts", "reducer.maxAttempts", _step("reducer.max_attempts")),
    Setting(
        "mapreduce.map.failures.maxpercent", "mapper.failuresMaxPercent", _step("mapper.failures_max_percent"), "0"
    ),
    Setting(
        "mapreduce.reduce.failures.maxpercent", "reducer.failuresMaxPercent", _step("reducer.failures_max_percent"), "0"
    ),
    Setting("mapreduce.map.memory.mb", "mapper.resources", lambda _, step: _memory_mib(step.mapper), "512"),
    Setting("mapreduce.reduce.memory.mb", "reducer.resources", lambda _, step: _memory_mib(step.reducer), "512"),
    Setting("mapreduce.map.cpu.vcores", "mapper.resources", lambda _, step: _vcores(step.mapper), "1"),
    Setting("mapreduce.reduce.cpu.vcores", "reducer.resources", lambda _, step: _vcores(step.reducer), "1"),
    Setting("mapreduce.task.timeout", "taskTimeoutSeconds", lambda job, _: job.spec.task_timeout_seconds * 1000),
    Setting(
        "mapreduce.job.reduce.slowstart.completedmaps",
        "slowStartCompletedMapsPercent",
        lambda job, _: f"{job.spec.slow_start_completed_maps_percent / 100:g}",
    ),
    Setting("mapreduce.input.fileinputformat.split.maxsize", "splitMaxSize", _job("split_max_bytes")),
    Setting("mapreduce.input.fileinputformat.input.dir.recursive", "input", lambda _job, _step: True),
    Setting(_COMPRESS, "outputCompression", lambda job, _: bool(job.spec.output_compression), "false"),
    Setting(f"{_COMPRESS}.codec", "outputCompression", lambda job, _: CODECS.get(job.spec.output_compression or "")),
    Setting("textinputformat.record.delimiter", "recordDelimiter", _job("spec.record_delimiter")),
    Setting("mapreduce.input.lineinputformat.linespermap", "linesPerMap", _job("input_format.lines_per_map"), "1"),
    Setting(
        "mapreduce.input.keyvaluelinerecordreader.key.value.separator",
        "keyValueSeparator",
        _job("input_format.key_value_separator"),
        "\t",
    ),
    Setting("stream.map.input.ignoreKey", "mapInputIgnoreKey", _ignores_key),
    Setting("stream.map.input.field.separator", "mapInputFieldSeparator", _job("input_format.field_separator"), "\t"),
    Setting("stream.map.output.field.separator", "mapOutputFieldSeparator", _step("partitioner.field_separator"), "\t"),
    Setting("stream.num.map.output.key.fields", "numMapOutputKeyFields", _step("partitioner.num_key_fields"), "1"),
    Setting("stream.map.output", "keyOnlyOutput", lambda job, step: _lines(job, is_last=not step.reduces)),
    Setting("stream.reduce.output", "keyOnlyOutput", lambda job, step: _lines(job, is_last=step.reduces > 0)),
    Setting(
        "stream.reduce.input.field.separator", "reduceInputFieldSeparator", _step("reduce_fields.input_separator"), "\t"
    ),
    Setting(
        "stream.reduce.output.field.separator",
        "reduceOutputFieldSeparator",
        _step("reduce_fields.output_separator"),
        "\t",
    ),
    Setting(
        "stream.num.reduce.output.key.fields",
        "numReduceOutputKeyFields",
        _step("reduce_fields.num_output_key_fields"),
        "1",
    ),
    Setting("mapreduce.output.textoutputformat.separator", "outputSeparator", _job("output_format.separator"), "\t"),
    Setting("stream.non.zero.exit.is.failure", "nonZeroExitIsFailure", _job("spec.non_zero_exit_is_failure"), "true"),
    Setting(
        "mapreduce.map.output.key.field.separator",
        "mapOutputKeyFieldSeparator",
        _step("partitioner.key_field_separator"),
        "\t",
    ),
    Setting("mapreduce.partition.keypartitioner.options", "partitioner.options", _step("partitioner.options")),
    Setting(
        "mapreduce.job.output.key.comparator.class",
        "comparator",
        lambda _, step: COMPARATOR if step.partitioner.comparator_options else None,
    ),
    Setting("mapreduce.partition.keycomparator.options", "comparator.options", _step("partitioner.comparator_options")),
)
"""The settings of a streaming job."""


def hadoop_settings(job: Job, tag: str, clusters: Sequence[hadoop.ClusterFacts]) -> dict[str, str]:
    """Return the settings of any job for the client's files: those of its storage, the user's, and ours, which win."""
    given = open_settings(job.spec)
    return {
        **(hadoop.s3_settings(job.s3, hadoop.S3_PROVIDER) if job.s3 else {}),
        **given,
        **hadoop.name_services(clusters, given.get(hadoop.NAMESERVICES, "")),
        NAME: job.name,
        TAGS: tag,
    }


def names_in_arguments(job: Job) -> list[str]:
    """Return the clusters whose HDFS a program's arguments and the archives name."""
    words = (job.spec.jar.arguments or ()) if job.spec.jar is not None else ()
    return [name for text in (*words, *_archives(job)) for name in _HDFS_URL.findall(text)]


def _archives(job: Job) -> Sequence[str]:
    return (job.spec.hadoop and job.spec.hadoop.archives) or ()


def command(job: Job) -> list[str]:
    """Return class and arguments of the program that submits the job."""
    jar = job.spec.jar
    if jar is None:
        return [STREAMING, *arguments(job)]
    path = jar.url.removeprefix(_LOCAL) if jar.url.startswith(_LOCAL) else f"{FILES}/{JAR_FILE}"
    return [RUN_JAR, path, *([jar.main_class] if jar.main_class else ()), *(jar.arguments or ())]


def jar_file(job: Job) -> list[contract.FileSource]:
    """Return the file of a jar that is not in the cluster's image."""
    jar = job.spec.jar
    return [] if jar is None or jar.url.startswith(_LOCAL) else [contract.FileSource(name=JAR_FILE, url=jar.url)]


def scripts(job: Job) -> dict[str, list[str]]:
    """Return the commands of a streaming job by the names of their scripts."""
    step = job.steps[0]
    commands = {
        "mapper": step.mapper.command or _IDENTITY,
        "combiner": step.combiner,
        "reducer": step.reducer.command if step.reducer else None,
    }
    return {SCRIPTS[part]: list(argv) for part, argv in commands.items() if argv}


def arguments(job: Job) -> list[str]:
    """Return the arguments of Hadoop Streaming; its generic options come first."""
    step = job.steps[0]
    settings = {setting.key: setting.text(job, step) for setting in SETTINGS}
    names = [*scripts(job), *(file.name for file in job.spec.files or ())]
    words = [word for key, value in settings.items() if value is not None for word in ("-D", f"{key}={value}")]
    options = [
        ("-files", ",".join(f"file://{FILES}/{name}" for name in names)),
        ("-archives", ",".join(_archives(job))),
        ("-partitioner", PARTITIONERS.get(step.partitioner.type)),
        ("-inputformat", INPUT_FORMATS.get(job.spec.input_format)),
    ]
    words += [word for option in options if option[1] for word in option if word]
    words += ["-lazyOutput"] if job.spec.lazy_output else []
    words += [word for part, name in SCRIPTS.items() if name in names for word in (f"-{part}", name)]
    words += [word for url in job.spec.input for word in ("-input", url)]
    return [*words, "-output", job.spec.output]
