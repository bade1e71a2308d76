"""Record tasks on real kubelets, beside neighbours that use CPU and disk, for `docs/models.md`.

    python -m benchmarks.task_recordings [--rounds 18] [--seed 1] [--cluster boathouse-recordings] [--keep 0]
                                         [--file lab/boathouse_lab/models/recorded_tasks.csv]

The nodes must run on this machine, because what its CPUs and disks do is read from /proc; nothing else should run on
it. PROVIDER and CONTEXT choose the cluster as for `make test-e2e`; a cluster that exists is used and left.

First each of ten mappers and three Spark programs runs alone, one task at a time, on each size of input. Then each
round starts some pods that compute or write, and beside them four jobs of other programs and sizes and a Spark
application. What was recorded so far is written after each round.
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
from boathouse.services.mrjob import results
from boathouse_e2e import demo, images
from boathouse_lab.models import recorded
from boathouse_task import contract
from e2e.tests import harness, spark_harness

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_WORDS = "import re,sys;print(sum(len(re.findall(rb'[a-z]+',line)) for line in sys.stdin.buffer))"
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
SPARK_PROGRAM = r"""
import sys
from pyspark.sql import SparkSession, functions as F

PROGRAMS = {
    "spark-grep": lambda lines: lines.filter(F.col("value").rlike("import .*as")).agg(F.count("value")),
    "spark-sha512": lambda lines: lines.agg(F.max(F.sha2("value", 512))),
    "spark-words": lambda lines: lines.select(F.explode(F.split("value", r"\W+"))).groupBy("col").count(),
}
program, *inputs = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
for one in inputs:
    size_mib, source = one.split("=", 1)
    spark.conf.set("spark.sql.files.maxPartitionBytes", f"{size_mib}m")
    PROGRAMS[program](spark.read.text(source)).write.format("noop").mode("overwrite").save()
spark.stop()
"""
SPARK_PROGRAMS = ("spark-grep", "spark-sha512", "spark-words")
"""What the program computes, by its first argument."""
SPARK_TASKS = 4
"""Of each size, one after the other."""
SIZES_MIB = (8, 16, 32, 64)
"""Input of a map."""
SPARK_SIZES_MIB = (16, 32, 64)
"""Input of a Spark task."""
MAPS = 8
"""Of a job of a round."""
JOBS = 4
"""Of a round."""
CPU = "while :; do :; done"
DISK = "while :; do dd if=/dev/zero of=/tmp/written bs=1M count=64 conv=fsync; done"
NEIGHBOURS = tuple(itertools.product((0, 1, 2), (0, 1, 2)))
"""Pods that compute, and pods that write, of a round."""
RESOURCES = {"requests": {"cpu": "500m", "memory": "192Mi"}}
EVENTS = "events"
"""Where Spark writes what its tasks did."""
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
    """Runs jobs and applications, and keeps what became of their tasks.

    Attributes:
        tasks: Those that succeeded.
    """

    def __init__(self, place: harness.Place, machine: Machine) -> None:
        self._place, self._machine, self._began_s = place, machine, time.time()
        self._applications = spark_harness.Applications(place=place)
        self._numbers, self._read = itertools.count(), set[str]()
        self.tasks: list[recorded.RecordedTask] = []

    def start(self, program: str, size_mib: int, maps: int) -> str:
        """Start a job; return its name."""
        name = f"{program}-{next(self._numbers)}"
        mapper = {"command": ["sh", "-c", PROGRAMS[program]], "resources": RESOURCES}
        source = self._place.url(_input(size_mib, maps))
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
        self.tasks += [self._map(pod, program, is_alone=is_alone) for pod in succeeded]
        self._place.cluster.run("delete", "mrjob", name, "-n", self._place.namespace, "--wait=false")

    def _ended(self, name: str) -> list[Mapping[str, Any]] | None:
        """Return the maps of a job, which may have succeeded before their kubelets say so."""
        pods = [pod for pod in self._place.raw_pods(name) if _label(pod, mrjob_names.LABEL_TASK_TYPE) == "map"]
        return pods if all(pod["status"]["phase"] not in {"Pending", "Running"} for pod in pods) else None

    def _map(self, pod: Mapping[str, Any], program: str, *, is_alone: bool) -> recorded.RecordedTask:
        message = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
        result = msgspec.json.decode(message, type=contract.TaskResult)
        began_s = min(timing.start_ms for timing in result.timings) / 1000
        ended_s = max(timing.end_ms for timing in result.timings) / 1000
        counters = results.flat_counters(result, has_local_input=False)
        return self._task(
            (began_s, ended_s),
            program=program,
            is_alone=is_alone,
            seconds=results.worked_s(result),
            input_bytes=results.input_bytes(counters),
            cpu_s=counters["cpu_s"],
            spilled_bytes=counters["spilled_bytes"],
        )

    def _task(
        self, span_s: tuple[float, float], *, seconds: float, cpu_s: float, **known: Any
    ) -> recorded.RecordedTask:
        """Add what the machine did besides during the time of a task, in seconds since the epoch."""
        beside = self._machine.between(*span_s)
        return recorded.RecordedTask(
            started_s=span_s[0] - self._began_s,
            seconds=max(seconds, 0.001),
            cpu_s=cpu_s,
            others_cpus=max(0.0, beside.cpu_s - cpu_s / (span_s[1] - span_s[0] + 0.001)),
            others_read_bytes_per_s=beside.read_bytes,
            others_written_bytes_per_s=beside.written_bytes,
            **known,
        )

    def start_spark(self, program: str) -> str:
        """Start an application that reads inputs of all sizes; return its name."""
        name = f"{program}-{next(self._numbers)}"
        sources = [f"{size}={spark_harness.s3a(self._place, _input(size, SPARK_TASKS))}" for size in SPARK_SIZES_MIB]
        return self._applications.start(
            name,
            mainApplicationFile=f"local://{spark_harness.PROGRAMS}/main.py",
            arguments=[program, *sources],
            executor={"instances": 1, "cores": 1, "coreRequest": "500m", "memory": "512m"},
            monitoring={"eventLogDir": spark_harness.s3a(self._place, EVENTS)},
            sparkConf={"spark.eventLog.compress": "false", "spark.sql.shuffle.partitions": "1"},
        )

    def finish_spark(self, name: str, *, is_alone: bool = False) -> None:
        """Wait for an application and keep its tasks that read input."""
        self._applications.succeed(name)
        program, folder = name.rpartition("-")[0], f"{self._place.namespace}/{EVENTS}"
        for key in demo.sizes(self._place.store, folder):
            if "/events_" in key and key not in self._read:
                self._read.add(key)
                for line in demo.read(self._place.store, key).splitlines():
                    self._keep(msgspec.json.decode(line), program, is_alone=is_alone)
        self._place.cluster.run("delete", "sparkapp", name, "-n", self._place.namespace, "--wait=false")

    def _keep(self, event: dict[str, Any], program: str, *, is_alone: bool) -> None:
        if event["Event"] != "SparkListenerTaskEnd" or event["Task End Reason"]["Reason"] != "Success":
            return
        metrics, info = event["Task Metrics"], event["Task Info"]
        if input_bytes := metrics["Input Metrics"]["Bytes Read"]:
            task = self._task(
                (info["Launch Time"] / 1000, info["Finish Time"] / 1000),
                program=program,
                is_alone=is_alone,
                seconds=metrics["Executor Run Time"] / 1000,
                input_bytes=input_bytes,
                cpu_s=metrics["Executor CPU Time"] / 1e9,
                spilled_bytes=metrics["Disk Bytes Spilled"],
            )
            self.tasks.append(task)


def _input(size_mib: int, tasks: int) -> str:
    """Return the name of the file that so many tasks read."""
    return f"in/{size_mib}x{tasks}.txt"


def _label(pod: Mapping[str, Any], name: str) -> str:
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


def prepare(place: harness.Place) -> None:
    """Store the inputs, and have what Spark needs."""
    images.load(place.cluster, [images.SPARK])
    applications = spark_harness.Applications(place=place)
    applications.enable()
    applications.program(SPARK_PROGRAM)
    place.put(f"{EVENTS}/made", b"")  # Spark wants the folder to exist
    data = harness.text(8 << 20) * (MAPS * max(SIZES_MIB) // 8)
    for size_mib, tasks in itertools.product(SIZES_MIB, (1, SPARK_TASKS, MAPS)):
        place.put(_input(size_mib, tasks), data[: tasks * size_mib << 20])


def record(place: harness.Place, file: Path, rounds: int, seed: int) -> Sequence[recorded.RecordedTask]:
    """Record the tasks of all programs alone, then of some rounds; write them."""
    chance = random.Random(seed)  # noqa: S311 - a workload
    prepare(place)
    with contextlib.closing(Machine()) as machine:
        recorder = Recorder(place, machine)
        for program, size_mib in itertools.product(PROGRAMS, SIZES_MIB):
            recorder.finish(recorder.start(program, size_mib, 1), is_alone=True)
        for program in SPARK_PROGRAMS:
            recorder.finish_spark(recorder.start_spark(program), is_alone=True)
        support.say(f"==> {len(recorder.tasks)} tasks alone")
        for number in range(rounds):
            computing, writing = NEIGHBOURS[number % len(NEIGHBOURS)]
            with neighbours(place, computing, writing):
                application = recorder.start_spark(SPARK_PROGRAMS[number % len(SPARK_PROGRAMS)])
                chosen = [(chance.choice(list(PROGRAMS)), chance.choice(SIZES_MIB)) for _ in range(JOBS)]
                for name in [recorder.start(program, size_mib, MAPS) for program, size_mib in chosen]:
                    recorder.finish(name)
                recorder.finish_spark(application)
            recorded.write(recorder.tasks, file)
            support.say(f"==> round {number + 1} of {rounds}: {len(recorder.tasks)} tasks")
        return recorder.tasks


def main() -> None:
    asked = support.options(
        __doc__ or "", rounds=18, seed=1, cluster="boathouse-recordings", keep=0, file=str(recorded.FILE)
    )
    with suspensions.prepared(asked.cluster, keeps=bool(asked.keep)) as place:
        tasks = record(place, Path(asked.file), asked.rounds, asked.seed)
    support.say(f"{len(tasks)} tasks in {asked.file}")


if __name__ == "__main__":
    main()
