"""The operator dies beside the writes that only some jobs and pods need; what was to be is, all the same."""

from __future__ import annotations

import pytest

from boathouse import failpoints
from boathouse.cluster import catalogue
from boathouse_e2e import lab
from boathouse_e2e.kubelets import Shape
from tests.faults import test_failpoints, test_mrclusters, test_sparkapps

pytestmark = [pytest.mark.apiserver, pytest.mark.long]

MOMENTS = pytest.mark.parametrize("moment", ["before", "after"])
SMALL = Shape(maps=6, reduces=1)
MANY_PODS = 8
OF_RESIZES = {"scheduler.resize"}
"""Writes whose deaths are in `tests/wire/test_scheduling_suspension.py`."""


def test_every_write_has_its_deaths():
    assert {
        *test_failpoints.PASSAGES,
        *test_failpoints.OF_SUSPENSIONS,
        *test_sparkapps.PASSAGES,
        *test_mrclusters.WRITES,
        *OF_RESIZES,
        "mrjob.delete-pod",
        "mrjob.expire",
        "mrjob.finalizer",
        "scheduler.bind",
        "learned.write",
        "sparkapp.delete-pod",
        "sparkapp.expire",
    } == {*failpoints.WRITES}


@MOMENTS
async def test_a_suspended_jobs_pods_go_and_it_ends_when_it_is_resumed(trial, moment, record_property):
    await trial.submit(SMALL)
    trial.ledger.held = True
    with trial.operator() as operator:
        operator.start()
        await trial.until(trial.running(SMALL.tasks), "all tasks run")
        operator.kill()
        await trial.patch({"suspend": True})
        kills = await trial.deaths(operator, f"{moment}-mrjob.delete-pod", most=3)
        operator.start()
        await trial.until(trial.running(0), "nothing of the suspended job runs")
        trial.ledger.held = False
        await trial.patch({"suspend": False})
        await trial.judge()
    record_property("kills", kills)
    assert kills == 3


@MOMENTS
async def test_a_job_expires_with_all_that_was_made_for_it(trial, moment, record_property):
    await trial.submit(SMALL)
    with trial.operator() as operator:
        operator.start()
        await trial.until(trial.ended, "the job has ended")
        operator.kill()
        await trial.patch({"ttlSecondsAfterFinished": 0})
        most = 3 if moment == "before" else 1  # then the job is gone
        kills = await trial.deaths(operator, f"{moment}-mrjob.expire", most=most)
        operator.start()
        await trial.until(trial.gone, "the job is deleted")
        await trial.until(trial.nothing_left, "its pods are gone")
    record_property("kills", kills)
    assert kills == most


@MOMENTS
async def test_pods_of_others_are_bound_once_each(trial, moment, record_property):
    pods = catalogue.PODS.untyped()
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    for number in range(MANY_PODS):
        metadata = {"name": f"{moment}-{number}", "labels": {"of": moment}}
        spec = {"schedulerName": "boathouse", "containers": [container]}
        await trial.api.create(pods, {"metadata": metadata, "spec": spec}, lab.NAMESPACE)

    async def bound():
        found = (await trial.api.list(catalogue.PODS, lab.NAMESPACE, labels=f"of={moment}")).items
        return len(found) == MANY_PODS and all(one.spec.node_name for one in found)

    with trial.operator() as operator:
        kills = await trial.deaths(operator, f"{moment}-scheduler.bind", most=3, unless=bound)
        operator.start()
        await trial.until(bound, "every pod has its node")
        assert trial.violations(trial.lab.new_audit_events(), {}) == []
    for number in range(MANY_PODS):
        await trial.api.delete(pods, f"{moment}-{number}", lab.NAMESPACE)
    record_property("kills", kills)
    assert kills


@MOMENTS
async def test_what_was_learnt_is_never_half_written(trial, moment, record_property):
    await trial.submit(SMALL)
    with trial.operator() as operator:
        kills = await trial.deaths(operator, f"{moment}-learned.write", most=1)
        operator.start()
        await trial.judge()
        log = operator.log.read_text()
    record_property("kills", kills)
    assert kills == 1
    assert "starting without them" not in log
