"""Deadlines, tokens and times while the operator's clock differs from the API server's by an hour or a day."""

import base64
import dataclasses
import datetime as dt
import json
import time
from types import SimpleNamespace

import pytest

from boathouse.cluster import election, events, server_time
from boathouse.scheduling import pod_conditions, scheduler
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.status_writer import stripped
from boathouse.services.hadoop import applications
from boathouse.services.mrcluster.agent import reports, routes
from boathouse.services.mrjob.state import job_state
from boathouse.services.progress import server as progress_server
from boathouse.services.progress import tls
from boathouse.services.progress.rejections import Rejected
from boathouse_task.cluster_contract import AgentReport
from tests.builders import mrjobs
from tests.builders.mrjob_reconciler import JobReconciler
from tests.builders.operators import server_clocks

UID = ObjectUid("u-1")
HOUR = dt.timedelta(hours=1)


@pytest.fixture(params=server_clocks.STEPS_S)
def now_s(monkeypatch, request):
    """Return a time of the API server: its clock stands still."""
    server_clocks.known_server(monkeypatch, request.param)
    now_s = server_time.SERVER_TIME.now_s()
    assert abs(now_s - time.time() - request.param) < 5
    return now_s


def stored_job(changes, **spec):
    """Return a reconciler, with the clock of the operator, of a job that a former leader left in this state."""
    state = dataclasses.replace(mrjobs.desired(mrjobs.job()).state, **changes)
    return JobReconciler(mrjobs.mrjob(status=stripped(job_state.to_status(state)), **spec), clocks={})


@pytest.mark.parametrize(("ago_s", "phase"), [(590, "Pending"), (610, "Failed")])
async def test_a_job_is_active_as_long_as_it_may_be(now_s, ago_s, phase):
    jobs = stored_job({"start_s": now_s - ago_s}, activeDeadlineSeconds=600)
    await jobs.reconcile()
    assert jobs.stored["status"]["phase"] == phase


async def test_a_finished_job_expires_in_time(now_s):
    finished = {"phase": "Failed", "completion_s": now_s - 400}
    jobs = stored_job(finished, ttlSecondsAfterFinished=600)
    assert await jobs.reconcile() == pytest.approx(200, abs=2)


def test_the_schedulers_clock_begins_with_the_servers_and_has_no_steps(now_s):
    clock = scheduler.steady_clock()
    assert clock() == now_s
    for step_s in server_clocks.STEPS_S:
        server_clocks.tell_date(now_s + step_s)
        assert server_time.SERVER_TIME.now_s() == pytest.approx(now_s + step_s, abs=1)
        assert clock() == now_s


def test_the_time_of_a_pods_condition_is_the_servers(now_s):
    why = pod_conditions.PendingReason(reason="Unschedulable", message="no room")
    pod = SimpleNamespace(metadata=SimpleNamespace(generation=0), condition=lambda _: None)
    assert pod_conditions._condition(pod, why)["lastTransitionTime"] == server_clocks.text(now_s)


def test_the_times_of_leases_and_events_are_the_servers(now_s):
    candidate = election.LeaderElection(None, namespace="n", identity="a", on_lost=print)
    writer = events.EventWriter(None, controller="c", instance="a")
    assert candidate._now().timestamp() == writer._now().timestamp() == pytest.approx(now_s, abs=0.001)


def test_agents_reports_have_the_times_of_the_server(now_s):
    reported, agents = reports.Reports(print), applications.Applications(print)
    agents.follow(UID, "tag", ObjectUid("job"))
    reported.take(UID, AgentReport(), reported.arrive())
    began_s = reported.take(UID, AgentReport(follows=reported.number(UID)), reported.arrive())
    assert began_s == now_s
    agents.answered(UID, at_s=now_s, began_s=began_s, rm_started_s=0, found={"tag": ()})
    assert agents.view("tag") is not None
    agents.follow(UID, "another", ObjectUid("job"))
    agents.answered(UID, at_s=now_s, began_s=began_s - 1, rm_started_s=0, found={"another": ()})
    assert agents.view("another") is None


def test_the_start_of_a_resource_manager_is_a_time_of_the_server(now_s):
    of_nobody = {"pods": None, "namespace_of": None, "reports": None, "orders": None, "applications": None}
    assert routes.AgentRoutes(**of_nobody)._now() == now_s


def request_with_token(expires_s):
    pod = {"namespace": "demo", "pod": {"name": "p", "uid": "u"}}
    payload = {"iss": "https://k", "aud": ["boathouse.dev"], "exp": expires_s, "kubernetes.io": pod}
    encoded = base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")
    headers = {"Authorization": f"Bearer e30.{encoded}.signature"}
    return SimpleNamespace(headers=headers, match_info={"namespace": "demo", "pod": "p"})


def test_a_token_is_valid_until_it_expires(now_s):
    _, caller = progress_server._claim(request_with_token(now_s - 50))
    assert caller.pod_name == "p"
    with pytest.raises(Rejected):
        progress_server._claim(request_with_token(now_s - 70))


def test_an_authority_is_replaced_in_time(now_s):
    last = dt.datetime.fromtimestamp(now_s, dt.UTC) - tls.LIFETIME + tls.RENEWAL
    assert tls.expiry_probe(tls.authority(None, "a", last + HOUR / 2))() is None
    assert "expires" in tls.expiry_probe(tls.authority(None, "a", last - HOUR / 2))()


def test_nodes_whose_clock_is_a_day_behind_accept_a_new_certificate(now_s):
    now = dt.datetime.fromtimestamp(now_s, dt.UTC)
    assert tls.authority(None, "a", now).certificate.not_valid_before_utc <= now - dt.timedelta(days=1)
