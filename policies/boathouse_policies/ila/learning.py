"""Offline training of the interference model, and its online adaptation (4.1).

The paper trained on its hosts with ten applications and two load generators before it scheduled. Here nobody trains:
samples are drawn from the curves of its Figures 1 and 2, as the text tells them, for tasks that compute or are at the
disk for different shares of their time. They stay in every fit, at little weight, so that a model which has seen few
situations says nothing wild about the others.

* CPU: 5 % slower where two thirds of a host's promised CPUs are asked for (800 % of 12), twice as slow where all are.
* I/O: an exponential rise with the traffic, 1.5 times as slow where the disks are asked for all that they carry,
  4 times where for twice of it.
* At most 7 times slower, and each only for the time that a task spends on it.

Online, the model is fitted for every k new observations. A fit keeps the variables of the model before, which takes a
few milliseconds; variables are selected anew only while the error is not acceptable, and then after four times as many
fits each time. A model whose error is beyond reason is dropped: the learner begins anew.

Deviation: each namespace has a learner of its own. What a task reports of its use and its run time nobody can confirm,
for a task is as slow as its author likes: so it weighs on the predictions of its own namespace only.
"""

import copy
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from boathouse_policies.framework.programs import Programs
from boathouse_policies.ila import additive, fitting, profiling
from boathouse_policies.ila.config import Config
from boathouse_policies.ila.exponential import FAMILY, Exponential
from boathouse_policies.model import NamespaceName


class Learner:
    """The model, and what it learns from."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._first, self._offline = first_models(), first_samples()
        self._fresh: tuple[list[float], ...] = ()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.model, self.additive = self._first
        self.error = self._config.first_error  # mean of |S - predicted| / S, where it was not fitted to S (5.4)
        self._is_fitted = False
        self._newest = [fitting.Samples.of_rows([])] * 2  # CPU- and I/O-bound
        self._patience, self._since_selection = _FIRST_PATIENCE, 0

    @property
    def margin(self) -> float:
        """By how much more than a threshold is accepted: the model's own error, up to a limit."""
        return min(self.error, self._config.largest_error)

    def fork(self) -> "Learner":
        """Return a learner that begins as this one, and goes on by itself."""
        return copy.copy(self)  # nothing of it is changed in place

    def begin_with(self, model: Exponential, additive_model: additive.Additive, offline: fitting.Samples) -> None:
        """Begin with models that were trained offline (4.1): these samples, instead of ours, stay in every fit."""
        self._first, self._offline = (model, additive_model), offline
        self.model, self.additive, self._is_fitted = model, additive_model, True

    @property
    def models(self) -> tuple[Exponential, additive.Additive, additive.Additive]:
        """The paper's model, ours, and the trivial one, by which nobody is slowed down."""
        return self.model, self.additive, additive.NOBODY

    def predict(self, system: list[float], task: profiling.Demand) -> float:
        """Return the slowdown that the current model predicts for a task and the system's metrics, length 8."""
        return float(self.model.predict(np.array([*system, *task])[:, None])[0])

    def observe(self, system: list[float], task: profiling.Demand, slowdown: float) -> bool:
        """Observe S of a task that ended, with the system's metrics meanwhile; return whether the model has changed."""
        self._fresh = (*self._fresh, [*system, *task, slowdown])
        return len(self._fresh) >= self._config.refit_every and self._update()

    def _update(self) -> bool:
        """Judge the model by what is new, then fit it; whether it is another one now."""
        fresh = fitting.Samples.of_rows(self._fresh)
        self._fresh = ()
        missed = float((np.abs(fresh.slowdown - self.model.predict(fresh.rows)) / fresh.slowdown).mean())
        self.error += _NEW * (missed - self.error)
        if not self.error <= self._config.worst_error:  # also where it is not a number
            self._begin_anew()
            return True
        self._since_selection += 1
        is_due = self.error > self._config.acceptable_error and self._since_selection >= self._patience
        keeps_variables = self._is_fitted and not is_due
        window, io_bound = slice(-self._config.window, None), fresh.io_bound
        kinds = zip(self._newest, (fresh.of(~io_bound), fresh.of(io_bound)), strict=True)
        self._newest = [newest.beside(new).of(window) for newest, new in kinds]
        cpu, io = self._newest
        samples, before = cpu.beside(io).beside(self._offline), self.model if keeps_variables else None
        self.additive = additive.fit(samples)
        found = fitting.fit(samples, before=before, start=self._first[0])
        if found is None:
            return False
        if not keeps_variables:
            self._patience = self._patience * _GROWTH if self._is_fitted else _FIRST_PATIENCE
            self._since_selection = 0
        self.model, self._is_fitted = found, True
        return True

    def dump(self) -> Mapping[str, Any]:
        """Return the model and its error; the samples of the fit are observed anew."""
        models = {"model": self.model.dump(), "additive": self.additive.dump()}
        return {**models, "error": round(self.error, 4), "fitted": self._is_fitted}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore the learner from `dump`, but no model of an earlier version's form or with an error beyond reason."""
        model, error = state.get("model"), float(state.get("error", self._config.first_error))
        if model is not None and model.get("family") == FAMILY and 0 <= error <= self._config.worst_error:
            self.model, self._is_fitted = Exponential.load(model), bool(state.get("fitted", False))
            self.additive = additive.Additive.load(state.get("additive")) or self.additive
            self.error = error


class Learners:
    """A learner for each namespace whose maps have ended: what those of one report never reaches another's."""

    def __init__(self, config: Config) -> None:
        self.first = Learner(config)  # what each begins as; it observes nothing
        self._of: Programs[Learner] = Programs(config.learners_kept)  # by namespace; who learnt last is last

    def __iter__(self) -> Iterator[Learner]:
        return iter(self._of.values())

    def of(self, namespace: NamespaceName) -> Learner:
        """Return the learner of a namespace; the first one where it has none."""
        return self._of.get(namespace, self.first)

    def observe(self, namespace: NamespaceName, system: list[float], task: profiling.Demand, slowdown: float) -> None:
        """Observe the end of a namespace's task (`Learner.observe`). The namespace becomes the last to be forgotten."""
        learner = self._of.get(namespace) or self.first.fork()
        self._of.put(namespace, learner)
        learner.observe(system, task, slowdown)

    def dump(self) -> Mapping[str, Any]:
        """Return the learners that differ from the first one, by namespace."""
        return {name: learner.dump() for name, learner in self._of.items() if learner.model is not self.first.model}

    def load(self, state: Mapping[NamespaceName, Mapping[str, Any]]) -> None:
        """Restore the learners from `dump`."""
        for namespace, dumped in state.items():
            learner = self.first.fork()
            learner.load(dumped)
            self._of.put(namespace, learner)


@functools.cache
def first_samples() -> fitting.Samples:
    """Return samples in place of the offline training: spread evenly over loads and tasks, equal at every call."""
    chance = _spread(_SAMPLES, 9)
    computing = np.where(chance[0] < _HALF, 1.0 - 0.1 * chance[1], 0.05 + 0.3 * chance[1])
    at_disk = 1.0 - computing
    rate = (0.1 + 0.6 * chance[2]) * at_disk  # of a host's disks while at them
    reads = chance[3]
    host = np.array([1.1 * chance[4], 1.5 * chance[5] * chance[6], 1.5 * chance[5] * (1.0 - chance[6])])
    system = profiling.system(host * (0.4 * chance[7]), host, np.zeros(_SAMPLES))
    task = np.array([computing, rate * reads, rate * (1.0 - reads)])
    cpu = 1.0 + _LOW_CPU * np.expm1(_STEEP_CPU * (host[0] + computing / _CPUS))
    disk = 1.0 + _LOW_IO * np.expm1(_STEEP_IO * (host[1] + host[2] + rate))
    slowdown = computing * np.minimum(cpu, _CEILING) + at_disk * np.minimum(disk, _CEILING)
    return fitting.Samples(np.concatenate([system, task]), slowdown, counted=np.full(_SAMPLES, _COUNTED_FIRST))


@functools.cache
def first_models() -> tuple[Exponential, additive.Additive]:
    """Return the models that predict before the first observations."""
    return fitting.exponential(first_samples()), additive.fit(first_samples())


def _spread(count: int, dimensions: int) -> np.ndarray:
    """Return points that fill the unit cube evenly, without chance: a Kronecker sequence, shape [dimensions, count]."""
    steps = np.sqrt(np.array([2, 3, 5, 7, 11, 13, 17, 19, 23][:dimensions], np.float64))[:, None]
    return (steps * np.arange(1, count + 1)) % 1.0


_FIRST_PATIENCE, _GROWTH = 1, 4  # fits between two selections
_NEW = 0.3  # arbitrary: how much a hundred new observations count in the error
_SAMPLES, _COUNTED_FIRST = 256, 0.1  # all together count as much as some two dozen observations
_STEEP_CPU, _LOW_CPU = 9.0, 1.24e-4
_STEEP_IO, _LOW_IO = 1.6, 0.126
_CEILING = 7.0
_CPUS = 12.0  # of the paper's hosts
_HALF = 0.5
