"""A Spark application beside MapReduce jobs on a small cluster, under two policies.

python examples/simulation.py
"""

from boathouse_sim import simulation, topology, work
from boathouse_sim.conditions import Conditions, Outage, Outages, Saturation
from boathouse_sim.live import MapReduce, Spark, SparkStage
from boathouse_sim.workload import Cluster, Penalty, PenaltyModel, Workload

# 1. The cluster: eight machines of 8 cores and 16 GiB in two racks, with one disk and 1 GbE each.
cluster = Cluster.of(topology.machines(8, cores=8, mem_mb=16_384, racks=2))

# 2. What tasks do when they are alone: CPU time, and what they read, write and copy.
wordcount_map = work.Container(mem_mb=2048, segments=(work.segment("map", cpu_s=20, read_mb=256, write_mb=60),))
wordcount_reduce = work.Container(
    mem_mb=4096,
    segments=(
        work.segment("shuffle", copy_mb=400),
        work.segment("sort", cpu_s=2, read_mb=400, write_mb=400),
        work.segment("reduce", cpu_s=10, write_mb=100),
    ),
    penalty=Penalty(model=PenaltyModel.SAWTOOTH, factor=1.5),
)

# 3. Jobs. A MapReduce job comes every 20 s; a Spark application holds four executors for its two stages.
jobs = [
    MapReduce(id=f"wordcount-{i}", maps=40, map=wordcount_map, reduces=6, reduce=wordcount_reduce, submit_ms=20_000 * i)
    for i in range(6)
]
pagerank = Spark(
    id="pagerank",
    driver=work.Container(mem_mb=1024),
    executors=4,
    executor=work.Container(mem_mb=6144, cores=4),
    min_executors=2,
    stages=(
        SparkStage(tasks=48, work=work.segment("task", cpu_s=6, read_mb=128), replicas=3),
        SparkStage(tasks=48, work=work.segment("task", cpu_s=4, copy_mb=32)),
    ),
    submit_ms=30_000,
)

# 4. What else holds: neighbours slow each other down, run times vary, and one node is away for two minutes.
conditions = Conditions(
    contention=Saturation(),
    jitter=0.1,
    outages=Outages(given=(Outage(node="n3", from_s=60, to_s=180),)),
)
workload = Workload(name="mixed", cluster=cluster, apps=(*jobs, pagerank), conditions=conditions)


def main() -> None:
    """Print one line for each policy."""
    print(f"{'profile':10} {'mean s':>8} {'makespan s':>11} {'local':>6} {'lost':>5}")
    for name in ("fair", "yarn-me"):
        found = simulation.simulate(workload, name, seed=1)
        local = found.node_local_share or 0.0
        print(f"{name:10} {found.mean_job_time_s:8.1f} {found.makespan_s:11.1f} {local:6.0%} {found.lost_tasks:5}")


if __name__ == "__main__":
    main()
