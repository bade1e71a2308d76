"""Rank pages by the links to them: pagerank.py LINKS OUTPUT [ROUNDS]. A line of LINKS is FROM, space, TO.

A line of the output is page, tab, rank; the page with the highest rank comes first.
"""

import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

DAMPING = 0.85


def shares(page: tuple[str, tuple[Iterable[str], float]]) -> Iterator[tuple[str, float]]:
    """Divide the rank of a page between those that it links to."""
    targets, rank = list(page[1][0]), page[1][1]
    return ((target, rank / len(targets)) for target in targets)


def main(source: str, target: str, rounds: int) -> None:
    """Read the links, rank the pages, and write the ranks as text, in place of those of an earlier run."""
    spark = SparkSession.builder.appName("page-rank").getOrCreate()
    pairs = spark.sparkContext.textFile(source).map(lambda line: tuple(line.split()))
    links = pairs.distinct().groupByKey(2).cache()
    ranks = links.mapValues(lambda _: 1.0)
    for _ in range(rounds):
        received = links.join(ranks).flatMap(shares).reduceByKey(lambda left, right: left + right, 2)
        ranks = received.mapValues(lambda total: 1 - DAMPING + DAMPING * total)
    ordered = ranks.sortBy(lambda page: -page[1], numPartitions=1)
    lines = spark.createDataFrame(ordered.map(lambda page: (f"{page[0]}\t{page[1]:.4f}",)), "value STRING")
    lines.write.mode("overwrite").text(target)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if sys.argv[3:] else 10)
