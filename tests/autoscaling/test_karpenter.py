"""Karpenter buys nodes for pending jobs of each kind, keeps them while they are needed, and removes all in the end."""

from __future__ import annotations

import asyncio
import math

import pytest

from boathouse.cluster import catalogue
from boathouse.resources import names
from boathouse.scheduling.pods import requests
from boathouse_e2e import karpenter, kubelets, lab, sparkmodel
from tests.faults import applications, clusters

pytestmark = [pytest.mark.apiserver, pytest.mark.long]

USABLE_MILLI = 1000 * karpenter.NODE_CPU - karpenter.RESERVED_CPU_MILLI
PATIENCE_S = 300
"""On a busy machine. Karpenter looks twice at a node before it removes it, 15 s apart."""
EXECUTORS = 7
POD_MILLI = 500
"""CPU of the driver and of each executor."""


class Scaled:
    """What a trial and Karpenter do to each other."""

    def __init__(self, trial, autoscaler):
        self.trial, self.autoscaler = trial, autoscaler

    async def until(self, holds, what):
        async def is_true():
            self.autoscaler.check()
            return await asyncio.to_thread(holds)

        await self.trial.until(is_true, what, patience_s=PATIENCE_S)

    async def claims(self, count):
        """Wait for so many NodeClaims whose nodes are there; return them by name."""

        def found():
            return [claim for claim in self.autoscaler.claims() if claim.is_registered]

        await self.until(lambda: len(found()) == count, f"{count} nodes are there")
        return {claim.name: claim for claim in found()}

    async def nothing(self):
        """Wait until all nodes are gone."""
        await self.until(lambda: not self.autoscaler.claims() and not self.autoscaler.nodes(), "no node is left")

    def all_are_protected(self):
        """Whether each node has a pod that Karpenter must not move."""
        return self.autoscaler.nodes() <= self.autoscaler.protected()

    async def an_empty_node_is_removed(self):
        """Let Karpenter buy a node for another pod, and remove the one that is empty without that pod, and no other.

        It removes all empty nodes at once, and may do so with an older one than that which it bought. Returns what
        is left.
        """
        cluster, count = self.trial.lab.cluster, len(self.autoscaler.claims())
        cluster.apply(LARGE)
        await self.claims(count + 1)
        cluster.run("delete", "pod", LARGE["metadata"]["name"], "-n", lab.NAMESPACE, "--now")
        return await self.claims(count)


LARGE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "large", "namespace": lab.NAMESPACE},
    "spec": {
        "schedulerName": names.SCHEDULER_NAME,  # another one would put it on a node whose room is reserved
        "containers": [
            {"name": "main", "image": "none", "resources": {"requests": {"cpu": f"{USABLE_MILLI}m", "memory": "64Mi"}}}
        ],
    },
}
"""A pod that needs a whole node."""


def cpu_milli(claims):
    """Return the CPU for which nodes were bought."""
    return sum(requests.cpu_milli(claim.requests["cpu"]) for claim in claims.values())


def pods(claims):
    """Return the number of pods for which nodes were bought."""
    return sum(int(claim.requests["pods"]) for claim in claims.values())


@pytest.fixture
async def app(laboratory):
    async with applications.trying(laboratory) as one:
        yield one


@pytest.fixture
async def hadoop(laboratory):
    async with clusters.trying(laboratory) as one:
        yield one


async def placeholders(trial):
    """Return the number of placeholders."""
    label = f"{names.LABEL_TASK_TYPE}={names.TASK_TYPE_PLACEHOLDER}"
    return len((await trial.api.list(catalogue.PODS, lab.NAMESPACE, labels=label)).items)


def all_executors_run(app):
    """Whether all executors run, and no placeholder is left."""

    async def holds():
        executors = (await app.status()).get("executors") or {}
        return executors.get("running") == EXECUTORS and await placeholders(app) == 0

    return holds


async def test_a_gang_gets_all_its_nodes_at_once_and_keeps_them_until_it_ends(app, autoscaler):
    scaled, program = Scaled(app, autoscaler), app.model.program
    program.executors, program.holds = 0, True  # the driver has not yet created its executors
    small = {"memory": "450m", "coreRequest": f"{POD_MILLI}m"}
    with app.operator() as operator:
        operator.start()
        await app.create(sparkmodel.manifest("grown", driver=small, executor={**small, "instances": EXECUTORS}))
        bought = await scaled.claims(math.ceil((1 + EXECUTORS) / (USABLE_MILLI // POD_MILLI)))
        assert (cpu_milli(bought), pods(bought)) == ((1 + EXECUTORS) * POD_MILLI, 1 + EXECUTORS)
        await app.until(app.is_in("Running"), "the driver runs")
        left = await scaled.an_empty_node_is_removed()  # nodes that only placeholders need are not
        assert await placeholders(app) == EXECUTORS
        program.executors = EXECUTORS
        await app.until(all_executors_run(app), "all executors run, and no placeholder is left")
        assert set(await scaled.claims(len(bought))) == set(left)
        driver = (await app.status())["driver"]["node"]
        await scaled.until(lambda: driver in autoscaler.protected(), "Karpenter leaves the driver's node alone")
        program.holds = False
        await app.until(app.ended, "the application has ended")
        assert (await app.status())["phase"] == "Succeeded"
        await scaled.nothing()


async def test_an_mrjob_gets_nodes_step_by_step_and_none_is_taken_from_its_tasks(trial, autoscaler):
    scaled, shape = Scaled(trial, autoscaler), kubelets.Shape(maps=6, reduces=1)
    with trial.operator() as operator:
        operator.start()
        await trial.submit(shape, is_suspended=False)
        trial.ledger.held = True
        await trial.until(trial.running(shape.maps), "all maps run", patience_s=PATIENCE_S)
        await scaled.claims(shape.maps // 2)
        await scaled.until(scaled.all_are_protected, "Karpenter leaves the nodes of tasks alone")
        trial.ledger.held = False
        await trial.until(trial.ended, "the job has ended", patience_s=PATIENCE_S)
        assert (await trial.status())["phase"] == "Succeeded"
        await scaled.nothing()


async def test_a_hadoop_cluster_gets_a_node_for_each_core_node_and_keeps_them_while_it_lives(hadoop, autoscaler):
    scaled = Scaled(hadoop, autoscaler)
    with hadoop.operator() as operator:
        operator.start()
        await hadoop.start_cluster()
        await hadoop.until(hadoop.has(core=2, transient=0), "the cluster is ready", patience_s=PATIENCE_S)
        await scaled.claims(2)
        await scaled.until(scaled.all_are_protected, "Karpenter leaves the nodes of master and core nodes alone")
        await hadoop.discard()
        await scaled.nothing()
