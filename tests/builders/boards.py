"""Results of the board of workloads."""

from boathouse_lab.board.cases import Result

RESULT = Result(
    mean_s=2.0,
    p95_s=3.0,
    mapreduce_s=2.0,
    spark_s=None,
    waited_s=1.0,
    least_s=1.0,
    suspensions=0,
    elastic_tasks=0,
    cpu_s=0.1,
)
