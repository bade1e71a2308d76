"""Count the words of a text with PySpark: wordcount.py INPUT OUTPUT. A line of the output is word, tab, count.

A word is a run of the letters A to Z, in lower case.
"""

import sys

from pyspark.sql import SparkSession, functions


def main(source: str, target: str) -> None:
    """Read the text, count its words, and write the counts as text, in place of those of an earlier run."""
    spark = SparkSession.builder.appName("word-count").getOrCreate()
    found = functions.regexp_extract_all("value", functions.lit("[A-Za-z]+"), functions.lit(0))
    words = spark.read.text(source).select(functions.explode(found).alias("word"))
    counts = words.groupBy(functions.lower("word").alias("word")).count()
    counts.select(functions.concat_ws("\t", "word", "count")).write.mode("overwrite").text(target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
