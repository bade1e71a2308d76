"""Query a Parquet table with SQL: sql_parquet.py TABLE OUTPUT [ROWS]. Writes the table first, if ROWS is given.

A line of the output is region, tab, orders, tab, revenue; the region with the highest revenue comes first.
"""

import sys

from pyspark.sql import SparkSession, functions

REGIONS = ("north", "east", "south", "west")
QUERY = """
    SELECT region, count(*) AS orders, sum(quantity * price) AS revenue
    FROM orders JOIN prices USING (product)
    WHERE quantity > 1
    GROUP BY region
    ORDER BY revenue DESC
"""


def fill(spark: SparkSession, table: str, rows: int) -> None:
    """Replace the orders: of each region as many, of quantities from 1 to 5, and of ten products."""
    names = functions.array(*map(functions.lit, REGIONS))
    order = spark.range(rows).select(
        functions.get(names, (functions.col("id") % len(REGIONS)).cast("int")).alias("region"),
        (functions.col("id") % 10).alias("product"),
        (functions.col("id") % 5 + 1).alias("quantity"),
    )
    order.write.mode("overwrite").partitionBy("region").parquet(table)


def main(table: str, target: str, rows: int) -> None:
    """Join orders with prices, and write the revenue of each region as text, in place of that of an earlier run."""
    spark = SparkSession.builder.appName("sql-parquet").getOrCreate()
    if rows:
        fill(spark, table, rows)
    spark.read.parquet(table).createOrReplaceTempView("orders")
    spark.range(10).selectExpr("id AS product", "id * 10 AS price").createOrReplaceTempView("prices")
    result = spark.sql(QUERY).selectExpr("concat_ws('\t', region, orders, revenue) AS value")
    result.coalesce(1).write.mode("overwrite").text(target)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if sys.argv[3:] else 0)
