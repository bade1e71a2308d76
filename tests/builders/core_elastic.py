"""A shell whose jobs can do with less memory and whose nodes are measured: for profiles that resize tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import ila, model, profiles
from boathouse_policies.yarn_me.penalty import Elastic, Mapper
from tests.builders import core
from tests.builders.core_ila import constant

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZE = core.amount(1000, 2)


def elastic_estimates(
    size: model.Resources, seconds: float, factor: float = 1.2, output_bytes: float = 0, **fields
) -> Elastic:
    """Estimates of a map that takes so many times as long with less memory, and then writes its output twice."""
    ideal_bytes = size.memory_bytes
    run_time = Mapper(
        ideal_s=seconds, undersized_s=seconds * factor, ideal_bytes=ideal_bytes, output_bytes=output_bytes
    )
    return Elastic(run_time, ideal_bytes=ideal_bytes, **fields)


class ElasticShell(core.ReportingShell):
    """Nodes of 4 cores and 8 GiB unless given; `slowdown` is what ILA predicts everywhere."""

    def __init__(
        self, *nodes: model.Node, profile: str = "boathouse", slowdown: float | None = None, **switches: bool
    ) -> None:
        built = profiles.build(profile, switches=profiles.Switches(**switches))
        nodes = nodes or (core.node(),)
        super().__init__(nodes, profile=built)
        for node in nodes:
            self.report(model.Measured(now_s=self.now_s, name=node.name, usage={"cpu_cores": 0.0}))
        if slowdown is not None and any(isinstance(observer, ila.Interference) for observer in built.observers):
            self.observer(ila.Interference).learners.first.model = constant(slowdown)

    def submit(
        self,
        name: str = "job",
        count: int = 1,
        size: model.Resources | None = None,
        locations: Iterable[str] = (),
        *,
        stage: model.Stage = model.Stage.MAP,
        seconds: float | None = 100.0,
        **fields,
    ) -> model.TaskClass:
        """Submit a job of one class that can do with less memory where `seconds` are known."""
        size = size or SIZE
        estimates = model.UNKNOWN if seconds is None else elastic_estimates(size, seconds)
        fields = {"submitted_s": self.now_s, "estimates": estimates, "class_name": stage.name.lower()} | fields
        return super().submit(name, count, size, locations, stage=stage, **fields)

    def measured(self, *classes: model.TaskClass) -> None:
        """Have tasks of these classes measured: what ILA guesses of others refuses nothing."""
        for task_class in classes:
            self.observer(ila.Interference).profiles.get(task_class.id).is_guess = False

    def submit_spark(self, size: model.Resources | None = None, **fields) -> model.TaskClass:
        """Submit an application with one executor, which needs a whole node unless a size is given."""
        fields = {"stage": model.Stage.EXECUTOR, "seconds": None} | fields
        return self.submit("spark", 1, size or core.amount(4000, 8), **fields)

    def leave(self, on: str, cpu: int, gib: float) -> None:
        """Bind a pod of another scheduler that leaves this much of a node of 4 cores and 8 GiB."""
        self.ledger.observe(core.account(f"pod-{on}", on, core.amount(4000 - cpu, 8 - gib)))
