"""Reducers that spill to one disk at the same time (2.6, Figure 2c), on one fluid disk.

A reducer's model says that its spills cost `diskRate` (2.3): alone it takes (π - 1)/π of its run time for them, and
moves each byte twice. So its demand is 2·diskRate·(π - 1)/π: heavy penalties ask for more of the disk, light ones for
less.
"""

from __future__ import annotations

from typing import Final

IDEAL_S: Final = 300.0
APART_S: Final = 1.0
HDD: Final = 4.5
"""What the disk moves, in units of a reducer's diskRate; chosen to slow eight WordCount reducers as measured."""
SSD: Final = 4.5 * 500 / 150
"""A SATA SSD's 500 MB/s over a HDD's 150."""
RATES: Final = (3.0, 4.5, 6.0, 9.0)
NAME: Final = "what a disk moves, over a reducer's diskRate"
VALUE: Final = f"HDD {HDD:g} (chosen to meet WordCount's 70 %), SSD {SSD:g} (500 over 150 MB/s)"


def slowdown(count: int, penalty: float, disk_rate: float) -> float:
    """Return mean run time of equal reducers, each begun 1 s after the one before, over that of one alone.

    Args:
        count: Reducers.
        penalty: Their run time with spills over that without; above 1.
        disk_rate: What the disk moves, in units of a reducer's diskRate.
    """
    alone_s = IDEAL_S * penalty
    demand = 2 * (penalty - 1) / penalty
    left_s = [alone_s] * count
    ended_s = [0.0] * count
    now_s = 0.0
    while any(left_s):
        runs = [i for i in range(count) if left_s[i] and i * APART_S <= now_s]
        speed = min(1.0, disk_rate / (demand * len(runs)))
        starts = [i * APART_S - now_s for i in range(count) if i * APART_S > now_s]
        step_s = min([left_s[i] / speed for i in runs] + starts[:1])
        now_s += step_s
        for i in runs:
            left_s[i] -= step_s * speed
            if left_s[i] < _NOTHING_S:
                left_s[i], ended_s[i] = 0.0, now_s
    return sum(ended_s[i] - i * APART_S for i in range(count)) / count / alone_s


_NOTHING_S = 1e-9
