"""Operators of a previous version and of this one take over from each other while a job runs."""

from __future__ import annotations

import pytest

from boathouse_e2e import hostile, paths, previous
from boathouse_e2e.kubelets import Shape

pytestmark = pytest.mark.apiserver

SHAPE = Shape(
    maps=16, reduces=2, fails=frozenset({("m-00003", 1), ("r-00001", 1)}), lost=frozenset({("m-00005", 1)}), cpu="600m"
)
HANDOVERS = 4


OLDER = [pytest.param(commit, marks=pytest.mark.long) for commit in previous.COMMITS[:-1]]


@pytest.fixture(scope="session", params=[*OLDER, previous.COMMITS[-1]])
def earlier(request, tmp_path_factory):
    return previous.checkout(tmp_path_factory.mktemp("previous") / "boathouse", request.param)


@pytest.mark.parametrize("first", ["previous", "this"])
async def test_a_job_runs_on_under_operators_of_both_versions(trial, earlier, first):
    """Each operator has the job's maps run; the last but one lets them end, the last ends the job."""
    checkouts = [earlier, paths.REPOSITORY] if first == "previous" else [paths.REPOSITORY, earlier]
    await trial.submit(SHAPE, is_suspended=False)  # earlier operators resume no reduce
    trial.ledger.held = True
    for number in range(HANDOVERS):
        epoch = await hostile.epoch(trial.api)
        with trial.operator(checkout=checkouts[number % 2]) as operator:
            operator.start()
            await trial.until(lambda epoch=epoch: leads_since(trial, epoch), "the next operator leads")
            if number < HANDOVERS - 2:
                await trial.until(trial.running(SHAPE.maps), "all maps run")
            elif number == HANDOVERS - 2:
                trial.ledger.held = False
                await trial.until(lambda: trial.ledger.committed("m"), "a map has committed")
            else:
                await trial.judge()


async def leads_since(trial, epoch):
    return await hostile.epoch(trial.api) > epoch
