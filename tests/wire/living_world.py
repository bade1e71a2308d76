"""A leader with one kind that can be killed at a failpoint, and the next one after it."""

from __future__ import annotations

import asyncio
import contextlib
import time

from boathouse import failpoints
from tests.wire import leader_world, mrjob_world, scheduling_world, waiting

NOW_S = mrjob_world.NOW_S - 3600  # the only date of the fake API server


class Killed(BaseException):
    """SIGKILL, for an operator in the test's own process."""


class World:
    """What a test acts on and asserts about.

    Attributes:
        kind_name: The kind of its object.
        plural: Of the kind.
        key: Of its object.
        nodes: Runs what nodes do: has a method `run`.
        others: Entries of further kinds that the leader has.
    """

    kind_name = plural = key = ""
    others = ()

    def __init__(self, api, entry, config, profile):
        self.api, self.config, self.profile, self._entry = api, config, profile, entry
        self.leader = None
        self.lives = 0
        self.offset_s = 0.0
        self._start_s = time.monotonic()
        self._life_over = asyncio.Event()
        self._is_killed = self._is_over = False

    def now(self):
        """Return the time of the operator."""
        return NOW_S + time.monotonic() - self._start_s + self.offset_s

    @property
    def kind(self):
        return self.leader.controllers._reconcilers[self.kind_name]._kind

    def status(self, key=None):
        return (self.api.get(self.plural, key or self.key) or {}).get("status") or {}

    def phase(self, key=None):
        return self.status(key).get("phase")

    def condition(self, kind, key=None):
        found = [each for each in self.status(key).get("conditions") or () if each["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    def uid(self):
        return self.api.get(self.plural, self.key)["metadata"]["uid"]

    def later(self, seconds):
        """Turn the operator's clock, and let it look at the object."""
        self.offset_s += seconds
        self.kind._mark(self.uid())

    def kill_at(self, monkeypatch, name, count=1):
        """Kill the operator at a failpoint."""
        passages = 0

        def hit(place):
            nonlocal passages
            passages += place == name
            if place == name and passages == count:
                self._is_killed = True
                self._life_over.set()
                raise Killed

        monkeypatch.setattr(failpoints, "hit", hit)

    async def restart(self):
        """End the operator, and wait for the next one."""
        life, self.leader = self.lives, None
        self._life_over.set()
        await waiting.eventually(lambda: self.lives > life and self.leader is not None)

    @contextlib.asynccontextmanager
    async def running(self):
        """Run the nodes, and one operator after another."""
        nodes, lives = asyncio.create_task(self.nodes.run()), asyncio.create_task(self._lives())
        try:
            await waiting.eventually(lambda: self.leader is not None)
            yield self
        finally:
            self._is_over = True  # not by cancelling it, which the end of a life could swallow
            self._life_over.set()
            await lives
            self.leader, self._is_over = None, False
            await scheduling_world.stop(nodes)

    async def _lives(self):
        while not self._is_over:
            self.lives += 1
            self._is_killed = False
            self._life_over.clear()
            try:
                async with leader_world.leading(
                    self.api, (self._entry, *self.others), self.config, profile=self.profile, now=self.now
                ) as leader:
                    self.leader = leader
                    await self._life_over.wait()
            except (Killed, BaseExceptionGroup):
                if not self._is_killed:
                    raise
