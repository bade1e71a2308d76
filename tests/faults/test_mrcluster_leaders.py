"""A leader stands still past its Lease while nodes of a Hadoop cluster leave, and wakes when they no longer do."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal

import pytest

from boathouse_e2e import lab
from tests.faults import clusters
from tests.faults.test_two_leaders import SHORT_LEASE

pytestmark = pytest.mark.apiserver

RUNS = 10
REPORT_S = 3.0
"""In which an agent sends a report."""


@pytest.fixture
async def trial(laboratory):
    async with clusters.trying(laboratory) as one:
        yield one


@contextlib.contextmanager
def reporting_to(trial, operator):
    """Agents report to one operator alone, whether it leads or not."""
    operators = trial.kubelets.operators
    known = operators.copy()
    operators[:] = [operator]
    try:
        yield
    finally:
        operators[:] = known


async def orders_never_go_back(trial):
    """Demand it for ever: the agent's version does not fall, and no node leaves."""
    newest = trial.agent_version()
    while True:
        version = trial.agent_version()
        assert version >= newest, f"the agent took orders {version} after {newest}"
        assert not trial.hadoop.yarn.excluded, "a node leaves by the orders of a former leader"
        newest = version
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed == 0 else pytest.mark.long) for seed in range(RUNS)]
)
async def test_a_leader_that_wakes_and_answers_an_agent_lets_no_node_leave(trial, seed):
    rng = random.Random(seed)
    first, second = lab.IDENTITIES
    resizing = {"drainTimeoutSeconds": 900}
    with trial.operator(first, **SHORT_LEASE) as paused, trial.operator(second, **SHORT_LEASE) as successor:
        await trial.start_cluster(transient={"minimum": 2, "maximum": 2}, resizing=resizing)
        with reporting_to(trial, paused):
            paused.start()
            await trial.until(trial.has(core=2, transient=2), "the cluster is ready")
            application = trial.load(*(900.0,) * 12)
            await trial.until(lambda: trial.hadoop.yarn.containers("t1"), "a transient node has containers")
            await trial.patch({"transient": {"minimum": 0}})
            await trial.until(lambda: trial.hadoop.yarn.excluded.keys() == {"t0", "t1"}, "two nodes leave")
            epoch = await trial.epoch()
            await asyncio.sleep(rng.uniform(0, REPORT_S))
            paused.send(signal.SIGSTOP)
        with reporting_to(trial, successor):
            successor.start()

            async def succeeded():
                return await trial.epoch() > epoch

            await trial.until(succeeded, "the successor leads")
            await trial.patch({"transient": {"minimum": 2}})
            await trial.until(lambda: not trial.hadoop.yarn.excluded, "no node leaves")
        trial.begin(orders_never_go_back(trial))
        with reporting_to(trial, paused):
            await asyncio.sleep(REPORT_S)  # a report waits for the process that stands still
            trial.let_end(paused)
            paused.send(signal.SIGCONT)
            await trial.until(lambda: not paused.lives, "the former leader has ended")
        assert "Traceback" not in paused.log.read_text()
        assert not application.lost
        trial.hadoop.yarn.kill(application.id, trial.hadoop.now_s)
        await trial.judge_cluster(core=2, transient=2)
