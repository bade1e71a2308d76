"""Messages between the operator and the task pods: task parameters, results, reports, the split plan.

Both sides import this module, which only has values. msgspec encodes them as JSON with their Python names. Both sides
ignore unknown fields, so that an older runtime works with a newer operator.
"""

import base64
import enum
import hashlib
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from boathouse_task.formats import InputFormat, OutputFormat, ReduceFields

T = TypeVar("T")

TASK_ENV = "BOATHOUSE_TASK"
"""Variable with the JSON of `TaskSpec`."""
MEMORY_LIMIT_ENV = "BOATHOUSE_MEMORY_LIMIT_BYTES"
"""Variable with the container's memory limit (resourceFieldRef limits.memory), which sizes the sort buffer."""
POD_NAME_ENV = "BOATHOUSE_POD_NAME"
POD_UID_ENV = "BOATHOUSE_POD_UID"
NODE_NAME_ENV = "BOATHOUSE_NODE_NAME"

WORK_PATH = "/work"
"""The task's writable folder (emptyDir) with the command's working folder and the spills."""
FILES_PATH = "/files"
"""Mount path of the job's ConfigMap files."""
TOKEN_PATH = "/var/run/boathouse/token/token"  # noqa: S105 - a path, not a secret
CA_PATH = "/var/run/boathouse/ca/ca.crt"
TERMINATION_LOG_PATH = "/dev/termination-log"
TERMINATION_LOG_MAX_BYTES = 4096
"""The kubelet's limit of a container's termination message."""
REPORT_MAX_BYTES = 8192
ACKNOWLEDGEMENT_MAX_BYTES = 256
PLAN_POST_MAX_BYTES = 8 * 1024 * 1024
"""The progress endpoint's limits. 40,000 splits with random URLs need 1 to 2 MiB as a compressed plan."""
PLAN_MAX_BYTES = 24 * 1024 * 1024
"""Limit of the plan's JSON: 40,000 splits of 629 bytes each, of which at most 130 are not the URL."""
TOKEN_AUDIENCE = "boathouse.dev"  # noqa: S105 - the audience's name, not a secret

EXIT_SUCCEEDED = 0
EXIT_USER_ERROR = 10
"""An error in the job's input, output or command."""
EXIT_INFRASTRUCTURE = 20
"""An error of the storage, the disk or the cluster; another attempt may succeed."""
EXIT_TERMINATED = 143
"""Stopped by SIGTERM, as in shells."""


class TaskType(enum.StrEnum):
    """Types of task pods. An uber task runs the maps and reduces (and commit) of a small step in one pod.

    A cleanup task belongs to no step: it removes the files of a failed or deleted job. A probe runs the commands of a
    step on a sample of its input, and writes nothing to the job's output.
    """

    SETUP = "setup"
    MAP = "map"
    REDUCE = "reduce"
    UBER = "uber"
    COMMIT = "commit"
    CLEANUP = "cleanup"
    PROBE = "probe"


class Reason(enum.StrEnum):
    """Reason why a task failed, in CamelCase for conditions."""

    INPUT_NOT_FOUND = "InputNotFound"
    OUTPUT_EXISTS = "OutputExists"
    INVALID_URL = "InvalidURL"
    INVALID_SPEC = "InvalidSpec"
    COMMAND_NOT_FOUND = "CommandNotFound"
    FILE_NOT_FOUND = "FileNotFound"
    INVALID_ARCHIVE = "InvalidArchive"
    CORRUPT_INPUT = "CorruptInput"
    RECORD_TOO_LONG = "RecordTooLong"
    USER_COMMAND_FAILED = "UserCommandFailed"
    TASK_TIMEOUT = "TaskTimeout"
    OUT_OF_MEMORY = "OutOfMemory"
    OUT_OF_DISK = "OutOfDisk"
    ACCESS_DENIED = "AccessDenied"
    STORAGE_ERROR = "StorageError"
    STORE_NOT_EXCLUSIVE = "StoreNotExclusive"
    SHUFFLE_ERROR = "ShuffleError"
    COMMIT_MISSING = "CommitMissing"
    PLAN_TOO_LARGE = "PlanTooLarge"
    PROGRESS_UNAVAILABLE = "ProgressUnavailable"
    CANCELLED = "Cancelled"
    TERMINATED = "Terminated"
    INTERNAL_ERROR = "InternalError"


class OwnerState(enum.StrEnum):
    """State of the job that an ownership mark names, as known to the leader."""

    ACTIVE = "active"
    """The job may still write to its output."""
    ENDED = "ended"
    """The job has ended or was deleted, and none of its pods runs."""
    UNKNOWN = "unknown"
    """The leader cannot determine it yet: retry."""
    OUTSIDE = "outside"
    """The leader cannot determine it: the job is of another cluster, or of a namespace without operator."""


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Response of the leader to a setup task that found another job's ownership mark."""

    state: OwnerState
    detail: str = ""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """A map task's part of a file, with Hadoop's rules for lines that cross its borders."""

    url: str
    offset_bytes: int
    length_bytes: int
    """0 only for an empty file."""
    size_bytes: int
    """Size of the whole file."""
    locations: int = -1
    """Index into `Plan.location_sets`, -1 for none (object stores have none)."""
    combined: int = 0
    """0, or the number of small files in the split, whose `InputFile`s are a list in JSON at `url`."""


class InputFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole file of the input."""

    url: str
    size_bytes: int
    block_bytes: int = 0
    """Size of its blocks; 0 if its store has none."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All splits of a step's input. The index of a split in the list is that of its map."""

    splits: list[Split]
    location_sets: list[list[str]] = []
    """Names of the hosts that store a split, as the store says them."""
    bytes_total: int = 0


class FileSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An executable file `name` in the command's working folder, from a mounted `path` or from a `url`."""

    name: str
    path: str | None = None
    url: str | None = None


class ArchiveSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An archive (.zip, .jar, .tar, .tar.gz, .tgz) to unpack to the folder `name` in the command's working folder."""

    name: str
    url: str
    max_bytes: int
    """Maximum size of its files."""


class S3Config(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """S3 endpoint of the job.

    The keys are in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if they are temporary, AWS_SESSION_TOKEN; without keys
    requests are unsigned.
    """

    endpoint_url: str | None = None
    region: str = "us-east-1"


class HdfsAddress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Addresses of a cluster's NameNode, HOST:PORT: for clients, and for WebHDFS, which tells where blocks are."""

    name_node: str
    web_hdfs: str = ""
    """Empty: unknown."""


class Partitioner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Assignment of keys to reduces, with Hadoop's names and results."""

    type: str = "HashPartitioner"
    options: str = ""
    """mapreduce.partition.keypartitioner.options, such as `-k1,2`."""
    key_field_separator: str = "\t"
    """mapreduce.map.output.key.field.separator, of the key fields in the options of partitioner and comparator."""
    num_key_fields: int = 1
    """stream.num.map.output.key.fields: number of a line's fields that form its key."""
    field_separator: str = "\t"
    """stream.map.output.field.separator: separator of the fields of the mapper's lines, and of key and value. If it is
    not a TAB, the one after the key becomes a TAB for combiner and reducer."""
    comparator_options: str | None = None
    """mapreduce.partition.keycomparator.options, such as `-k2,2nr`: the order of the keys. None: by their bytes."""


PROBE_S = 600.0


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters of a task pod (environment variable `TASK_ENV`)."""

    job_uid: str
    job_name: str
    namespace: str
    task_type: TaskType
    work_url: str
    """OUTPUT/_temporary/boathouse-UID, without a slash at its end."""
    output_url: str
    step: int = 0
    """From 0; a later step's setup reads the output of the previous step, and the last writes the job's."""
    steps: int = 1
    index: int = 0
    attempt: int = 1
    input_urls: list[str] = []
    """Files, folders and globs, only for the first setup task."""
    previous_reduces: int = 0
    """Number of reduces of the previous step; 0 if it was map-only."""
    input_format: InputFormat = InputFormat()
    combine_files: bool = False
    """Whether small files share a split (like CombineTextInputFormat); between steps they always do."""
    split: Split | None = None
    """Of a map."""
    splits: list[Split] = []
    """All splits of the step for an uber task, the sampled ones for a probe."""
    sample_bytes: list[int] = []
    """Number of bytes that a probe reads of each of `splits`."""
    probe_s: float = PROBE_S
    """Time after which a probe reads no further split and reduces what it has."""
    maps: int = 0
    """0 in a setup task."""
    reduces: int = 0
    """0: a map-only job."""
    mapper: list[str] | None = None
    """None passes lines unchanged."""
    combiner: list[str] | None = None
    reducer: list[str] | None = None
    partitioner: Partitioner = Partitioner()
    reduce_fields: ReduceFields = ReduceFields()
    output_format: OutputFormat = OutputFormat()
    keeps_returns: bool = False
    """Whether only LF ends the lines that commands write."""
    is_exit_checked: bool = True
    """Whether an exit status other than 0 is a failure (stream.non.zero.exit.is.failure)."""
    is_given_up: bool = False
    """Whether the task has failed too often and commits an empty result (mapreduce.map.failures.maxpercent)."""
    conf: dict[str, str] = {}
    """Hadoop's -D: properties for the environment of the commands."""
    queue: str = ""
    split_max_bytes: int = 64 * 1024 * 1024
    output_compression: str = ""
    """gzip, bzip2, zstd, deflate or snappy; "": none."""
    max_record_bytes: int = 16 * 1024 * 1024
    """Maximum length of a line of input, map output or combiner output."""
    task_timeout_s: int = 0
    """Time after which a command that neither reads, writes nor reports is stopped; 0: never."""
    secret_variables: list[str] = []
    """Environment variables whose values must be masked."""
    files: list[FileSource] = []
    """For the working folder of every task (setup checks commands in it), as the archives."""
    archives: list[ArchiveSource] = []
    s3: S3Config | None = None
    hdfs: dict[str, HdfsAddress] = {}
    """Addresses of the clusters that hdfs:// URLs name."""
    cluster: str = ""
    """Identity of the cluster, for the ownership mark; empty outside of a cluster."""
    progress_url: str | None = None
    """https://HOST[:PORT] of the progress endpoint. Without it the setup task writes the plan to the work folder
    (`sN/plan.json`), and reduces read the maps' commits from the storage."""

    @property
    def is_last(self) -> bool:
        """Whether this is the last step, which writes the job's output."""
        return self.step == self.steps - 1


Counters = dict[str, dict[str, int]]
"""Group -> name -> value, with Hadoop's names."""
MIN_AMOUNT, MAX_AMOUNT = -(2**63), 2**63 - 1
"""Counters are 64-bit integers, like Hadoop's; sums saturate at these limits."""


def clamp(amount: int) -> int:
    """Return the amount, limited to 64 bits."""
    return max(MIN_AMOUNT, min(MAX_AMOUNT, amount))


MAXIMA = frozenset({("Boathouse", "Peak memory bytes")})
"""Groups and names of counters of which a job shows the largest value of its tasks, not the sum."""


def accumulate(sums: Counters, group: str, name: str, value: int) -> None:
    """Add a task's counter to the job's, in place, within 64 bits."""
    target = sums.setdefault(group, {})
    before = target.get(name, 0)
    target[name] = clamp(max(before, value) if (group, name) in MAXIMA else before + value)


class Timing(msgspec.Struct, frozen=True, array_like=True):
    """Start and end of a task's phase in epoch milliseconds; JSON: [phase, start_ms, end_ms]."""

    phase: str
    start_ms: int
    end_ms: int


class TaskResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a task: its termination message, of at most `TERMINATION_LOG_MAX_BYTES`.

    An attempt that finds the commit of another attempt has succeeded.
    """

    outcome: str
    """`SUCCEEDED`, `FAILED`, or `UNFINISHED` if the task was killed."""
    reason: str = ""
    """A `Reason` if it failed, else ""."""
    message: str = ""
    """One line: what is wrong, where, what to do."""
    user_error: bool = False
    """Whether it is a user error (counted against maxAttempts) or an infrastructure error."""
    winner_attempt: int = 0
    """The attempt whose commit won; 0 if nothing is committed (setup, commit, failures)."""
    digest: str = ""
    """Setup: the plan's digest (`plan_digest`); map, reduce: of its data; commit: of the whole output."""
    splits: int = 0
    """Of a setup."""
    bytes_total: int = 0
    """Setup: input bytes; map, reduce: bytes of the data written; commit: bytes of the output."""
    counters: Counters = {}
    """Hadoop's and the user's counters that fit; group "Boathouse" has the number of "Counters dropped"."""
    timings: list[Timing] = []
    """Epoch milliseconds, phases in order: setup: list, race, post; map: read, sort, upload, commit (map-only: read,
    commit); reduce: wait, shuffle, reduce, commit; uber: tasks, commit; probe: tasks; commit: verify, promote,
    clean; cleanup: clean."""
    stderr_tail: str = ""
    """End of the command's standard error, on failure."""
    exit_code: int | None = None
    """Exit status of the user's command, on failure; negative: a signal."""

    @property
    def succeeded(self) -> bool:
        """Whether the outcome is success."""
        return self.outcome == SUCCEEDED


SUCCEEDED = "succeeded"
FAILED = "failed"
UNFINISHED = "unfinished"
"""Outcome that is written repeatedly while the task runs, and remains if the task is killed."""


class TaskReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Periodic report of a running task, which is only a hint."""

    phase: str
    progress: float = 0.0
    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    spilled_bytes: int = 0
    spilled_records: int = 0
    cpu_s: float = 0.0
    counters: Counters = {}
    status: str = ""
    maps_done: int = 0
    """Of a reduce, the maps whose output it knows, of all of its step."""
    maps_total: int = 0
    suspended_s: float = 0.0
    peak_memory_bytes: int = 0
    spill_s: float = 0.0
    """Time that it took to write spills and to read them."""


class ReportTaken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Response of the endpoint to a report."""

    next_s: float = 0.0
    """Seconds until the next report, more if many tasks report; 0: the task's default."""


MOST_SUSPENDED_S = 3600.0
"""The longest that an order suspends a task."""
SUSPENDED_REQUEST_MILLI = 1
"""CPU request of a suspended task: the least that the API server stores; a request of 0 would be no request."""
SUSPENDED_LIMIT_MILLI = 10
"""CPU limit of a suspended task: the kubelet enforces no smaller one."""
STOPS_WITHIN_S = 2.0
"""How long the threads of a task may take to stop."""
ACKNOWLEDGES_WITHIN_S = 5.0
"""How long a task tries to send the acknowledgement of an order."""
SHRINKS_WITHIN_S = 10.0
"""How long a pause lasts if the CPU limit is not lowered: longer than the operator takes to write it."""


class SuspendOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Order to one task to pause, until its CPU limit is raised again or its time is over."""

    id: str
    """At most 40 characters: a task carries out each order once."""
    for_s: float
    """How long it may pause, at most `MOST_SUSPENDED_S`."""


class SuspendRefusal(enum.StrEnum):
    """Reason why a task does not pause."""

    PHASE_PASSED = "PhasePassed"
    """It lacks no map output, or is no reduce."""
    BUSY = "Busy"
    """A fetch or a merge did not stop in time."""
    NO_CGROUP = "NoCgroup"
    """It cannot read its own CPU limit, whose rise tells it to continue."""


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Response of a task to an order to pause, sent before its pod is resized."""

    id: str
    refused: str = ""
    """A `SuspendRefusal`, or "" if the task has paused."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """Orders of the leader for a task, by long poll."""

    version: int
    """`since` of the next poll."""
    maps_total: int
    maps_done: str = ""
    """base64 bitmap (`encode_bitmap`) of the committed maps."""
    winners: dict[int, int] = {}
    """Map index -> attempt, only if the winner is not attempt 1."""
    cancel: bool = False
    suspend: SuspendOrder | None = None


class CommitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `_commit/TASK`, which is created exclusively and names the attempt whose output counts."""

    task: str
    attempt: int
    pod_uid: str
    """Lets an attempt that created the file, but lost the response, detect that it is the winner."""
    digest: str
    """Digest of the data (of a reduce or a map-only map: sha256 of the file; of a map: sha256 of its index)."""
    size_bytes: int
    records: int
    counters: Counters = {}
    has_file: bool = True
    """Whether its data is a file of the output; not with LazyOutputFormat and without a line."""


def decoded(content: bytes, expected: type[T]) -> T | None:
    """Return the value of JSON; None if it is not of this type."""
    try:
        return msgspec.json.decode(content, type=expected)
    except msgspec.DecodeError:
        return None


LETTERS = {TaskType.MAP: "m", TaskType.REDUCE: "r"}


def task_name(task_type: TaskType, index: int) -> str:
    """Return the task's name for pods, commits and data, such as `m-00042`, `r-00007`, `setup` or `uber`."""
    return f"{LETTERS[task_type]}-{index:05d}" if task_type in LETTERS else task_type.value


def attempt_name(task_type: TaskType, index: int, attempt: int) -> str:
    """Return an attempt's name, such as `m-00042-a1`."""
    return f"{task_name(task_type, index)}-a{attempt}"


def plan_digest(plan: Plan) -> str:
    """Return the sha256 of the plan's canonical JSON (fields in declared order), in hex."""
    return hashlib.sha256(msgspec.json.encode(plan)).hexdigest()


def encode_bitmap(done: Iterable[int], total: int) -> str:
    """Return base64 of a bit for each of `total` indexes, index 0 in the lowest bit of the first byte."""
    bits = bytearray((total + 7) // 8)
    for index in done:
        bits[index >> 3] |= 1 << (index & 7)
    return base64.b64encode(bytes(bits)).decode()


def decode_bitmap(text: str, total: int) -> set[int]:
    """Return the indexes below `total` whose bit is set in a bitmap of `encode_bitmap`."""
    bits = base64.b64decode(text)
    return {index for index in range(min(total, len(bits) * 8)) if bits[index >> 3] >> (index & 7) & 1}
