"""Sort in limited memory with GNU sort and Boathouse's own runs, so that the size of spills is exactly known.

Lines are written to one `sort` process until they fill its buffer. If all lines fit, its output is the result and
nothing is written to disk. Otherwise each full buffer becomes a run on disk (a spill), and `sort -m` merges the runs.
Whole lines are compared as bytes (LC_ALL=C): every line has its TAB, so equal keys stay adjacent. `SortTool.by_key`
compares the keys first, which takes a quarter more CPU and is needed for keys with bytes below TAB. Without such keys
both orders are the same, so it may change between runs that are merged.

A buffer's size is computed like in GNU sort (src/sort.c): a line costs its bytes and 1.5 struct lines of 32 bytes. So
sort never creates its own temporary files.
"""

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from boathouse_task import contract, counters, errors, lines
from boathouse_task.processes import Processes, chunks_of, write_all

LINE_COST_BYTES = 48
_SLACK_BYTES = 512 * 1024
_MERGE_BUFFER_BYTES = 64 * 1024  # minimum buffer of each run of a merge
_MAX_FAN_IN = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Sorted lines in a file on disk, or in memory (`descriptor` >= 0)."""

    path: str
    size_bytes: int
    records: int
    descriptor: int = -1

    def discard(self) -> None:
        """Free its disk space or memory."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        else:
            Path(self.path).unlink(missing_ok=True)


class SortTool:
    """Runs GNU sort, with the spills in `folder`. Raises TaskError: OutOfDisk, OutOfMemory, InternalError if it fails.

    Attributes:
        by_key: whether processes that start from now on compare keys first.
        spill_s: time that it took to write spills, and to wait for what a merge reads of them.
    """

    def __init__(
        self, processes: Processes, counters: counters.CounterSet, folder: Path, key_options: Sequence[str] = ()
    ) -> None:
        self._key_options, self.by_key = key_options, False
        self.processes, self.counters, self.folder = processes, counters, folder
        self.running: set[SortProcess] = set()
        self.spill_s, self._number = 0.0, 0
        self._env = {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}

    def start(self, arguments: Sequence[str], *, stdin: int, pass_fds: Sequence[int] = ()) -> "SortProcess":
        """Start `sort` with its output as a pipe."""
        by_key = self._key_options if self.by_key else ()
        argv = ["sort", "--parallel=1", "-T", str(self.folder), *by_key, *arguments]
        process = self.processes.start(argv, stdin=stdin, stderr=subprocess.PIPE, env=self._env, pass_fds=pass_fds)
        started = SortProcess(self, process)
        self.running.add(started)
        return started

    def close(self) -> None:
        """Stop running processes after a failure elsewhere."""
        for process in list(self.running):
            process.abandon()

    def spill(self, chunks: Iterable[bytes], records: int) -> Run:
        """Write sorted lines to disk and counts them."""
        self._number += 1
        path = self.folder / f"spill-{self._number:05d}"
        size = 0
        with out_of_disk(path), path.open("wb", buffering=0) as file:
            for chunk in chunks:
                start_s = time.monotonic()
                write_all(file.fileno(), chunk)
                self.spill_s += time.monotonic() - start_s
                size += len(chunk)
        self.counters.add(counters.SPILLED_RECORDS, records)
        self.counters.add(counters.SPILLED_BYTES, size, counters.BOATHOUSE)
        self.counters.add(counters.SPILLS, 1, counters.BOATHOUSE)
        return Run(path=str(path), size_bytes=size, records=records)

    def merge(self, runs: list[Run], buffer_bytes: int) -> Iterator[bytes]:
        """Yield all runs' lines in order, and consume the runs. Many runs need several passes, which spill again."""
        fan_in = max(2, min(_MAX_FAN_IN, buffer_bytes // _MERGE_BUFFER_BYTES))
        runs = sorted(runs, key=lambda run: (run.size_bytes, run.path))
        while len(runs) > fan_in:
            # merge the smallest runs first, and only as many as make the last merge full
            share, runs = runs[: min(fan_in, len(runs) - fan_in + 1)], runs[min(fan_in, len(runs) - fan_in + 1) :]
            runs.append(self.spill(self._merge_once(share, buffer_bytes), sum(run.records for run in share)))
        yield from self._merge_once(runs, buffer_bytes)

    def _merge_once(self, runs: list[Run], buffer_bytes: int) -> Iterator[bytes]:
        if not runs:
            return
        descriptors = [run.descriptor for run in runs if run.descriptor >= 0]
        arguments = ["-m", f"--batch-size={max(2, len(runs))}", f"-S{buffer_bytes}b", "--", *(run.path for run in runs)]
        merging = self.start(arguments, stdin=subprocess.DEVNULL, pass_fds=descriptors)
        from_disk = len(descriptors) < len(runs)
        try:
            yield from self._timed(merging.output()) if from_disk else merging.output()
        finally:
            for run in runs:
                run.discard()

    def _timed(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the chunks, and add the time of waiting for them."""
        while True:
            start_s = time.monotonic()
            chunk = next(chunks, None)
            self.spill_s += time.monotonic() - start_s
            if chunk is None:
                return
            yield chunk


class SortProcess:
    """A running `sort`. Its standard error is short enough for the pipe's buffer."""

    def __init__(self, tool: SortTool, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._tool, self._process, self._stdout, self._stderr = tool, process, process.stdout, process.stderr

    @property
    def stdout(self) -> int:
        """Read end of its output, for another command."""
        return self._stdout.fileno()

    def chunks(self) -> Iterator[bytes]:
        """Return its output as it arrives; call `finish` afterwards."""
        return chunks_of(self._stdout)

    def write(self, block: bytes) -> None:
        """Write lines to it."""
        assert self._process.stdin is not None
        try:
            write_all(self._process.stdin.fileno(), block)
        except BrokenPipeError:
            self.finish()
            raise

    def close_input(self) -> None:
        """Close its input after the last line."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def output(self) -> Iterator[bytes]:
        """Yield the sorted lines in chunks, then check its exit status."""
        try:
            yield from self.chunks()
            self.finish()
        finally:
            self.abandon()

    def finish(self, *, unread: bool = False) -> None:
        """Wait for its end. `unread`: its reader may have stopped early. Raises TaskError if it failed."""
        self._stdout.close()
        said = self._stderr.read().decode("utf-8", "replace").strip()
        status = self._tool.processes.wait(self._process)
        self.abandon()
        if status and not (unread and (status == -signal.SIGPIPE or os.strerror(errno.EPIPE) in said)):
            raise _sort_failed(status, said)

    def abandon(self) -> None:
        """Stop it if it still runs, and close its pipes."""
        self._tool.processes.kill(self._process)
        with contextlib.suppress(BrokenPipeError):
            self.close_input()
        self._stderr.close()
        self._tool.running.discard(self)


def _sort_failed(status: int, stderr: str) -> errors.TaskError:
    if os.strerror(errno.ENOSPC) in stderr:
        return errors.TaskError(contract.Reason.OUT_OF_DISK, f"no space left for spills: {stderr}")
    if status == -signal.SIGKILL or "memory exhausted" in stderr:
        return errors.TaskError(contract.Reason.OUT_OF_MEMORY, f"sort ran out of memory: {stderr or 'killed'}")
    return errors.TaskError(contract.Reason.INTERNAL_ERROR, f"sort ended with status {status}: {stderr}")


@contextlib.contextmanager
def out_of_disk(path: Path) -> Iterator[None]:
    """Raise OutOfDisk for an error of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        usage = shutil.disk_usage(path.parent)
        left = f"no space left in {path.parent} ({usage.free} of {usage.total} bytes are free)"
        advice = "raise resources.requests.ephemeral-storage, or free disk space on the node"
        raise errors.TaskError(contract.Reason.OUT_OF_DISK, f"{left}: {advice}") from None


Drain: TypeAlias = Callable[[SortProcess, int], None]


class RunBuffer:
    """Lines for one in-memory `sort`, up to a budget for them and sort's table of them.

    `drain` takes the content before it would be too large: the process that outputs the lines in order, their number.
    It is no attribute: in a cycle of references, what a finished map has cached would stay.
    """

    def __init__(self, tool: SortTool, budget_bytes: int) -> None:
        self._tool, self._budget_bytes = tool, budget_bytes
        self._sort: SortProcess | None = None
        self._by_key, self._cost_bytes, self._records = False, 0, 0

    def write(self, block: bytes, drain: Drain) -> None:
        """Add a block of whole lines. Everything fits into an empty buffer."""
        for piece, records in pieces(block, self._budget_bytes):
            cost_bytes = cost(piece, records)
            if self._by_key != self._tool.by_key or self._cost_bytes + cost_bytes > self._budget_bytes:
                self.drain(drain)
            if self._sort is None:
                self._by_key = self._tool.by_key
                size = max(self._budget_bytes, cost_bytes) + _SLACK_BYTES
                self._sort = self._tool.start([f"-S{size}b"], stdin=subprocess.PIPE)
            self._sort.write(piece)
            self._cost_bytes += cost_bytes
            self._records += records

    def drain(self, drain: Drain) -> None:
        """Empty the buffer, if it has lines."""
        records = self._records
        if process := self.sorted():
            drain(process, records)

    def sorted(self) -> SortProcess | None:
        """Return the process that outputs the lines in order (None: no lines), and empty the buffer."""
        finished, self._sort, self._cost_bytes, self._records = self._sort, None, 0, 0
        if finished is not None:
            finished.close_input()
        return finished


def cost(block: bytes, records: int) -> int:
    """Return the size of a block in sort's buffer, in bytes."""
    return len(block) + LINE_COST_BYTES * records


def pieces(block: bytes, budget_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Yield the block, or parts of it that each fit into the budget (a single line always passes), with line counts."""
    records = lines.count(block)
    if records <= 1 or cost(block, records) <= budget_bytes:
        yield block, records
        return
    middle = block.rfind(b"\n", 0, max(len(block) // 2, block.index(b"\n") + 1)) + 1
    yield from pieces(block[:middle], budget_bytes)
    yield from pieces(block[middle:], budget_bytes)


class Sorter:
    """Sorts any number of lines within `budget_bytes` of memory; `write` adds a block of whole lines."""

    def __init__(self, tool: SortTool, budget_bytes: int) -> None:
        self._tool, self._budget_bytes = tool, budget_bytes
        self._runs, self._buffer = list[Run](), RunBuffer(tool, budget_bytes)

    def write(self, block: bytes) -> None:
        """Add a block."""
        self._buffer.write(block, self._spill)

    def finish(self) -> Iterator[bytes]:
        """Return all lines in order, in chunks. After a spill the rest is spilled too: merging needs the memory."""
        if not self._runs:
            process = self._buffer.sorted()
            return process.output() if process else iter(())
        self._buffer.drain(self._spill)
        return self._tool.merge(self._runs, self._budget_bytes)

    def _spill(self, process: SortProcess, records: int) -> None:
        self._runs.append(self._tool.spill(process.output(), records))


class CombiningSorter:
    """`Sorter` with a combiner: each full buffer is sorted, combined, partitioned, and sorted again.

    The first sort uses half of the memory and makes equal keys adjacent. `prepare` makes the combiner's output (usually
    much smaller) sortable for a `Sorter` with the other half. So a combiner may change keys or order, unlike in Hadoop.
    """

    def __init__(
        self,
        tool: SortTool,
        budget_bytes: int,
        *,
        combine: Callable[[SortProcess], Iterator[bytes]],
        prepare: Callable[[bytes], bytes],
    ) -> None:
        self._counters, self._combine, self._prepare = tool.counters, combine, prepare
        self._counters.add(counters.COMBINE_INPUT_RECORDS, 0)
        self._buffer, self._combined = RunBuffer(tool, budget_bytes // 2), Sorter(tool, budget_bytes // 2)

    def write(self, block: bytes) -> None:
        """Add a block."""
        self._buffer.write(block, self._combine_run)

    def finish(self) -> Iterator[bytes]:
        """Return all combined lines in order, in chunks."""
        self._buffer.drain(self._combine_run)
        return self._combined.finish()

    def _combine_run(self, process: SortProcess, records: int) -> None:
        self._counters.add(counters.COMBINE_INPUT_RECORDS, records)
        for block in lines.blocks(self._combine(process)):
            self._counters.add(counters.COMBINE_OUTPUT_RECORDS, lines.count(block))
            self._combined.write(self._prepare(block))
        process.finish(unread=True)
