"""SparkApps: parsed, submitted without a JVM, watched, and started again where their policy says so."""
