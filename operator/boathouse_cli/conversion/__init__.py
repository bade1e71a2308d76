"""Conversion of Spark applications that others run into SparkApps. Pure: from text to manifests and notes."""
