"""The operator dies by SIGKILL before and after each of its writes, twice in a row; the job ends as if it had not."""

from __future__ import annotations

import itertools
import signal

import pytest

from boathouse import failpoints
from boathouse_e2e.kubelets import Shape

pytestmark = pytest.mark.apiserver

SHAPES = {
    "20-maps-4-reduces": Shape(maps=20, reduces=4),
    "30-maps": Shape(maps=30, reduces=0),
    "attempts-fail": Shape(
        maps=8,
        reduces=2,
        fails=frozenset({("m-00003", 1), ("r-00001", 1)}),
        lost=frozenset({("m-00005", 1), ("m-00005", 2), ("setup", 1)}),
    ),
}
PASSAGES = (1, 4)
SHORT = {("attempts-fail", name, 1) for name in ("after-plan.shard", "before-mrjob.submit", "after-scheduler.create")}


def case(shape, name, passage):
    marks = () if (shape, name, passage) in SHORT else pytest.mark.long
    return pytest.param(SHAPES[shape], f"{name}:{passage}", marks=marks, id=f"{shape}-{name}-{passage}")


CASES = [case(*each) for each in itertools.product(SHAPES, failpoints.NAMES, PASSAGES)]


@pytest.mark.parametrize(("shape", "failpoint"), CASES)
async def test_a_job_survives_the_operators_death(trial, shape, failpoint, record_property):
    await trial.submit(shape)
    kills = 0
    with trial.operator() as operator:
        for _ in range(2):
            operator.start(failpoint)

            async def over(operator=operator):
                return not operator.lives or await trial.ended()

            await trial.until(over, f"the operator dies at {failpoint}, or the job ends")
            kills += operator.exit_code == -signal.SIGKILL
            operator.kill()
        operator.start()
        await trial.judge()
    record_property("kills", kills)
