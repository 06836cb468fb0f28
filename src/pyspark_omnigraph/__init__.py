"""`spark.read.format("omnigraph")`: PySpark looks for packages of this kind of name, and takes their `DefaultSource`."""

from pyspark_omnigraph.source import DefaultSource

__all__ = ["DefaultSource"]
