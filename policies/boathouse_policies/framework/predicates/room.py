"""Resources: CPU, memory, ephemeral storage, the number of pods, and every extended resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework.extension import Filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework.extension import Where
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.want import Want


class Room(Filter):
    """What is free covers the least size. A request of 0 fits also where a resource is over-committed."""

    of_shape = until_freed = True

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:
        """All rows that are asked for."""
        return scratch.room(want)[where]

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:
        """A node counts for each resource that it lacks."""
        lacking = (scratch.free[:, among][want.rows] < want.need).sum(axis=1).tolist()
        return [
            model.Refusal(reason=reason(scratch.view.axis.names[row]), nodes=nodes)
            for row, nodes in zip(want.rows.tolist(), lacking, strict=True)
            if nodes
        ]


def reason(resource: str) -> str:
    """kube-scheduler's words for the lack of a resource."""
    return "Too many pods" if resource == "pods" else f"Insufficient {resource}"
