"""The load of the soak: tenants whose namespaces come, rest and go, a bounded number at a time."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import itertools
import random
import time
from typing import TYPE_CHECKING

from tests.builders.operators import crowds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.soak.endpoint import EndpointHints
    from tests.wire.fake_api import FakeApi

TENANTS = 8
NODES, BATCHES, NODES_EVERY = 3, 2, 40
"""Nodes of a batch, batches at a time, and namespaces after which a batch takes the place of the oldest."""
PLAIN_PODS = (20, 36)
DELETED_EARLY = 0.2
"""Part of the namespaces that are deleted before their objects have reached their fates."""
STEP_S, LOOK_S, PATIENCE_S = 0.05, 0.1, 600.0
FORGET_S = 2.0
LAG_S = 10
"""The fake API's date is so much behind, because pods that end say that they ran for 10 s."""
OTHER_NAMESPACES = {"boathouse-system", "rest"}
ENDED = {"Succeeded", "Failed"}


class Load:
    """Runs tenants until enough was done.

    Attributes:
        crowd: The tenants' pods.
        namespaces: How many namespaces have come.
    """

    def __init__(self, api: FakeApi, hints: EndpointHints, seed: int, tenants: int = TENANTS) -> None:
        self._tenants = tenants
        self._api, self.crowd = api, crowds.Crowd(api, hints)
        self._random = random.Random(seed)
        self._numbers, self._batches = itertools.count(1), itertools.count(1)
        self._nodes: list[str] = []
        self.namespaces = 0

    @property
    def pod_events(self) -> int:
        """Changes of pods so far."""
        return self._api.world.changes["pods"]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run kubelets, drivers, agents, the garbage collector and the clock during the block."""
        for _ in range(BATCHES):
            self._turn_nodes()
        around = [asyncio.create_task(coroutine) for coroutine in (self._step(), self._forget())]
        try:
            yield
        finally:
            for task in around:
                task.cancel()
            await asyncio.gather(*around, return_exceptions=True)

    async def until(self, is_done: Callable[[], bool]) -> None:
        """Let tenants come and go until enough was done and all of it is deleted."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._tenants):
                group.create_task(self._tenant(is_done))

    async def _tenant(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            await self._life(f"t{next(self._numbers)}")

    async def _life(self, namespace: str) -> None:
        crowd = self.crowd
        crowd.create(namespace, plain=self._random.randint(*PLAIN_PODS))
        self.namespaces += 1
        if self.namespaces % NODES_EVERY == 0:
            self._turn_nodes()
        if self._random.random() < DELETED_EARLY:
            await asyncio.sleep(self._random.uniform(0, 5))
        else:
            await self._wait(namespace, self._rests, "reach their fates")
        crowd.delete(namespace)
        await self._wait(namespace, crowd.is_deleted, "are deleted")
        crowd.delete_rest(namespace)

    def _rests(self, namespace: str) -> bool:
        """Return whether each object has reached its fate, or has ended because a node has gone."""
        phases = self.crowd.phases(namespace)
        return all(phases.get(name, "gone") in wanted | ENDED for name, wanted in crowds.FATES.items())

    async def _wait(self, namespace: str, is_true: Callable[[str], bool], what: str) -> None:
        end_s = time.monotonic() + PATIENCE_S
        while not is_true(namespace):
            if time.monotonic() > end_s:
                phases = self.crowd.phases(namespace)
                raise TimeoutError(f"within {PATIENCE_S:.0f} s not all objects of {namespace} {what}: {phases}")
            await asyncio.sleep(LOOK_S)

    def _turn_nodes(self) -> None:
        """Add a batch of nodes, and delete the oldest with its pods."""
        batch = str(next(self._batches))
        self.crowd.add_nodes(batch, NODES)
        self._nodes.append(batch)
        if len(self._nodes) > BATCHES:
            self.crowd.delete_nodes(self._nodes.pop(0))

    async def _step(self) -> None:
        while True:
            now = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=LAG_S)
            self._api.world.date = now.strftime("%Y-%m-%dT%H:%M:%SZ")
            self.crowd.step()
            await asyncio.sleep(STEP_S)

    async def _forget(self) -> None:
        """Keep the fake API server small, without what the operator wrote into namespaces when they were gone."""
        while True:
            await asyncio.sleep(FORGET_S)
            self._api.forget()
            existing = {*self._api.objects("namespaces"), *OTHER_NAMESPACES}
            for plural in (*crowds.OWNED, "events"):
                for key in [key for key in self._api.objects(plural) if key.partition("/")[0] not in existing]:
                    self._api.remove(plural, key)
