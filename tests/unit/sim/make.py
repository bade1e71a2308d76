"""Builders: what a test does not name does not matter to it."""

from boathouse_sim.workload import Cluster, JobSpec, Penalty, PenaltyModel, Phase, Workload


def phase(tasks=1, seconds=10.0, mb=1000, kind="map", cores=1, model="step", factor=1.0) -> Phase:
    return Phase(
        kind=kind,
        tasks=tasks,
        duration_ms=round(seconds * 1000),
        mem_ideal_mb=mb,
        cores=cores,
        penalty=Penalty(model=PenaltyModel(model), factor=factor),
    )


def job(name="0", *phases: Phase, at_s=0.0, after=None) -> JobSpec:
    submit_ms = None if after is not None else round(at_s * 1000)
    return JobSpec(id=name, phases=phases or (phase(),), submit_ms=submit_ms, after=after)


def workload(*jobs: JobSpec, nodes=1, node_mb=10_000, cores=16, racks=1) -> Workload:
    cluster = Cluster(nodes=nodes, node_mem_mb=node_mb, node_cores=cores, racks=racks)
    return Workload(name="test", cluster=cluster, jobs=jobs or (job(),))
