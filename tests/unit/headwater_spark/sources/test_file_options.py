"""Options that only the closed platform's readers of files know are translated or refused, never passed over."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrameReader

from headwater.errors import InvalidSourceOption, UnsupportedSource
from headwater_spark.facade.pipeline_session import PipelineBatchReader, PipelineStreamReader
from headwater_spark.facade.sql_sources import SourceCall, frame_of
from headwater_spark.sources.file_options import check_file_limits, file_overrides, instants, spark_times


@pytest.mark.parametrize(
    ("source_format", "options", "says", "remedy"),
    [
        ("csv", {"skiprows": "2"}, "skipRows = 2", "from_csv"),
        ("json", {"badrecordspath": "/x"}, "badRecordsPath", "_corrupt_record IS NULL"),
        ("", {"filenamepattern": "*.csv", "pathglobfilter": "*.csv"}, "two names", "Keep one"),
    ],
)
def test_what_would_change_the_rows(source_format: str, options: dict[str, str], says: str, remedy: str):
    """It is refused with the way that works."""
    with pytest.raises(InvalidSourceOption, match=says) as caught:
        file_overrides(source_format, options)
    assert remedy in caught.value.remedy


def test_what_is_fine():
    """The other name of the glob is Spark's; no rows to skip, and options of other formats, are no matter."""
    assert file_overrides("csv", {"filenamepattern": "*2.csv"}) == {"pathGlobFilter": "*2.csv"}
    assert file_overrides("csv", {"skiprows": "0", "header": "true"}) == {}
    assert file_overrides("json", {"skiprows": "2"}) == {}


@pytest.mark.parametrize(
    "options",
    [
        {"maxfilespertrigger": "0"},
        {"maxfilespertrigger": "2147483648"},
        {"maxbytespertrigger": "-1"},
        {"maxbytespertrigger": "10g"},
        {"maxfilespertrigger": "1", "maxbytespertrigger": "1"},
    ],
)
def test_limits_that_are_none(options: dict[str, str]):
    """Spark would refuse them when the stream starts, after `validate` has found nothing."""
    with pytest.raises(InvalidSourceOption, match="PerTrigger"):
        check_file_limits(options)


def test_limits():
    """One whole number above zero; a batch read has none."""
    check_file_limits({})
    check_file_limits({"maxfilespertrigger": "2147483647"})
    check_file_limits({"maxbytespertrigger": "1"})


@pytest.mark.parametrize("function", ["read_pubsub", "read_pulsar"])
def test_sources_that_are_not_there(function: str):
    """A call in SQL text is refused as the format is in Python, with what to do instead."""
    reader = object.__new__(PipelineStreamReader)
    reader.session = SimpleNamespace(substitutes=None)  # type: ignore[assignment]
    call = SourceCall(function, True, 0, 0, "", (), ())
    with pytest.raises(UnsupportedSource, match=function.removeprefix("read_")) as caught:
        frame_of(call, SimpleNamespace(readStream=reader))  # type: ignore[arg-type]
    assert "Kafka" in caught.value.remedy


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> PipelineBatchReader:
    """A reader of the facade over one that only keeps its options."""
    made = object.__new__(PipelineBatchReader)
    made.session = SimpleNamespace(substitutes=None, resolution=None)  # type: ignore[assignment]
    made.options_given, made.options_spelled, kept = {}, {}, {}

    def options(self: DataFrameReader, **more: object) -> DataFrameReader:
        kept.update(more)
        return self

    monkeypatch.setattr(DataFrameReader, "option", lambda self, key, value: options(self, **{key: value}))
    monkeypatch.setattr(DataFrameReader, "options", options)
    monkeypatch.setattr(DataFrameReader, "format", lambda self, _: self)
    for name in ("load", "csv", "json", "parquet", "xml"):
        monkeypatch.setattr(DataFrameReader, name, lambda *_, **__: dict(kept))
    return made


def test_every_way_to_read_files(reader: PipelineBatchReader):
    """By format and by its short form alike, batch and stream share the code."""
    reader.option("fileNamePattern", "*2.json")
    for read in (reader.json, reader.csv, reader.parquet, reader.xml, reader.format("json").load):
        assert read("/data")["pathGlobFilter"] == "*2.json"  # type: ignore[operator]
    reader.option("skipRows", 1)
    for read in (reader.csv, reader.format("csv").load):
        with pytest.raises(InvalidSourceOption, match="skipRows"):
            read("/data")


def test_times_of_change_are_moments():
    """Without a zone they are the read's own, else the session's; what is no time is refused before anything is listed."""
    given = {"modifiedAfter": "2026-01-31 08:00:00", "MODIFIEDBEFORE": "2026-02-01T00:00:00Z", "sep": ";"}
    assert instants(given, "Europe/Berlin") == {
        "modifiedAfter": "2026-01-31T07:00:00+00:00", "MODIFIEDBEFORE": "2026-02-01T00:00:00+00:00",
    }  # fmt: skip
    assert (
        instants({**given, "timeZone": "Asia/Tokyo"}, "UTC")["modifiedAfter"] == "2026-01-30T23:00:00+00:00"
    )
    with pytest.raises(InvalidSourceOption, match="is not a point in time"):
        instants({"modifiedAfter": "last week"}, "UTC")


@pytest.mark.parametrize(
    ("text", "zone", "given"),
    [
        ("2026-01-01 12:00:00", "UTC", {}),
        ("2026-01-01 12:00:00", "Europe/Berlin", {"modifiedAfter": "2026-01-01T12:00:00Z"}),
        ("2026-01-01T12:00:00Z", "Europe/Berlin", {"modifiedAfter": "2026-01-01T13:00:00Z"}),
        ("2026-07-01T12:00:00Z", "America/New_York", {"modifiedAfter": "2026-07-01T08:00:00Z"}),
    ],
)
def test_spark_compares_the_moment_that_is_meant(text: str, zone: str, given: dict[str, str]):
    """Spark adds the zone's offset to a file's time, so the moment gets it as well; at UTC nothing is changed."""
    assert spark_times({"modifiedafter": text, "sep": ";"}, zone, streaming=False) == given
    assert spark_times({"modifiedafter": text, "timezone": zone}, "UTC", streaming=False) == given


def test_a_stream_of_files_has_no_times_of_change():
    """Spark would refuse it when the query starts; a read without them is not touched."""
    assert spark_times({"sep": ";"}, "Asia/Tokyo", streaming=True) == {}
    with pytest.raises(InvalidSourceOption, match="modifiedBefore") as caught:
        spark_times({"modifiedbefore": "2026-01-01"}, "UTC", streaming=True)
    assert "cloudFiles" in caught.value.remedy
