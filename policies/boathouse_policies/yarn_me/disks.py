"""Rates of the nodes' disks, measured from tasks that spilled (3.3, the disk budget).

A task reports at what rate its spills were written and read. That times the elastic tasks that ran on the node is what
the disk carried; a node without figures of its own has the median of the others. Where instruments show what the disk
carries beside the elastic tasks, that is taken off the budget.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any, Final

from boathouse_policies import model
from boathouse_policies.framework import Observer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boathouse_policies.yarn_me.config import Config
    from boathouse_policies.yarn_me.outlook import Outlook

SPILL_RATE: Final = "spill_bytes_per_s"
"""Counter of a finished task: the rate of its spills, written and read."""
_NEWS: Final = 0.3
"""Weight of the newest rate in a node's mean."""


class Disks(Observer):
    """The disk budget of each node.

    Args:
        config: The constants.
        outlook: Knows the elastic tasks that run. It comes before this among the observers.
    """

    def __init__(self, config: Config, outlook: Outlook) -> None:
        self._config, self._outlook = config, outlook
        self._rates: dict[model.NodeName, float] = {}
        self._others: dict[model.NodeName, float] = {}  # bytes a second that elastic tasks do not account for
        self._default = config.disk_bytes_per_s
        self._median: float | None = None  # of the rates, until one of them changes

    @property
    def has_budget(self) -> bool:
        """Whether the rate of any disk is known."""
        return bool(self._rates) or self._default is not None

    def _usual(self) -> float | None:
        if self._median is None and self._rates:
            self._median = statistics.median(self._rates.values())
        return self._default if self._median is None else self._median

    def budget(self, node: model.NodeName) -> float:
        """Return how many bytes a second all elastic tasks of a node may spill together; infinite if not known."""
        rate = self._rates[node] if node in self._rates else self._usual()
        return math.inf if rate is None else rate * self._config.disk_share - self._others.get(node, 0.0)

    def observe(self, event: model.Event) -> None:
        """Learn the rate of a disk, and what others take of it."""
        match event:
            case model.Measured():
                self._measured(event)
            case model.Finished() if 0 < (rate := event.counters.get(SPILL_RATE, 0.0)) < math.inf:
                self._spilled(event.node, rate * (1 + self._outlook.elastic_on(event.node)))
            case model.NodeChanged(node=None):
                self._others.pop(event.name, None)
                if len(self._rates) > 1:  # the last one stays, for the nodes to come
                    self._rates.pop(event.name, None)
                    self._median = None
            case _:
                pass

    def _measured(self, event: model.Measured) -> None:
        if shown := event.usage.get("disk_bytes_per_s", 0.0):
            shown = max(0.0, shown - self._outlook.disk_bytes_per_s(event.name))
        self._others[event.name] = shown

    def _spilled(self, node: model.NodeName, rate: float) -> None:
        self._rates[node] = rate + (1 - _NEWS) * (self._rates.get(node, rate) - rate)
        self._median = None

    def dump(self) -> Mapping[str, Any]:
        """Return the usual rate: nodes are measured again after a restart."""
        return {"bytesPerSecond": self._usual()} if self._rates else {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump."""
        rate = float(state.get("bytesPerSecond", 0.0))
        if 0 < rate < math.inf:
            self._default = rate
