"""Common parts of all tasks: parameters, paths, counters, phases, and the exclusive commit."""

import contextlib
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from boathouse_task import counters, files, lines, mapoutput
from boathouse_task.command import CommandRunner
from boathouse_task.contract import CommitRecord, TaskReport, TaskSpec, TaskType, Timing, task_name
from boathouse_task.counters import CounterSet
from boathouse_task.environment import TEMPORARY_FOLDER, Environment, Layout, command_variables
from boathouse_task.pausing import Pause
from boathouse_task.processes import Processes
from boathouse_task.progress import Client
from boathouse_task.sorting import SortTool
from boathouse_task.storage import Storage

_RETRY_S = 150
"""How long a storage request is retried: less than obstore's 5 minutes, after which signatures expire."""
_SETUP_RETRY_S = 30
"""How long setup retries a storage request; shorter, because setup detects a wrong endpoint."""


class Task:
    """A running attempt. `clock` returns epoch seconds, for the timings."""

    def __init__(
        self, spec: TaskSpec, environment: Environment, processes: Processes, clock: Callable[[], float] = time.time
    ) -> None:
        self.spec, self.environment, self.processes = spec, environment, processes
        retry_s = _SETUP_RETRY_S if spec.task_type is TaskType.SETUP else _RETRY_S
        self.storage = Storage(
            spec.s3, environment.variables, part_bytes=environment.part_bytes, retry_s=retry_s, hdfs_addresses=spec.hdfs
        )
        self.layout, self.counters, self.pause = Layout(spec), CounterSet(), Pause()
        self.folder, spills = environment.work_path / "task", environment.work_path / "spill"
        for folder in (self.folder, spills, environment.work_path / TEMPORARY_FOLDER):
            folder.mkdir(parents=True, exist_ok=True)
        self.sort = SortTool(processes, self.counters, spills, mapoutput.sort_options(spec.partitioner))
        variables = command_variables(spec, environment.variables, self.folder)
        self.commands = CommandRunner(
            processes, self.counters, self.folder, variables, is_exit_checked=spec.is_exit_checked
        )
        self.client = Client(spec, environment) if spec.progress_url else None
        self.timings: list[Timing] = []
        self.phase_name, self.fraction = "start", 0.0
        self.bytes_in = self.bytes_out = self.maps_done = 0
        if spec.task_type in (TaskType.MAP, TaskType.REDUCE):
            self.counters.add(counters.SPILLED_RECORDS, 0)  # shown also if nothing was spilled
        self._clock, self._cpu_before_s = clock, _cpu_seconds()

    @property
    def cpu_s(self) -> float:
        """CPU time of the task and its ended children, in seconds."""
        return _cpu_seconds() - self._cpu_before_s

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Note the phase's start and end."""
        self.phase_name = name
        start = self._clock()
        try:
            yield
        finally:
            self.timings.append(Timing(name, int(start * 1000), int(self._clock() * 1000)))

    def place_files(self) -> None:
        """Copy the job's files to the command's folder, and unpack its archives there."""
        files.place(self.spec.files, self.folder, self.storage, self.environment.window_bytes)
        if not self.spec.archives:
            return
        from boathouse_task import archives  # few tasks need it

        archives.place(self.spec.archives, self.folder, self.storage, self.environment)

    def run_command(
        self, argv: Sequence[str], source: Iterable[bytes] | int, *, is_reporting: bool = True
    ) -> Iterator[bytes]:
        """Start a command of the job and return the lines that it writes (see `CommandRunner.run`)."""
        written = self.commands.run(argv, source, is_reporting=is_reporting)
        return written if self.spec.keeps_returns else lines.ended_by_newlines(written)

    def prepared(self, prefixer: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return a function that prefixes blocks of lines for sorting, and sees how they must be compared."""

        def prepare(block: bytes) -> bytes:
            if not self.sort.by_key:
                self.sort.by_key = mapoutput.has_low_bytes(block)
            return prefixer(block)

        return prepare

    def commit(self, *, digest: str, size_bytes: int, records: int, has_file: bool = True) -> CommitRecord:
        """Create `_commit/TASK` exclusively; return the commit of this attempt, or of the one that was first."""
        mine = CommitRecord(
            task=task_name(self.spec.task_type, self.spec.index),
            attempt=self.spec.attempt,
            pod_uid=self.environment.pod_uid,
            digest=digest,
            size_bytes=size_bytes,
            records=records,
            counters=self.counters.values(),
            has_file=has_file,
        )
        location = self.layout.commit(self.spec.task_type, self.spec.index)
        if self.storage.create(location, msgspec.json.encode(mine)):
            return mine
        return msgspec.json.decode(self.storage.read(location), type=CommitRecord)

    def count_usage(self) -> None:
        """Add what the attempt used to its counters, once, before its commit."""
        is_reduce = self.spec.task_type is TaskType.REDUCE
        function = counters.REDUCE_FUNCTION_MILLISECONDS if is_reduce else counters.MAP_FUNCTION_MILLISECONDS
        self.counters.add(counters.CPU_MILLISECONDS, int(self.cpu_s * 1000))
        self.counters.add(function, int(self.commands.cpu_s * 1000), counters.BOATHOUSE)
        for name, amount in (
            (counters.PEAK_MEMORY_BYTES, self.commands.peak_memory_bytes),
            (counters.SPILL_MILLISECONDS, int(self.sort.spill_s * 1000)),
            (counters.SUSPENDED_MILLISECONDS, int(self.pause.suspended_s * 1000)),
        ):
            if amount:
                self.counters.add(name, amount, counters.BOATHOUSE)

    def report(self) -> TaskReport:
        """Return the task's progress report."""
        get = self.counters.get
        return TaskReport(
            phase=self.phase_name,
            progress=round(min(1.0, self.fraction), 4),
            records_in=get(counters.MAP_INPUT_RECORDS) + get(counters.REDUCE_INPUT_RECORDS),
            records_out=get(counters.MAP_OUTPUT_RECORDS) + get(counters.REDUCE_OUTPUT_RECORDS),
            bytes_in=self.bytes_in,
            bytes_out=self.bytes_out,
            spilled_bytes=get(counters.SPILLED_BYTES, counters.BOATHOUSE),
            spilled_records=get(counters.SPILLED_RECORDS),
            cpu_s=round(self.cpu_s, 2),
            counters=self.counters.values(),
            status=self.counters.status,
            maps_done=self.maps_done,
            maps_total=self.spec.maps if self.spec.task_type is TaskType.REDUCE else 0,
            peak_memory_bytes=self.commands.peak_memory_bytes,
            spill_s=round(self.sort.spill_s, 3),
            suspended_s=round(self.pause.suspended_s, 3),
        )


def _cpu_seconds() -> float:
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
