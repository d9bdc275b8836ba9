"""The distributed engine: Apache Spark over prepared tables."""
