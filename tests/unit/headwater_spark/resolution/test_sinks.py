"""Of a sink's options the manifest has those that say where rows go."""

from __future__ import annotations

import pytest

from headwater.definitions.sink import Sink, SinkKind
from headwater_spark.resolution.sinks import public_options


@pytest.mark.parametrize(
    ("sink", "kept"),
    [
        (
            Sink(
                SinkKind.KAFKA,
                "kafka",
                {"topic": "t", "kafka.bootstrap.servers": "k:9", "kafka.sasl.jaas.config": "Hunter2"},
            ),
            {"topic": "t", "kafka.bootstrap.servers": "k:9"},
        ),
        (Sink(SinkKind.DELTA, "delta", {"path": "s3a://AKIA:Hunter2@bucket/t"}), {"path": "s3a://bucket/t"}),
        (Sink(SinkKind.DELTA, "delta", {"path": "/data/token=7/t"}), {"path": "/data/token=7/t"}),
    ],
)
def test_no_secret_is_kept(sink: Sink, kept: dict[str, str]):
    """Neither one in an option of its own nor one in an address; a local folder stays as it is."""
    assert public_options(sink) == kept
