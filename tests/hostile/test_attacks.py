"""Each attack beside a job of the victim: the operator leads on, and the job ends with the right output."""

from __future__ import annotations

import dataclasses

import pytest

from tests.hostile.attacks import forgeries, plans, poison, pressure, results, rights, system, variety
from tests.hostile.form import Attack

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(300)]

ATTACKS = (
    Attack(name="no attack", most_writes=100, most_events=100, most_reviews=2),
    *(one for each in (poison, results, forgeries, plans, pressure, variety, rights, system) for one in each.ATTACKS),
)


@pytest.mark.parametrize("attack", [each.case() for each in ATTACKS])
async def test_neither_the_operator_nor_another_namespace_notices(siege, record, attack):
    async with siege.under(attack):
        await siege.victim_finishes()
        if attack.holds is not None:
            await attack.holds(siege)
    counts = await siege.judge(attack)
    record(attack=attack.name, **dataclasses.asdict(counts))
