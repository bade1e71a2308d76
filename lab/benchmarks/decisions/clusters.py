"""Random nodes and queues."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from boathouse_policies import model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .drawing import Draw

GIB = 1 << 30
GPU = "example.com/gpu"
DEDICATED = model.Taint(key="dedicated", value="batch")
LEVEL = model.Taint(key="level", value="3")
ZONE = "topology.kubernetes.io/zone"
NAMESPACES = ("a", "b", "c")
_SHAPES = ((2000, 4), (4000, 8), (4000, 16), (8000, 16), (8000, 32))


def amount(cpu: int, gib: float, disk_gib: int = 0, gpu: int = 0) -> model.Resources:
    """Return an amount of resources."""
    return model.Resources.of(
        cpu_milli=cpu,
        memory_bytes=int(gib * GIB),
        ephemeral_storage_bytes=disk_gib * GIB,
        extended={GPU: gpu} if gpu else None,
    )


def nodes(random: Draw, theme: str, *, large: bool) -> tuple[model.Node, ...]:
    """Between 1 and 9 nodes, or some tens; equal ones in half of the worlds."""
    count = random.between(24, 48) if large else random.between(1, 9)
    shape = random.pick(_SHAPES) if random.chance(0.5) else None
    racks, hosts = random.between(1, 3), random.between(1, 4)
    return tuple(
        _node(random, f"n{i:02}", shape or random.pick(_SHAPES), theme, f"r{i % racks}", f"h{i // hosts}")
        for i in range(count)
    )


def _node(random: Draw, name: str, shape: tuple[int, int], theme: str, rack: str, host: str) -> model.Node:
    mixed = theme == "mixed"
    located = theme in ("located", "mixed")
    return model.Node(
        name=model.NodeName(name),
        allocatable=amount(*shape, disk_gib=100, gpu=random.pick([0, 0, 2, 4]) if mixed else 0),
        max_pods=random.pick([4, 110]) if mixed else 110,
        labels={ZONE: random.pick("ab"), "size": str(shape[0])} if mixed else {},
        taints=random.pick([(DEDICATED,), (LEVEL,)]) if mixed and random.chance(0.25) else (),
        unschedulable=mixed and random.chance(0.05),
        rack=rack if located and random.chance(0.9) else None,
        server=host if located and random.chance(0.7) else None,
    )


def worse(random: Draw, node: model.Node) -> model.Node:
    """Return the node with something wrong, or smaller, or larger."""
    size = node.allocatable
    changes: list[dict[str, object]] = [
        {"unschedulable": True},
        {"ready": False},
        {"taints": (*node.taints, model.Taint(key="full", effect=model.TaintEffect.NO_EXECUTE))},
        {"taints": (model.Taint(key="rather-not", effect=model.TaintEffect.PREFER_NO_SCHEDULE),)},
        {"allocatable": dataclasses.replace(size, cpu_milli=size.cpu_milli // 2)},
        {"allocatable": dataclasses.replace(size, memory_bytes=size.memory_bytes * 2)},
        {"labels": {**node.labels, ZONE: "c"}},
        {"rack": "r9", "server": None},
        {"max_pods": 3},
    ]
    return dataclasses.replace(node, **random.pick(changes))  # type: ignore[arg-type]


def part_of(random: Draw, node: model.Node) -> model.Resources:
    """Return a part of what a node has; now and then more than all of it."""
    share = random.pick([0.1, 0.3, 0.6, 1.2])
    size = node.allocatable
    return model.Resources(cpu_milli=int(size.cpu_milli * share), memory_bytes=int(size.memory_bytes * share))


def queues(random: Draw, theme: str, some: Sequence[model.Node]) -> tuple[model.Queue, ...]:
    """Return one queue without limits, or several with weights and limits."""
    if theme in ("plain", "namespaces", "spark") and random.chance(0.8):
        return (model.Queue.of(model.QueueName("default")),)
    cpu, memory = _totals(some)
    found = []
    for name in ("default", "second", "third")[: random.between(1, 3)]:
        limits = {}
        if random.chance(0.4):
            limits["cpu"] = max(1000, cpu * random.between(2, 8) // 10)
        if random.chance(0.3):
            limits["memory"] = max(GIB, memory * random.between(2, 8) // 10)
        if random.chance(0.2):
            limits["pods"] = random.between(2, 12)
        if random.chance(0.1):
            limits[GPU] = random.between(0, 3)
        queue = model.Queue.of(model.QueueName(name), weight=random.pick([1.0, 1.0, 2.0, 0.5]), limits=limits)
        found.append(_reserved(random, queue) if random.chance(0.15) else queue)
    return tuple(found)


def _reserved(random: Draw, queue: model.Queue) -> model.Queue:
    """Return the queue for some namespaces or priority classes alone."""
    if random.chance(0.5):
        return dataclasses.replace(queue, namespaces=frozenset(random.some(NAMESPACES, 2)))
    return dataclasses.replace(queue, priority_classes=frozenset(["high"]))


def changed(random: Draw, some: Sequence[model.Queue]) -> list[model.Queue]:
    """Return the queues with other weights and limits, and perhaps one more."""
    found = []
    for queue in some:
        limits = dict(queue.limits)
        if limits and random.chance(0.5):
            limits = {name: most * 2 for name, most in limits.items()}
        elif random.chance(0.3):
            limits["pods"] = random.between(1, 20)
        found.append(dataclasses.replace(queue, weight=random.pick([1.0, 3.0]), limits=tuple(sorted(limits.items()))))
    names = {queue.name for queue in some}
    late = model.QueueName("late")
    return found if late in names or random.chance(0.3) else [*found, model.Queue.of(late)]


def _totals(some: Sequence[model.Node]) -> tuple[int, int]:
    cpu = sum(node.allocatable.cpu_milli for node in some)
    return cpu, sum(node.allocatable.memory_bytes for node in some)
