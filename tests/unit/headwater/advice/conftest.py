"""The pipelines on disk that the measures are tested with."""

from tests.unit.headwater.metrics.conftest import done, pipeline

__all__ = ["done", "pipeline"]
