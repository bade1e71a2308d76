"""Whole runs against an exact look-ahead, made anew for every question."""

import numpy as np
import pytest

from boathouse_lab import table2
from boathouse_policies import yarn_me
from boathouse_sim.simulation import Instant
from tests.builders import simulations
from tests.unit.policies.yarn_me import reference

SEEDS = range(4)


def overload(seed):
    """Too much for its nodes, so that jobs wait: both penalties of the paper, in turn."""
    random = np.random.default_rng(seed)
    return table2.Table2(tasks=(1, 40), penalty_factor=1.5 if seed % 2 else 3.0, arrival_s=300).draw(8, 4, random)


def run_yarn_me(seed, **options):
    return simulations.run(Instant(overload(seed), yarn_me.build(**options)))


class Compared(yarn_me.Elasticity):
    """Asks the reference too, about the same moment."""

    asked = differ = 0

    def advise(self, queue, view):
        self.exact = reference.LookAhead(self.outlook, view, queue.reserved)
        return super().advise(queue, view)

    def ends_in_time(self, job, seconds, state):
        in_time = super().ends_in_time(job, seconds, state)
        if seconds < float("inf"):
            Compared.asked += 1
            end_s = state.view.now_s + seconds
            Compared.differ += in_time != (self.exact.reaches(job, end_s) or self.outlook.last_end_s(job) >= end_s)
        return in_time


def share_of_decisions_that_differ(monkeypatch, seeds):
    monkeypatch.setattr(yarn_me, "Elasticity", Compared)
    monkeypatch.setattr(Compared, "asked", 0)
    monkeypatch.setattr(Compared, "differ", 0)
    for seed in seeds:
        run_yarn_me(seed)
    assert Compared.asked > 100 * len(seeds)
    return Compared.differ / Compared.asked


def test_few_decisions_differ_from_those_of_an_exact_look_ahead(monkeypatch):
    assert share_of_decisions_that_differ(monkeypatch, SEEDS[:2]) < 0.02


def mean_job_times_s(**options):
    return [run_yarn_me(seed, **options).finished().mean_job_time_s for seed in SEEDS]


def test_mean_job_times_are_those_with_an_exact_look_ahead_at_every_cycle():
    exact = mean_job_times_s(config=yarn_me.Config(refresh_s=0.0), look_ahead=reference.LookAhead)
    assert np.mean(mean_job_times_s()) == pytest.approx(np.mean(exact), rel=0.01)
