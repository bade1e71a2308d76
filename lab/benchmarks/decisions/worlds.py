"""Random worlds for the scheduling core alone: what the simulator's workloads cannot express.

A world is a value drawn from a seed: nodes, queues, applications, and what happens from outside. It does not depend on
what is decided in it. `course` plays it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from boathouse_policies import model, profiles

from . import applications, clusters
from .drawing import Draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .applications import Application

THEMES = ("plain", "namespaces", "queues", "spark", "located", "mixed")
_SEED = 20_260


@dataclasses.dataclass(frozen=True, slots=True)
class NodeSet:
    """A node comes or changes."""

    node: model.Node


@dataclasses.dataclass(frozen=True, slots=True)
class NodeGone:
    """A node goes, with what runs there."""

    name: model.NodeName


@dataclasses.dataclass(frozen=True, slots=True)
class QueuesSet:
    """The queues change."""

    queues: tuple[model.Queue, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Withdrawn:
    """A job is deleted: its pods end."""

    job: model.JobId


@dataclasses.dataclass(frozen=True, slots=True)
class Restated:
    """A job is submitted again with other fields."""

    job: model.Job


@dataclasses.dataclass(frozen=True, slots=True)
class MadeAhead:
    """Pods of the first pending tasks of a job are made before they have nodes."""

    job: model.JobId
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class Scaled:
    """A job has more tasks from now on, or fewer pending ones."""

    job: model.JobId
    more: int


@dataclasses.dataclass(frozen=True, slots=True)
class Restarted:
    """The scheduler ends and starts anew: it has what its observers saved, and sees pods and jobs again."""


@dataclasses.dataclass(frozen=True, slots=True)
class Stranger:
    """A pod of another scheduler comes."""

    name: str
    node: model.NodeName
    resources: model.Resources


@dataclasses.dataclass(frozen=True, slots=True)
class StrangerGone:
    """It ends."""

    name: str


Happening: TypeAlias = (
    NodeSet | NodeGone | QueuesSet | Withdrawn | Restated | MadeAhead | Scaled | Restarted | Stranger | StrangerGone
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a course starts from.

    Attributes:
        name: Of the run.
        seed: Of what is drawn for single tasks.
        placement: Name of a placement.
        nodes: At the beginning.
        queues: At the beginning.
        applications: What is submitted.
        happenings: What happens from outside, by time.
        offer_s: Nodes offer themselves one by one, each this often; 0 for cycles over all nodes when something changed.
        most: Most tasks that one offer takes.
        write_fails: Share of the writes that fail.
        task_fails: Share of the tasks that fail while they run.
        pace: Tasks and what happens from outside take so many times as long: jobs come early and wait for long.
    """

    name: str
    seed: int
    placement: str
    nodes: tuple[model.Node, ...]
    queues: tuple[model.Queue, ...]
    applications: tuple[Application, ...]
    happenings: tuple[tuple[float, Happening], ...]
    offer_s: float = 0.0
    most: int = 1
    write_fails: float = 0.0
    task_fails: float = 0.0
    pace: float = 1.0


def draw(index: int) -> World:
    """Draw the world of an index: its theme, size and shell follow from the index, all else is random."""
    random = Draw(np.random.default_rng([_SEED, index]))
    theme, turn = THEMES[index % len(THEMES)], index // len(THEMES)
    size = {3: "large", 5: "slow"}.get(turn % 7, "small")
    nodes = clusters.nodes(random, theme, large=size == "large")
    queues = clusters.queues(random, theme, nodes)
    apps = applications.several(random, theme, nodes, queues)
    troubled = turn % 2 == 1
    offers = turn % 3 == 2  # noqa: PLR2004
    return World(
        name=f"{index:03}-{theme}-{size}{'-offers' if offers else ''}{'-troubled' if troubled else ''}",
        seed=index,
        placement=profiles.placements()[turn % 4 == 1],
        nodes=nodes,
        queues=queues,
        applications=apps,
        happenings=_happenings(random, nodes, queues, apps) if troubled else (),
        offer_s=random.pick([1.0, 2.5]) if offers else 0.0,
        most=random.pick([1, 1, 2, 3]),
        write_fails=random.pick([0.0, 0.05]) if troubled else 0.0,
        task_fails=random.pick([0.0, 0.05]) if troubled else 0.0,
        pace=25.0 if size == "slow" else 1.0,
    )


def _happenings(
    random: Draw, nodes: Sequence[model.Node], queues: Sequence[model.Queue], apps: Sequence[Application]
) -> tuple[tuple[float, Happening], ...]:
    found: list[tuple[float, Happening]] = []
    for node in nodes:
        if random.chance(min(0.5, 4 / len(nodes))):
            found += _trouble(random, node)
    for i in range(random.between(0, 4) if nodes else 0):
        node, at_s = random.pick(nodes), random.time(0, 80)
        found.append((at_s, Stranger(f"stranger-{i}", node.name, clusters.part_of(random, node))))
        found.append((at_s + random.time(5, 60), StrangerGone(f"stranger-{i}")))
    for app in apps:
        found += _of_job(random, app)
    if random.chance(0.5):
        found.append((random.time(5, 60), QueuesSet(tuple(clusters.changed(random, queues)))))
    if random.chance(0.4):
        found.append((random.time(10, 60), Restarted()))
    return tuple(sorted(found, key=lambda one: one[0]))


def _of_job(random: Draw, app: Application) -> list[tuple[float, Happening]]:
    found: list[tuple[float, Happening]] = []
    if random.chance(0.3):
        found.append((app.at_s + random.time(1, 10), MadeAhead(app.job.id, random.between(1, 4))))
    if random.chance(0.3):
        found.append((app.at_s + random.time(1, 30), Scaled(app.job.id, random.pick([-3, -1, 2, 5]))))
    if random.chance(0.15):
        found.append((app.at_s + random.time(1, 40), Withdrawn(app.job.id)))
    elif random.chance(0.15):
        changed = dataclasses.replace(app.job, priority=app.job.priority + random.pick([-5, 5]))
        found.append((app.at_s + random.time(1, 20), Restated(changed)))
    return found


def _trouble(random: Draw, node: model.Node) -> list[tuple[float, Happening]]:
    """Return a node changes, or goes; most come back as they were."""
    at_s = random.time(2, 70)
    back_s = at_s + random.time(3, 40)
    if random.chance(0.45):
        gone: list[tuple[float, Happening]] = [(at_s, NodeGone(node.name))]
        return gone if random.chance(0.3) else [*gone, (back_s, NodeSet(node))]
    return [(at_s, NodeSet(clusters.worse(random, node))), (back_s, NodeSet(node))]
