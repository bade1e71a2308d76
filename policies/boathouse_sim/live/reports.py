"""What a shell tells now and then: progress of running tasks, what nodes' instruments show, and that time passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_sim.base_world import Call
from boathouse_sim.clock import Priority

if TYPE_CHECKING:
    from boathouse_sim.live.course import Pod
    from boathouse_sim.live.world import LiveWorld

_BYTES = 1e6  # of a MB/s


class Reports:
    """Tells observers that want to know (`framework.Observer`), and asks for a cycle where there are controllers.

    Attributes:
        ticked: Whether time has passed that controllers wait for, since the shell looked.
    """

    def __init__(self, world: LiveWorld) -> None:
        self._world = world
        self.ticked = False
        curious = [one for one in world.profile.observers if one.report_every_s or one.measure_every_s]
        every_ms = [round(one.report_every_s * 1000) for one in curious if one.report_every_s > 0]
        if every_ms:
            self._every(min(every_ms), self._report)
        every_ms = [round(one.measure_every_s * 1000) for one in curious if one.measure_every_s > 0]
        if every_ms:
            self._measure()
            self._every(min(every_ms), self._measure)
        if world.profile.controllers:
            self._every(world.conditions.tick_ms, self._tick)

    def _every(self, period_ms: int, what: _Told) -> None:
        clock = self._world.clock
        clock.background(clock.now_ms + period_ms, Priority.ARRIVAL, Call(self._again, (period_ms, what)))

    def _again(self, what: tuple[int, _Told]) -> None:
        period_ms, told = what
        if not self._world.over:
            told()
            self._every(period_ms, told)

    def _tick(self) -> None:
        self.ticked = True
        self._world.notify(model.Tick(now_s=self._world.clock.now_s))

    def _report(self) -> None:
        for pod in tuple(self._world.pods.values()):
            found = pod.run.course.report(pod)
            if found is not None:
                self._world.notify(
                    model.Progress(
                        **self._world.about(pod),
                        fraction=found.fraction,
                        phase=found.phase,
                        counters=found.counters,
                    )
                )

    def _measure(self) -> None:
        world = self._world
        sums = {node.name: [0.0, 0.0, 0.0] for node in world.nodes}
        for pod in world.pods.values():
            self._add(pod, sums[pod.node])
        for name, (cores, disk, network) in sums.items():
            usage = {
                "cpu_cores": cores,
                "disk_bytes_per_s": disk * _BYTES,
                "network_bytes_per_s": network * _BYTES,
            }
            world.notify(model.Measured(now_s=world.clock.now_s, name=name, usage=usage))

    def _add(self, pod: Pod, sums: list[float]) -> None:
        for activity in pod.activities:
            for kind, used in enumerate(self._world.rates.used(activity)[:3]):
                sums[kind] += used


if TYPE_CHECKING:
    from collections.abc import Callable

    _Told = Callable[[], None]
