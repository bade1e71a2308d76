"""What the parts of the profile boathouse were to save and saved in simulations, and how often its guard raised alarm.

    python -m benchmarks.parts [--rows memory-x2,mix-0.9,misjudged] [--seeds 2]

Rows are those of `boathouse board`, seeds the odd ones. In `misjudged` the run times of each program are told wrong, by
0.1 to 10 times; in the other rows no part is harmed, so that an alarm there is a false one. A simulation takes 3 to 10
seconds of CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import support
from boathouse_lab.board import columns, rows
from boathouse_policies.profiles import guard
from boathouse_sim.live import Live

if TYPE_CHECKING:
    import argparse


def simulated(row: str, seed: int) -> guard.Guard:
    """Simulate a workload of the board with the profile boathouse; return its guard as it is at the end."""
    column = columns.BY_NAME[columns.BOATHOUSE]
    workload = rows.BY_NAME[row].draw.workload(seed, column.style)
    profile = column.build(workload, seed)
    driver = Live(workload, profile, seed=seed)
    while driver.advance():
        pass
    found = guard.guard_of(profile)
    assert found is not None
    return found


def report(row: str, seed: int, found: guard.Guard) -> list[str]:
    """Return a line for each part that decided anything."""
    return [
        f"{row}, seed {seed}, {part}: {effect.decisions} decisions were to save {effect.predicted_s:.1f} s and saved "
        f"{effect.realised_s:.1f} s; {found.alarms[part]} alarms"
        for part, effect in found.effects.items()
        if effect.decisions
    ]


def main(asked: argparse.Namespace) -> None:
    """Simulate and print."""
    for row in asked.rows.split(","):
        for seed in range(1, 2 * asked.seeds, 2):
            support.say("\n".join(report(row, seed, simulated(row, seed))))


if __name__ == "__main__":
    main(support.options(__doc__ or "", rows="memory-x2,mix-0.9,misjudged", seeds=2))
