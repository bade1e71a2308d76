"""Random changes under random faults: once all is quiet, the informer knows what the server holds."""

from __future__ import annotations

import asyncio
import random

import pytest

from boathouse.cluster import catalogue
from tests.builders import manifests
from tests.builders.operators.informers import cached, following, stored
from tests.wire import fake_api

NAMES = [f"p{number}" for number in range(8)]
FAULTS = [
    fake_api.Fault(status=429, retry_after_s=0),
    fake_api.Fault(status=500),
    fake_api.Fault(status=504),
    fake_api.Fault(status=410, reason="Expired"),
    fake_api.Fault(reset=True),
    fake_api.Fault(delay_s=0.005),
]

LAST_BOOKMARKS = 5
"""More than a storm has in flight at its end."""


class Storm:
    """One run's changes and faults, all from one seed."""

    def __init__(self, api: fake_api.FakeApi, seed: int) -> None:
        self.api, self.rng = api, random.Random(seed)
        self.share = self.rng.choice([0.0, 0.05, 0.2, 0.5])
        api.chaos = self.chaos

    def chaos(self, call: fake_api.Call) -> fake_api.Fault | None:
        if call.query.get("continue") and self.rng.random() < self.share:
            self.api.expire_pages()
        return self.rng.choice(FAULTS) if self.rng.random() < self.share else None

    async def blow(self, steps: int) -> None:
        for _ in range(steps):
            self.change()
            if self.rng.random() < self.share:
                self.harm()
            if self.rng.random() < 0.5:
                await asyncio.sleep(self.rng.choice([0, 0, 0.001, 0.003]))

    def change(self) -> None:
        name = self.rng.choice(NAMES)
        key = f"demo/{name}"
        if self.api.get("pods", key) is None:
            self.api.add(manifests.pod(name))
            return
        match self.rng.choice(["run", "end", "remove", "renew"]):
            case "run":
                self.api.set_phase(key, self.rng.choice(["Pending", "Running"]))
            case "end":
                self.api.end_pod(key, exit_code=self.rng.choice([0, 1]))
            case "remove":
                self.api.remove("pods", key)
            case "renew":
                self.api.remove("pods", key)
                self.api.add(manifests.pod(name))

    def harm(self) -> None:
        watches = self.api.watches
        self.rng.choice(
            [
                lambda: watches.cut("pods", mid_line=True),
                lambda: watches.cut("pods", mid_line=False),
                lambda: watches.cut("pods", mid_line=True, abort=False),
                lambda: watches.end("pods"),
                lambda: watches.expire("pods"),
                lambda: watches.silence("pods"),
                lambda: watches.replay("pods", last=self.rng.randrange(1, 12)),
                lambda: watches.bookmark("pods"),
            ]
        )()


def holds_resources(manifest) -> bool:
    return manifest["status"]["phase"] not in {"Succeeded", "Failed"}


@pytest.mark.parametrize("seed", [pytest.param(n, marks=() if n < 80 else pytest.mark.long) for n in range(400)])
async def test_after_the_storm_the_informer_knows_what_the_server_holds(api, client, eventually, seed):
    storm = Storm(api, seed)
    fields = catalogue.PODS_THAT_HOLD_RESOURCES if seed % 2 else ""
    selects = holds_resources if seed % 2 else lambda _: True
    async with following(api, client, fields=fields, stall_s=0.05, seed=seed) as (followed, follower):
        await storm.blow(60)
        api.heal()
        before = followed.stats.bookmarks + LAST_BOOKMARKS  # what the server replayed arrives before these
        await eventually(lambda: api.watches.bookmark("pods") or followed.stats.bookmarks > before)
        await eventually(lambda: cached(followed) == stored(api, selects=selects))
        assert follower.believed == {key: uid for key, (uid, _) in cached(followed).items()}
        assert not await followed.compare(settle_s=0)
