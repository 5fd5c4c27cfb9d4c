from tests.spark_fixtures import pipeline, spark, spark_settings

__all__ = ["pipeline", "spark", "spark_settings"]
