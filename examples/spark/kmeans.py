"""Cluster points with K-means: kmeans.py CLUSTERS OUTPUT [POINTS]. A line of the output is a centre: x, tab, y.

The points lie around (0, 0), (10, 10), (20, 20) and so on, each at most one away in both directions.
"""

import sys

from pyspark.ml.clustering import KMeans
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession, functions


def main(clusters: int, target: str, points: int) -> None:
    """Make the points, find the centres of their clusters, and write these in place of those of an earlier run."""
    spark = SparkSession.builder.appName("k-means").getOrCreate()
    cluster = functions.col("id") % clusters * 10
    table = spark.range(points).select(
        (cluster + functions.rand(1) * 2 - 1).alias("x"), (cluster + functions.rand(2) * 2 - 1).alias("y")
    )
    vectors = VectorAssembler(inputCols=["x", "y"], outputCol="features").transform(table).select("features").cache()
    model = KMeans(k=clusters, seed=1, initSteps=5).fit(vectors)
    lines = sorted((float(x), float(y)) for x, y in model.clusterCenters())
    centres = spark.createDataFrame([(f"{x:.2f}\t{y:.2f}",) for x, y in lines], "value STRING")
    centres.coalesce(1).write.mode("overwrite").text(target)
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if sys.argv[3:] else 100_000)
