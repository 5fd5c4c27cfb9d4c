"""Which changes of a table's protocol change no row."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.incremental.table_features import adds_harmless_features


def protocol(reader: int, writer: int, *features: str, read: tuple[str, ...] = ()) -> dict[str, Any]:
    """A ``protocol`` action."""
    return {
        "minReaderVersion": reader,
        "minWriterVersion": writer,
        "writerFeatures": list(features),
        "readerFeatures": list(read),
    }


PLAIN, NAMED = protocol(1, 2), protocol(3, 7, "appendOnly")


@pytest.mark.parametrize(
    ("before", "after", "harmless"),
    [
        (PLAIN, PLAIN, True),
        (PLAIN, protocol(1, 4), True),
        (PLAIN, protocol(2, 5), True),
        (PLAIN, NAMED, True),
        (NAMED, protocol(3, 7, "appendOnly", "deletionVectors", read=("deletionVectors",)), True),
        (protocol(3, 7, "ofToday"), protocol(3, 7, "ofToday", "appendOnly"), True),
        (NAMED, protocol(3, 8, "appendOnly"), False),
        (NAMED, protocol(4, 7, "appendOnly"), False),
        (NAMED, protocol(3, 7), False),
        (NAMED, protocol(3, 7, "appendOnly", "ofTomorrow"), False),
        (NAMED, protocol(3, 7, "appendOnly", read=("ofTomorrow",)), False),
        (protocol(1, 4), PLAIN, False),
        (protocol(2, 5), protocol(1, 5), False),
    ],
)
def test_features_that_come_and_go(before: dict[str, Any], after: dict[str, Any], harmless: bool):
    """Known ones may come; none may go, and versions that are not known may change anything."""
    assert adds_harmless_features(before, after) is harmless
