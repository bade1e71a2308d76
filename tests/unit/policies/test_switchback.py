"""Parts act and pause in blocks of time, and one that slows jobs down is switched off for their namespace."""

import json

import numpy as np
import pytest

from boathouse_policies import model
from boathouse_policies.profiles import Switches, build
from boathouse_policies.profiles.guard import FALSE_ALARMS, LEAST_NAMESPACES, PROGRAMS_KEPT, Part, guard_of
from boathouse_policies.profiles.switchback import Switchback, acts_in, alone_s
from tests.builders import core
from tests.builders.core_elastic import ElasticShell

BLOCK_S = 600.0
MOST_BLOCKS = 40
"""Blocks after which a part is off that makes jobs take twice as long: ten times of what its estimates said."""


class Stream:
    """Jobs of one namespace, some in each block, whose slowdowns vary with the load and by chance.

    Args:
        harm: By which factor each part's jobs take longer in its blocks.
    """

    def __init__(self, guard, seed=0, *, harm=(), namespace="ns", jobs=5):
        self.guard, self.harm, self.namespace, self.jobs = guard, dict(harm), namespace, jobs
        self.random, self.load = np.random.default_rng(seed), 0.0

    def run(self, blocks, first=0):
        """Let blocks pass; return the number of the block in which a part was switched off, if any was."""
        for block in range(first, first + blocks):
            self.load = 0.8 * self.load + 0.2 * self.random.normal()
            for number in range(self.jobs):
                self.submit_and_end(block, number)
            if self.guard.alarms:
                return block
        return None

    def submit_and_end(self, block, number):
        job = core.job(
            f"{self.namespace}-{block}-{number}",
            namespace=self.namespace,
            kind="etl",
            submitted_s=block * BLOCK_S + 10.0 * number,
        )
        slowdown = np.exp(self.load + 0.3 * self.random.normal())
        for part, factor in self.harm.items():
            slowdown *= factor if acts_in(part, block) and self.guard.allows(part, job, job.submitted_s) else 1.0
        tell(self.guard, job, 20.0 * slowdown)


def tell(guard, job, time_s):
    """Submit a job of one map that takes 20 s alone, and end it after a time."""
    classes = (core.task_class(job, estimates=model.Fixed(seconds=20.0)),)
    guard.observe(model.Submitted(now_s=job.submitted_s, job=job, classes=classes, tasks={}))
    guard.observe(model.Ended(now_s=job.submitted_s + time_s, job=job.id, succeeded=True))


@pytest.mark.parametrize("part", Part)
def test_a_part_acts_in_one_block_of_each_pair(part):
    firsts = [acts_in(part, 2 * pair) for pair in range(400)]
    assert all(acts_in(part, 2 * pair) is not acts_in(part, 2 * pair + 1) for pair in range(400))
    assert 160 < sum(firsts) < 240


@pytest.mark.parametrize("part", Part)
@pytest.mark.parametrize("seed", range(5))
def test_a_part_that_makes_jobs_take_twice_as_long_is_off_for_the_namespace(part, seed):
    guard = Switchback(BLOCK_S)
    assert Stream(guard, seed, harm={part: 2.0}).run(MOST_BLOCKS) is not None
    (off,) = guard.off(core.job("next", namespace="ns"), MOST_BLOCKS * BLOCK_S)
    assert (off.part, off.in_blocks) == (part, True)
    assert off.effect.realised_s < 0 < off.effect.decisions <= MOST_BLOCKS / 2


def test_parts_without_effect_are_hardly_ever_switched_off():
    runs = 80
    alarms = sum(Stream(Switchback(BLOCK_S), seed, jobs=2).run(80) is not None for seed in range(runs))
    assert alarms / runs <= FALSE_ALARMS


def test_a_part_pauses_in_the_other_block_only():
    guard, job = Switchback(BLOCK_S), core.job("job", namespace="ns")
    for block in range(20):
        allowed = [part for part in Part if guard.allows(part, job, (block + 0.5) * BLOCK_S)]
        assert allowed == [part for part in Part if acts_in(part, block)]
    assert guard.off(job, 0.0) == []


def test_a_tenant_switches_nothing_off_for_others():
    guard = Switchback(BLOCK_S)
    hostile = Stream(guard, harm={Part.MEMORY: 9.0}, namespace="hostile")
    hostile.run(MOST_BLOCKS)
    assert guard.off(core.job("job", namespace="hostile"), MOST_BLOCKS * BLOCK_S)
    assert guard.off(core.job("job", namespace="victim"), MOST_BLOCKS * BLOCK_S) == []


def test_a_part_that_harms_most_namespaces_is_off_in_the_cluster():
    guard = Switchback(BLOCK_S)
    streams = [
        Stream(guard, number, harm={Part.REFUSAL: 3.0}, namespace=f"ns-{number}") for number in range(LEAST_NAMESPACES)
    ]
    for block in range(2 * MOST_BLOCKS):
        for stream in streams:
            for number in range(stream.jobs):
                stream.submit_and_end(block, number)
    assert [off.part for off in guard.off(core.job("job", namespace="new"), MOST_BLOCKS * BLOCK_S)] == [Part.REFUSAL]


def test_a_restart_continues_the_bets():
    before, after = Switchback(BLOCK_S), Switchback(BLOCK_S)
    Stream(before, harm={Part.MEMORY: 1.5}).run(16)
    after.load(json.loads(json.dumps(before.dump())))
    assert after.dump() == before.dump()
    assert Stream(after, 1, harm={Part.MEMORY: 1.5}).run(24, first=16) is not None


def test_nothing_is_kept_of_blocks_that_are_over_nor_of_jobs_that_never_end():
    guard = Switchback(BLOCK_S)
    for number in range(3 * PROGRAMS_KEPT):
        job = core.job(f"job-{number}", namespace=f"ns-{number}", kind="etl", submitted_s=20.0 * number)
        guard.observe(model.Submitted(now_s=job.submitted_s, job=job, classes=(), tasks={}))
    assert len(guard._trials) <= 4 * BLOCK_S / 20.0
    assert len(guard._usual) <= PROGRAMS_KEPT
    assert len(guard._blocks) <= 4


def test_a_job_without_known_run_times_is_compared_with_the_program_s_earlier_jobs():
    assert alone_s([core.task_class(core.job())]) is None
    known = [
        core.task_class(core.job(), name=name, estimates=model.Fixed(seconds=s)) for name, s in [("a", 3), ("b", 9)]
    ]
    assert alone_s(known) == 9.0


def test_the_profile_gives_less_memory_in_the_blocks_with_it_only():
    for block in range(6):
        shell = ElasticShell(switchback_s=BLOCK_S)
        shell.now_s = (block + 0.5) * BLOCK_S
        shell.leave("n0", cpu=4000, gib=1)
        shell.submit(seconds=10.0)
        shell.submit("behind", count=9, seconds=10.0)
        assert bool(core.placements(shell.cycle())) is acts_in(Part.MEMORY, block)


def test_the_profile_has_a_switchback_only_where_it_is_asked_for():
    assert isinstance(guard_of(build("boathouse", switches=Switches(switchback_s=BLOCK_S))), Switchback)
    assert not isinstance(guard_of(build("boathouse")), Switchback)
