"""Drawn clusters and loads, for properties of the scheduling core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from boathouse_policies import model, profiles
from tests.builders import core

if TYPE_CHECKING:
    from collections.abc import Sequence

Load = tuple[model.Job, list[model.TaskClass], list[model.Task]]

sizes = st.builds(
    core.amount,
    st.sampled_from([0, 100, 500, 1000, 3000]),
    st.sampled_from([0, 0.5, 1, 3, 6]),
    st.sampled_from([0, 0, 1]),
    gpu=st.sampled_from([0, 0, 0, 1]),
)
taints = st.sampled_from([(), (), (), (model.Taint(key="dedicated"),)])
ports = st.sampled_from([(), (), (), (model.HostPort(port=80),), (model.HostPort(port=80, host_ip="10.0.0.1"),)])
selectors = st.sampled_from([(), (), (("zone", "a"),)])
PROFILES = [
    name for name in profiles.names() if name not in {f"ila-static-{n}" for n in (2, 4, 6, 8)} | {"yarn-cluster"}
]
"""All profiles but those that differ from another only by a constant (`ila-static-1`) or their name (`spread-out`)."""

profile_names = st.sampled_from([(name, how) for name in PROFILES for how in profiles.placements()])

QUEUES = [core.queue(weight=2.0), core.queue("limited", cpu=2500, pods=4)]


@st.composite
def clusters(draw: st.DrawFn) -> list[model.Node]:
    """Up to six nodes."""
    return [
        core.node(
            f"n{i}",
            core.amount(
                draw(st.sampled_from([1000, 2000, 4000])),
                draw(st.sampled_from([2, 4, 8])),
                4,
                gpu=draw(st.integers(0, 2)),
            ),
            max_pods=draw(st.sampled_from([2, 5, 110])),
            taints=draw(taints),
            labels={"zone": draw(st.sampled_from("ab"))},
            rack=draw(st.sampled_from(["r0", "r1", None])),
            unschedulable=draw(st.sampled_from([False, False, False, True])),
        )
        for i in range(draw(st.integers(0, 6)))
    ]


@st.composite
def loads(draw: st.DrawFn, *, simple: bool = False) -> list[Load]:
    """Jobs with their classes and tasks; simple ones have one class, which starts alone and takes no host ports."""
    return [_load(draw, f"j{j}", simple=simple) for j in range(draw(st.integers(1, 5)))]


def _load(draw: st.DrawFn, name: str, *, simple: bool) -> Load:
    job = core.job(
        name,
        queue="default" if simple else draw(st.sampled_from(["default", "limited", "missing"])),
        namespace="" if simple else draw(st.sampled_from(["", "a", "b"])),
        submitted_s=float(draw(st.integers(0, 2))),
        priority=draw(st.sampled_from([0, 0, 5])),
        weight=draw(st.sampled_from([1.0, 2.0])),
    )
    classes, tasks = [], []
    for c in range(1 if simple else draw(st.integers(1, 3))):
        host_ports, gang_min = ((), 0) if simple else (draw(ports), draw(st.sampled_from([0, 0, 1, 3])))
        constraints = model.Constraints(host_ports=host_ports, node_selector=draw(selectors))
        classes.append(core.task_class(job, draw(sizes), f"c{c}", constraints=constraints, gang_min=gang_min))
        locations = draw(st.sampled_from([(), ("n0",), ("n1", "n2")]))
        tasks += core.tasks(classes[-1], draw(st.integers(0, 6)), locations=locations)
    return job, classes, tasks


def loaded_shell(
    nodes: Sequence[model.Node],
    load: list[Load],
    profile: tuple[str, str] = ("fair", "least-loaded"),
    queues: list[model.Queue] | None = None,
) -> core.Shell:
    """A shell with a profile and a placement by name, to which a load was submitted."""
    shell = core.Shell(nodes, queues or QUEUES, profiles.build(profile[0], placement=profile[1]))
    for job, classes, tasks in load:
        shell.submit_job(job, classes, tasks)
    return shell
