"""Record maps of ten programs on real kubelets, beside neighbours that use CPU and disk, for `docs/models.md`.

    python -m benchmarks.task_recordings [--rounds 20] [--seed 1] [--cluster boathouse-recordings] [--keep 0]
                                         [--file lab/boathouse_lab/models/recorded_maps.csv]

The nodes must run on this machine, because what its CPUs and disks do is read from /proc; nothing else should run on
it. PROVIDER and CONTEXT choose the cluster as for `make test-e2e`; a cluster that exists is used and left.

First each program runs alone, one map at a time, on each size of input. Then each round starts some pods that compute
or write, and four jobs of other programs and sizes beside them; 20 rounds record 680 maps in about half an hour. What
was recorded so far is written after each round.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import random
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from benchmarks import support, suspensions
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.services.mrjob import results, signals
from boathouse_lab.models import recorded
from boathouse_task import contract
from e2e.tests import harness

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORDS = (
    "import re,sys,collections;print(sum(collections.Counter(re.findall(rb'[a-z]+',sys.stdin.buffer.read())).values()))"
)
PROGRAMS = {
    "cat": "cat",
    "sed": "sed s/e/E/g",
    "grep": "grep -c import || true",
    "awk": "awk '{ n += NF } END { print n }'",
    "words": r"tr -cs A-Za-z '\n' | wc -l",
    "sort": "sort -S 4M | uniq -c | wc -l",
    "gzip": "gzip -9 | wc -c",
    "sha512": "sha512sum",
    "python": f'python3 -c "{_WORDS}"',
    "tee": "tee /tmp/copy | md5sum; sync /tmp/copy; wc -c /tmp/copy",
}
"""Mappers by name."""
SIZES_MIB = (8, 16, 32, 64)
"""Input of a map."""
MAPS = 8
"""Of a job of a round."""
JOBS = 4
"""Of a round."""
CPU = "while :; do :; done"
DISK = "while :; do dd if=/dev/zero of=/tmp/written bs=1M count=64 conv=fsync; done"
NEIGHBOURS = tuple(itertools.product((0, 1, 2), (0, 1, 2)))
"""Pods that compute, and pods that write, of a round."""
RESOURCES = {"requests": {"cpu": "500m", "memory": "192Mi"}}
_SECTOR_BYTES = 512
_LOOK_S = 0.2
_HZ = 100


class Usage(NamedTuple):
    """What the machine has used since its start.

    Attributes:
        at_s: When, seconds since the epoch.
        cpu_s: CPU time.
        read_bytes: From disks.
        written_bytes: To disks.
    """

    at_s: float
    cpu_s: float
    read_bytes: float
    written_bytes: float


class Machine:
    """Reads what the machine uses, in a thread, until closed."""

    def __init__(self) -> None:
        self._read: list[Usage] = [usage()]
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.wait(_LOOK_S):
            self._read.append(usage())

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def between(self, began_s: float, ended_s: float) -> Usage:
        """Return the mean rates between two times; `at_s` is how long that is."""
        first, last = self._at(began_s), self._at(ended_s)
        passed_s = max(last.at_s - first.at_s, _LOOK_S)
        return Usage(passed_s, *((b - a) / passed_s for a, b in zip(first[1:], last[1:], strict=True)))

    def _at(self, at_s: float) -> Usage:
        place = bisect.bisect_left(self._read, at_s, key=lambda read: read.at_s)
        return self._read[min(place, len(self._read) - 1)]


def usage() -> Usage:
    """Read /proc."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _, _, interrupts, soft_interrupts = fields[:7]
    lines = [line.split() for line in Path("/proc/diskstats").read_text().splitlines()]
    disks = [line for line in lines if Path("/sys/block", line[2], "device").exists()]  # no partitions, no loops
    read, written = (sum(int(line[field]) for line in disks) * _SECTOR_BYTES for field in (5, 9))
    return Usage(time.time(), (user + nice + system + interrupts + soft_interrupts) / _HZ, read, written)


class Recorder:
    """Runs jobs, and keeps what became of their maps.

    Attributes:
        maps: Those that succeeded.
    """

    def __init__(self, place: harness.Place, machine: Machine) -> None:
        self._place, self._machine, self._began_s = place, machine, time.time()
        self._numbers = itertools.count()
        self.maps: list[recorded.RecordedMap] = []

    def start(self, program: str, size_mib: int, maps: int) -> str:
        """Start a job; return its name."""
        name = f"{program}-{next(self._numbers)}"
        mapper = {"command": ["sh", "-c", PROGRAMS[program]], "resources": RESOURCES}
        source = self._place.url(f"in/{size_mib}x{maps}.txt")
        self._place.start(
            name,
            input=[source],
            mapper=mapper,
            reducer=None,
            numReduceTasks=0,
            files=None,
            splitMaxSize=f"{size_mib}Mi",
        )
        return name

    def finish(self, name: str, *, is_alone: bool = False) -> None:
        """Wait for a job and keep its maps."""
        self._place.succeed(name)
        program = name.rpartition("-")[0]
        pods = harness.until(lambda: self._ended(name), f"the kubelets report the maps of {name}")
        succeeded = [pod for pod in pods if pod["status"]["phase"] == "Succeeded"]
        self.maps += [self._map(pod, program, is_alone=is_alone) for pod in succeeded]
        self._place.cluster.run("delete", "mrjob", name, "-n", self._place.namespace, "--wait=false")

    def _ended(self, name: str) -> list[dict[str, Any]] | None:
        """Return the maps of a job, which may have succeeded before their kubelets say so."""
        pods = [pod for pod in self._place.raw_pods(name) if _label(pod, mrjob_names.LABEL_TASK_TYPE) == "map"]
        return pods if all(pod["status"]["phase"] not in {"Pending", "Running"} for pod in pods) else None

    def _map(self, pod: dict[str, Any], program: str, *, is_alone: bool) -> recorded.RecordedMap:
        message = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
        result = msgspec.json.decode(message, type=contract.TaskResult)
        began_s = min(timing.start_ms for timing in result.timings) / 1000
        ended_s = max(timing.end_ms for timing in result.timings) / 1000
        seconds = max(results.worked_s(result), 0.001)
        counters = signals.of_result(result, has_local_input=False)
        beside = self._machine.between(began_s, ended_s)
        return recorded.RecordedMap(
            program=program,
            is_alone=is_alone,
            started_s=began_s - self._began_s,
            seconds=seconds,
            input_bytes=signals.input_bytes(counters),
            cpu_s=counters["cpu_s"],
            spilled_bytes=counters["spilled_bytes"],
            others_cpus=max(0.0, beside.cpu_s - counters["cpu_s"] / (ended_s - began_s + 0.001)),
            others_read_bytes_per_s=beside.read_bytes,
            others_written_bytes_per_s=beside.written_bytes,
        )


def _label(pod: dict[str, Any], name: str) -> str:
    return str(pod["metadata"]["labels"].get(name, ""))


@contextlib.contextmanager
def neighbours(place: harness.Place, computing: int, writing: int) -> Iterator[None]:
    """Run pods that compute and pods that write during the block."""
    commands = [*((f"computes-{n}", CPU) for n in range(computing)), *((f"writes-{n}", DISK) for n in range(writing))]
    for name, command in commands:
        place.cluster.apply(_neighbour(place.namespace, name, command))
    try:
        yield
    finally:
        names = [f"pod/{name}" for name, _ in commands]
        if names:
            place.cluster.run("delete", *names, "-n", place.namespace, "--now", "--wait=true")


def _neighbour(namespace: str, name: str, command: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
    image = {"image": "localhost/boathouse-task:dev", "imagePullPolicy": "IfNotPresent"}
    container = {"name": "c", "command": ["sh", "-c", command], "resources": resources, **image}
    spec = {"terminationGracePeriodSeconds": 1, "restartPolicy": "Never", "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def record(place: harness.Place, file: Path, rounds: int, seed: int) -> Sequence[recorded.RecordedMap]:
    """Record the maps of all programs alone, then of some rounds; write them."""
    chance = random.Random(seed)  # noqa: S311 - a workload
    data = harness.text(8 << 20) * (MAPS * max(SIZES_MIB) // 8)
    for size_mib, maps in itertools.product(SIZES_MIB, (1, MAPS)):
        place.put(f"in/{size_mib}x{maps}.txt", data[: maps * size_mib << 20])
    with contextlib.closing(Machine()) as machine:
        recorder = Recorder(place, machine)
        for program, size_mib in itertools.product(PROGRAMS, SIZES_MIB):
            recorder.finish(recorder.start(program, size_mib, 1), is_alone=True)
        support.say(f"==> {len(recorder.maps)} maps alone")
        for number in range(rounds):
            computing, writing = NEIGHBOURS[number % len(NEIGHBOURS)]
            with neighbours(place, computing, writing):
                chosen = [(chance.choice(list(PROGRAMS)), chance.choice(SIZES_MIB)) for _ in range(JOBS)]
                for name in [recorder.start(program, size_mib, MAPS) for program, size_mib in chosen]:
                    recorder.finish(name)
            recorded.write(recorder.maps, file)
            support.say(f"==> round {number + 1} of {rounds}: {len(recorder.maps)} maps")
        return recorder.maps


def main() -> None:
    asked = support.options(
        __doc__ or "", rounds=20, seed=1, cluster="boathouse-recordings", keep=0, file=str(recorded.FILE)
    )
    with suspensions.prepared(asked.cluster, keeps=bool(asked.keep)) as place:
        maps = record(place, Path(asked.file), asked.rounds, asked.seed)
    support.say(f"{len(maps)} maps in {asked.file}")


if __name__ == "__main__":
    main()
