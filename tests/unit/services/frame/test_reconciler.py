"""The order of a reconcile, with a kind that only these tests know."""

import dataclasses

import prometheus_client
import pytest

from boathouse.resources import names
from boathouse.services.frame import reconciler
from boathouse.services.frame.kind import Refusal
from boathouse.services.frame.protocols import Desired, Life
from boathouse.services.frame.reconciler import ObjectMetrics
from boathouse.services.frame.status_writer import STATUS_DISTANCE_S, Memory, StatusShare
from boathouse.telemetry import metrics
from tests.builders.frame import BOAT, KEY, BoatServer, boat

NOW_S = 1000.0


@dataclasses.dataclass(frozen=True)
class State:
    phase: str
    reason: str = ""
    completion_s: float | None = None


class Boats:
    """A kind whose desired state is given by the test; it is its own status format.

    Attributes:
        steps: What was carried out, in order.
    """

    definition = BOAT

    def __init__(self, steps):
        self.steps, self.status_format = steps, self
        self.ttl_s, self.has_finalizer = None, False
        self.desired = Desired(
            before_status=[self.effect("before", 7.0)],
            state=State("Running"),
            after_status=[self.effect("after status")],
            delete=[("p", "p1")],
            after=[self.effect("after", 9.0)],
        )

    def effect(self, name, requeue_s=None):
        async def run(_writes):
            self.steps.append(name)
            return requeue_s

        return run

    def to_status(self, state):
        self.steps.append("status")
        return {"phase": state.phase}

    def parse(self, found):
        return found

    def life(self, _obj):
        return Life(created_s=0.0, ttl_s=self.ttl_s, wants_finalizer=self.has_finalizer)

    def load(self, _status, _obj):
        return State("Pending")

    def remember(self, uid, state, written):
        return Memory(uid, state, written)

    async def observe(self, _obj, _memory):
        self.steps.append("observe")

    def plan(self, _observation, _memory):
        return self.desired

    def note(self, _obj, state):
        return state.phase

    def forget(self, uid, namespace):
        self.steps.append(f"forget {uid} of {namespace}")


@pytest.fixture
def api():
    server = BoatServer()
    server.objects.put(boat(2) | {"spec": {}})
    server.steps = []
    server.publish = lambda *_, reason, **__: server.steps.append(reason)
    return server


@pytest.fixture
def boats(api):
    return Boats(api.steps)


@pytest.fixture
def reconcile(api, boats):
    context = reconciler.Context(
        api=api,
        events=api,
        statuses=StatusShare(10.0, lambda: 0.0),
        may_lead=lambda: True,
        now=lambda: NOW_S,
        monotonic=lambda: 0.0,
    )
    counts = ObjectMetrics(BOAT, prometheus_client.CollectorRegistry(), metrics.ScrapeGauges())
    subject = reconciler.Reconciler(boats, context, api.objects, counts)

    async def run():
        return await subject.reconcile(KEY)

    run.subject = subject
    return run


async def test_effects_are_carried_out_around_the_status_and_the_earliest_time_counts(api, reconcile):
    assert await reconcile() == 7.0
    assert api.steps == ["observe", "before", "Running", "status", "status", "after status", "after"]
    assert [(kind, uid) for kind, _, uid, _ in api.deleted] == [("Pod", "p1")]


async def test_a_recheck_that_is_due_brings_the_next_reconcile_forward(boats, reconcile):
    boats.desired = dataclasses.replace(boats.desired, recheck_at_s=NOW_S + 1)
    assert await reconcile() == 1.0


async def test_a_message_that_is_held_back_delays_no_deletion_and_is_due_later(api, boats, reconcile):
    messages = iter(("a", "a", "b", "b"))  # each write of a status converts it twice
    boats.to_status = lambda state: {"phase": state.phase, "conditions": [{"type": "Up", "message": next(messages)}]}
    boats.desired = Desired(state=State("Running"), delete=[("p", "p1")])
    assert (await reconcile(), await reconcile()) == (reconciler.RESYNC_S, STATUS_DISTANCE_S)
    assert (len(api.statuses), len(api.deleted)) == (1, 2)


async def test_an_object_that_finished_is_forgotten_when_it_is_gone(api, boats, reconcile):
    boats.desired = Desired(state=State("Succeeded", completion_s=5.0))
    assert await reconcile() is None
    api.objects.on_deleted(api.objects.get(KEY))
    await reconcile()
    assert api.steps[-1] == "forget u1 of demo"


async def test_of_an_object_at_rest_no_memory_is_kept_once_its_status_is_written(boats, reconcile):
    messages = iter(("a", "a", "b", "b", "b", "b"))  # each write of a status converts it twice
    boats.to_status = lambda state: {"phase": state.phase, "conditions": [{"type": "Up", "message": next(messages)}]}
    boats.desired = Desired(state=State("Running"))
    await reconcile()
    boats.desired = Desired(state=State("Running"), is_at_rest=True)
    assert (await reconcile(), set(reconcile.subject._memories)) == (STATUS_DISTANCE_S, {KEY})
    reconcile.subject._memories[KEY].written_s = -STATUS_DISTANCE_S
    assert (await reconcile(), set(reconcile.subject._memories)) == (reconciler.RESYNC_S, set())


async def test_an_object_whose_clean_up_is_in_progress_is_reconciled_again(boats, reconcile):
    boats.desired = Desired(state=State("Failed"), holds_deletion=True)
    assert await reconcile() == reconciler.RESYNC_S


@pytest.fixture
def finished(boats):
    """Let the object be finished since ten seconds."""
    boats.desired = Desired(state=State("Succeeded", completion_s=NOW_S - 10))


async def test_the_finalizer_is_written_only_when_it_differs(api, boats, reconcile):
    for boats.has_finalizer in (False, True, True, False):
        await reconcile()
    assert [patch["finalizers"] for patch in api.patches] == [[names.FINALIZER], []]


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize(
    ("ttl_s", "requeue_s"),
    [(None, None), (60.0, 50.0), (1e6, reconciler.MAX_REQUEUE_S)],
    ids=["for ever", "soon", "late"],
)
async def test_an_object_stays_until_its_time_to_live_is_over(api, boats, reconcile, ttl_s, requeue_s):
    boats.ttl_s = ttl_s
    assert await reconcile() == requeue_s
    assert api.deleted == []


@pytest.mark.usefixtures("finished")
async def test_an_object_whose_time_to_live_is_over_is_deleted(api, boats, reconcile):
    boats.ttl_s = 10.0
    assert await reconcile() is None
    assert api.deleted == [("Boat", "wc", "u1", "Background")]


async def test_a_deleted_object_that_is_invalid_is_released_and_reported(api, boats, reconcile):
    api.objects.put(boat(3, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[names.FINALIZER]) | {"spec": {}})
    boats.parse = lambda _body: Refusal(reason="Invalid", message="no berth")
    assert await reconcile() is None
    assert ("CleanUpFailed" in api.steps, [patch["finalizers"] for patch in api.patches]) == (True, [[]])
