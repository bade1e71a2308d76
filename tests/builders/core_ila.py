"""Virtual machines, interference models and shells for ILA."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from boathouse_lab.reproduce.ila import polynomials
from boathouse_policies import ila, model
from boathouse_policies.ila import exponential, fitting, profiling
from boathouse_policies.ila.exponential import Weights
from tests.builders import core

if TYPE_CHECKING:
    from collections.abc import Iterable

SIZE = core.amount(1000, 0.5)


def hosts(count: int, vms_per_host: int = 2, cpus: int = 2) -> list[model.Node]:
    """Virtual machines `h0v0`, `h0v1`, ... of so many CPUs; two hosts to a rack."""
    return [
        core.node(f"h{h}v{v}", core.amount(1000 * cpus, 4), server=f"h{h}", rack=f"r{h // 2}")
        for h in range(count)
        for v in range(vms_per_host)
    ]


class Polynomial(polynomials.Polynomial):
    """A model of which tests know what it predicts."""

    def parts(self, system):
        """The sum of what is of the system alone, then each of its metrics, shape [9, N]."""
        of, pairs = self.of[: profiling.SYSTEM], self.pairs[: profiling.SYSTEM, : profiling.SYSTEM]
        return np.concatenate([(of @ system + (system * (pairs @ system)).sum(axis=0))[None], system])

    def weights(self, task):
        """The task's own sum, and the slope that it gives to each metric of the system."""
        own, system = np.array(task), profiling.SYSTEM
        constant = self.constant + self.of[system:] @ own + own @ self.pairs[system:, system:] @ own
        factors = (1.0, *(self.pairs[:system, system:] @ own).tolist())
        return Weights(float(constant), factors, (math.inf,) * len(factors))


def constant(slowdown: float) -> Polynomial:
    """A model that predicts the same everywhere."""
    return linear(slowdown)


def linear(constant: float, **of: float) -> Polynomial:
    """A linear model: `linear(1, c_a=2)`."""
    weights = [of.get(name, 0.0) for name in profiling.NAMES]
    return Polynomial(constant=constant, of=np.array(weights), pairs=np.zeros((profiling.ALL, profiling.ALL)))


def quadratic() -> Polynomial:
    """A model of products of metrics alone."""
    pairs = np.zeros((profiling.ALL, profiling.ALL))
    pairs[profiling.C_A, profiling.T_C], pairs[profiling.W_A, profiling.W_A] = 2.0, 1.0
    return Polynomial(constant=1.0, of=np.zeros(profiling.ALL), pairs=pairs)


def exponential_term(scale: float, **gamma: float) -> exponential.Term:
    """A term of the exponential model: `exponential_term(0.05, c_u=3)`."""
    vector = np.array([gamma.get(name, 0.0) for name in profiling.NAMES])
    return exponential.Term(scale=scale, gamma=vector, mean=np.zeros(profiling.ALL), most=30.0)


def exponential_model() -> exponential.Exponential:
    """A model with a term for CPU and one for disks."""
    cpu = exponential_term(0.05, t_c=1.5, c_u=3.0, c_a=3.0)
    io = exponential_term(0.05, t_r=4.0, t_w=4.0, r_a=1.5, w_a=1.5)
    return exponential.Exponential(cpu=cpu, io=io, constant=1.0)


def metric_rows(count: int = 300, seed: int = 0) -> np.ndarray:
    """Metrics of random loads of hosts, and tasks of both kinds, a column for each."""
    random = np.random.default_rng(seed)
    computing = np.where(random.random(count) < 0.5, random.uniform(0.9, 1.0, count), random.uniform(0.1, 0.3, count))
    disk = 1.0 - computing
    task = np.array([computing, disk * 0.7, disk * 0.3])
    node, others = (random.uniform(0, top, (3, count)) for top in (0.2, 0.8))
    return np.concatenate([profiling.system(node, node + others, np.zeros(count)), task])


def samples(of: Polynomial | exponential.Exponential | None = None, **fields: int) -> fitting.Samples:
    """Samples that a model makes, the exponential one unless given."""
    made = metric_rows(**fields)
    return fitting.Samples(made, (of or exponential_model()).predict(made))


def mean_error(model: Polynomial | exponential.Exponential, of: fitting.Samples) -> float:
    """The mean relative error of a model on samples."""
    return float((np.abs(model.predict(of.rows) - of.slowdown) / of.slowdown).mean())


class IlaShell(core.ReportingShell):
    """A shell on virtual machines, which are measured unless a test says otherwise."""

    def __init__(
        self,
        nodes: list[model.Node],
        config: ila.Config | None = None,
        model_: Polynomial | exponential.Exponential | None = None,
        *,
        measured: bool = True,
    ) -> None:
        super().__init__(nodes, profile=ila.build(config=config or ila.Config(idle_s=20.0)))
        found = [observer for observer in self.profile.observers if isinstance(observer, ila.Interference)]
        self.interference = found[0] if found else None
        if model_ is not None and self.interference is not None:
            self.interference.learners.first.model = model_
        for node in nodes if measured else ():
            self.report(model.Measured(now_s=self.now_s, name=node.name, usage={"cpu_cores": 0.0}))

    def submit(
        self,
        name: str = "job",
        count: int = 1,
        size: model.Resources | None = None,
        locations: Iterable[str] = (),
        *,
        demand: tuple[float, float, float] | None = None,
        read_bytes: int | None = None,
        **fields,
    ) -> model.TaskClass:
        """Submit a job of one class of maps of 10 s, of which a demand (CPU, reads, writes) is known if it is given."""
        estimates = model.Fixed(seconds=10.0, read_bytes=read_bytes)
        fields = {"stage": model.Stage.MAP, "estimates": estimates} | fields
        of = super().submit(name, count, size or SIZE, locations, **fields)
        if demand is not None and self.interference is not None:
            profiles = self.interference.profiles
            profiles.ended(profiles.get(of.id), profiling.Demand(*demand))
        return of
