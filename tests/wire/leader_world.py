"""A leader with kinds under test: real scheduler and controllers on a fake API server, without Kopf and TLS."""

import asyncio
import contextlib
import time

import msgspec

from boathouse.cluster import events, informer, store, wire
from boathouse.services.frame import controllers, reconciler, status_writer
from boathouse.services.hadoop import applications
from boathouse.services.progress import server
from boathouse_policies import profiles
from tests.builders import manifests
from tests.wire import mrjob_world, scheduling_world


@contextlib.asynccontextmanager
async def leading(api, kinds, config=mrjob_world.CONFIG, *, profile="fair", **clocks):
    """Run a leader with these kinds; stop it at the end, as a crash would.

    Args:
        api: The fake API server; it gets a node if it has none.
        kinds: The entries of the kinds.
        config: The operator's configuration.
        profile: The name of its profile.
        clocks: `now` of the reconcilers' context, if it is not an hour after the server's only date.
    """
    if not api.objects("nodes"):
        api.add(manifests.node("n1", cpu="16", memory="32Gi"))
    per_site = config.hadoop.partition == "PerSite"
    switches = profiles.Switches(scale=any(kind.scales for kind in kinds), per_site=per_site)
    options = {
        "pod_labels": frozenset().union(*(kind.pod_labels for kind in kinds)),
        "pod_containers": frozenset().union(*(kind.pod_containers for kind in kinds)),
        "switches": switches,
    }
    leaders, built = [], profiles.build(profile, switches=switches)

    def prepare(below, client):
        leaders.append(_leader(below, client, config, built, clocks))
        for kind in kinds:
            kind.add(leaders[0])

    async with (
        scheduling_world.world(api, config=config, profile=built, prepare=prepare, **options),
        api.client() as client,
        contextlib.AsyncExitStack() as stack,
    ):
        followers = [_follow(api, client, each) for each in leaders[0].controllers.stores.values()]
        controllers_ = leaders[0].controllers
        for each in (controllers_.queue, controllers_.context.events, *controllers_.loops, *followers):
            stack.push_async_callback(scheduling_world.stop, asyncio.create_task(each.run()))
        yield leaders[0]


def _leader(below, client, config, profile, clocks):
    start, figures = time.monotonic(), below.figures
    context = reconciler.Context(
        api=client,
        events=events.EventWriter(client, controller="boathouse.dev/test", instance="test"),
        statuses=status_writer.StatusShare(10.0, time.monotonic),
        may_lead=below.leader.valid,
        aside=below.parts.aside,
        **({"now": lambda: mrjob_world.NOW_S + time.monotonic() - start} | clocks),
    )
    reconciling = controllers.Controllers(context, config, figures)
    return controllers.LeaderServices(
        settings=config,
        cluster_id="",
        profile=profile,
        scheduling=below.parts,
        controllers=reconciling,
        endpoint=server.ProgressServer(client, figures),
        bundles=mrjob_world.Bundle(),
        metrics=figures,
        saved={},
        limited={},
        applications=applications.Applications(reconciling.mark, context.now),
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
