"""The operator dies by SIGKILL before and after a write, three times in a row; the job ends as if it had not."""

from __future__ import annotations

import pytest

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
PASSAGES = {
    "leader.acquired": (1,),
    "leader.label": (1,),
    "progress.ca": (1,),
    "plan.posted": (1,),
    "plan.shard": (1,),
    "mrjob.submit": (1, 2),
    "mrjob.status": (1, 2, 4),
    "scheduler.create": (1, 2, 4, 8),
}
"""Of each write of a plain job's life, at which passages of a life; `test_rare_failpoints` has the other writes."""
OF_SUSPENSIONS = tuple(f"scheduler.{write}" for write in ("order", "record", "shrink", "continue", "grow"))
SUSPENDED = Shape(maps=5, reduces=3)
IN_A_ROW = 3
SHORT = {("attempts-fail", name, 1) for name in ("before-mrjob.submit", "after-scheduler.create")}


def case(shape, name, passage):
    marks = () if (shape, name, passage) in SHORT else pytest.mark.long
    return pytest.param(SHAPES[shape], f"{name}:{passage}", marks=marks, id=f"{shape}-{name}-{passage}")


CASES = [
    case(shape, f"{moment}-{write}", passage)
    for shape in SHAPES
    for write, passages in PASSAGES.items()
    for moment in ("before", "after")
    for passage in passages
]


@pytest.mark.parametrize(("shape", "failpoint"), CASES)
async def test_a_job_survives_the_operators_death(trial, shape, failpoint, record_property):
    await trial.submit(shape, pauses=True)
    with trial.operator() as operator:
        kills = await trial.deaths(operator, failpoint, most=IN_A_ROW, unless=trial.ended)
        operator.start()
        await trial.judge()
    record_property("kills", kills)
    assert kills, f"no life came to {failpoint}"


SHORT_OF_SUSPENSIONS = {"after-scheduler.shrink"}
DEATHS_OF_SUSPENSIONS = [
    pytest.param(name, marks=() if name in SHORT_OF_SUSPENSIONS else pytest.mark.long)
    for name in (f"{moment}-{write}" for write in OF_SUSPENSIONS for moment in ("before", "after"))
]


@pytest.mark.parametrize("failpoint", DEATHS_OF_SUSPENSIONS)
async def test_a_job_whose_reduces_are_suspended_survives_the_operators_death(trial, failpoint, record_property):
    await trial.submit(SUSPENDED)
    trial.ledger.held = True
    with trial.operator() as operator:
        kills = await trial.deaths(operator, failpoint, most=IN_A_ROW)
        trial.ledger.held = False
        operator.start()
        await trial.judge()
    record_property("kills", kills)
    assert kills == IN_A_ROW
