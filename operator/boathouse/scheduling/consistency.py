"""Check the scheduler's cache: compare it with a LIST, and placements that no watch has confirmed with a GET."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from boathouse.cluster import errors, informer, retries, wire
from boathouse.scheduling import scheduler
from boathouse.scheduling.pods import facts
from boathouse.scheduling.state import Part
from boathouse.telemetry import logs

log = logs.get(__name__)

COMPARE_EVERY_S = 60.0
SETTLE_S = 2.0
CONFIRM_AFTER_S = 30.0
HEARD_WITHIN_S = 120.0  # bookmarks arrive about once a minute

Watch = informer.Informer[facts.PodFacts] | informer.Informer[wire.NodeView]


class ConsistencyChecker(Part):
    """Compares at intervals. Drift in two consecutive comparisons is counted and ends the process."""

    def __init__(
        self,
        subject: scheduler.Scheduler,
        pods: informer.Informer[facts.PodFacts],
        nodes: informer.Informer[wire.NodeView],
        *,
        on_fatal: Callable[[str], None],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        super().__init__(subject.state)
        self._subject = subject
        self._watches: dict[str, Watch] = {"pods": pods, "nodes": nodes}
        self._shown_pods, self._on_fatal, self._sleep = pods.objects, on_fatal, sleep

    async def run(self) -> None:
        """Compare until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, action, every_s in (
                ("comparison", self.compare, COMPARE_EVERY_S),
                ("confirmation", self.confirm, CONFIRM_AFTER_S / 3),
            ):
                group.create_task(retries.Loop(name, action, every_s=every_s).run())

    async def compare(self) -> bool:
        """Compare once, and objects that differ a second time. Return whether there is no drift, as far as is known."""
        try:
            differences = [
                f"{kind} {key}" for kind, watch in self._watches.items() for key in await self._watch_drift(watch)
            ]
        except errors.ClusterError as error:
            log.warning("the cache could not be compared", error=str(error))
            self._counters.comparison("skipped")
            return True
        stuck = self._ledger_drift()
        if stuck:
            await self._sleep(SETTLE_S)
            stuck &= self._ledger_drift()
        differences += sorted(f"ledger {key}" for key in stuck)
        self._counters.comparison("drift" if differences else "equal")
        if differences:
            self._counters.cache_drift.inc(len(differences))
            named = ", ".join(differences[:10])
            message = f"the cache differs from the API server in {len(differences)} objects: {named}"
            log.error(message)
            self._on_fatal(message)
        return not differences

    async def _watch_drift(self, watch: Watch) -> list[str]:
        """Compare a watch with a LIST, and again after its next message, for a watch may be behind without drift."""
        first = await watch.compare()
        if not first:
            return []
        listed_at, waited_s = time.monotonic(), 0.0
        while watch.freshness_s() >= time.monotonic() - listed_at:
            if waited_s > HEARD_WITHIN_S:
                raise errors.ConnectionLost("the watch is stale")
            await self._sleep(SETTLE_S)
            waited_s += SETTLE_S
        return sorted(first & await watch.compare())

    def _ledger_drift(self) -> set[str]:
        """Compare the ledger with the watches, without awaiting. Assumed and recently placed pods are left out."""
        drift = self._pods.drift(self._shown_pods.values())
        pods = {*drift.missing_pods, *drift.ghost_pods, *drift.different_pods}
        return pods | {*drift.missing_nodes, *drift.ghost_nodes, *drift.different_nodes}

    async def confirm(self) -> None:
        """Read the pods that were placed some time ago and that no watch confirmed, and apply their actual state."""
        for row in self._pods.unconfirmed(CONFIRM_AFTER_S):
            self._subject.intake.read(row, await self._writer.read(row.id))
