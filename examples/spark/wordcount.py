"""Count the words of a text with PySpark: wordcount.py INPUT OUTPUT. A line of the output is word, tab, count."""

import sys

from pyspark.sql import SparkSession, functions


def main(source: str, target: str) -> None:
    """Read the text, count its words, and write the counts as text."""
    spark = SparkSession.builder.appName("word-count").getOrCreate()
    words = spark.read.text(source).select(
        functions.explode(functions.split(functions.trim("value"), r"\s+")).alias("word")
    )
    counts = words.where("word != ''").groupBy("word").count()
    counts.select(functions.concat_ws("\t", "word", "count")).write.text(target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
