"""Which quotas concern a driver and its executors, and what they say of their sums."""

import pytest

from boathouse.cluster import views, wire
from boathouse.scheduling.limits import Quotas
from boathouse_policies import model

GIB = 1 << 30
FOUR = model.Resources(cpu_milli=4000, memory_bytes=8 * GIB).by_name | {"pods": 3, "example.com/gpu": 2}


def known(*, used: dict[str, str] | None = None, name: str = "q", **spec) -> Quotas:
    """The quotas of the namespace `team`: one."""
    found = Quotas()
    spec = views.QuotaSpec(**spec)
    view = views.QuotaView(
        metadata=wire.ObjectMeta(name=name, namespace="team"),
        spec=spec,
        status=views.QuotaStatus(hard=spec.hard, used=used or {}),
    )
    found.set(view)
    return found


def reason(found: Quotas, wanted=FOUR, **more) -> str | None:
    why = found.check("team", wanted, **more)
    return None if why is None else why.reason


@pytest.mark.parametrize(
    "name", ["cpu", "requests.cpu", "memory", "limits.memory", "pods", "count/pods", "requests.example.com/gpu"]
)
def test_a_line_of_a_quota_limits_the_sum(name):
    assert reason(known(hard={name: "1"})) == "ExceedsQuota"
    assert reason(known(hard={name: "100Gi"}, used={name: "100Gi"})) == "QuotaExceeded"
    assert reason(known(hard={name: "100Gi"})) is None


@pytest.mark.parametrize("name", ["services", "requests.storage", "persistentvolumeclaims", "count/configmaps"])
def test_other_lines_limit_nothing(name):
    assert reason(known(hard={name: "0"})) is None


def test_the_message_has_the_amounts_and_the_name_of_the_quota():
    why = known(name="small", hard={"requests.memory": "10Gi"}, used={"requests.memory": "3Gi"}).check("team", FOUR)
    assert why is not None
    words = "the driver and its minimum of executors request 8Gi requests.memory, and quota small has left 7Gi"
    assert why.message == words


def test_what_other_drivers_were_promised_counts_as_used():
    assert reason(known(hard={"cpu": "6"}), promised=[{"cpu": 1000}, {"cpu": 1000}]) is None
    assert reason(known(hard={"cpu": "6"}), promised=[{"cpu": 1000}, {"cpu": 1001}]) == "QuotaExceeded"


@pytest.mark.parametrize(
    ("spec", "concerns"),
    [
        ({"scopes": ("NotTerminating",)}, True),
        ({"scopes": ("NotBestEffort",)}, True),
        ({"scopes": ("Terminating",)}, False),
        ({"scopes": ("BestEffort",)}, False),
        ({"scopes": ("PriorityClass",)}, True),
        ({"scope_selector": ("PriorityClass", "In", ("high",))}, True),
        ({"scope_selector": ("PriorityClass", "In", ("low",))}, False),
        ({"scope_selector": ("PriorityClass", "NotIn", ("high",))}, False),
        ({"scope_selector": ("PriorityClass", "DoesNotExist", ())}, False),
        ({"scope_selector": ("Terminating", "Exists", ())}, False),
    ],
)
def test_a_quota_with_scopes_concerns_the_pods_that_match(spec, concerns):
    if selector := spec.get("scope_selector"):
        scope, operator, values = selector
        one = views.ScopeRequirement(scope_name=scope, operator=operator, values=values)
        spec = {"scope_selector": views.ScopeSelector(match_expressions=(one,))}
    assert (reason(known(hard={"cpu": "1"}, **spec), priority_class="high") == "ExceedsQuota") is concerns


def test_a_line_that_cannot_be_read_limits_nothing():
    assert reason(known(hard={"cpu": "much"})) is None


def test_a_quota_that_is_deleted_limits_nothing():
    found = known(hard={"cpu": "1"})
    found.set(views.QuotaView(metadata=wire.ObjectMeta(name="q", namespace="team")), is_gone=True)
    assert reason(found) is None
    assert found.changed == {"team"}
