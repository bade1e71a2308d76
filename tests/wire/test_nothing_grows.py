"""A census of the operator's process: what objects, namespaces and nodes leave behind when they are gone."""

from __future__ import annotations

import contextlib

from boathouse.leader import KINDS
from boathouse.resources.config import OperatorConfig
from tests.builders import census
from tests.builders.operators import crowds, leaders, remains
from tests.wire import waiting

CONFIG = OperatorConfig.model_validate(
    {
        "task": {"image": "task:dev"},
        "spark": {"image": "spark:dev"},
        "hadoop": {"image": "hadoop:dev"},
        "shadowProfile": "ikayak",
    }
)
NAMESPACES = 6


async def rest(crowd, before):
    """Return the leaks once what is in flight has ended. Each pod has a cycle, which replaces what the last used.

    A census takes a second, so the next pod comes soon.
    """
    found = {}

    def has_none():
        nonlocal found
        found = remains.leaks(before, census.take())
        return not found

    for _ in range(10):
        await crowd.one_pod()
        with contextlib.suppress(AssertionError):  # the operator has not seen yet that the pod is gone
            await waiting.eventually(has_none, turns=3)
            break
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
        assert crowd.created.total() == 2 * NAMESPACES * len(crowds.FATES)


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
    grown = [name for name in census.growth(before, census.take()) if name.startswith(module)]
    assert sorted(name.rpartition(".")[2] for name in grown) == ["items", "kept", "kept[]"]
