"""What the operator may keep of objects, namespaces and nodes that are gone, for comparisons of two censuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.builders import census

if TYPE_CHECKING:
    from collections.abc import Mapping

BOUNDED = {
    "boathouse.fair.Buckets._levels": 10_000,
    "boathouse.cluster.client._decoder()": 64,  # one for each type of answers
    "boathouse.cluster.events.EventWriter._last_events": 8192,
    "boathouse.scheduling.shadow.Difference.real": 50 * 5,
    "boathouse.scheduling.shadow.Difference.shadow": 50 * 5,
    "boathouse.scheduling.shadow.Shadow.differences": 50,
    "boathouse.services.frame.object_store.ObjectStore._gone": 3 * 1024,  # of three kinds
    "boathouse.services.frame.related_objects.Answers._kept": 3 * (4 + 32) * 1024,  # of each kind, by their bytes
    "boathouse.services.frame.related_objects.Answers._used_bytes": 3 * (4 + 32) * 1024,
    "boathouse.services.frame.work_queue.WorkQueue._not_before": 1024,
    "boathouse.services.learned.SavedState._dumps": 16,  # one for each part
    "boathouse.services.progress.limits.Cache._values": 6 * 20_000,  # tokens, messages to two kinds
    "boathouse_policies.framework.programs.Contest._standings": 3 * 256,
    "boathouse_policies.framework.programs.Programs.items": 23 * 257,
    "boathouse_policies.fspy.prediction.Sums._sums": 4 * 257,
    "boathouse_policies.fspy.virtual.World.queue": 2048,
    "boathouse_policies.fspy.virtual.Worlds._ended": 2048,
    "boathouse_policies.fspy.virtual.Worlds._worlds": 2048,
    "boathouse_policies.fspy.virtual.Worlds.jobs": 2048,
    "boathouse_policies.framework.eligibility.Eligibilities._last": 1024,
    "boathouse_policies.framework.ledger.Ledger._touched": 1,  # the pod of the census, until the next cycle
    "boathouse_policies.framework.queue.sorted_classes.SortedClasses": 16,  # each policy has that of its last cycle
    "boathouse_policies.ikayak.remaining.Bank._means": 256,
    "boathouse_policies.ikayak.remaining.Bank._models": 32,
    "boathouse_policies.ikayak.remaining.Bank._phases": 256,
}
"""Caches and memories with a fixed bound, and the bound in items."""
BY_TIME = {
    "boathouse.cluster.store.Store._gone": "until the next list or bookmark",
    "boathouse.scheduling.showing.Showing._tried": "15 s",
    "boathouse.scheduling.limits.Variety._used": "60 s",
    "boathouse_policies.yarn_me.outlook.Outlook.changed_nodes": "until the nodes change again",
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
    "boathouse.scheduling.shadow.Difference",
    "boathouse.services.frame.related_objects.Answer",
    "boathouse.services.progress.auth.Caller",
    "boathouse.scheduling.limits._Used",
    "boathouse_policies.framework.eligibility.Eligibility",
    "boathouse_policies.fspy.jobs.",
    "boathouse_policies.fspy.virtual.",
    "boathouse_policies.framework.programs.Standing",
    "boathouse_policies.ikayak.predictors.Fuzzy",
    "boathouse_policies.ikayak.predictors.Phases",
    "boathouse_policies.ikayak.remaining.Mean",
    "boathouse_policies.ila.exponential.",
    "boathouse_policies.ila.profiling.Demand",
    "boathouse_policies.model.",
)
"""The values in these, which are counted with them."""


def leaks(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, object]:
    """Return what grew without being in the tables, or by more than its bound: other tests' may be there before."""
    grown = census.growth(before, after)
    unknown = {name: counts for name, counts in grown.items() if not name.startswith(HELD)}
    beyond = (name for name, bound in BOUNDED.items() if name in grown and grown[name][1] - grown[name][0] > bound)
    return unknown | {name: grown[name] for name in beyond}
