"""Deadlines, tokens and times while the operator's clock differs from the API server's by an hour or a day."""

import base64
import dataclasses
import datetime as dt
import json
import time
from types import SimpleNamespace

import pytest

from boathouse.cluster import catalogue, events, server_time, store
from boathouse.resources import names
from boathouse.resources.mrjob import names as mrjob_names
from boathouse.scheduling import pod_conditions, scheduler
from boathouse.scheduling.pods.states import PendingReason
from boathouse.services import hadoop
from boathouse.services.frame.kind import ObjectUid
from boathouse.services.frame.status_codec import stripped
from boathouse.services.mrcluster import agent
from boathouse.services.mrjob import job_state
from boathouse.services.progress import certificates, server as progress_server
from boathouse.services.progress.limits import Rejected
from boathouse_task.cluster_contract import AgentReport
from boathouse_task.contract import TaskType
from tests.builders import mrjobs, observed_pods
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


def with_setup_pod(jobs, now_s, *, state, number=1, deleted_s=None):
    """Let the informer report a setup pod of a job, with a container in this state, placed 1,000 s ago."""
    manifest = mrjobs.task_manifest(mrjobs.job(), TaskType.SETUP)
    manifest["metadata"] |= {"name": f"setup-a{number}", "uid": f"p{number}"}
    manifest["metadata"]["creationTimestamp"] = server_clocks.text(now_s - 1000)
    manifest["metadata"]["labels"][mrjob_names.LABEL_ATTEMPT] = str(number)
    if deleted_s is not None:
        manifest["metadata"]["deletionTimestamp"] = server_clocks.text(deleted_s)
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": server_clocks.text(now_s - 1000)}
    phase = "Failed" if "terminated" in state else "Running"
    containers = [{"name": names.CONTAINER, "state": state}]
    manifest["status"] = {"phase": phase, "conditions": [placed], "containerStatuses": containers}
    pod = observed_pods.observed_pod(manifest)
    (jobs.pods.on_ended if phase == "Failed" else jobs.pods.on_pod)(store.Added(key=pod.metadata.key, new=pod))


@pytest.mark.parametrize(("ago_s", "failures"), [(50, 0), (70, 1)])
async def test_a_deleted_pod_is_lost_when_its_node_has_not_answered_for_long_enough(now_s, ago_s, failures):
    jobs = stored_job({"start_s": now_s - 1000})
    with_setup_pod(
        jobs, now_s, state={"running": {"startedAt": server_clocks.text(now_s - 900)}}, deleted_s=now_s - ago_s
    )
    await jobs.reconcile()
    assert jobs.stored["status"]["failures"] == {"user": 0, "infrastructure": failures}


@pytest.mark.parametrize(("ago_s", "retries"), [(28, 0), (36, 1)])
async def test_a_task_that_has_failed_six_times_is_retried_32_seconds_after_the_last_time(now_s, ago_s, retries):
    jobs = stored_job({"start_s": now_s - 1000})
    for number in range(1, 7):
        killed = {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": server_clocks.text(now_s - ago_s)}
        with_setup_pod(jobs, now_s, number=number, state={"terminated": killed})
    await jobs.reconcile()
    assert jobs.stored["status"]["failures"] == {"user": 0, "infrastructure": 6}
    assert [tasks for tasks in jobs.submitted if tasks] == [("demo/wordcount-0a1b2c3d-s0-setup-a7",)] * retries


def test_the_schedulers_clock_begins_with_the_servers_and_has_no_steps(now_s):
    clock = scheduler.steady_clock()
    assert clock() == now_s
    for step_s in server_clocks.STEPS_S:
        server_clocks.tell_date(now_s + step_s)
        assert server_time.SERVER_TIME.now_s() == pytest.approx(now_s + step_s, abs=1)
        assert clock() == now_s


def test_the_time_of_a_pods_condition_is_the_servers(now_s):
    why = PendingReason(reason="Unschedulable", message="no room")
    pod = SimpleNamespace(metadata=SimpleNamespace(generation=0), condition=lambda _: None)
    assert pod_conditions.condition_of(pod, why)["lastTransitionTime"] == server_clocks.text(now_s)


def test_the_times_of_events_are_the_servers(now_s):
    writer = events.EventWriter(None, controller="c", instance="a")
    event = writer._event(events.reference(catalogue.PODS, "demo", "p", "u"), "Normal", "Scheduled", "Binding", "")
    assert dt.datetime.fromisoformat(event["eventTime"]).timestamp() == pytest.approx(now_s, abs=0.001)


def test_agents_reports_have_the_times_of_the_server(now_s):
    reported, agents = agent.Reports(print), hadoop.Applications(print)
    agents.follow(UID, "tag", ObjectUid("job"))
    reported.take(UID, AgentReport(), reported.monotonic())
    began_s = reported.take(UID, AgentReport(follows=reported.number(UID)), reported.monotonic())
    assert began_s == now_s
    agents.answered(UID, began_s=began_s, rm_started_s=0, found={"tag": ()})
    assert agents.view("tag") is not None
    agents.follow(UID, "another", ObjectUid("job"))
    agents.answered(UID, began_s=began_s - 1, rm_started_s=0, found={"another": ()})
    assert agents.view("another") is None


def test_the_start_of_a_resource_manager_is_a_time_of_the_server(now_s):
    of_nobody = {"pods": None, "namespace_of": None, "reports": None, "orders": None, "applications": None}
    assert agent.AgentRoutes(**of_nobody).now() == now_s


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
    last = dt.datetime.fromtimestamp(now_s, dt.UTC) - certificates.LIFETIME + certificates.RENEWAL
    assert certificates.expiry_probe(certificates.authority(None, "a", last + HOUR / 2))() is None
    assert "expires" in certificates.expiry_probe(certificates.authority(None, "a", last - HOUR / 2))()


def test_nodes_whose_clock_is_a_day_behind_accept_a_new_certificate(now_s):
    now = dt.datetime.fromtimestamp(now_s, dt.UTC)
    assert certificates.authority(None, "a", now).certificate.not_valid_before_utc <= now - dt.timedelta(days=1)
