"""Each attack beside a job of the victim: the operator leads on, and the job ends with the right output."""

from __future__ import annotations

import dataclasses

import pytest

from boathouse.cluster import errors
from tests.hostile.attacks import (
    clusters,
    drivers,
    forgeries,
    gangs,
    outputs,
    plans,
    poison,
    pressure,
    results,
    rights,
    system,
    variety,
)
from tests.hostile.form import Attack

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(300)]

ATTACKS = (
    Attack(name="no attack", most_writes=100, most_events=100, most_reviews=2),
    *(
        one
        for module in (
            poison,
            results,
            forgeries,
            drivers,
            gangs,
            outputs,
            plans,
            pressure,
            variety,
            rights,
            system,
            clusters,
        )
        for one in module.ATTACKS
    ),
)


@pytest.mark.parametrize("attack", [attack.case() for attack in ATTACKS if not attack.refused])
async def test_neither_the_operator_nor_another_namespace_notices(siege, record, attack):
    async with siege.under(attack):
        await siege.victim_finishes()
        if attack.holds is not None:
            await attack.holds(siege)
    counts = await siege.judge(attack)
    record(attack=attack.name, **dataclasses.asdict(counts))


@pytest.mark.parametrize("attack", [attack.case() for attack in ATTACKS if attack.refused])
async def test_the_api_server_refuses_it_and_says_why(attacker, attack):
    for manifest in attack.objects():
        with pytest.raises(errors.ApiError, match=attack.refused):
            await attacker.create(manifest)
