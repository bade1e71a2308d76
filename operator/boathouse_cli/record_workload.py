"""Make a workload for `boathouse simulate` of a recording, and write it.

* A job is taken if it came and ended while the recording ran. What ended later, came before, or was not seen whole is
  left out with a count.
* A node is as large as what pods that are not in the workload leave of it on average. Nodes that were usable for less
  than half of the recording are left out.
* A stage of a job is a phase. It waits for the end of the phase before if none of its tasks was placed earlier; else
  its tasks' times count from when all of the phase before was placed, as that is when the simulator submits them.
* A task runs from its placement to its end, so a pod's start is in it; the times of a repeated task's attempts add up.
"""

import collections
import dataclasses
import hashlib
import itertools
import json
import math
import secrets
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich import console

from boathouse_cli import kinds, model as models, record_keeping, record_lines
from boathouse_cli.errors import UsageError
from boathouse_policies import model
from boathouse_sim import neutral
from boathouse_sim.conditions import Conditions, RunTimes
from boathouse_sim.topology import Cluster, Machine
from boathouse_sim.workload import JobSpec, Penalty, Phase, Workload, WorkloadError

RESOLUTION_S: Final = 1.0
"""Kubernetes truncates times to whole seconds."""
ORDER: Final = {
    kinds.MRJOB.name: {"setup": 0, "map": 1, "uber": 1, "reduce": 2, "commit": 3},
    kinds.SPARKAPP.name: {"driver": 0, "executor": 1},
}
"""Types of tasks in the order in which a job runs them; others, such as probes and clean-ups, are of no phase."""
MB: Final = 1 << 20
LEAST_PRESENCE: Final = 0.5
CLOCKS_S: Final = 300.0
"""How far the clocks of nodes, of the API server and of this machine may differ."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A workload with the observed job times, what was left out or set aside, by reason, and what could not be read."""

    workload: Workload
    job_times_s: tuple[float, ...]
    left_out: Mapping[str, int]
    aside: Mapping[str, int]
    profile: str
    unread: tuple[str, ...]
    watched_s: float


class NothingRecordedError(ValueError):
    """No job can be taken; the message says why."""


@dataclasses.dataclass(slots=True)
class _Seen:
    """All lines, the last of each object."""

    begins: list[record_lines.Begin] = dataclasses.field(default_factory=list)
    sessions: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    aside: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    nodes: dict[str, list[record_lines.Node]] = dataclasses.field(default_factory=dict)
    jobs: dict[str, record_lines.Job] = dataclasses.field(default_factory=dict)
    pods: dict[str, record_lines.Pod] = dataclasses.field(default_factory=dict)

    def add(self, line: record_lines.Line) -> None:
        match line:
            case record_lines.Begin():
                self.begins.append(line)
                # A job that comes in the same second has an earlier time, without the fraction.
                self.sessions.append((math.floor(line.at_s), line.at_s))
            case record_lines.Mark():
                self.aside.update(line.aside)
                self._seen_at(line.at_s)
            case record_lines.Node():
                self.nodes.setdefault(line.name, []).append(line)
                self._seen_at(line.at_s)
            case record_lines.Job():
                self.jobs[line.uid] = line
            case record_lines.Pod():
                self.pods[line.uid] = line

    def _seen_at(self, at_s: float) -> None:
        began_s, until_s = self.sessions[-1]
        self.sessions[-1] = began_s, max(until_s, at_s)

    @property
    def watched_s(self) -> float:
        """How long somebody looked."""
        return sum(until_s - began_s for began_s, until_s in self.sessions)

    def covers(self, from_s: float, to_s: float) -> bool:
        """Return whether somebody looked all the time."""
        return any(began_s <= from_s and to_s <= until_s for began_s, until_s in self.sessions)

    def watched_part_s(self, from_s: float, to_s: float) -> float:
        """Return how much of a time somebody looked."""
        return sum(max(0.0, min(to_s, until_s) - max(from_s, began_s)) for began_s, until_s in self.sessions)


def build(lines: Iterable[record_lines.Line], name: str, *, salt: bytes | None = None) -> Built:
    """Return the workload of a recording; with a salt, hashes stand in place of all names.

    Raises NothingRecordedError if no job in it came and ended while the recording ran.
    """
    seen = _Seen()
    for line in lines:
        seen.add(line)
    alias = _aliases(salt)
    tasks, left_out = _tasks_by_job(seen)
    phases = {uid: _phases(seen.jobs[uid], pods) for uid, pods in tasks.items()}
    machines = _machines(seen, {pod.uid for pods in tasks.values() for pod in pods}, alias)
    for uid in [uid for uid, those in phases.items() if not _fits(those, machines)]:
        del phases[uid]
        left_out["larger than every node"] += 1
    if not phases:
        reasons = _counts(left_out) or "none was seen"
        raise NothingRecordedError(f"no job can be taken ({reasons}): record for longer")
    jobs = sorted((seen.jobs[uid] for uid in phases), key=lambda job: (job.created_s, job.uid))
    workload = Workload(
        name=name,
        cluster=Cluster.of(machines),
        jobs=tuple(_specs(jobs, phases, alias)),
        queues=tuple(_queues(seen, jobs, alias)),
        conditions=Conditions(run_times=RunTimes.LEARNED),
    )
    return Built(
        workload=workload,
        job_times_s=tuple((job.ended_s or job.created_s) - job.created_s for job in jobs),
        left_out=left_out,
        aside=seen.aside,
        profile=seen.begins[-1].profile,
        unread=tuple(sorted({plural for begin in seen.begins for plural in begin.unread})),
        watched_s=seen.watched_s,
    )


def _tasks_by_job(seen: _Seen) -> tuple[dict[str, list[record_lines.Pod]], collections.Counter[str]]:
    """Return the pods of the jobs that are taken, and how many jobs are not, by reason."""
    pods: dict[str, list[record_lines.Pod]] = {}
    for pod in seen.pods.values():
        driver = seen.pods.get(pod.owner)
        job = seen.jobs.get(pod.owner if driver is None else driver.owner)
        # A label and an owner can be forged, but only in one's own namespace.
        if job is not None and job.namespace == pod.namespace and pod.type in ORDER[job.kind]:
            pods.setdefault(job.uid, []).append(pod)
    left_out: collections.Counter[str] = collections.Counter()
    taken = {}
    for uid, job in seen.jobs.items():
        if (why := _refusal(seen, job, pods.get(uid, ()))) or job.ended_s is None:
            left_out[why] += 1
        else:
            # What ran when the job had ended is of no more use to it.
            taken[uid] = [
                pod if pod.ended_s is not None else msgspec.structs.replace(pod, ended_s=max(pod.placed_s, job.ended_s))
                for pod in pods[uid]
            ]
    return taken, left_out


def _refusal(seen: _Seen, job: record_lines.Job, pods: Sequence[record_lines.Pod]) -> str:
    """Return why a job is not taken; empty if it is."""
    if job.on_cluster:
        return "run on an MRCluster"
    if job.created_s < seen.sessions[0][0]:
        return "came before the recording"
    if job.ended_s is None:
        return "had not ended"
    if not pods:
        return "had no tasks"
    if not _has_sane_times(seen, job, pods):
        return "had impossible times"
    return "" if _is_whole(seen, job, pods) else "were not seen whole"


def _has_sane_times(seen: _Seen, job: record_lines.Job, pods: Sequence[record_lines.Pod]) -> bool:
    """Return whether nothing was before the job or after the recording, as far as clocks agree."""
    until_s = seen.sessions[-1][1] + CLOCKS_S
    ends_s = (job.ended_s or 0.0, *(pod.ended_s or 0.0 for pod in pods))
    return max(ends_s) <= until_s and min(pod.placed_s for pod in pods) >= job.created_s - CLOCKS_S


def _is_whole(seen: _Seen, job: record_lines.Job, pods: Sequence[record_lines.Pod]) -> bool:
    """Return whether all tasks of a job were seen to their end."""
    done = {(pod.type, pod.step, pod.index) for pod in pods if pod.succeeded}
    kinds_done = collections.Counter(kind for kind, _, _ in done)
    has_all = bool(kinds_done["uber"]) or (kinds_done["map"] >= job.maps and kinds_done["reduce"] >= job.reduces)
    is_counted = job.kind == kinds.MRJOB.name and job.phase == "Succeeded"
    return (
        (has_all or not is_counted)
        and all(pod.end_is_known for pod in pods)
        and ((is_counted and job.maps > 0) or seen.covers(job.created_s, job.ended_s or job.created_s))
    )


def _phases(job: record_lines.Job, pods: Sequence[record_lines.Pod]) -> tuple[Phase, ...]:
    order, stages = ORDER[job.kind], dict[tuple[int, int, str], dict[object, list[record_lines.Pod]]]()
    for pod in sorted(pods, key=lambda pod: (pod.placed_s, pod.uid)):
        tasks = stages.setdefault((pod.step, order[pod.type], pod.type), {})
        # Executors are told apart by their pods: a repeated one is another task.
        tasks.setdefault(pod.uid if pod.type == "executor" else pod.index, []).append(pod)
    found: list[Phase] = []
    placed_s = ended_s = -math.inf
    for (_, _, kind), tasks in sorted(stages.items()):
        attempts = [pod for task in tasks.values() for pod in task]
        waits = min(pod.placed_s for pod in attempts) >= ended_s - RESOLUTION_S
        found.append(_phase(kind, tasks, job.is_remote, -math.inf if waits else placed_s))
        placed_s = max(placed_s, *(task[0].placed_s for task in tasks.values()))
        ended_s = max(ended_s, *(pod.ended_s or pod.placed_s for pod in attempts))
    return tuple(found)


def _phase(kind: str, tasks: Mapping[object, Sequence[record_lines.Pod]], is_remote: bool, from_s: float) -> Phase:
    """Return the phase of a stage, with its attempts by index of their task, whose times count from a time on."""
    pods = [pod for attempts in tasks.values() for pod in attempts]
    ideal_bytes = max(max(pod.ideal_bytes, pod.memory_bytes) for pod in pods)
    run_times_s = {index: _busy_s(attempts, from_s) for index, attempts in tasks.items()}
    short = {index for index, attempts in tasks.items() if attempts[-1].memory_bytes < ideal_bytes}
    penalty = _penalty(run_times_s, short)
    times_ms = [
        round(seconds * 1000 / (penalty.factor if index in short else 1.0)) for index, seconds in run_times_s.items()
    ]
    inputs = [pod.input_bytes for pod in pods if pod.input_bytes]
    return Phase(
        kind=kind,
        tasks=len(times_ms),
        duration_ms=round(statistics.fmean(times_ms)),
        durations_ms=tuple(times_ms) if len(set(times_ms)) > 1 else (),
        mem_ideal_mb=max(1, math.ceil(ideal_bytes / MB)),
        cores=max(pod.cpu_milli for pod in pods) / 1000,
        penalty=penalty,
        when_ended=from_s == -math.inf,
        input_bytes=round(statistics.fmean(inputs)) if inputs else None,
        counters=_counters(pods, is_remote),
    )


def _busy_s(attempts: Sequence[record_lines.Pod], from_s: float) -> float:
    """Return how long any attempt of a task held room, not counting what was before a time."""
    total_s, until_s = 0.0, from_s
    for pod in attempts:
        ended_s = pod.ended_s or pod.placed_s
        total_s += max(0.0, ended_s - max(until_s, pod.placed_s))
        until_s = max(until_s, ended_s)
    return total_s


def _penalty(run_times_s: Mapping[object, float], short: set[object]) -> Penalty:
    """Return how much longer tasks with less memory ran, where others of the stage had all of theirs."""
    less = [seconds for index, seconds in run_times_s.items() if index in short]
    full = [seconds for index, seconds in run_times_s.items() if index not in short]
    if not less or not full or not statistics.median(full):
        return Penalty()
    return Penalty(factor=min(10.0, max(1.0, statistics.median(less) / statistics.median(full))))


def _counters(pods: Sequence[record_lines.Pod], is_remote: bool) -> tuple[tuple[str, float], ...]:
    """Return the mean of what tasks reported; what goes to an object store loads no disk of a node."""
    names = [name for name in record_lines.COUNTERS if not (is_remote and name in {"read_bytes", "written_bytes"})]
    reports = [pod.counters for pod in pods if pod.counters]
    means = [(name, statistics.fmean(report.get(name, 0.0) for report in reports)) for name in names if reports]
    return tuple(sorted((name, mean) for name, mean in means if mean))


def _specs(
    jobs: Sequence[record_lines.Job], phases: Mapping[str, tuple[Phase, ...]], alias: Callable[[str, str], str]
) -> Iterable[JobSpec]:
    began_s = jobs[0].created_s
    known: collections.Counter[str] = collections.Counter()
    for job in jobs:
        name = alias("job", f"{job.kind}/{job.namespace}/{job.name}")
        known[name] += 1
        yield JobSpec(
            id=name if known[name] == 1 else f"{name}#{known[name]}",
            submit_ms=round((job.created_s - began_s) * 1000),
            phases=phases[job.uid],
            program=alias("program", f"{job.namespace}/{job.program}"),
            queue=alias("queue", job.queue or "default"),
            namespace=alias("namespace", job.namespace),
        )


def _queues(seen: _Seen, jobs: Sequence[record_lines.Job], alias: Callable[[str, str], str]) -> Iterable[model.Queue]:
    known = {queue.name: queue for begin in seen.begins for queue in begin.queues}
    for name in sorted({job.queue or "default" for job in jobs}):
        queue = known.get(name, record_lines.Queue(name=name))
        limits = {resource: queue.limits[field] for field, resource in _LIMITS.items() if field in queue.limits}
        weight = queue.weight if 0 < queue.weight < math.inf else 1.0
        yield model.Queue.of(model.QueueName(alias("queue", name)), weight=weight, limits=limits)


_LIMITS: Final = {"cpu_milli": "cpu", "memory_bytes": "memory", "pods": "pods"}


def _machines(seen: _Seen, taken: set[str], alias: Callable[[str, str], str]) -> list[Machine]:
    """Return the nodes without what pods that are not in the workload held of them on average."""
    if not seen.nodes:
        return _guessed(seen, taken, alias)
    sizes = {name: max(lines, key=lambda line: line.cpu_milli) for name, lines in seen.nodes.items()}
    held, found, ends_s = _held(seen, sizes, taken), [], seen.sessions[-1][1]
    for name, lines in sorted(seen.nodes.items()):
        spans = itertools.pairwise([*lines, record_lines.Node(at_s=ends_s, name=name)])
        usable_s = sum(seen.watched_part_s(line.at_s, to.at_s) for line, to in spans if line.usable)
        size = sizes[name]
        is_present = usable_s >= LEAST_PRESENCE * seen.watched_s if seen.watched_s else lines[-1].usable
        if not is_present:
            continue
        milli_s, bytes_s = held.get(name, (0.0, 0.0)) if usable_s else (0.0, 0.0)
        milli = size.cpu_milli - round(milli_s / (usable_s or 1.0))
        mem_mb = int((size.memory_bytes - bytes_s / (usable_s or 1.0)) // MB)
        if milli > 0 and mem_mb > 0:
            found.append(_machine(name, milli, mem_mb, alias, rack=size.rack, zone=size.zone))
    return found


def _held(seen: _Seen, sizes: Mapping[str, record_lines.Node], taken: set[str]) -> dict[str, tuple[float, float]]:
    """Return millicores and bytes times seconds that pods which are not taken held, by node."""
    held: dict[str, tuple[float, float]] = {}
    ends_s = seen.sessions[-1][1]
    for pod in seen.pods.values():
        if pod.uid not in taken and (size := sizes.get(pod.node)):
            milli_s, bytes_s = held.get(pod.node, (0.0, 0.0))
            seconds = seen.watched_part_s(pod.placed_s, ends_s if pod.ended_s is None else pod.ended_s)
            milli_s += seconds * min(pod.cpu_milli, size.cpu_milli)  # a pod that asks for more was never there
            held[pod.node] = milli_s, bytes_s + seconds * min(pod.memory_bytes, size.memory_bytes)
    return held


def _guessed(seen: _Seen, taken: set[str], alias: Callable[[str, str], str]) -> list[Machine]:
    """Return nodes that just hold what ran on them at once: for users who may not read nodes."""
    events: dict[str, list[tuple[float, int, int]]] = {}
    for uid in taken:
        pod = seen.pods[uid]
        if pod.ended_s is not None:
            events.setdefault(pod.node, []).append((pod.placed_s, pod.cpu_milli, pod.memory_bytes))
            events[pod.node].append((pod.ended_s, -pod.cpu_milli, -pod.memory_bytes))
    found = []
    for name, those in sorted(events.items()):
        those.sort()  # at one time the ends come first: they are negative
        cpu = max(1, *itertools.accumulate(more for _, more, _ in those))
        memory_bytes = max(itertools.accumulate(more for _, _, more in those))
        found.append(_machine(name, cpu, max(1, math.ceil(memory_bytes / MB)), alias))
    return found


def _machine(
    name: str, milli: int, mem_mb: int, alias: Callable[[str, str], str], *, rack: str = "", zone: str = ""
) -> Machine:
    return Machine(
        name=alias("node", name),
        cores=milli / 1000,
        mem_mb=mem_mb,
        rack=alias("rack", rack) if rack else "",
        site=alias("zone", zone) if zone else "",
    )


def _fits(phases: Sequence[Phase], machines: Sequence[Machine]) -> bool:
    return bool(machines) and all(
        any(phase.mem_ideal_mb <= machine.mem_mb and phase.cores <= machine.cores for machine in machines)
        for phase in phases
    )


def _aliases(salt: bytes | None) -> Callable[[str, str], str]:
    """Return what names are written as: themselves, or a hash that is equal for equal names of a kind."""
    if salt is None:
        return lambda _, name: name

    def hashed(kind: str, name: str) -> str:
        return f"{kind}-{hashlib.blake2b(f'{kind}/{name}'.encode(), key=salt, digest_size=6).hexdigest()}"

    return hashed


def write_workload(recording: Path, target: Path, *, anonymous: bool) -> None:
    """Write a workload file, and say on stderr what is in it.

    Another process may be recording into the file. Anonymous names are hashes, whose salt is not kept.
    """
    lines = (line for line, _ in record_keeping.read_lines(recording))
    salt = secrets.token_bytes(16) if anonymous else None
    try:
        built = build(lines, "recording" if anonymous else recording.stem, salt=salt)
        built.workload.check()
    except (NothingRecordedError, WorkloadError) as error:
        raise UsageError(f"{recording}: {error}") from error
    about = {  # no names and no dates
        "profile": built.profile,
        "watched_s": round(built.watched_s),
        "observed_mean_job_time_s": round(statistics.fmean(built.job_times_s), 1),
        "left_out": dict(built.left_out),
        "set_aside": dict(built.aside),
        "unread": list(built.unread),
    }
    encoded = json.dumps(neutral.encode(built.workload, about))
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        unfinished.write_text(encoded + "\n")
        unfinished.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}: choose another file") from error
    screen = console.Console(stderr=True)
    for line in _summary(built, target):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)


def _summary(built: Built, target: Path) -> Iterable[str]:
    jobs, tasks, nodes = len(built.workload.jobs), built.workload.tasks, built.workload.cluster.nodes
    mean_s = statistics.fmean(built.job_times_s)
    yield (
        f"{target}: {jobs} jobs with {tasks} tasks on {nodes} nodes, of {models.duration(built.watched_s)}; the mean "
        f"job time was {mean_s:.1f} s{f' with the profile {built.profile}' if built.profile else ''}"
    )
    if built.left_out:
        yield f"left out: {_counts(built.left_out)}"
    if built.aside:
        yield f"set aside while recording: {_counts(built.aside)}"
    if "nodes" in built.unread:
        yield "nodes could not be read: they are as large as what ran on them at once; correct `cluster` in the file"
    profiles = ",".join(dict.fromkeys([built.profile or "boathouse", "fair"]))
    yield f"`boathouse simulate {target} --profile {profiles}` compares profiles"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))
