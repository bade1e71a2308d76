"""Memory that a leader keeps for each object that does nothing: suspended, finished or not admitted.

    python -m benchmarks.idle_objects [--objects 2000]

Objects of each kind come to rest on the fake API server of the tests. Then the leader's stores get this many copies of
each, as a new leader does from its lists, and its reconcilers process them. Printed is what the process has allocated
for a copy, by tracemalloc (without Kopf, which keeps 0.9 KiB), and its ratio to the baseline: the same objects kept as
decoded JSON of the fields that the operator reads, by `namespace/name`. About a minute.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import tracemalloc
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

from benchmarks import support
from boathouse.leader import KINDS
from boathouse.resources.config import OperatorConfig
from boathouse.services.frame import kind, object_store
from boathouse.telemetry import logs
from tests.builders.operators import crowds, leaders, mrclusters
from tests.wire import fake_api, waiting

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

NAMESPACE = "rest"
CLUSTERS = 6
"""The admitted clusters of the namespace; the next one is not admitted."""
CONFIG = OperatorConfig.model_validate(
    {
        "task": {"image": "task:dev"},
        "spark": {"image": "spark:dev"},
        "hadoop": {"image": "hadoop:dev"},
        "tenantLimits": {"maxUnfinishedJobs": CLUSTERS},
    }
)


class Case(NamedTuple):
    """An object at rest: its kind, its name and its phase."""

    kind: str
    plural: str
    name: str
    phase: str


CASES = (
    Case("MRJob", "mrjobs", "suspended", "Suspended"),
    Case("MRJob", "mrjobs", "runs", "Succeeded"),
    Case("MRJob", "mrjobs", "fails", "Failed"),
    Case("SparkApp", "sparkapps", "suspended", "Suspended"),
    Case("SparkApp", "sparkapps", "runs", "Succeeded"),
    Case("MRCluster", "mrclusters", f"more-{CLUSTERS - 1}", "Pending"),
)
"""MRClusters are not suspended, and an expired one is deleted: here it is one that is not admitted."""
LATER = "2026-01-01T00:00:01Z"
"""After the creation of the objects, so that copies are not admitted in their place."""
SETTLED_S = 1.0
FOREVER_S = 1e9
_revisions = itertools.count(10**6)


def copies(body: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    """Yield copies of an object with names, UIDs and versions of their own, as decoded from JSON."""
    text = json.dumps(body)
    for number in range(count):
        copied = json.loads(text)
        copied["metadata"] |= {"name": f"{body['metadata']['name']}-{number:06}", "uid": str(uuid.uuid4())}
        copied["metadata"] |= {"resourceVersion": str(next(_revisions)), "creationTimestamp": LATER}
        yield copied


def allocated() -> int:
    """Return the bytes that are allocated."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def baseline(objects: object_store.ObjectStore, body: dict[str, Any], count: int) -> float:
    """Return the bytes for an object whose fields are kept as they were decoded."""
    before = allocated()
    kept = {
        kind.key_of(copied): object_store.reduced(copied, objects.kind.annotations) for copied in copies(body, count)
    }
    return (allocated() - before) / len(kept)


async def cost(leader: Any, case: Case, body: dict[str, Any], count: int) -> float:
    """Return the bytes that the leader keeps for an object.

    Raises:
        SystemExit: A copy was not at rest: the leader wrote or read it.
    """

    def reconciles() -> float:
        return float(leader.metrics.registry.get_sample_value("boathouse_reconcile_total", {"result": "success"}))

    objects = leader.controllers.stores[case.kind]
    before, known, reconciled = allocated(), len(objects.keys()), reconciles()
    for copied in copies(body, count):
        objects.on_object(copied)
        await asyncio.sleep(0)
    await waiting.eventually(lambda: reconciles() >= reconciled + count, turns=1_000_000)
    await asyncio.sleep(SETTLED_S)
    if len(objects.keys()) != known + count:
        raise SystemExit(f"{case}: {known + count - len(objects.keys())} copies were not at rest")
    return (allocated() - before) / count


async def main(arguments: argparse.Namespace) -> None:
    """Bring an object of each case to rest, and measure copies of it."""
    with mock.patch.object(object_store, "RESYNC_FIRST_S", FOREVER_S):  # the server does not have the copies
        async with fake_api.FakeApi() as api, leaders.leading(api, KINDS, CONFIG, now=lambda: leaders.NOW_S) as leader:
            bodies = await at_rest(api, leader)
            tracemalloc.start()
            support.say(f"{'object':<26}{'kept':>8}{'whole':>8}  ratio")
            for case, body in bodies.items():
                whole = baseline(leader.controllers.stores[case.kind], body, arguments.objects)
                kept = await cost(leader, case, body, arguments.objects)
                support.say(f"{case.kind + ' ' + case.phase:<26}{kept:>6.0f} B{whole:>6.0f} B  {kept / whole:.2f}")


async def at_rest(api: fake_api.FakeApi, leader: Any) -> dict[Case, dict[str, Any]]:
    """Return the object of each case, once its reconciles write no more."""
    crowd = crowds.Crowd(api, crowds.LeaderHints(leader))
    async with crowd.running():
        crowd.add_nodes("a", 3)
        crowd.create(NAMESPACE)
        for number in range(CLUSTERS):
            api.add(crowds.in_namespace(NAMESPACE, mrclusters.mrcluster(), f"more-{number}"))
        await waiting.eventually(lambda: all(found(api, case) for case in CASES))
        await asyncio.sleep(SETTLED_S)
    return {case: api.get(case.plural, f"{NAMESPACE}/{case.name}") for case in CASES}


def found(api: fake_api.FakeApi, case: Case) -> bool:
    """Return whether the object of a case has its phase."""
    body = api.get(case.plural, f"{NAMESPACE}/{case.name}") or {}
    return bool((body.get("status") or {}).get("phase") == case.phase)


if __name__ == "__main__":
    logs.configure(level="ERROR")
    asyncio.run(main(support.options(__doc__ or "", objects=2000)))
