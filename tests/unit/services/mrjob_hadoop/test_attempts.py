"""Attempts of a job under random events: never do two applications of it run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from boathouse.services.mrjob.hadoop import client_pod  # noqa: F401 - imported before failpoints are replaced
from tests.builders import mrjobs
from tests.builders.simulated_hadoop_job import SimulatedHadoopJob

if TYPE_CHECKING:
    from boathouse.services.mrjob.hadoop.observation import ClientPod

WRITES = ("tags", "kill-application", "submit")
FAILPOINTS = (*(f"{moment}-mrjob.{write}" for write in WRITES for moment in ("before", "after")), "after-mrjob.status")
STEPS = 150
JAR = {"jar": {"url": "local:///opt/job.jar"}}


async def run_steps(job: SimulatedHadoopJob, steps: int = STEPS) -> None:
    for _ in range(steps):
        job.happen()
        job.check()
        dies_at = job.random.choice(FAILPOINTS) if job.random.random() < 0.1 else ""
        await job.live(dies_at=dies_at)
        job.check()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("more", [{}, JAR], ids=["streaming", "jar"])
async def test_whatever_happens_one_application_runs_and_the_job_ends(seed: int, more: dict[str, object]) -> None:
    job = SimulatedHadoopJob(seed, **more)
    await run_steps(job)
    await job.settle()
    assert job.status["phase"] in {"Succeeded", "Failed"}, job.status


@pytest.mark.parametrize("seed", range(12))
async def test_a_job_that_is_suspended_and_resumed_again_and_again_does_not_run_twice(seed: int) -> None:
    job = SimulatedHadoopJob(seed)
    for _ in range(6):
        await run_steps(job, 25)
        job.suspend = not job.suspend
    assert not job.suspend
    await job.settle()
    assert job.status["phase"] == "Succeeded"


@pytest.mark.parametrize("seed", range(12))
async def test_a_deleted_job_leaves_no_application(seed: int) -> None:
    job = SimulatedHadoopJob(seed)
    await run_steps(job, 60)
    job.deleting_since_s = job.now_s
    await job.settle()
    assert job.is_gone
    assert not job.running


async def run_until_submitted(job: SimulatedHadoopJob, number: int) -> None:
    """Run the job until the client of an attempt has submitted an application."""
    for _ in range(60):
        await job.live()
        job.scheduler.create()
        for client in job.processes:
            if client.attempt == number:
                job.ask_leave(client)
                job.submit(client)
        job.report()
        job.now_s += 3
        if len(job.running) == 1:
            return
    raise AssertionError(job.status)


async def test_an_application_of_a_client_whose_pod_was_deleted_by_force_is_killed() -> None:
    job = SimulatedHadoopJob()
    await job.reconcile()
    await job.reconcile()
    job.scheduler.create()
    (late,) = job.processes
    job.ask_leave(late)
    assert late.has_leave
    job.ended.add(late.attempt)
    job.pods.clear()  # its process runs on, on a node that does not respond
    await run_until_submitted(job, 2)
    assert 0.0 in job.delays_s  # the scheduler had seen the pod end: nothing would report it
    job.submit(late)
    for _ in range(3):
        job.report()
        await job.reconcile()
    assert job.kills == ["application_1_2"]
    assert job.running == ["application_1_1"]


async def job_with_client() -> tuple[SimulatedHadoopJob, ClientPod]:
    """Return a job whose first client has been created."""
    job = SimulatedHadoopJob()
    await job.reconcile()
    await job.reconcile()
    job.scheduler.create()
    (client,) = job.processes
    return job, client.pod


async def test_a_client_may_not_submit_before_the_api_server_has_its_attempt() -> None:
    job, pod = await job_with_client()
    written, job.memory.written = job.memory.written, {}
    assert not job.jobs.may_submit(mrjobs.UID, pod)  # type: ignore[arg-type]
    job.memory.written = written
    assert job.jobs.may_submit(mrjobs.UID, pod)  # type: ignore[arg-type]


async def test_a_client_of_an_attempt_that_stops_may_not_submit() -> None:
    job, pod = await job_with_client()
    job.suspend = True
    await job.reconcile()
    assert job.status["hadoop"]["stopping"]
    assert not job.jobs.may_submit(mrjobs.UID, pod)  # type: ignore[arg-type]


async def test_a_job_that_is_gone_before_its_application_ended_has_one_event_about_it() -> None:
    job = SimulatedHadoopJob()
    await run_until_submitted(job, 1)
    job.deleting_since_s = job.now_s
    job.now_s += 121
    await job.reconcile()
    await job.reconcile()
    assert [key for key, _, _ in job.events] == ["demo/wordcount"]
