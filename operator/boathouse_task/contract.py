"""What the operator and the task pods say to one another: the task's order, its result, its reports, the split plan.

Imported by both sides, so it holds values only: no I/O, nothing of the operator. JSON by msgspec; fields keep their
Python names. Unknown fields are ignored on both sides, so that an older runtime understands a newer operator.
"""

import base64
import enum
import hashlib
from collections.abc import Iterable

import msgspec

TASK_ENV = "BOATHOUSE_TASK"
"""JSON of `TaskSpec`."""
MEMORY_LIMIT_ENV = "BOATHOUSE_MEMORY_LIMIT_BYTES"
"""The container's memory limit in bytes (resourceFieldRef limits.memory); the sort buffer follows it."""
POD_NAME_ENV = "BOATHOUSE_POD_NAME"
POD_UID_ENV = "BOATHOUSE_POD_UID"
NODE_NAME_ENV = "BOATHOUSE_NODE_NAME"

WORK_PATH = "/work"
"""The task's writable folder (emptyDir): the command's working folder and the spills lie in it."""
FILES_PATH = "/files"
"""Where the job's ConfigMap files are mounted."""
TOKEN_PATH = "/var/run/boathouse/token/token"  # noqa: S105 - a path, not a secret
CA_PATH = "/var/run/boathouse/ca/ca.crt"
TERMINATION_LOG_PATH = "/dev/termination-log"
TERMINATION_LOG_MAX_BYTES = 4096
"""The kubelet's limit for one container's termination message."""
REPORT_MAX_BYTES = 8192
"""The progress endpoint's limit for one `TaskReport`."""
PLAN_POST_MAX_BYTES = 8 * 1024 * 1024
"""The progress endpoint's limit for the compressed plan. 40,000 splits with random URLs need 1 to 2 MiB."""
PLAN_MAX_BYTES = 24 * 1024 * 1024
"""Its limit for the plan's JSON: 40,000 splits of 629 bytes each, of which at most 130 are not the URL."""
TOKEN_AUDIENCE = "boathouse.dev"  # noqa: S105 - the audience's name, not a secret

EXIT_SUCCEEDED = 0
EXIT_USER_ERROR = 10
"""The job is at fault: its input, its output, its command."""
EXIT_INFRASTRUCTURE = 20
"""The storage, the disk or the cluster is at fault; another attempt may succeed."""
EXIT_TERMINATED = 143
"""Stopped by SIGTERM, as shells say it."""


class TaskType(enum.StrEnum):
    """The kinds of task pods of a step; an uber task is a small step's maps and reduces (and commit) in one pod.

    A cleanup task belongs to no step: it removes what a job left that failed or is being deleted.
    """

    SETUP = "setup"
    MAP = "map"
    REDUCE = "reduce"
    UBER = "uber"
    COMMIT = "commit"
    CLEANUP = "cleanup"


class Reason(enum.StrEnum):
    """Why a task failed, as shown in conditions (CamelCase)."""

    INPUT_NOT_FOUND = "InputNotFound"
    OUTPUT_EXISTS = "OutputExists"
    INVALID_URL = "InvalidURL"
    INVALID_SPEC = "InvalidSpec"
    COMMAND_NOT_FOUND = "CommandNotFound"
    FILE_NOT_FOUND = "FileNotFound"
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
    """What the leader knows about the job that an ownership mark names."""

    ACTIVE = "active"
    """The job may still write to its output."""
    ENDED = "ended"
    """The job has ended or is gone, and none of its pods runs."""
    UNKNOWN = "unknown"
    """The leader cannot say yet: ask again."""
    OUTSIDE = "outside"
    """The leader will never know: the job is of another cluster, or of a namespace where the operator does not act."""


class Owner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The leader's answer to a setup task that found another job's ownership mark.

    Attributes:
        detail: what an unknown state waits for.
    """

    state: OwnerState
    detail: str = ""


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """One map task's share of one file, by Hadoop's rules for lines that cross its borders.

    Attributes:
        url: the file.
        offset_bytes: where the share starts in the file.
        length_bytes: its length; 0 only for an empty file.
        size_bytes: the whole file's size.
        locations: index into `Plan.location_sets`, -1 for none (object stores have none).
        combined: 0, or how many small files the share is made of: then `url` is a list of `InputFile`s in JSON, and
            the length is the sum of theirs.
    """

    url: str
    offset_bytes: int
    length_bytes: int
    size_bytes: int
    locations: int = -1
    combined: int = 0


class InputFile(msgspec.Struct, frozen=True, kw_only=True):
    """A whole file of the input."""

    url: str
    size_bytes: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All splits of a job's input; a split's place in the list is its map's index."""

    splits: list[Split]
    location_sets: list[list[str]] = []
    bytes_total: int = 0


class FileSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file put into the command's working folder under `name`, executable: from a mounted `path` or from a `url`."""

    name: str
    path: str | None = None
    url: str | None = None


class S3Config(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where S3 URLs lead.

    The keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; without them requests are unsigned.
    """

    endpoint_url: str | None = None
    region: str = "us-east-1"


class Partitioner(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How keys are assigned to reduces, with Hadoop's names and results.

    Attributes:
        type: HashPartitioner or KeyFieldBasedPartitioner.
        options: mapreduce.partition.keypartitioner.options, as `-k1,2`.
        key_field_separator: mapreduce.map.output.key.field.separator: what separates the fields that the options of
            partitioner and comparator name.
        num_key_fields: stream.num.map.output.key.fields: how many of a line's fields are its key.
        field_separator: stream.map.output.field.separator: what separates the fields of the mapper's lines, and the key
            from the value. Where it is not a TAB, the one behind the key becomes a TAB for combiner and reducer.
        comparator_options: mapreduce.partition.keycomparator.options, as `-k2,2nr`: the order of the keys. None: by
            their bytes.
    """

    type: str = "HashPartitioner"
    options: str = ""
    key_field_separator: str = "\t"
    num_key_fields: int = 1
    field_separator: str = "\t"
    comparator_options: str | None = None


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a task pod is told (environment variable `TASK_ENV`).

    Attributes:
        work_url: OUTPUT/_temporary/boathouse-UID, without a slash at its end.
        output_url: the job's output folder.
        step: from 0; the setup of a later one takes the output of the one before as its input.
        steps: how many the job has; the last one's output is the job's.
        input_urls: files, folders and globs; only the first setup task needs them.
        previous_reduces: of the step before; 0 where it was map-only.
        combine_files: whether small files share a split (as CombineTextInputFormat); between steps they always do.
        split: only for a map.
        splits: only for an uber task: all of the step's.
        maps: the number of map tasks; 0 in a setup task.
        reduces: the number of reduce tasks; 0 is a map-only job.
        mapper: None passes lines on as they are.
        output_compression: "", "gzip", "bzip2" or "zstd".
        max_record_bytes: no line of input, map or combiner output may be longer.
        task_timeout_s: a command that neither reads, writes nor reports for so long is ended; 0: never.
        secret_variables: environment variables whose values must not be shown.
        files: put into the working folder of every task (setup looks commands up in it).
        cluster: identifies the cluster; part of the ownership mark. Empty outside of a cluster.
        progress_url: https://HOST[:PORT] of the progress endpoint. Without it the setup task writes the plan into the
            work folder instead (`sN/plan.json`), and reduces look for the maps' commits in the storage.
    """

    job_uid: str
    job_name: str
    namespace: str
    task_type: TaskType
    work_url: str
    output_url: str
    step: int = 0
    steps: int = 1
    index: int = 0
    attempt: int = 1
    input_urls: list[str] = []
    previous_reduces: int = 0
    combine_files: bool = False
    split: Split | None = None
    splits: list[Split] = []
    maps: int = 0
    reduces: int = 0
    mapper: list[str] | None = None
    combiner: list[str] | None = None
    reducer: list[str] | None = None
    partitioner: Partitioner = Partitioner()
    split_max_bytes: int = 64 * 1024 * 1024
    output_compression: str = ""
    max_record_bytes: int = 16 * 1024 * 1024
    task_timeout_s: int = 0
    secret_variables: list[str] = []
    files: list[FileSource] = []
    s3: S3Config | None = None
    cluster: str = ""
    progress_url: str | None = None

    @property
    def is_last(self) -> bool:
        """Whether this step's output is the job's."""
        return self.step == self.steps - 1


Counters = dict[str, dict[str, int]]
"""Group -> name -> value, with Hadoop's names."""
MAX_AMOUNT = 2**63 - 1
MIN_AMOUNT = -(2**63)
"""Counters are integers of 64 bits, as Hadoop's; sums stop at these bounds instead of wrapping around."""


def clamp(amount: int) -> int:
    """The amount, or the bound of 64 bits that it is beyond."""
    return max(MIN_AMOUNT, min(MAX_AMOUNT, amount))


class Timing(msgspec.Struct, frozen=True, array_like=True):
    """One phase of a task, epoch milliseconds; JSON: [phase, start_ms, end_ms]."""

    phase: str
    start_ms: int
    end_ms: int


class TaskResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a task ended: its termination message, on success and on failure (at most `TERMINATION_LOG_MAX_BYTES`).

    Attributes:
        outcome: "succeeded", "failed", or "unfinished" of a task that had no time to say more. An attempt that finds
            another attempt's commit in its place has succeeded; `winner_attempt` says whose output counts.
        reason: a `Reason` when failed, else "".
        message: one line for people: what, where, what to do.
        user_error: charged to the user (and counted against maxAttempts) or to the infrastructure.
        winner_attempt: the attempt whose commit holds; 0 when nothing is committed (setup, commit, failures).
        digest: setup: the plan's digest (`plan_digest`); map, reduce: of its data; commit: of the whole output.
        splits: setup only: number of splits.
        bytes_total: setup: input bytes; map, reduce: bytes of the data written; commit: bytes of the output.
        counters: Hadoop's and the user's counters, cut to what fits; then group "Boathouse" has "Counters dropped".
        timings: epoch milliseconds, phases in order: setup: list, race, post; map: read, sort, upload, commit
            (map-only: read, commit); reduce: wait, shuffle, reduce, commit; uber: maps, reduces, commit; commit:
            verify, promote, clean; cleanup: clean.
        stderr_tail: the last part of the command's standard error, on failure.
        exit_code: of the user's command, on failure; negative: the signal that ended it.
    """

    outcome: str
    reason: str = ""
    message: str = ""
    user_error: bool = False
    winner_attempt: int = 0
    digest: str = ""
    splits: int = 0
    bytes_total: int = 0
    counters: Counters = {}
    timings: list[Timing] = []
    stderr_tail: str = ""
    exit_code: int | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the task did what it was told."""
        return self.outcome == SUCCEEDED


SUCCEEDED = "succeeded"
FAILED = "failed"
UNFINISHED = "unfinished"
"""Written now and then while the task runs: all that is left of one that is killed."""


class TaskReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a running task reports every few seconds; a hint, never a proof."""

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


class ReportTaken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the endpoint answers to a report.

    Attributes:
        next_s: seconds until the next report is wanted, more where many tasks report; 0: as the task likes.
    """

    next_s: float = 0.0


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What the leader tells a task by long poll.

    Attributes:
        version: the `since` of the next poll.
        maps_total: the number of maps of the step.
        maps_done: base64 bitmap (`encode_bitmap`) of the maps that are committed.
        winners: map index -> attempt, only where the winner is not attempt 1.
        cancel: the task is to stop.
    """

    version: int
    maps_total: int
    maps_done: str = ""
    winners: dict[int, int] = {}
    cancel: bool = False


class CommitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `_commit/TASK`: created exclusively, it says whose output counts.

    Attributes:
        pod_uid: tells an attempt whose creation succeeded but whose answer was lost that it is the winner.
        digest: of the data (a reduce's or a map-only map's: sha256 of the file; a map's: sha256 of its index).
    """

    task: str
    attempt: int
    pod_uid: str
    digest: str
    size_bytes: int
    records: int
    counters: Counters = {}


def task_name(task_type: TaskType, index: int) -> str:
    """`m-00042`, `r-00007`, `setup`, `uber`, `commit` or `cleanup`: the task's part of pod, commit and data names."""
    match task_type:
        case TaskType.MAP:
            return f"m-{index:05d}"
        case TaskType.REDUCE:
            return f"r-{index:05d}"
        case TaskType.SETUP | TaskType.UBER | TaskType.COMMIT | TaskType.CLEANUP:
            return task_type.value


def attempt_name(task_type: TaskType, index: int, attempt: int) -> str:
    """`m-00042-a1`."""
    return f"{task_name(task_type, index)}-a{attempt}"


def plan_digest(plan: Plan) -> str:
    """sha256 of the plan's canonical JSON (fields in declared order), in hex."""
    return hashlib.sha256(msgspec.json.encode(plan)).hexdigest()


def encode_bitmap(done: Iterable[int], total: int) -> str:
    """Base64 of one bit for each of `total` indexes, index 0 in the lowest bit of the first byte."""
    bits = bytearray((total + 7) // 8)
    for index in done:
        bits[index >> 3] |= 1 << (index & 7)
    return base64.b64encode(bytes(bits)).decode()


def decode_bitmap(text: str, total: int) -> set[int]:
    """The indexes below `total` whose bit is set in `encode_bitmap`'s form."""
    bits = base64.b64decode(text)
    return {index for index in range(min(total, len(bits) * 8)) if bits[index >> 3] >> (index & 7) & 1}
