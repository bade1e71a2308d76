"""Algorithms 1 and 2: what an executor can count on at each node, in three tiers over the whole cluster.

| tier | R_executor fits in | the best node | lines of Algorithm 1 |
|---|---|---|---|
| 1 | what is free | most free | 4-6 |
| 2 | that and what maps hold | most of both | 8-10 |
| 3 | that and what the first x reducers to end hold | the shortest wait: Algorithm 2 | 12-15 |

Tiers are over the cluster: a node of a later tier is taken only where there is none of an earlier one (readings). Every
resource must fit; "most" is by the scarcest one: how many such executors would fit. Wait is y_x, the remaining time of
the last reducer of the shortest sorted prefix that fits, or the last map's end where that is later (readings).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies.ikayak.book import ROWS

if TYPE_CHECKING:
    from boathouse_policies import model
    from boathouse_policies.ikayak.book import Columns


def fitting(room: model.IntMatrix, need: model.IntVector) -> model.FloatVector:
    """How many of `need` would fit, not rounded, by the scarcest resource: shape [N] of [R, N] and [R]."""
    rows = need.nonzero()[0]
    ratios: model.FloatVector = (room[rows] / need[rows, None]).min(axis=0, initial=np.inf)
    return ratios


def held(tasks: Columns, rows: int, nodes: int) -> model.IntMatrix:
    """R_map or R_reduce: what tasks hold on each node, shape [R, N]."""
    total = np.zeros((rows, nodes), np.int64)
    for row in range(ROWS):
        total[row] = np.bincount(tasks.node, tasks.held[row], nodes).astype(np.int64)
    return total


def last_ends_s(tasks: Columns, nodes: int) -> model.FloatVector:
    """How long the last of the tasks on each node will still run; 0 where there is none. Shape [N]."""
    last = np.zeros(nodes)
    np.maximum.at(last, tasks.node, tasks.left_s)
    return last


def waits_s(lacking: model.IntMatrix, reducers: Columns) -> model.FloatVector:
    """Algorithm 2, lines 3-9: how long each node's reducers must still end until what is lacking has come free.

    Args:
        lacking: R_executor - (R_free + R_map), shape [R, N]; at most 0 where nothing is lacking.
        reducers: With their predicted remaining times.

    Returns:
        Shape [N]; 0 where nothing is lacking, infinite where all reducers together do not hold enough.
    """
    found = np.where((lacking <= 0).all(axis=0), 0.0, np.inf)
    if not len(reducers.node) or not np.isinf(found).any():
        return found
    order = np.lexsort((reducers.left_s, reducers.node))
    node = reducers.node[order]
    running = reducers.held[:, order].cumsum(axis=1)
    first = np.r_[True, node[1:] != node[:-1]]
    starts = first.nonzero()[0]
    before = np.where(starts > 0, running[:, starts - 1], 0)
    freed = running - np.repeat(before, np.diff(np.r_[starts, len(node)]), axis=1)
    enough = (freed >= lacking[:ROWS, node]).all(axis=0) & (lacking[ROWS:, node] <= 0).all(axis=0)
    np.minimum.at(found, node[enough], reducers.left_s[order][enough])
    return found


class Prospects:
    """What the nodes offer to executors, for one choice after the other.

    Args:
        free: R_free, shape [R, N]; it is not changed.
        maps: What runs and soon ends.
        reducers: What runs beyond.
        may: Nodes that may be chosen, shape [N].

    Attributes:
        free: What is left of R_free, shape [R, N].
        soon: What is left of R_free + R_map, shape [R, N].
        may: As given.
    """

    def __init__(self, free: model.IntMatrix, maps: Columns, reducers: Columns, may: model.BoolVector) -> None:
        self.free = free.copy()
        self.soon = free + held(maps, *free.shape)
        self.may = may
        self._maps_s = last_ends_s(maps, free.shape[1])
        self._reducers = reducers
        self._waits: dict[bytes, model.FloatVector] = {}

    def best(self, need: model.IntVector, liked: model.FloatVector) -> int | None:
        """Algorithm 1 for one executor: the place of its node; None if no node will do.

        Args:
            need: R_executor, shape [R].
            liked: What a wait there is multiplied by, at most 1 for nodes that are kept already, shape [N].
        """
        for room in (self.free, self.soon):
            count = np.where(self.may, fitting(room, need), -np.inf)
            if len(count) and count.max() >= 1.0:
                preferred = np.where((liked < 1.0) & (count >= 1.0), count + _FIRST, count)
                return int(preferred.argmax())
        wait_s = np.where(self.may, self.wait_s(need) * liked, np.inf)
        best = int(wait_s.argmin()) if len(wait_s) else -1
        return best if best >= 0 and np.isfinite(wait_s[best]) else None

    def wait_s(self, need: model.IntVector) -> model.FloatVector:
        """Wait^n, shape [N]."""
        key = need.tobytes()
        known = self._waits.get(key)
        if known is None:
            waits = waits_s(need[:, None] - self.soon, self._reducers)
            known = self._waits[key] = np.maximum(waits, self._maps_s)
        return known

    def take(self, node: int, need: model.IntVector) -> None:
        """An executor will go there."""
        self.free[:, node] -= need
        self.soon[:, node] -= need
        here = self._reducers.at(node)
        for key, known in self._waits.items():
            lacking = np.frombuffer(key, np.int64)[:, None] - self.soon[:, node : node + 1]
            known[node] = max(float(waits_s(lacking, here)[0]), float(self._maps_s[node]))


_FIRST = 1e9  # above every count: a node that is kept already stays so within its tier
