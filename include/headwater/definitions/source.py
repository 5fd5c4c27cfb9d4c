from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# How old a file may be against the newest that a stream has read, in Spark's spelling, where the read does not say it: a thousand
# years. Spark's own limit is a week.
ANY_FILE_AGE = "365000d"
# What `cloudFiles` says for the same. It differs, because a stored source is known as one of `cloudFiles` by it.
CLOUD_FILES_AGE = "36500d"


class SourceKind(StrEnum):
    """What a flow reads, as far as it matters for detecting new data."""

    DATASET = "dataset"
    DELTA = "delta"
    KAFKA = "kafka"
    KINESIS = "kinesis"
    FILES = "files"
    OTHER = "other"


@dataclass(frozen=True)
class Source:
    """One thing that a flow reads, as the facade over Spark recorded it.

    ``name`` is the dataset's name, the table's name, or empty; ``path`` the folder or glob (for tables and
    files); ``options`` holds only what is needed to look for news, never a secret.
    """

    kind: SourceKind
    streaming: bool
    name: str = ""
    path: str = ""
    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
