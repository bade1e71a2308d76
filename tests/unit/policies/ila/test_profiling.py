"""Task profiling of ILA: equation 7."""

import pytest
from hypothesis import given, strategies as st

from boathouse_policies import ila, model
from boathouse_policies.ila import profiling
from boathouse_policies.ila.profiling import Profiles, measured
from tests.builders import core

MAP = core.task_class(core.job(kind="sort"), stage=model.Stage.MAP)


def profiled(config=None):
    """Profiles of a class of maps, and its own."""
    profiles = Profiles(config or ila.Config())
    profiles.submitted(core.job(kind="sort"), (MAP,))
    return profiles, profiles.get(MAP.id)


def test_before_a_task_has_ended_the_demand_is_high():
    assert Profiles(ila.Config()).demand(MAP) == profiling.Demand(1.0, 0.25, 0.25)
    assert profiled()[0].demand(MAP) == profiling.Demand(1.0, 0.25, 0.25)


def test_the_first_task_tells_the_demand_alone():
    profiles, known = profiled()
    profiles.ended(known, profiling.Demand(0.5, 0.1, 0.0))
    assert known.demand == profiling.Demand(0.5, 0.1, 0.0)


def test_later_ones_count_for_four_fifths():
    profiles, known = profiled()
    profiles.ended(known, profiling.Demand(1.0, 0.0, 0.0))
    profiles.ended(known, profiling.Demand(0.0, 1.0, 0.0))
    assert known.demand == pytest.approx((0.2, 0.8, 0.0))


@given(st.lists(st.floats(0, 2), min_size=1, max_size=30))
def test_the_demand_stays_within_what_was_measured(cpus):
    profiles, known = profiled()
    for cpu in cpus:
        profiles.ended(known, profiling.Demand(cpu, 0.0, 0.0))
    assert min(cpus) - 1e-9 <= known.demand.cpu <= max(cpus) + 1e-9


def again(config, **job):
    """A second job, after one of the program `sort` had used half a CPU."""
    profiles, first = Profiles(config), core.job("first", kind="sort")
    profiles.submitted(first, (core.task_class(first, stage=model.Stage.MAP),))
    profiles.ended(profiles.get(model.ClassId("first/map")), profiling.Demand(0.5, 0.0, 0.0))
    second = core.job("second", **job)
    task_class = core.task_class(second, stage=model.Stage.MAP)
    profiles.submitted(second, (task_class,))
    return profiles, profiles.get(task_class.id)


def test_the_next_job_of_a_program_begins_with_what_was_measured_of_the_last():
    _, second = again(ila.Config(), kind="sort")
    assert not second.is_guess
    assert second.demand.cpu == 0.5


@pytest.mark.parametrize(("config", "kind"), [(ila.Config(), "grep"), (ila.Config(by_program=False), "sort")])
def test_other_programs_begin_high_and_so_do_all_where_configured(config, kind):
    _, second = again(config, kind=kind)
    assert second.is_guess
    assert second.demand.cpu == 1.0


def test_a_restart_keeps_what_programs_use():
    profiles, _ = again(ila.Config(), kind="sort")
    fresh = Profiles(ila.Config())
    fresh.load(profiles.dump())
    third = core.job("third", kind="sort")
    fresh.submitted(third, (core.task_class(third, stage=model.Stage.MAP),))
    assert fresh.demand(core.task_class(third, stage=model.Stage.MAP)).cpu == 0.5


def test_a_dump_takes_the_place_of_what_was_known_without_its_entries_that_cannot_be():
    profiles, _ = again(ila.Config(), kind="sort")
    profiles.load({"etl/0/map": [2, 0, 0], "odd": ["x", 0, 0], "less": [-1, 0, 0], "short": [1], "much": [1e999, 0, 0]})
    assert profiles.dump() == {"etl/0/map": [2.0, 0.0, 0.0]}


def test_counters_become_rates_of_a_task_without_neighbours():
    counters = {"cpu_s": 5.0, "read_bytes": 100e6, "remote_bytes": 100e6, "written_bytes": 300e6, "spilled_bytes": 50e6}
    assert measured(counters, 10.0, 100.0) == pytest.approx((0.5, 0.25, 0.35))
    assert measured(counters, 10.0, 100.0, without_remote=True).read == pytest.approx(0.15)
