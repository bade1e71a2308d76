"""Outputs and what is left in them, while the operator dies: one owner, and a folder that is removed in the end."""

from __future__ import annotations

import pytest

from boathouse.services.mrjob.model import MRJOBS
from boathouse_e2e import kubelets, lab
from boathouse_e2e.kubelets import Shape

pytestmark = pytest.mark.apiserver

SMALL = Shape(maps=6, reduces=1)


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.long), "after"])
async def test_a_job_is_deleted_once_its_folder_is_removed(trial, moment, record_property):
    await trial.submit(SMALL, clean_up="OnDelete")
    trial.ledger.held = True
    with trial.operator() as operator:
        kills = await trial.deaths(operator, f"{moment}-mrjob.finalizer", most=1)  # it is added
        operator.start()
        await trial.until(trial.running(SMALL.tasks), "all tasks run")
        operator.kill()
        await trial.discard()
        kills += await trial.deaths(operator, f"{moment}-mrjob.finalizer", most=1)  # it is removed
        assert trial.ledger.attempts["cleanup"] == 1
        operator.start()
        await trial.until(trial.gone, "the job is deleted")
        await trial.until(trial.nothing_left, "its pods are gone")
    record_property("kills", kills)
    assert kills == 2


async def test_a_second_job_with_the_output_fails_until_the_first_is_gone(trial, record_property):
    await trial.submit(SMALL)
    trial.ledger.held = True
    output = trial.kubelets.owners
    with trial.operator() as operator:
        operator.start()
        await trial.until(trial.running(SMALL.tasks), "all tasks of the first job run")
        operator.kill()
        name = await another(trial, "second")
        kills = await trial.deaths(operator, "after-mrjob.status", most=2)
        operator.start()
        await trial.until(phase(trial, name, "Failed"), "the second job has failed")
        assert (await condition(trial, name, "Failed"))["reason"] == "OutputExists"
        assert list(output.values()) == [trial.uid]
        await trial.discard()
        await trial.until(trial.gone, "the first job is deleted")
        third = await another(trial, "third")
        await trial.until(phase(trial, third, "Succeeded"), "the third job has taken the output over")
    record_property("kills", kills)
    for job_name in (name, third):
        await trial.api.delete(MRJOBS, job_name, lab.NAMESPACE)


async def another(trial, name):
    """Apply another job with the output of the trial's job."""
    manifest = SMALL.manifest(f"{trial.name}-{name}")
    manifest["spec"]["output"] = f"s3://b/{trial.name}"
    made = await trial.api.create(MRJOBS, manifest, lab.NAMESPACE)
    trial.kubelets.jobs[made["metadata"]["uid"]] = kubelets.Ledger(SMALL)
    return made["metadata"]["name"]


async def status(trial, name):
    return (await trial.api.get(MRJOBS, name, lab.NAMESPACE)).get("status") or {}


def phase(trial, name, wanted):
    async def holds():
        return (await status(trial, name)).get("phase") == wanted

    return holds


async def condition(trial, name, kind):
    return next(
        job_condition for job_condition in (await status(trial, name))["conditions"] if job_condition["type"] == kind
    )
