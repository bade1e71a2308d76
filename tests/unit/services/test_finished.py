"""Finished jobs are many: the process keeps nothing of their tasks."""

from boathouse.services.frame.status_writer import stripped
from boathouse.services.mrjob.state import job_state
from tests.unit.services.reconciling import KEY, Desk, body


def finished(build, phase="Failed"):
    job = build.job()
    state = build.mapping(job, splits=40_000)
    state = build.replace(state, phase=phase, completion_s=build.CREATED_S)
    return {**body(), "status": stripped(job_state.to_status(state))}


async def test_of_a_finished_job_no_record_is_kept_and_its_status_is_written_once(build):
    desk = Desk()
    desk.holds(finished(build))
    for _ in range(4):
        await desk.look()
        desk.now_s += 1000
        desk.jobs.on_object(desk.stored)
    assert KEY not in desk.reconciler._memories
    assert len(desk.written) <= 1


async def test_what_the_scheduler_and_the_endpoint_know_of_a_finished_job_goes_with_it(build):
    desk = Desk()
    desk.holds(finished(build))
    await desk.look()
    desk.withdrawn.clear()
    desk.holds(None)
    await desk.look()
    assert desk.withdrawn == ["u1"]
    assert desk.reconciler._uids == {}
