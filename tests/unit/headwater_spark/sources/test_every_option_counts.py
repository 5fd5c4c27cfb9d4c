"""Options in the closed lists of sources: each changes the read, is noted, or is refused; none is silently ignored."""

from __future__ import annotations

import ast
from dataclasses import fields, replace
from pathlib import Path

import pytest

from headwater.errors import HeadwaterError
from headwater_spark.sources import event_hubs, kinesis_options
from headwater_spark.sources.cloud_files import options as cloud_files
from headwater_spark.sources.cloud_files.options import CLOUD_FILES_NAMES, CloudFilesOptions, parse_options
from headwater_spark.sources.event_hubs import kafka_options
from headwater_spark.sources.kinesis_options import KinesisOptions, parse_kinesis_options

JOBS = Path(__file__).parents[4] / "jobs"
# A value of each that is not its default.
CLOUD_FILES = {
    "backfillInterval": "1 day",
    "format": "csv", "schemaLocation": "/x", "inferColumnTypes": "true", "schemaHints": "a INT", "schemaEvolutionMode": "rescue",
    "rescuedDataColumn": "lost", "maxFilesPerTrigger": "3", "maxBytesPerTrigger": "3k", "maxFileAge": "3d",
    "includeExistingFiles": "false", "allowOverwrites": "true", "partitionColumns": "a", "cleanSource": "delete",
    "cleanSource.retentionDuration": "9 days", "cleanSource.moveDestination": "/x", "validateOptions": "false",
    "inferSchema": "true",
}  # fmt: skip
KINESIS = {
    "streamname": "other", "region": "eu-west-1", "endpoint": "http://a", "endpointurl": "http://b", "initialposition": "earliest",
    "awsaccesskey": "a", "awssecretkey": "b", "awssessiontoken": "c", "maxrecordsperfetch": "3", "maxrecordspertrigger": "3",
    "consumermode": "efo",
}  # fmt: skip
EVENT_HUBS = {
    "eventhubs.connectionstring": "Endpoint=sb://b/;EntityPath=h", "eventhubs.name": "other", "eventhubs.consumergroup": "g",
    "eventhubs.startingposition": '{"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}',
    "eventhubs.endingposition": '{"offset": null, "seqNo": 5, "enqueuedTime": null, "isInclusive": true}',
    "maxeventspertrigger": "3", "eventhubs.maxeventspertrigger": "3", "failondataloss": "false", "minpartitions": "3",
}  # fmt: skip


def outcome(read, given: dict[str, str]) -> object:
    """What comes of the options, or that they are refused."""
    try:
        return read(given)
    except HeadwaterError as refused:
        return refused.what


def test_cloud_files():
    """Honoured options give another read, the rest a note."""

    def read(given: dict[str, str]) -> CloudFilesOptions:
        return parse_options({"cloudFiles.format": "json", **given}, schema_given=False)

    plain = read({})
    assert set(CLOUD_FILES) == {*cloud_files._HONOURED, "validateOptions", "inferSchema"}
    for name in CLOUD_FILES_NAMES:
        changed = outcome(read, {f"cloudFiles.{name}": CLOUD_FILES.get(name, "x")})
        assert changed != plain, name
        if name not in CLOUD_FILES:
            assert isinstance(changed, CloudFilesOptions)
            assert replace(changed, notes=()) == plain
            assert name in changed.notes[0]


def test_kinesis():
    """Honoured options give another read or a refusal, the rest a note."""

    def read(given: dict[str, str]) -> KinesisOptions:
        return parse_kinesis_options({"streamname": "s", **given}, lambda *_: 0, "UTC")

    plain = read({})
    names = [name.lower() for name in (*kinesis_options._HONOURED, *kinesis_options._NOTED)]
    assert set(KINESIS) == {name.lower() for name in kinesis_options._HONOURED}
    for name in names:
        assert outcome(read, {name: KINESIS.get(name, "x")}) != plain, name


@pytest.mark.parametrize("streaming", [True, False])
def test_event_hubs(streaming: bool):
    """Each option reaches Kafka's read, or is refused where it has no meaning."""

    def read(given: dict[str, str]) -> dict[str, str]:
        base = {"eventhubs.connectionstring": "Endpoint=sb://a/;EntityPath=h"}
        return kafka_options({**base, **given}, streaming=streaming)

    assert set(EVENT_HUBS) == event_hubs._KNOWN
    for name, value in EVENT_HUBS.items():
        assert outcome(read, {name: value}) != read({}), name


@pytest.mark.parametrize("kind", [CloudFilesOptions, KinesisOptions])
def test_what_is_parsed_is_read(kind: type):
    """No field of the parsed options is for nobody."""
    where = Path(__import__(kind.__module__, fromlist=["_"]).__file__)
    read = {
        node.attr
        for path in JOBS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and (path != where or kind is CloudFilesOptions)
    }
    assert {field.name for field in fields(kind)} <= read
