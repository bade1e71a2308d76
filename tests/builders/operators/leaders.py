"""Leaders with kinds: real scheduler and controllers on a fake API server, without Kopf and TLS.

`leading` runs one leader; a `RestartableLeader` can be killed at a failpoint, and the next one follows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time

import msgspec

from boathouse import failpoints
from boathouse.cluster import events, informer, store, wire
from boathouse.scheduling import shadow
from boathouse.services import hadoop
from boathouse.services.frame import controllers, reconciler, status_writer, work_queue
from boathouse.services.progress import server
from boathouse_policies import profiles
from tests.builders import manifests
from tests.builders.operators import mrjobs, schedulers
from tests.wire import waiting

NOW_S = mrjobs.NOW_S - 3600  # the only date of the fake API server


class Killed(BaseException):
    """SIGKILL, for an operator in the test's own process."""


class RestartableLeader:
    """What a test acts on and asserts about.

    Attributes:
        kind_name: The kind of its object.
        plural: Of the kind.
        key: Of its object.
        nodes: Runs what nodes do: has a method `run`.
        others: Entries of further kinds that the leader has.
        starts_without_nodes: Whether there is no node unless the test adds one.
    """

    kind_name = plural = key = ""
    others = ()
    starts_without_nodes = False

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
        found = [condition for condition in self.status(key).get("conditions") or () if condition["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    def uid(self):
        return self.api.get(self.plural, self.key)["metadata"]["uid"]

    def later(self, seconds):
        """Turn the operator's clock, and let it look at the object."""
        self.offset_s += seconds
        self.kind._mark(self.uid())

    async def reconciled(self):
        """Wait for a reconcile that began after this call."""
        for _ in range(2):  # the first may have begun before it
            before = self._reconciles()
            self.later(0.0)
            await waiting.eventually(lambda before=before: self._reconciles() > before)

    def _reconciles(self):
        value_of = self.leader.metrics.registry.get_sample_value
        return sum(value_of("boathouse_reconcile_total", {"result": result}) for result in work_queue.RESULTS)

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
            await schedulers.stop(nodes)

    async def _lives(self):
        while not self._is_over:
            self.lives += 1
            self._is_killed = False
            self._life_over.clear()
            try:
                async with leading(
                    self.api,
                    (self._entry, *self.others),
                    self.config,
                    profile=self.profile,
                    now=self.now,
                    without_nodes=self.starts_without_nodes,
                ) as leader:
                    self.leader = leader
                    await self._life_over.wait()
            except (Killed, BaseExceptionGroup):
                if not self._is_killed:
                    raise


@contextlib.asynccontextmanager
async def leading(api, kinds, config=mrjobs.CONFIG, *, profile="fair", without_nodes=False, **clocks):
    """Run a leader with these kinds; stop it at the end, as a crash would.

    Args:
        api: The fake API server; it gets a node if it has none.
        kinds: The entries of the kinds.
        config: The operator's configuration.
        profile: The name of its profile.
        without_nodes: Whether it gets no node.
        clocks: `now` of the reconcilers' context, if it is not an hour after the server's only date.
    """
    if not api.objects("nodes") and not without_nodes:
        api.add(manifests.node("n1", cpu="16", memory="32Gi"))
    per_site = config.hadoop.partition == "PerSite"
    switches = profiles.Switches(scale=any(kind.scales for kind in kinds), per_site=per_site)
    options = {
        "pod_labels": frozenset().union(*(kind.pod_labels for kind in kinds)),
        "pod_containers": frozenset().union(*(kind.pod_containers for kind in kinds)),
        "switches": switches,
        "autoscaling": config.autoscaling,
    }
    leaders, built, beside = [], profiles.build(profile, switches=switches), None
    if config.shadow_profile:
        beside = shadow.Shadow(
            profiles.build(config.shadow_profile, switches=switches), cpu_s=lambda: 0.0
        )  # drops none
        built = dataclasses.replace(built, observers=(*built.observers, beside))

    def prepare(below, client):
        leaders.append(_leader(below, client, config, built, clocks))
        for kind in kinds:
            kind.add(leaders[0])

    async with (
        schedulers.scheduling(api, config=config, profile=built, shadow=beside, prepare=prepare, **options),
        api.client() as client,
        contextlib.AsyncExitStack() as stack,
    ):
        followers = [_follow(api, client, kind_store) for kind_store in leaders[0].controllers.stores.values()]
        controllers_ = leaders[0].controllers
        for loop in (controllers_.queue, controllers_.context.events, *controllers_.loops, *followers):
            stack.push_async_callback(schedulers.stop, asyncio.create_task(loop.run()))
        yield leaders[0]


def _leader(below, client, config, profile, clocks):
    start, figures = time.monotonic(), below.figures
    context = reconciler.Context(
        api=client,
        events=events.EventWriter(client, controller="boathouse.dev/test", instance="test"),
        statuses=status_writer.StatusShare(10.0, time.monotonic),
        may_lead=below.leader.valid,
        aside=below.parts.aside,
        **({"now": lambda: mrjobs.NOW_S + time.monotonic() - start} | clocks),
    )
    reconciling = controllers.Controllers(context, config, figures)
    return controllers.LeaderServices(
        settings=config,
        cluster_id="",
        profile=profile,
        scheduling=below.parts,
        controllers=reconciling,
        endpoint=server.ProgressServer(client, figures),
        bundles=mrjobs.Bundle(),
        metrics=figures,
        saved={},
        limited={},
        applications=hadoop.Applications(reconciling.mark, context.now),
    )


def _follow(api, client, objects):
    """Return a watch that reports the objects of a kind to its store, as Kopf does."""
    resource = objects.kind.resource

    def changed(change):
        if isinstance(change, store.Deleted):
            objects.on_deleted({"metadata": msgspec.to_builtins(change.old.metadata)})
        elif body := api.get(resource.plural, change.key):
            objects.on_object(body)

    return informer.Informer(client, resource.viewed_as(wire.ObjectView), on_change=changed)
