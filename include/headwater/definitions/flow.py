from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.definitions.source_location import SourceLocation


@dataclass(frozen=True)
class Flow:
    """A query that fills a dataset. ``function`` takes no arguments and returns a DataFrame."""

    name: str
    target: str
    function: Callable[[], Any]
    location: SourceLocation | None = None
    once: bool = False
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
