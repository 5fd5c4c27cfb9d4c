"""The testing kit for users: run datasets over rows of a test, and make events to run them over.

``run_dataset`` and ``run_pipeline`` need Spark and lie on the floor above (``headwater_spark.testing``). They are
fetched from there when a test asks for them, so that importing this package costs nothing; a type checker sees them
in ``headwater_spark.testing``. See docs/testing.md.

Decision 0051.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from headwater.testing.events import EventGenerator, SyntheticEvent, SyntheticEvents
from headwater.testing.rows import assert_same_rows

ENGINE = "headwater_spark.testing"
_OF_THE_ENGINE = (
    "BatchResult", "DatasetRun", "PipelineRun", "run_dataset", "run_pipeline", "local_session", "load_source"
)  # fmt: skip

__all__ = ["EventGenerator", "SyntheticEvent", "SyntheticEvents", "assert_same_rows", *_OF_THE_ENGINE]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _OF_THE_ENGINE:
        return getattr(import_module(ENGINE), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
