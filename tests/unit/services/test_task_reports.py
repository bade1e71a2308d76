"""Reports of tasks whose job was deleted, or that ended."""

import pytest

from boathouse.services.mrjob import task_orders
from boathouse.services.mrjob.job_state import JobState
from boathouse_task import contract

REPORT = contract.TaskReport(phase="map", progress=0.5)


@pytest.fixture
def reported_uids():
    return []


@pytest.fixture
def reports(reported_uids):
    return task_orders.TaskOrders(lambda uid, _pod, _report: reported_uids.append(uid))


def test_a_report_for_a_deleted_job_is_dropped(reports, reported_uids):
    reports.update("u1", "demo", JobState(), ["wc-m-0"])
    reports.forget("u1")
    reports.report("u1", "wc-m-0", REPORT)
    assert (reported_uids, reports.reporting) == ([], 0)


def test_the_reports_of_ended_tasks_are_dropped(reports, reported_uids):
    reports.update("u1", "demo", JobState(), ["wc-m-0", "wc-m-1"])
    for pod in ("wc-m-0", "wc-m-1"):
        reports.report("u1", pod, REPORT)
    reports.update("u1", "demo", JobState(), ["wc-m-1"])
    assert (reported_uids, list(reports.reports("u1"))) == (["u1", "u1"], ["wc-m-1"])
