"""The options of format("kinesis"): honoured, noted or refused, and never shown where they are secret."""

from __future__ import annotations

import pytest

from headwater.errors import InvalidSourceOption
from headwater_spark.sources.kinesis_options import KinesisOptions, parse_kinesis_options


def parsed(**options: str) -> KinesisOptions:
    """Parse options of a read from the stream ``s``; a time with a format is 42."""
    given = {key.lower(): value for key, value in {"streamName": "s", **options}.items()}
    return parse_kinesis_options(given, lambda text, pattern: 42, "Europe/Berlin")


@pytest.mark.parametrize(
    ("position", "since"),
    [
        ("latest", None),
        ("TRIM_HORIZON", "trim_horizon"),
        ("earliest", "trim_horizon"),
        ('{"at_timestamp": "2025-01-01 01:00:00"}', 1735689600000),
        ('{"AT_TIMESTAMP": "2025-01-01T00:00:00+00:00"}', 1735689600000),
        ('{"at_timestamp": 1735689600000}', 1735689600000),
        ('{"at_timestamp": "06/25/2020 10:23:45 PDT", "format": "MM/dd/yyyy HH:mm:ss ZZZ"}', 42),
    ],
)
def test_where_a_first_run_begins(position: str, since: int | str | None):
    """Each form of initialPosition is understood; a time without an offset is of the session's zone."""
    assert parsed(initialPosition=position).since == since


def test_where_the_streams_are():
    """Several streams, a region, an endpoint with or without its scheme, and the keys."""
    read = parsed(streamName="a, b", region="eu-west-1", endpoint="h:1", awsAccessKey="AK", awsSecretKey="sk")
    assert read.streams == ("a", "b")
    assert (read.connection.region, read.connection.endpoint) == ("eu-west-1", "https://h:1")
    assert read.connection.credentials is not None
    assert "AK" not in repr(read)
    assert "sk" not in repr(read)
    assert parsed(endpointUrl="http://h:1").connection.endpoint == "http://h:1"


def test_what_has_no_effect_is_noted():
    """Options for the pace of fetching are taken and said to do nothing; limits are honoured."""
    read = parsed(
        maxFetchRate="1.0", shardsPerTask="5", maxRecordsPerFetch="500", maxRecordsPerTrigger="9000"
    )
    assert [note.split()[3] for note in read.notes] == ["maxFetchRate", "shardsPerTask"]
    assert (read.per_request, read.per_batch) == (500, 9000)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"streamName": " "}, "streamName"),
        ({"streamNam": "x"}, "streamName"),
        ({"roleArn": "arn:x"}, "AWS_PROFILE"),
        ({"serviceCredential": "x"}, "awsAccessKey"),
        ({"streamARN": "arn:x"}, "streamName"),
        ({"consumerMode": "efo"}, "polled"),
        ({"awsAccessKey": "AK"}, "both"),
        ({"initialPosition": "from the start"}, "trim_horizon"),
        ({"maxRecordsPerFetch": "10001"}, "10,000"),
        ({"maxRecordsPerTrigger": "0"}, "from 1"),
    ],
)
def test_what_can_not_be(options: dict[str, str], said: str):
    """What can't be honoured is refused with the form that works."""
    with pytest.raises(InvalidSourceOption) as caught:
        parsed(**options)
    assert said in caught.value.remedy
