"""Where the blocks of files are, as HDFS places them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

REPLICAS = 3


class Stores:
    """The nodes that hold blocks.

    BlockPlacementPolicyDefault: the first replica on the writer's node, or any; the second in another rack; the third
    in the second's rack on another node; more of them anywhere. Racks are all that it knows: not hosts of virtual
    machines.

    Args:
        nodes: In the order of their names; all hold blocks.
        random: Draws.

    Raises:
        ValueError: There are no nodes.
    """

    def __init__(self, nodes: Sequence[model.Node], random: np.random.Generator) -> None:
        if not nodes:
            raise ValueError("no node holds blocks: let some machine have stores=True")
        self._names = [node.name for node in nodes]
        self._rack = {node.name: node.rack or "" for node in nodes}
        self._racks: dict[str, list[model.NodeName]] = {}
        for node in nodes:
            self._racks.setdefault(node.rack or "", []).append(node.name)
        self._random = random

    def file(
        self, blocks: int, replicas: int = REPLICAS, writer: model.NodeName | None = None
    ) -> list[tuple[model.NodeName, ...]]:
        """Return the nodes of each block of a new file.

        Args:
            blocks: How many.
            replicas: Of each; at most the number of nodes.
            writer: The node that writes it; None for an outside client, whose blocks begin anywhere.
        """
        return [self._block(min(replicas, len(self._names)), writer) for _ in range(blocks)]

    def _block(self, replicas: int, writer: model.NodeName | None) -> tuple[model.NodeName, ...]:
        chosen = [writer if writer in self._rack and writer is not None else self._any(self._names)]
        while len(chosen) < replicas:
            chosen.append(self._next(chosen))
        return tuple(chosen)

    def _next(self, chosen: list[model.NodeName]) -> model.NodeName:
        racks = [self._rack[node] for node in chosen]
        if len(chosen) == 1:
            wanted = [rack for rack in self._racks if rack != racks[0]]
        else:
            wanted = [racks[1]] if len(chosen) == 2 else []  # noqa: PLR2004  the third follows the second
        for rack in [self._racks[self._pick(wanted)]] if wanted else []:
            free = [node for node in rack if node not in chosen]
            if free:
                return self._any(free)
        return self._any([node for node in self._names if node not in chosen])

    def _any(self, names: Sequence[model.NodeName]) -> model.NodeName:
        return names[int(self._random.integers(len(names)))]

    def _pick(self, racks: Sequence[str]) -> str:
        return racks[int(self._random.integers(len(racks)))]


def distance(here: model.Node, there: model.Node) -> model.Distance:
    """Return how far one node is from another."""
    if here.name == there.name:
        return model.Distance.NODE
    if here.server is not None and here.server == there.server:
        return model.Distance.SERVER
    if here.rack is not None and here.rack == there.rack:
        return model.Distance.RACK
    return model.Distance.ANYWHERE
