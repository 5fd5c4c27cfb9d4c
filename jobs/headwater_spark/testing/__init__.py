"""The testing kit: a dataset's function, or a whole pipeline, over rows that a test gives, batch by batch."""

from headwater_spark.testing.loaded_source import load_source
from headwater_spark.testing.local_session import local_session
from headwater_spark.testing.results import BatchResult, DatasetRun, PipelineRun
from headwater_spark.testing.runs import run_dataset, run_pipeline

__all__ = [
    "BatchResult",
    "DatasetRun",
    "PipelineRun",
    "load_source",
    "local_session",
    "run_dataset",
    "run_pipeline",
]
