"""Rates of the nodes' disks, measured from tasks that spilled (3.3, the disk budget).

A task reports at what rate its spills were written and read. That times the elastic tasks that ran on the node is what
the disk carried; a node without figures of its own has the median of the others. Where instruments show what the disk
carries beside the elastic tasks, that is taken off the budget.

A rate is what a task says, so it counts for the tasks of its namespace only.
"""

import math
import statistics
from collections.abc import Mapping
from typing import Any, Final

from boathouse_policies import model
from boathouse_policies.framework import Observer
from boathouse_policies.framework.programs import Programs
from boathouse_policies.yarn_me.config import Config
from boathouse_policies.yarn_me.outlook import Outlook

SPILL_RATE: Final = "spill_bytes_per_s"  # counter of a finished task: the rate of its spills, written and read
NAMESPACES_KEPT: Final = 32  # namespaces whose rates are kept; the one that reported none for longest begins anew
_NEWEST_WEIGHT: Final = 0.3  # weight of the newest rate in a node's mean
_FASTEST: Final = 1e12  # more bytes a second than any disk carries: larger rates are not believed


class _Rates:
    """What a namespace's tasks say of the disks. The default is the usual rate until then; None for not known."""

    def __init__(self, default: float | None) -> None:
        self.by_node: dict[model.NodeName, float] = {}
        self._default = default
        self._median: float | None = None  # of the rates, until one of them changes

    def usual(self) -> float | None:
        if self._median is None and self.by_node:
            self._median = statistics.median(self.by_node.values())
        return self._default if self._median is None else self._median

    def learn(self, node: model.NodeName, rate: float) -> None:
        self.by_node[node] = rate + (1 - _NEWEST_WEIGHT) * (self.by_node.get(node, rate) - rate)
        self._median = None

    def forget(self, node: model.NodeName) -> None:
        """Forget a node; the last one stays, for the nodes to come."""
        if len(self.by_node) > 1 and self.by_node.pop(node, None) is not None:
            self._median = None


class Disks(Observer):
    """The disk budget of each node. The outlook, which knows the elastic tasks, is before it among the observers."""

    def __init__(self, config: Config, outlook: Outlook) -> None:
        self._config, self._outlook = config, outlook
        self._rates: Programs[_Rates] = Programs(NAMESPACES_KEPT)  # by namespace; who reported last is last
        self._first = _Rates(config.disk_bytes_per_s)
        self._others: dict[model.NodeName, float] = {}  # bytes a second that elastic tasks do not account for

    @property
    def has_budget(self) -> bool:
        """Whether the rate of any disk is known to any namespace."""
        return bool(self._rates) or self._first.usual() is not None

    def budget(self, namespace: model.NamespaceName, node: model.NodeName) -> float:
        """Return how many bytes a second all elastic tasks of a node may spill together; infinite if not known."""
        rates = self._rates.get(namespace, self._first)
        rate = rates.by_node[node] if node in rates.by_node else rates.usual()
        return math.inf if rate is None else rate * self._config.disk_share - self._others.get(node, 0.0)

    def observe(self, event: model.Event) -> None:
        """Learn the rate of a disk, and what others take of it."""
        match event:
            case model.Measured():
                if shown := event.usage.get("disk_bytes_per_s", 0.0):
                    shown = max(0.0, shown - self._outlook.disk_bytes_per_s(event.name))
                self._others[event.name] = shown
            case model.Finished() if 0 < (rate := event.counters.get(SPILL_RATE, 0.0)) < math.inf:
                self._spilled(event, min(rate, _FASTEST) * (1 + self._outlook.elastic_on(event.node)))
            case model.NodeChanged(node=None):
                self._others.pop(event.name, None)
                for rates in self._rates.values():
                    rates.forget(event.name)
            case _:
                pass

    def _spilled(self, event: model.Finished, rate: float) -> None:
        submitted = self._outlook.jobs.get(event.job)
        if submitted is not None:
            namespace = submitted.job.namespace
            rates = self._rates.get(namespace) or _Rates(self._first.usual())
            rates.learn(event.node, rate)
            self._rates.put(namespace, rates)

    def dump(self) -> Mapping[str, Any]:
        """Return the usual rate of each namespace: nodes are measured again after a restart."""
        return {"namespaces": {name: rates.usual() for name, rates in self._rates.items()}} if self._rates else {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a dump. The rate that earlier versions had of all namespaces is not taken over."""
        for namespace, dumped in state.get("namespaces", {}).items():
            if 0 < (rate := float(dumped)) < math.inf:
                self._rates.put(namespace, _Rates(rate))
