"""The workload of `live_mix.py`: the mix of `boathouse_lab.board.mix`, as objects of Boathouse."""

from __future__ import annotations

import dataclasses
import statistics
from typing import TYPE_CHECKING, Any

from benchmarks import fake_programs, spark_mix
from boathouse_lab.board import mix as drawn

if TYPE_CHECKING:
    from boathouse_sim import work

NAMESPACE = "mix"
LEAST_MEMORY = 0.25
"""Least share of its memory that a task may start with."""
SLOW_START_PERCENT = 20


class Job(drawn.Job):
    """A MapReduce job."""

    __slots__ = ()

    def manifest(self) -> dict[str, Any]:
        """Return the MRJob."""
        spec: dict[str, Any] = {
            "image": "none",
            "input": ["s3://b/in"],
            "output": f"s3://b/{self.name}",
            "mapper": _template(self.program, self.map),
            "slowStartCompletedMapsPercent": SLOW_START_PERCENT,
            "storage": {"s3": {"endpointURL": "http://s3", "secretRef": spark_mix.KEYS}},
        }
        if self.reduce is not None:
            spec |= {"reducer": _template(self.program, self.reduce), "numReduceTasks": self.reduces}
        return spark_mix.manifest("MRJob", self.name, NAMESPACE, spec)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A Spark application and when it is submitted."""

    submit_s: float
    application: spark_mix.Application

    @property
    def name(self) -> str:
        """Its name."""
        return self.application.name


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Jobs and applications.

    Attributes:
        drawn: What they were made of.
    """

    jobs: tuple[Job, ...]
    applications: tuple[Arrival, ...]
    drawn: drawn.Mix

    @property
    def everything(self) -> list[Job | Arrival]:
        """All that is submitted, by time."""
        return sorted((*self.jobs, *self.applications), key=lambda submission: submission.submit_s)

    @property
    def cpu_load(self) -> float:
        """Share of the CPUs that the workload uses while jobs arrive."""
        return self.drawn.cpu_load

    @property
    def alone_s(self) -> float:
        """The mean time of them if each had enough nodes for itself, and pods took no time to start."""
        return statistics.fmean(drawn.alone_s(self.drawn).values())

    def text(self) -> str:
        """Describe it in one line."""
        return drawn.text(self.drawn)


def mix(seed: int, shape: drawn.Shape) -> Mix:
    """Return the workload of a seed."""
    found, fields = drawn.draw(seed, shape), [field.name for field in dataclasses.fields(drawn.Job)]
    return Mix(
        jobs=tuple(Job(**{name: getattr(one, name) for name in fields}) for one in found.jobs),
        applications=tuple(_arrival(one, shape.heap_mib) for one in found.applications),
        drawn=found,
    )


def _arrival(one: drawn.Application, heap_mib: int) -> Arrival:
    return Arrival(
        submit_s=one.submit_s,
        application=spark_mix.Application(
            name=one.name,
            namespace=NAMESPACE,
            is_dynamic=False,
            minimum=one.executors,
            heap_mib=heap_mib,
            work=fake_programs.Work(
                executors=one.executors,
                minimum=one.executors,
                cores=1,
                memory_mib=one.memory_mib,
                seconds=one.seconds,
            ),
        ),
    )


def _template(program: str, container: work.Container) -> dict[str, Any]:
    percent = round(100 * (container.penalty.factor - 1))
    return {
        "command": [program],
        "resources": {"requests": {"cpu": str(container.cores), "memory": f"{container.mem_mb}Mi"}},
        "elasticMemory": {"min": f"{round(LEAST_MEMORY * container.mem_mb)}Mi", "slowdownPercent": percent},
    }
