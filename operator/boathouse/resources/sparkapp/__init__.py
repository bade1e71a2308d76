"""The SparkApp resource: a Spark application in Python, or from a jar, as a driver and its executors."""
