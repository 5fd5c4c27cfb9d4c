"""An option that is almost one of Delta's or Kafka's is refused with the name that was meant."""

from __future__ import annotations

import pytest

from headwater.errors import InvalidSourceOption
from headwater_spark.sources.misspelled_options import _KNOWN, refuse_misspelled


@pytest.mark.parametrize(
    ("source_format", "name", "meant"),
    [
        ("delta", "skipChangeComits", "skipChangeCommits"),
        ("", "maxFilesPerTriger", "maxFilesPerTrigger"),
        ("delta", "starting_version", "startingVersion"),
        ("kafka", "startingOffset", "startingOffsets"),
        ("kafka", "maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
    ],
)
def test_almost_an_option(source_format: str, name: str, meant: str):
    """Spark would pass over it: a stream would begin elsewhere, or have no limit, without a word."""
    with pytest.raises(InvalidSourceOption, match=f"'{name}'") as caught:
        refuse_misspelled(source_format, [name])
    assert caught.value.remedy == f"Did you mean {meant!r}?"


def test_what_is_left_alone():
    """Each known name in any case, settings of Kafka's client, options unlike any known one, and other formats."""
    for source_format, known in _KNOWN.items():
        refuse_misspelled(source_format, [*known, *map(str.upper, known), "path", "my.own", "compression"])
    refuse_misspelled("kafka", ["kafka.bootstrap.server", "kafka.group.id"])
    refuse_misspelled("json", ["maxFilesPerTriger"])
