"""Environment of a task: its paths, memory, identity, the variables of its commands, and the job's folders."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from boathouse_task import compression, contract, locations

SUCCESS, TEMPORARY = "_SUCCESS", "_temporary"
OWNER = "owner-"  # prefix of ownership marks, followed by the generation
PART = "part-"


class Layout:
    """Paths of a step, from the task's URLs. Raises TaskError: InvalidURL."""

    def __init__(self, spec: contract.TaskSpec) -> None:
        self.output, self.work = locations.parse(spec.output_url), locations.parse(spec.work_url)
        self.temporary, self.success = self.output.child(TEMPORARY), self.output.child(SUCCESS)
        self.step, self.promoted = self.at_step(spec.step), self.work.child("promoted.json")
        self.commits, self.plan = self.step.child("_commit"), self.step.child("plan.json")
        self._part_suffix = compression.SUFFIXES[spec.output_compression] if spec.output_compression else ""

    def at_step(self, step: int) -> locations.Location:
        """Return a step's folder."""
        return self.work.child(f"s{step}")

    def data(
        self, task_type: contract.TaskType, index: int, attempt: int, step: locations.Location | None = None
    ) -> locations.Location:
        """Return the path of an attempt's data, in this step's folder or another."""
        return (step or self.step).child(f"attempts/{contract.attempt_name(task_type, index, attempt)}.data")

    def index(self, index: int, attempt: int) -> locations.Location:
        """Return the path of the index of a map attempt's data."""
        return self.step.child(f"attempts/{contract.attempt_name(contract.TaskType.MAP, index, attempt)}.index")

    def commit(self, task_type: contract.TaskType, index: int) -> locations.Location:
        """Return the path of a task's commit."""
        return self.commits.child(contract.task_name(task_type, index))

    def owner(self, generation: int) -> locations.Location:
        """Return the path of an ownership mark."""
        return self.temporary.child(f"{OWNER}{generation:05d}")

    def work_of(self, job_uid: str) -> locations.Location:
        """Return the work folder of a job with this output."""
        return self.temporary.child(f"boathouse-{job_uid}")

    def part(self, index: int) -> locations.Location:
        """Return the path of an output file."""
        return self.output.child(f"{PART}{index:05d}{self._part_suffix}")


_MIB = 1024 * 1024
DEFAULT_MEMORY_BYTES = 512 * _MIB  # memory limit if the environment has none
RUNTIME_BYTES = 48 * _MIB
"""Measured memory of this process without sorting: Python and obstore 30 MiB, windows and parts 10 to 16 MiB.

Python and hdfs-native need 19 MiB, and 35 MiB with a window of 8 MiB."""
COMMAND_SHARE = 0.5  # maximum share of sorting in the rest of the limit, which it shares with the user's command
TEMPORARY_FOLDER = "tmp"  # folder in `work_path` for the commands' TMPDIR
_OURS = ("BOATHOUSE_", "PYTHONUNBUFFERED")
"""Variables that commands do not get: Boathouse's settings, and PYTHONUNBUFFERED, which slows Python down."""
_NOT_IN_NAMES = re.compile("[^A-Za-z0-9]")
_LEAST_BUFFER_BYTES = 4 * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Paths, memory and identity of a task."""

    work_path: Path = Path(contract.WORK_PATH)  # writable folder for spills and the command's working folder
    token_path: Path = Path(contract.TOKEN_PATH)
    ca_path: Path = Path(contract.CA_PATH)
    termination_log_path: Path = Path(contract.TERMINATION_LOG_PATH)
    cgroup_path: Path = Path("/sys/fs/cgroup")  # folder of the container's cgroup
    memory_limit_bytes: int = DEFAULT_MEMORY_BYTES  # the container's limit
    buffer_bytes: int | None = None  # memory for sorting or merging; None: derived from the limit
    pod_name: str = ""
    pod_uid: str = ""  # distinguishes attempts with the same number
    node_name: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)  # environment of this process

    @property
    def sort_bytes(self) -> int:
        """Memory for sorting or merging in bytes: half of what the runtime itself does not need."""
        if self.buffer_bytes is not None:
            return self.buffer_bytes
        return max(_LEAST_BUFFER_BYTES, int((self.memory_limit_bytes - RUNTIME_BYTES) * COMMAND_SHARE))

    @property
    def window_bytes(self) -> int:
        """Size of a ranged read, of which two are in memory."""
        return max(_MIB // 2, min(8 * _MIB, self.memory_limit_bytes // 64))

    @property
    def part_bytes(self) -> int:
        """Size of a part of an upload. A few are in memory; S3 accepts at most 10,000 of at least 5 MiB."""
        return 8 * _MIB if self.memory_limit_bytes >= DEFAULT_MEMORY_BYTES else 5 * _MIB


def from_variables(variables: Mapping[str, str]) -> Environment:
    """Return the environment of a pod, from the variables that its builder sets."""
    limit = variables.get(contract.MEMORY_LIMIT_ENV, "")
    return Environment(
        memory_limit_bytes=int(limit) if limit.isdecimal() and int(limit) else DEFAULT_MEMORY_BYTES,
        pod_name=variables.get(contract.POD_NAME_ENV, ""),
        pod_uid=variables.get(contract.POD_UID_ENV, ""),
        node_name=variables.get(contract.NODE_NAME_ENV, ""),
        variables=variables,
    )


def command_variables(spec: contract.TaskSpec, inherited: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the environment of the user's commands: the pod's, and the job's settings as in Hadoop Streaming."""
    conf = {_NOT_IN_NAMES.sub("_", key): value for key, value in spec.conf.items() if value}  # Hadoop drops empty ones
    temporary = {"TMPDIR": str(folder.parent / TEMPORARY_FOLDER)}  # the root file system may be read-only
    inherited = {name: value for name, value in inherited.items() if not name.startswith(_OURS)}
    return {**conf, **temporary, **inherited, **_job_variables(spec, folder), **_task_variables(spec)}


def _job_variables(spec: contract.TaskSpec, folder: Path) -> dict[str, str]:
    variables = {
        "mapreduce_job_id": _job_id(spec),
        "mapred_job_id": _job_id(spec),
        "mapreduce_job_name": spec.job_name,
        "mapreduce_job_queuename": spec.queue or "default",
        "mapreduce_job_maps": str(spec.maps),
        "mapreduce_job_reduces": str(spec.reduces),
        "mapreduce_job_partitioner_class": spec.partitioner.type,
        "mapreduce_output_fileoutputformat_outputdir": spec.output_url,
        "mapreduce_task_output_dir": spec.work_url,
        "mapred_work_output_dir": spec.work_url,
        "mapreduce_job_local_dir": str(folder),
        "mapred_local_dir": str(folder),
        "stream_num_map_output_key_fields": str(spec.partitioner.num_key_fields),
        "stream_map_output_field_separator": spec.partitioner.field_separator,
        "mapreduce_map_output_key_field_separator": spec.partitioner.key_field_separator,
        "mapreduce_partition_keypartitioner_options": spec.partitioner.options,
        "mapreduce_partition_keycomparator_options": spec.partitioner.comparator_options or "",
        "stream_map_input_field_separator": spec.input_format.field_separator,
        "stream_reduce_input_field_separator": spec.reduce_fields.input_separator,
        "stream_reduce_output_field_separator": spec.reduce_fields.output_separator,
        "stream_num_reduce_output_key_fields": str(spec.reduce_fields.num_output_key_fields),
        "mapreduce_output_textoutputformat_separator": spec.output_format.separator,
    }
    commands = {"map": spec.mapper, "combine": spec.combiner, "reduce": spec.reducer}
    return variables | {f"stream_{kind}_streamprocessor": " ".join(argv) for kind, argv in commands.items() if argv}


def _task_variables(spec: contract.TaskSpec) -> dict[str, str]:
    is_map = spec.task_type is contract.TaskType.MAP
    task = f"{_job_id(spec).replace('job', 'task')}_{'m' if is_map else 'r'}_{spec.index:06d}"
    names = {
        ("mapreduce_task_id", "mapred_tip_id"): task,
        ("mapreduce_task_attempt_id", "mapred_task_id"): f"{task.replace('task', 'attempt')}_{spec.attempt - 1}",
        ("mapreduce_task_partition", "mapred_task_partition"): str(spec.index),
        ("mapreduce_task_ismap", "mapred_task_is_map"): "true" if is_map else "false",
    }
    if spec.split is not None:
        names |= {
            ("mapreduce_map_input_file", "map_input_file"): spec.split.url,
            ("mapreduce_map_input_start", "map_input_start"): str(spec.split.offset_bytes),
            ("mapreduce_map_input_length", "map_input_length"): str(spec.split.length_bytes),
        }
    return {name: value for both, value in names.items() for name in both}


def _job_id(spec: contract.TaskSpec) -> str:
    """Return the job's ID in Hadoop's form job_NUMBER_NUMBER, which scripts parse."""
    digits = re.fullmatch("[0-9a-f]+", spec.job_uid.replace("-", "")[:8])
    return f"job_{int(digits[0], 16) if digits else 0}_{spec.step + 1:04d}"
