"""Clusters as Koala's policies see them."""

from __future__ import annotations

from hypothesis import strategies as st

from boathouse_policies import model
from boathouse_policies.koala import Cluster

NODE_SLOTS = 8


def cluster_state(
    tasks: int = 0, *, name: str = "c", core: int = 20, transient: int = 0, waiting: int = 0, **fields
) -> Cluster:
    """A cluster with so many running tasks, and slots for its nodes."""
    slots = (core + transient) * NODE_SLOTS
    plain = {"slots": slots, "node_slots": NODE_SLOTS, "first_core_nodes": core}
    return Cluster(
        name=model.JobId(name),
        running_tasks=tasks,
        runnable_tasks=waiting,
        core_nodes=core,
        transient_nodes=transient,
        **(plain | fields),
    )


@st.composite
def drawn_clusters(draw: st.DrawFn, name: str = "c") -> Cluster:
    """Any state that a master can report."""
    core, transient = draw(st.integers(1, 40)), draw(st.integers(0, 40))
    running = draw(st.integers(0, (core + transient) * NODE_SLOTS))
    return cluster_state(
        running,
        name=name,
        core=core,
        transient=transient,
        waiting=draw(st.integers(0, 2000)),
        first_core_nodes=draw(st.integers(1, core)),
        pending_nodes=draw(st.integers(0, 10)),
        leaving_nodes=draw(st.integers(0, 10)),
        workload_ended=draw(st.integers(0, 1)),
    )
