"""Names, cordons, taints, readiness, node selectors and affinity: one mask for each set of constraints."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING

from boathouse_policies import model
from boathouse_policies.framework.extension import Filter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from boathouse_policies.framework.extension import Where
    from boathouse_policies.framework.scratch import Scratch
    from boathouse_policies.framework.want import Want


class Allowed(Filter):
    """What depends on the node and the constraints alone."""

    of_shape = until_freed = True

    def mask(self, want: Want, scratch: Scratch, where: Where) -> model.BoolVector | None:  # noqa: ARG002 - the protocol's
        """The kept mask."""
        eligibility = want.eligibility
        return None if eligibility.everywhere else eligibility.mask[where]

    def refusals(self, want: Want, scratch: Scratch, among: model.BoolVector) -> Sequence[model.Refusal]:  # noqa: ARG002 - the protocol's
        """The first reason of each node."""
        counts = collections.Counter(
            reason for reason, asked in zip(want.eligibility.refusals, among.tolist(), strict=True) if reason and asked
        )
        return [model.Refusal(reason=reason, nodes=nodes) for reason, nodes in counts.items()]
