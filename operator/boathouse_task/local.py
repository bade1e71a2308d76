"""`boathouse-task local`: run a whole job on this machine with the code of the task pods."""

import argparse
import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from boathouse_task import compression, contract, errors, key_fields, processes, runner, uber_task
from boathouse_task.environment import Environment, Layout
from boathouse_task.storage import Storage


class JobFailed(Exception):  # noqa: N818 - it is what happened
    """A task of the job failed."""

    def __init__(self, task: str, result: contract.TaskResult) -> None:
        super().__init__(f"{task}: {result.reason}: {result.message}")
        self.result = result


def job_spec(
    *,
    inputs: Sequence[str],
    output: str,
    mapper: Sequence[str] | None,
    combiner: Sequence[str] | None = None,
    reducer: Sequence[str] | None = None,
    reduces: int = 1,
    **more: object,
) -> contract.TaskSpec:
    """Return the parameters of a new job's setup task, from which the others follow; `more`: fields of `TaskSpec`."""
    uid = str(uuid.uuid4())
    fields: dict[str, object] = {
        "job_uid": uid,
        "job_name": "local",
        "namespace": "local",
        "task_type": contract.TaskType.SETUP,
        "input_urls": list(inputs),
        "output_url": output.rstrip("/"),
        "work_url": f"{output.rstrip('/')}/_temporary/boathouse-{uid}",
        "mapper": list(mapper) if mapper else None,
        "combiner": list(combiner) if combiner else None,
        "reducer": list(reducer) if reducer else None,
        "reduces": reduces if reducer else 0,
        **more,
    }
    return msgspec.convert(fields, contract.TaskSpec)


Listener = Callable[[str, contract.TaskResult], None]  # gets the name and the result of each task


def run_job(
    spec: contract.TaskSpec, environment: Environment, on_result: Listener = lambda _task, _result: None
) -> contract.TaskResult:
    """Run the setup task of `spec` and the tasks that follow, one after another; return the commit's result.

    Raises JobFailed if a task failed. A job that fails leaves no files.
    """
    try:
        result = run_task(spec, environment, on_result)
        for order in uber_task.orders(spec, _plan(spec, environment).splits):
            result = run_task(order, environment, on_result)
    except (JobFailed, KeyboardInterrupt):
        with contextlib.suppress(JobFailed):
            run_task(msgspec.structs.replace(spec, task_type=contract.TaskType.CLEANUP), environment, on_result)
        raise
    return result


def run_task(order: contract.TaskSpec, environment: Environment, on_result: Listener) -> contract.TaskResult:
    """Run a task in a folder of its own in `work_path`. Raises JobFailed if it failed."""
    number = f"{order.task_type.value}-{order.index}"
    folder = environment.work_path / number
    try:
        here = dataclasses.replace(environment, work_path=folder, pod_uid=uuid.uuid4().hex)
        result = runner.run(order, here, processes.Processes())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    on_result(number, result)
    if not result.succeeded:
        raise JobFailed(number, result)
    return result


def _plan(spec: contract.TaskSpec, environment: Environment) -> contract.Plan:
    storage = Storage(spec.s3, environment.variables, part_bytes=environment.part_bytes, hdfs_addresses=spec.hdfs)
    return msgspec.json.decode(storage.read(Layout(spec).plan), type=contract.Plan)


def counter_lines(values: contract.Counters) -> Iterator[str]:
    """Yield the counters in the format that Hadoop prints at a job's end."""
    for group in sorted(values):
        yield f"\t{group}"
        for name, value in sorted(values[group].items()):
            yield f"\t\t{name}={value}"


_SIZE = re.compile(r"(\d+)(Ki|Mi|Gi)?")
_UNITS = {None: 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
_COMBINE = "CombineTextInputFormat"
_ARCHIVE_BYTES = 1024**3


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its options to the program's."""
    job = commands.add_parser(
        "local",
        help="run a whole MapReduce job on this machine, with the code of the task pods",
        description="Runs a job of Hadoop Streaming's kind on this machine, one task after another, by the code that"
        " runs in the task pods. Options mean what the fields of an MRJob mean.",
        epilog="Example: boathouse-task local --input books/ --output /tmp/counts --mapper 'python3 mapper.py' "
        "--reducer 'python3 reducer.py' --file mapper.py --file reducer.py --reduces 2",
    )
    for title, options in _OPTIONS.items():
        group = job.add_argument_group(title)
        for flag, keywords in options:
            group.add_argument(flag, **keywords)


def run(options: argparse.Namespace) -> int:
    """Run the job; return the exit status."""
    spec = job_of(options)
    with tempfile.TemporaryDirectory(prefix="boathouse-") as folder:
        try:
            here = Environment(work_path=Path(folder), memory_limit_bytes=options.memory, variables=os.environ)
            result = run_job(spec, here, _print_result)
        except JobFailed as failed:
            return runner.exit_status(failed.result)
    errors.say(
        f"the output is {spec.output_url}, {result.bytes_total} bytes\n" + "\n".join(counter_lines(result.counters))
    )
    return contract.EXIT_SUCCEEDED


def job_of(options: argparse.Namespace) -> contract.TaskSpec:
    """Return the parameters of the job's setup task."""
    combines = options.input_format == _COMBINE
    return job_spec(
        inputs=[_url(text) for text in options.input],
        output=_url(options.output),
        mapper=shlex.split(options.mapper),
        combiner=shlex.split(options.combiner or ""),
        reducer=shlex.split(options.reducer or ""),
        reduces=options.reduces,
        files=[contract.FileSource(name=Path(path).name, path=str(Path(path).absolute())) for path in options.file],
        archives=[_archive(text) for text in options.archive],
        conf=dict(options.conf),
        is_exit_checked=not options.ignore_exit_code,
        combine_files=combines,
        keeps_returns=options.record_delimiter == contract.LF_ONLY,
        input_format=contract.InputFormat(
            type=contract.InputFormatType.TEXT if combines else contract.InputFormatType(options.input_format),
            record_delimiter=options.record_delimiter,
            lines_per_map=options.lines_per_map,
            key_value_separator=options.key_value_separator,
            ignore_key=options.map_input_ignore_key,
            field_separator=options.map_input_field_separator,
        ),
        partitioner=contract.Partitioner(
            type=options.partitioner,
            options=options.partitioner_options,
            key_field_separator=options.key_field_separator,
            num_key_fields=options.key_fields,
            field_separator=options.map_output_field_separator,
            comparator_options=options.comparator_options,
        ),
        reduce_fields=contract.ReduceFields(
            input_separator=options.reduce_input_field_separator,
            output_separator=options.reduce_output_field_separator,
            num_output_key_fields=options.reduce_output_key_fields,
        ),
        output_format=contract.OutputFormat(
            separator=options.output_separator, key_only=options.key_only_output, lazy=options.lazy_output
        ),
        output_compression=options.output_compression,
        split_max_bytes=options.split_size,
        s3=contract.S3Config(endpoint_url=options.endpoint_url, region=options.region),
    )


def _print_result(task: str, result: contract.TaskResult) -> None:
    seconds = (result.timings[-1].end_ms - result.timings[0].start_ms) / 1000 if result.timings else 0.0
    failed = f"{task} failed: {result.reason}: {result.message}\n{result.stderr_tail}".rstrip("\n")
    errors.say(f"{task} done in {seconds:.1f} s" if result.succeeded else failed)


def _url(text: str) -> str:
    return text if "://" in text else f"file://{Path(text).absolute()}"


def _archive(text: str) -> contract.ArchiveSource:
    path, _, name = text.partition("#")
    return contract.ArchiveSource(name=name or Path(path).name, url=_url(path), max_bytes=_ARCHIVE_BYTES)


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no property: write KEY=VALUE")
    return key, value


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 64Mi")
    return int(match[1]) * _UNITS[match[2]]


_Option = tuple[str, dict[str, Any]]


def _option(flag: str, text: str, **keywords: Any) -> _Option:
    return flag, {"help": text, **keywords}


def _several(flag: str, text: str, **keywords: Any) -> _Option:
    return _option(flag, f"{text}; may be repeated", action="append", **keywords)


def _separator(flag: str, text: str) -> _Option:
    return _option(flag, f"{text} (default: TAB)", metavar="TEXT", default="\t")


def _number(flag: str, text: str, kind: Callable[[str], int] = _count) -> _Option:
    return _option(flag, f"{text} (default: 1)", type=kind, metavar="N", default=1)


_OPTIONS: Mapping[str, Sequence[_Option]] = {
    "commands": [
        _option("--mapper", "command that reads lines and writes KEY<TAB>VALUE lines", required=True),
        _option("--combiner", "command that reads and writes sorted KEY<TAB>VALUE lines inside the map task"),
        _option(
            "--reducer",
            "command that reads sorted KEY<TAB>VALUE lines (default: none, the mapper's output is the result)",
        ),
        _number("--reduces", "number of reduce tasks", int),
        _several("--file", "executable file to copy to the commands' working folder", default=[]),
        _several(
            "--archive",
            ".zip, .jar, .tar, .tar.gz or .tgz to unpack to the folder NAME (default: the file's name) of the working "
            "folder",
            default=[],
            metavar="PATH[#NAME]",
        ),
        _several(
            "--conf",
            "property for the environment of the commands: my.name is the variable my_name",
            default=[],
            type=_property,
            metavar="KEY=VALUE",
        ),
        _option("--ignore-exit-code", "a command may end with another exit code than 0", action="store_true"),
    ],
    "input": [
        _several(
            "--input", "file, folder or glob, as a path or URL (s3://, hdfs://HOST:PORT/, file:///)", required=True
        ),
        _option(
            "--input-format",
            "default: TextInputFormat",
            choices=[*contract.InputFormatType, _COMBINE],
            default=contract.InputFormatType.TEXT.value,
        ),
        _option(
            "--record-delimiter",
            "text that ends a record; LF: only LF ends a line, of commands too (default: LF, CR and CRLF)",
            metavar="TEXT",
            default="",
        ),
        _number("--lines-per-map", "of NLineInputFormat"),
        _separator("--key-value-separator", "of KeyValueTextInputFormat"),
        _option(
            "--map-input-ignore-key",
            "whether the mapper reads values only (default: with TextInputFormat)",
            action=argparse.BooleanOptionalAction,
        ),
        _separator("--map-input-field-separator", "between key and value that the mapper reads"),
        _option("--split-size", "maximum split size (default: 64Mi)", type=_size, metavar="SIZE", default="64Mi"),
    ],
    "keys": [
        _option(
            "--partitioner", "default: hash", choices=[key_fields.HASH, key_fields.KEY_FIELD], default=key_fields.HASH
        ),
        _option("--partitioner-options", "such as --partitioner-options=-k1,2", default="", metavar="TEXT"),
        _option("--comparator-options", "such as --comparator-options=-k2,2nr (default: by bytes)", metavar="TEXT"),
        _separator("--key-field-separator", "separator of the key fields in these options"),
        _separator("--map-output-field-separator", "separator of the mapper's fields"),
        _number("--key-fields", "number of the mapper's fields that are the key"),
        _separator("--reduce-input-field-separator", "after the key that the reducer reads"),
        _separator("--reduce-output-field-separator", "separator of the reducer's fields"),
        _number("--reduce-output-key-fields", "as --key-fields, of the reducer"),
    ],
    "output": [
        _option("--output", "folder that does not exist yet, as a path or URL", required=True),
        _separator("--output-separator", "between key and value in output files"),
        _option(
            "--key-only-output",
            "write lines as the command wrote them, without a TAB at the end of those that have none",
            action="store_true",
        ),
        _option("--lazy-output", "write no output file without a line", action="store_true"),
        _option("--output-compression", "default: none", choices=[*compression.WRITTEN], default=""),
    ],
    "this machine": [
        _option(
            "--memory", "memory limit of a task; sorting uses about half (default: 512Mi)", type=_size, default="512Mi"
        ),
        _option(
            "--endpoint-url",
            "S3 endpoint; the keys are in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
        ),
        _option("--region", "S3 region (default: us-east-1)", default="us-east-1"),
    ],
}
"""Options by the title of their group in the help."""
