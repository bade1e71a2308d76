"""Bounded tables of programs."""

from __future__ import annotations

from boathouse_policies import model
from boathouse_policies.framework.programs import Programs
from boathouse_policies.ikayak.config import Config
from boathouse_policies.ikayak.remaining import Bank
from boathouse_policies.ila import config as ila
from boathouse_policies.ila.profiling import Profiles


def test_a_namespace_with_many_programs_displaces_its_own():
    programs = Programs(3)
    for key in ("a/1", "b/1", "b/2", "b/3", "b/4"):
        programs.put(key, 1)
    assert list(programs) == ["a/1", "b/3", "b/4"]


def test_what_was_used_last_is_displaced_last():
    programs = Programs(2)
    programs.put("a/1", 1)
    programs.put("a/2", 1)
    assert programs.use("a/1") == 1
    programs.put("a/3", 1)
    assert list(programs) == ["a/1", "a/3"]


def test_a_namespace_has_at_most_its_own_number():
    programs = Programs(10, of_group=2)
    for key in ("a/1", "a/2", "a/3", "b/1"):
        programs.put(key, 1)
    assert list(programs) == ["a/2", "a/3", "b/1"]


def test_programs_without_a_reduce_do_not_fill_the_means_of_ikayak():
    bank = Bank(Config(programs_kept=4))
    bank.ended("quiet/1", model.Stage.MAP, 7.0)
    for number in range(20):
        bank.ended(f"busy/{number}", model.Stage.MAP, 1.0)
    assert len(bank.dump()["means"]) == 4
    assert bank.mean_s("quiet/1", model.Stage.MAP) == 7.0


def test_a_dump_with_too_many_programs_loads_within_the_limit():
    bank = Bank(Config(programs_kept=4))
    bank.load({"means": [[f"busy/{number}", "map", 1, 1.0] for number in range(20)]})
    profiles = Profiles(ila.Config(programs_kept=4))
    profiles.load({f"busy/{number}": [0.1, 0.1, 0.1] for number in range(20)})
    assert (len(bank.dump()["means"]), len(profiles.dump())) == (4, 4)
