"""Host ports: two pods on a node may not take the same port of the same protocol on overlapping addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boathouse_policies import model
from boathouse_policies.framework.extension import Filter

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from boathouse_policies.framework.extension import Where
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.want import Want

REASON = "node(s) didn't have free ports for the requested pod ports"


class FreePorts(Filter):
    """No port of the class is taken on the node, by pods of the view or of this cycle."""

    until_freed = True

    def concerns(self, want: Want) -> bool:
        """Classes with host ports."""
        return bool(want.task_class.constraints.host_ports)

    def key(self, want: Want) -> Hashable:  # noqa: ARG002 - the protocol's
        """Nothing: the host ports are constraints, which are part of the shape."""
        return None

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """Everywhere for a class without host ports; else the nodes that take any port are looked at."""
        if not want.task_class.constraints.host_ports:
            return None
        return _free(want, scratch)[where]

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:
        """One reason."""
        if not want.task_class.constraints.host_ports:
            return []
        nodes = int((among & ~_free(want, scratch)).sum())
        return [model.Refusal(reason=REASON, nodes=nodes)] if nodes else []


def _free(want: Want, scratch: Scratch) -> model.BoolVector:
    wanted = want.task_class.constraints.host_ports
    mask = np.ones(scratch.free.shape[1], np.bool_)
    index = scratch.view.layout.index
    for name, taken in scratch.view.host_ports.items():
        if name in index and _conflict(wanted, taken):
            mask[index[name]] = False
    for node, taken in scratch.ports.items():
        if _conflict(wanted, taken):
            mask[node] = False
    return mask


def _conflict(wanted: Iterable[model.HostPort], taken: Sequence[model.HostPort]) -> bool:
    return any(one.conflicts(other) for one in wanted for other in taken)
