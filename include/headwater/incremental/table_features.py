"""Whether the features that a Delta table has got since a version leave the rows of its older files what they were.

Decision 0238.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Features with which a file that was there before is read as before. What they allow is looked at where it is used: types and mappings
# of columns by the schema, deletion vectors with each file, a change feed by the property that turns it on.
_HARMLESS = frozenset(
    {
        "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "clustering", "columnMapping", "deletionVectors",
        "domainMetadata", "generatedColumns", "identityColumns", "inCommitTimestamp", "invariants", "rowTracking", "timestampNtz",
        "typeWidening", "typeWidening-preview", "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview",
    }
)  # fmt: skip
# The versions of reader and writer that name features. What lower ones stand for is all harmless.
_NAMED = (3, 7)


def adds_harmless_features(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a protocol is the one before, or that with more features that change no row.

    A feature that went is none of these: rows that deletion vectors hide in files of before would be seen.

    Args:
        before: a ``protocol`` action; ``after``: a later one.
    """
    was, now = _features(before), _features(after)
    grew = all(old <= new for old, new in zip(_versions(before), _versions(after), strict=True))
    readable = all(new <= last for new, last in zip(_versions(after), _NAMED, strict=True))
    return grew and readable and was <= now and now - was <= _HARMLESS


def _versions(protocol: Mapping[str, Any]) -> tuple[int, int]:
    return int(protocol["minReaderVersion"]), int(protocol["minWriterVersion"])


def _features(protocol: Mapping[str, Any]) -> frozenset[str]:
    """The features that are named."""
    named = [*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())]
    return frozenset(map(str, named))
