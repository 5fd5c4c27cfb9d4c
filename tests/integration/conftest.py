from tests.spark_fixtures import pipeline, spark

__all__ = ["pipeline", "spark"]
