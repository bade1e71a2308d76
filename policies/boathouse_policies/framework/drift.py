"""What a comparison of the ledger with a LIST found."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boathouse_policies import model


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Differences between ledger and LIST; falsy where there are none. Seen twice, it is a fault.

    Attributes:
        missing_pods: Listed, not in the ledger.
        ghost_pods: Confirmed in the ledger, not listed.
        different_pods: Node, UID, resources or host ports differ.
        missing_nodes: Listed, not in the ledger.
        ghost_nodes: In the ledger, not listed.
        different_nodes: Any field differs.
    """

    missing_pods: tuple[model.TaskId, ...] = ()
    ghost_pods: tuple[model.TaskId, ...] = ()
    different_pods: tuple[model.TaskId, ...] = ()
    missing_nodes: tuple[model.NodeName, ...] = ()
    ghost_nodes: tuple[model.NodeName, ...] = ()
    different_nodes: tuple[model.NodeName, ...] = ()

    def __bool__(self) -> bool:
        return self != _NONE


_NONE = Drift()
