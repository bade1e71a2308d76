"""Whether somebody uses the cluster, and when it is deleted because nobody does. Pure."""

import dataclasses
from typing import Final

from boathouse.services.mrcluster.planning.observation import READY_S, Draft, Observation

NOTED_EVERY_S: Final = 60.0


def watch(observation: Observation, draft: Draft) -> Draft:
    """Note when the cluster was last in use, and let it expire once its time is over.

    Without a recent report it is unknown whether applications run, so the time does not count as idle. The time also
    counts from this process's first observation: the cluster may have been in use while no operator ran.
    """
    report, now_s = observation.report_within(READY_S), observation.now_s
    if report is None or (report.yarn is None and observation.cluster.spec.compute):
        return draft.with_marks(idle_s=None, no_application_s=None)
    yarn = report.yarn
    has_application = yarn is not None and bool(yarn.apps_running or yarn.apps_pending or yarn.running or yarn.pending)
    draft = draft.with_marks(
        no_application_s=None if has_application else _since(draft.marks.no_application_s, now_s),
        idle_s=None if has_application or observation.users else _since(draft.marks.idle_s, now_s),
    )
    last_s = draft.state.last_active_s
    if draft.marks.idle_s is None:
        is_new = last_s is None or now_s - last_s >= NOTED_EVERY_S
        return draft.with_state(last_active_s=now_s) if is_new else draft
    if expiry_s(observation, draft) <= now_s:
        state = dataclasses.replace(draft.state, phase="Expired", completion_s=now_s, last_active_s=last_s)
        return dataclasses.replace(draft, state=state)
    return draft


def expiry_s(observation: Observation, draft: Draft) -> float:
    """Return when the cluster expires if nobody uses it; infinity for never."""
    ttl_s, idle_s = observation.cluster.spec.ttl_seconds_after_idle, draft.marks.idle_s
    if ttl_s is None or idle_s is None or draft.state.ready_s is None:
        return float("inf")
    return max(idle_s, draft.state.last_active_s or 0.0) + ttl_s


def _since(before_s: float | None, now_s: float) -> float:
    return now_s if before_s is None else before_s
