"""Query generated orders with SQL: sql.py [ORDERS]. Prints each region with its orders and revenue, the highest first.

It reads and writes no storage: executors make the rows, and the driver prints the result.
"""

import sys

from pyspark.sql import SparkSession

ORDERS = """
    SELECT element_at(array('north', 'east', 'south', 'west'), int(id % 4) + 1) AS region,
           id % 10 AS product, id % 5 + 1 AS quantity
    FROM range({orders})
"""
QUERY = """
    SELECT region, count(*) AS orders, sum(quantity * price) AS revenue
    FROM orders JOIN prices USING (product)
    WHERE quantity > 1
    GROUP BY region
    ORDER BY revenue DESC, region
"""


def main(orders: int) -> None:
    """Make the orders and the prices of ten products, and print the revenue of each region."""
    spark = SparkSession.builder.appName("sql").getOrCreate()
    spark.sql(ORDERS.format(orders=orders)).createOrReplaceTempView("orders")
    spark.sql("SELECT id AS product, id * 10 AS price FROM range(10)").createOrReplaceTempView("prices")
    spark.sql(QUERY).show()
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 1_000_000)
