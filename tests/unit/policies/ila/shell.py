"""A shell in miniature on virtual machines: it carries cycles out and tells the policy what happens."""

from __future__ import annotations

import math

import numpy as np

from boathouse_policies import framework, ila, model
from boathouse_policies.ila import metrics
from boathouse_policies.ila.exponential import Weights
from boathouse_sim.reproduce.ila import polynomials
from tests.unit.policies import builders as make

SIZE = make.amount(1000, 0.5)
CALM = metrics.Demand(1.0, 0.0, 0.0)


def hosts(count: int, each: int = 2, cpus: int = 2) -> list[model.Node]:
    """Virtual machines `h0v0`, `h0v1`, ... of so many CPUs; two hosts to a rack."""
    return [
        make.node(f"h{h}v{v}", make.amount(1000 * cpus, 4), server=f"h{h}", rack=f"r{h // 2}")
        for h in range(count)
        for v in range(each)
    ]


class Polynomial(polynomials.Polynomial):
    """A model of which tests know what it predicts."""

    def parts(self, system):
        """The sum of what is of the system alone, then each of its metrics, shape [9, N]."""
        of, pairs = self.of[: metrics.SYSTEM], self.pairs[: metrics.SYSTEM, : metrics.SYSTEM]
        return np.concatenate([(of @ system + (system * (pairs @ system)).sum(axis=0))[None], system])

    def weights(self, task):
        """The task's own sum, and the slope that it gives to each metric of the system."""
        own, system = np.array(task), metrics.SYSTEM
        constant = self.constant + self.of[system:] @ own + own @ self.pairs[system:, system:] @ own
        factors = (1.0, *(self.pairs[:system, system:] @ own).tolist())
        return Weights(float(constant), factors, (math.inf,) * len(factors))


def always(slowdown: float) -> Polynomial:
    """A model that predicts the same everywhere."""
    return linear(slowdown)


def linear(constant: float, **of: float) -> Polynomial:
    """A linear model: `linear(1, c_a=2)`."""
    weights = [of.get(name, 0.0) for name in metrics.NAMES]
    return polynomial(constant, np.array(weights), np.zeros((metrics.ALL, metrics.ALL)))


def polynomial(constant: float, of: np.ndarray, pairs: np.ndarray) -> Polynomial:
    """A polynomial model: linear without pairs."""
    return Polynomial(constant=constant, of=of, pairs=pairs)


class Shell(make.World):
    """A world whose cycles are told to the policy."""

    def __init__(
        self,
        nodes: list[model.Node],
        config: ila.Config | None = None,
        model_: Polynomial | None = None,
        *,
        measured: bool = True,
    ):
        super().__init__(nodes, profile=ila.build(config=config or ila.Config(idle_s=20.0)))
        found = [one for one in self.profile.observers if isinstance(one, ila.Interference)]
        self.interference = found[0] if found else None
        if model_ is not None and self.interference is not None:
            self.interference.learner.model = model_
        for node in nodes if measured else ():
            self.tell(model.Measured(now_s=self.now_s, name=node.name, usage={"cpu_cores": 0.0}))

    def tell(self, event: model.Event) -> None:
        for one in self.profile.observers:
            one.observe(event)

    def maps(self, name: str, count: int, locations=(), *, stage=model.Stage.MAP, seconds=10.0, read=None, **fields):
        """A job of one class, told to the policy."""
        estimates = model.Fixed(seconds=seconds, read_bytes=read)
        fields = {"size": SIZE, "stage": stage, "estimates": estimates} | fields
        one = self.submit(name, count, locations=locations, **fields)
        job = make.job(name)
        self.tell(model.Submitted(now_s=self.now_s, job=job, classes=(one,), tasks={one.id: count}))
        return one

    def uses(self, one: model.TaskClass, cpu: float, read: float = 0.0, write: float = 0.0) -> None:
        """A task of a class was measured."""
        profiles = self.interference.profiles
        profiles.ended(profiles.get(one.id), metrics.Demand(cpu, read, write))

    def go(self, now_s: float | None = None, **options) -> framework.Plan:
        """A cycle, at some time, carried out and told."""
        if now_s is not None:
            self.now_s = now_s
        self.room.tick(self.now_s)
        plan = self.cycle(**options)
        for one in make.placements(plan):
            ids = {"task": one.task.id, "task_class": one.task_class.id, "job": one.job.id, "node": one.node}
            self.tell(model.Placed(now_s=self.now_s, resources=one.resources, distance=one.distance, **ids))
            self.tell(model.Started(now_s=self.now_s, **ids))
        return plan

    def finish(self, one: model.Placement, seconds: float = 10.0, **counters: float) -> None:
        """A task ends, and the policy hears of it."""
        self.tell(
            model.Finished(
                now_s=self.now_s,
                task=one.task.id,
                task_class=one.task_class.id,
                job=one.job.id,
                node=one.node,
                duration_s=seconds,
                counters=counters or {"cpu_s": 10.0},
            )
        )
        self.end(one.task.id)


def placed_on(plan: framework.Plan) -> list[str]:
    """The nodes of a plan's placements, in order."""
    return [one.node for one in make.placements(plan)]
