"""What the Spark image must be able to do, in one application: checks.py FOLDER, a folder that it may write to.

Prints a line of JSON for each check, with its seconds. It exists because the image leaves much of PySpark out.
"""

import json
import sys
import time
from collections.abc import Callable

from pyspark.ml.clustering import KMeans
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession, functions

LINKS = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "a"), ("d", "c")]
CODECS = ("snappy", "zstd", "lz4", "gzip", "uncompressed")


def parquet(spark: SparkSession, folder: str) -> object:
    """Write and read Parquet with each codec."""
    rows = spark.range(10_000).selectExpr("id", "id % 7 AS key", "uuid() AS text")
    sums = []
    for codec in CODECS:
        rows.write.option("compression", codec).parquet(f"{folder}/{codec}")
        sums.append(spark.read.parquet(f"{folder}/{codec}").agg(functions.sum("id")).first()[0])
    return sums


def sql(spark: SparkSession, folder: str) -> object:
    """Join, aggregate, rank and collate over a Parquet table, an ORC table and a CSV file."""
    spark.range(1000).selectExpr("id", "id % 7 AS key", "concat('W', id % 3) AS word").write.parquet(f"{folder}/p")
    spark.read.parquet(f"{folder}/p").createOrReplaceTempView("numbers")
    spark.sql("SELECT key, count(*) AS n FROM numbers GROUP BY key").write.orc(f"{folder}/o")
    spark.sql("SELECT key, key * 2 AS twice FROM numbers GROUP BY key").write.csv(f"{folder}/c", header=True)
    spark.read.orc(f"{folder}/o").createOrReplaceTempView("counts")
    spark.read.csv(f"{folder}/c", header=True, inferSchema=True).createOrReplaceTempView("doubles")
    query = """
        SELECT key, n, twice, rank() OVER (ORDER BY n DESC, key) AS place,
               (SELECT count(*) FROM numbers WHERE word COLLATE UNICODE_CI = 'w1') AS ones,
               regexp_extract(to_json(struct(key)), '([0-9]+)', 1) AS digits
        FROM counts JOIN doubles USING (key) ORDER BY place LIMIT 2"""
    return [list(row) for row in spark.sql(query).collect()]


def k_means(spark: SparkSession, _folder: str) -> object:
    """Find two clusters."""
    points = [(Vectors.dense([x, x]),) for x in (0.0, 0.2, 0.4, 9.0, 9.2, 9.4)]
    model = KMeans(k=2, seed=1).fit(spark.createDataFrame(points, ["features"]))
    return sorted(round(float(center[0]), 3) for center in model.clusterCenters())


def page_rank(spark: SparkSession, _folder: str) -> object:
    """Rank the pages that others link to with RDDs, by Python workers on the executors."""
    links = spark.sparkContext.parallelize(LINKS).groupByKey().cache()
    ranks = links.mapValues(lambda _: 1.0)
    for _ in range(10):
        given = links.join(ranks).flatMap(lambda page: [(to, page[1][1] / len(page[1][0])) for to in page[1][0]])
        ranks = given.reduceByKey(lambda left, right: left + right).mapValues(lambda total: 0.15 + 0.85 * total)
    return [name for name, _ in sorted(ranks.collect(), key=lambda pair: -pair[1])]


def streaming(spark: SparkSession, folder: str) -> object:
    """Count with a state store in RocksDB, whose native library the image keeps for its own machine only."""
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.range(100).selectExpr("id % 5 AS key").write.json(f"{folder}/in")
    counts = spark.readStream.schema("key LONG").json(f"{folder}/in").groupBy("key").count()
    stream = counts.writeStream.format("memory").queryName("counts").outputMode("complete")
    stream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start().awaitTermination()
    return sorted(list(row) for row in spark.table("counts").collect())


def text_by_rename(spark: SparkSession, folder: str) -> object:
    """Write text by Hadoop's older committer, which renames: on S3, copies by the asynchronous client."""
    spark.sparkContext.parallelize([str(number) for number in range(100)], 4).saveAsTextFile(f"{folder}/text")
    return spark.sparkContext.textFile(f"{folder}/text").map(int).sum()


CHECKS: tuple[Callable[[SparkSession, str], object], ...] = (
    parquet,
    sql,
    k_means,
    page_rank,
    streaming,
    text_by_rename,
)


def main(folder: str) -> None:
    """Run the checks."""
    spark = SparkSession.builder.appName("checks").getOrCreate()
    for check in CHECKS:
        started_s = time.monotonic()
        found = check(spark, f"{folder}/{check.__name__}")
        seconds = round(time.monotonic() - started_s, 1)
        print(json.dumps({"check": check.__name__, "found": found, "seconds": seconds}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
