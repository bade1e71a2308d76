"""One map alone on a machine: with all that it asks for or with 80 %, its block there or elsewhere (Figure 6)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from boathouse_lab.reproduce import figures
from boathouse_lab.reproduce.ikayak import setting as load
from boathouse_policies import framework, model, profiles
from boathouse_sim import work
from boathouse_sim.conditions import Conditions
from boathouse_sim.live import Live
from boathouse_sim.topology import Machine
from boathouse_sim.workload import Cluster, Workload

if TYPE_CHECKING:
    from boathouse_policies.framework import CycleState, PendingClass

LESS: Final = 0.8


class _Part(framework.Sizer):
    """A sizer that gives each task a part of what it asks for.

    Args:
        share: The part.
    """

    def __init__(self, share: float) -> None:
        self._share = share

    @override
    def least(self, task_class: model.TaskClass) -> model.Resources:
        """Return the reserved part of the class' size."""
        asked = task_class.resources
        return model.Resources(
            cpu_milli=round(self._share * asked.cpu_milli), memory_bytes=round(self._share * asked.memory_bytes)
        )

    @override
    def size(self, pending: PendingClass, node: int, state: CycleState) -> framework.Sized | model.Verdict:
        """Return the reserved part of the class' size, on any node."""
        return framework.Sized(self.least(pending.task_class))


def times_s(program: str, setting: load.Setting) -> tuple[float, float, float]:
    """Return how long a map runs: local with 100 %, local with 80 %, remote with 100 %."""
    here = Machine(name="w0", cores=2, mem_mb=4096)
    elsewhere = (Machine(name="w0", cores=1, mem_mb=1), dataclasses.replace(here, name="w1", stores=False))
    return (
        _time_s(program, setting, 1.0, here),
        _time_s(program, setting, LESS, here),
        _time_s(program, setting, 1.0, *elsewhere),
    )


def _time_s(program: str, setting: load.Setting, share: float, *machines: Machine) -> float:
    """Return the time on these machines; blocks are on those that store."""
    job = load.mapreduce("map", program, 1, 0, submit_ms=0, setting=setting)
    conditions = Conditions(reading=work.Reading(rack=setting.rack, anywhere=setting.rack))
    workload = Workload(name="one map", cluster=Cluster.of(machines), apps=(job,), conditions=conditions)
    driver = Live(workload, dataclasses.replace(profiles.build("fair"), sizer=_Part(share)))
    while driver.advance():
        pass
    return driver.world.finished().mean_job_time_s


def figure(setting: load.Setting) -> figures.Figure:
    """Return Figure 6."""
    found = {program: times_s(program, setting) for program in load.PROGRAMS}
    labels = ("local, 100 %", "local, 80 %", "remote, 100 %")
    told = "; ".join(f"{program}: {', '.join(f'{one:.1f}' for one in times)} s" for program, times in found.items())
    marks = tuple(
        figures.Bars(label=name, values=tuple(one[i] for one in found.values())) for i, name in enumerate(labels)
    )
    return figures.Figure(
        name="Figure 6",
        title="Locality against size, one map alone",
        panels=(
            figures.Panel(
                title="Map time",
                x=figures.Axis(label=""),
                y=figures.Axis(label="Time [s]"),
                marks=marks,
                categories=tuple(found),
            ),
        ),
        paper_shape="Local with 100 % is shortest, local with 80 % next, remote with 100 % longest.",
        our_shape=f"In that order: {told}.",
    )
