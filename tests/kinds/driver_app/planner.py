"""What an app needs next, from its object, its driver and the driver's executors. Pure."""

import dataclasses

from boathouse.services.frame.status_codec import ConditionTable
from tests.kinds.driver_app.state import TERMINAL

CONDITIONS = ("Admitted", "Suspended", "Running")
UNSEEN_S = 0.05
"""Delay of the next reconcile if no watch has a driver that ran: another watch reports its end."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class App:
    """A valid DriverApp."""

    uid: str
    name: str
    namespace: str
    generation: int
    created_s: float
    queue: str
    executors: int
    suspend: bool
    ttl_s: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """All that a plan depends on."""

    app: App
    state: object
    driver: object | None
    executors: tuple[object, ...]
    now_s: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """What the app needs next."""

    state: object
    delete: tuple[object, ...] = ()
    needs_driver: bool = False
    recheck_at_s: float | None = None


def plan(observation):
    """Return what the app needs next."""
    state = dataclasses.replace(
        observation.state, observed_generation=observation.app.generation, executors=len(observation.executors)
    )
    pods = tuple(pod for pod in (observation.driver, *observation.executors) if pod is not None)
    live = tuple(pod for pod in pods if not pod.is_terminal and pod.metadata.deletion_timestamp is None)
    if state.phase in TERMINAL:
        return Plan(state=state, delete=live)
    if observation.app.suspend:
        starts = state.starts + (observation.driver is not None and state.phase != "Suspended")
        return Plan(state=_enter(observation, dataclasses.replace(state, starts=starts), "Suspended"), delete=live)
    if observation.driver is None and state.phase == "Running":
        return Plan(state=state, recheck_at_s=observation.now_s + UNSEEN_S)
    if observation.driver is None or not observation.driver.node_name:
        return Plan(state=_enter(observation, state, "Pending"), needs_driver=True)
    if observation.driver.is_terminal:
        ended = _enter(observation, state, observation.driver.status.phase)
        return Plan(state=dataclasses.replace(ended, completion_s=observation.now_s), delete=live)
    return Plan(state=_enter(observation, state, "Running"), needs_driver=True)


def _enter(observation, state, phase):
    table = ConditionTable(state.conditions, observation.app.generation, observation.now_s, order=CONDITIONS)
    table.set("Admitted", True, "Admitted", "")
    table.set("Suspended", phase == "Suspended", phase, "")
    table.set("Running", phase == "Running", phase, "")
    return dataclasses.replace(state, phase=phase, conditions=table.conditions)


def refuse(state, refusal, generation, now_s):
    """Return the state of an app that cannot run."""
    table = ConditionTable(state.conditions, generation, now_s, order=CONDITIONS)
    table.set("Admitted", False, refusal.reason, refusal.message)
    return dataclasses.replace(state, reason=refusal.reason, conditions=table.conditions)
