"""Spark applications under harm, with a model of the program in their drivers."""

from __future__ import annotations

import contextlib

from boathouse.cluster import catalogue, client, config
from boathouse.services.sparkapp.model import SPARKAPPS
from boathouse_e2e import faults, invariants, kubelets, lab, sparkmodel
from tests.faults.conftest import Trial


class AppTrial(Trial):
    """One application under harm."""

    resource = SPARKAPPS

    def __init__(self, place, api, nodes, recording, model):
        super().__init__(place, api, nodes, recording)
        self.model = model

    async def phase(self):
        return (await self.status()).get("phase")

    def is_in(self, phase):
        async def holds():
            return await self.phase() == phase

        return holds

    async def is_lost(self):
        """Whether an attempt of it is over."""
        return bool((await self.status()).get("pastAttempts"))

    async def nothing_left(self):
        return not (await self.api.list(catalogue.PODS, lab.NAMESPACE)).items

    async def judge(self, *, attempts=1):
        """Demand that the application ended well, with as many drivers as attempts, one at a time."""
        await self.until(self.ended, "the application has ended")
        status, audit = await self.status(), self.lab.new_audit_events()
        assert (status["phase"], status["attempt"]) == ("Succeeded", attempts), status
        assert created_drivers(audit) == attempts
        assert set(self.model.started.values()) == {1}
        assert (len(self.model.started), self.model.overlaps) == (attempts, set())
        assert self.violations(audit, status) == []
        await self.discard()
        await self.until(self.nothing_left, "its pods are gone")


def created_drivers(audit):
    """Return how many drivers the API server accepted."""
    creates = (event for event in invariants.done(audit, "pods") if event["verb"] == "create")
    return sum(
        event["user"]["username"] == lab.ACCOUNT and not event["objectRef"].get("subresource") for event in creates
    )


@contextlib.asynccontextmanager
async def trying(place):
    """A trial of applications, until the block ends; what went wrong with the model is raised then."""
    place.new_audit_events()
    with faults.recording(place.cluster) as recording:
        async with (
            client.ApiClient(config.from_kubeconfig(place.cluster.kubeconfig)) as api,
            kubelets.running(api, place) as nodes,
            sparkmodel.running(api, place) as model,
        ):
            one = AppTrial(place, api, nodes, recording, model)
            yield one
            if one.has_job:
                await one.discard()
