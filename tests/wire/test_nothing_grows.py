"""A census of the operator's process: what objects, namespaces and nodes leave behind when they are gone."""

from __future__ import annotations

import contextlib

from boathouse.leader import KINDS
from boathouse.resources.config import OperatorConfig
from tests.builders import census
from tests.builders.operators import crowds, leaders
from tests.wire import waiting

CONFIG = OperatorConfig.model_validate(
    {"task": {"image": "task:dev"}, "spark": {"image": "spark:dev"}, "hadoop": {"image": "hadoop:dev"}}
)
NAMESPACES = 6
BOUNDED = {
    "boathouse.buckets.Buckets._levels": 10_000,
    "boathouse.cluster.client._decoder()": 64,  # one for each type of answers
    "boathouse.cluster.events.EventWriter._last_events": 8192,
    "boathouse.services.frame.object_store.ObjectStore._gone": 3 * 1024,  # of three kinds
    "boathouse.services.frame.answers.Answers._kept": 3 * (4 + 32) * 1024,  # of each kind, by their bytes
    "boathouse.services.frame.answers.Answers._used_bytes": 3 * (4 + 32) * 1024,
    "boathouse.services.frame.work_queue.WorkQueue._rest_until": 1024,
    "boathouse_policies.framework.crowding.Programs.items": 5 * 257,
    "boathouse_policies.fspy.prediction.Means._sums": 2 * 257,
    "boathouse_policies.framework.eligibility.Eligibilities._last": 1024,
    "boathouse_policies.ikayak.remaining.Bank._means": 256,
    "boathouse_policies.ikayak.remaining.Bank._models": 32,
}
"""Caches and memories with a fixed bound, and the bound in items."""
BY_TIME = {
    "boathouse.cluster.store.Store._gone": "until the next list or bookmark",
    "boathouse.scheduling.tenants.variety.Variety._used": "60 s",
    "boathouse_policies.fspy.worlds.Worlds._worlds": "until the fair worlds' jobs, at most 256 each, finish there too",
    "boathouse_policies.fspy.worlds.Worlds.jobs": "likewise",
    "boathouse_policies.fspy.virtual.World.queue": "likewise",
}
"""What is kept for a time after the object."""
SCRATCH = (
    "boathouse.cluster.transport.Transport._idle",
    "boathouse_policies.framework.layout.Layout._inverse_totals_listed",
    "boathouse_policies.framework.layout.Layout._large_enough",
    "boathouse_policies.framework.layout.Layout.inverse_totals",
    "Reflector._watch().lines",
    "boathouse_policies.framework.queue.unschedulable.UnschedulableClasses.",
    "boathouse_policies.framework.view.ClusterView.",
)
"""Idle connections, memos of a layout, and columns and buffers of the last cycle, which the next one replaces."""
HELD = (
    *BOUNDED,
    *BY_TIME,
    *SCRATCH,
    "boathouse.cluster.events._LastEvent",
    "boathouse.services.frame.answers._Entry",
    "boathouse.scheduling.tenants.variety._Used",
    "boathouse_policies.framework.eligibility.Eligibility",
    "boathouse_policies.fspy.jobs.",
    "boathouse_policies.fspy.virtual.",
    "boathouse_policies.ikayak.fuzzy.Fuzzy",
    "boathouse_policies.ikayak.remaining.Mean",
    "boathouse_policies.ila.exponential.",
    "boathouse_policies.ila.metrics.Demand",
    "boathouse_policies.model.",
)
"""The values in these, which are counted with them."""


def leaks(before, after):
    """Return what grew without being in the tables, or beyond its bound."""
    grown = {name: counts for name, counts in census.growth(before, after).items() if not name.startswith(HELD)}
    return grown | {name: after[name] for name, bound in BOUNDED.items() if after.get(name, 0) > bound}


async def rest(crowd, before):
    """Return the leaks once what is in flight has ended. Each pod has a cycle, which replaces what the last used."""
    found = {}

    async def has_none():
        nonlocal found
        await crowd.one_pod()
        found = leaks(before, census.take())
        return not found

    with contextlib.suppress(AssertionError):
        await waiting.eventually(has_none, turns=10)
    return found


async def test_whatever_tenants_create_leaves_nothing_behind(api):
    async with leaders.leading(api, KINDS, CONFIG, profile="boathouse") as leader:
        crowd = crowds.Crowd(api, crowds.LeaderHints(leader))
        async with crowd.running():
            await crowds.life(crowd, "a", NAMESPACES)  # columns and pools keep the size of the most at a time
            await crowd.one_pod()
            before = census.take()
            await crowds.life(crowd, "b", NAMESPACES)
            assert await rest(crowd, before) == {}
        assert crowd.created == 2 * NAMESPACES * len(crowds.FATES)


def test_a_census_sees_what_a_class_and_a_closure_keep():
    module = "boathouse_task.census_example"

    class Keeper:
        __module__ = module

        def __init__(self):
            self.kept = {}

    def remember(items, item):
        def inner():
            items.append(item)

        inner.__module__ = module
        return inner

    keeper, inner = Keeper(), remember([], 1)
    before = census.take()
    keeper.kept["a"] = [1, 2]
    inner()
    grown = census.growth(before, census.take())
    assert sorted(name.rpartition(".")[2] for name in grown) == ["items", "kept", "kept[]"]
