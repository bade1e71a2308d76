"""What tasks say of a job that was forgotten while they spoke."""

from boathouse.services.mrjob.progress import task_messages
from boathouse.services.mrjob.state.job_state import JobState
from boathouse_task import contract


def test_a_report_for_a_job_that_is_gone_is_dropped():
    told: list[str] = []
    subject = task_messages.TaskMessages(lambda uid, _pod, _report: told.append(uid))
    subject.update("u1", "demo", JobState())
    subject.forget("u1")
    subject.report("u1", "wc-m-0", contract.TaskReport(phase="map", progress=0.5))
    assert told == []
    assert subject.reporting == 0
