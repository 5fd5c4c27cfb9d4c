"""Options of cloudFiles are a closed list: honoured, noted, or refused with the way out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headwater.errors import InvalidSourceOption
from headwater_spark.sources.cloud_files.options import EvolutionMode, parse_options


def parse(schema_given: bool = False, **given: str):
    options = {"cloudFiles.format": "json"}
    for key, value in given.items():
        options[key.lstrip("_") if key.startswith("_") else f"cloudFiles.{key.replace('__', '.')}"] = value
    return parse_options(options, schema_given=schema_given)


def test_defaults():
    """Without a schema columns are added and data rescued; with one, neither; 1,000 files a batch."""
    inferred, given = parse(), parse(schema_given=True)
    assert (inferred.mode, inferred.rescued, inferred.max_files) == (EvolutionMode.ADD, "_rescued_data", 1000)
    assert (given.mode, given.rescued) == (EvolutionMode.NONE, None)
    assert parse(schemaEvolutionMode="none").rescued is None
    assert parse(format="text").mode is EvolutionMode.NONE


def test_letter_case_does_not_matter():
    """Keys and choices are matched without regard to case, and other options are passed on as they were spelled."""
    options = parse_options(
        {"CLOUDFILES.FORMAT": "JSON", "cloudfiles.schemaevolutionmode": "RESCUE", "dateFormat": "yyyy"},
        schema_given=False,
    )
    assert (options.format, options.mode, dict(options.native)) == (
        "json",
        EvolutionMode.RESCUE,
        {"dateFormat": "yyyy"},
    )
    assert options.native_option("DATEFORMAT") == "yyyy"


def test_values_are_read():
    """Sizes, durations and lists."""
    options = parse(maxBytesPerTrigger="10g", cleanSource="delete", partitionColumns="a, b")
    assert (options.max_bytes, options.max_files) == (10 * 1024**3, 1000)
    both = parse(maxBytesPerTrigger="5k", maxFilesPerTrigger="5")
    assert (both.max_bytes, both.max_files) == (5 * 1024, 5)
    assert (options.clean, options.retention) == ("delete", timedelta(days=30))
    assert options.partition_columns == ("a", "b")
    moved = parse(
        cleanSource="MOVE",
        cleanSource__moveDestination="/x",
        cleanSource__retentionDuration="interval 2 hours",
    )
    assert (moved.move_to, moved.retention) == ("/x", timedelta(hours=2))


def test_a_spelling_of_sparks_readers():
    """``cloudFiles.inferSchema`` changes nothing and is noted with the option that it may be meant for."""
    plain, spelled = parse(), parse(inferSchema="True")
    assert "inferColumnTypes" in spelled.notes[0]
    assert replace(spelled, notes=()) == plain
    assert len(parse(schema_given=True, inferSchema="false").notes) == 1


def test_unknown_options_without_validation():
    """With ``validateOptions`` off an unknown option is noted with its way out, as Auto Loader passes it over; bad values are not."""
    found = parse(validateOptions="false", header="true", shemaHints="a INT")
    assert [note.partition(" ")[0] for note in found.notes] == [
        "cloudFiles.validateOptions",
        "cloudFiles.header",
        "cloudFiles.shemaHints",
    ]
    assert "'header'" in found.notes[1]
    assert "cloudFiles.schemaHints" in found.notes[2]
    assert replace(found, notes=()) == parse()


def test_what_tunes_the_closed_runtime_is_noted():
    """It has no effect, a note says so, and it is not an error."""
    options = parse(useNotifications="true", fetchParallelism="4")
    assert len(options.notes) == 2
    assert "useNotifications" in options.notes[0]


def test_the_interval_of_backfills():
    """It is a length of time that says how often a listing counts as a backfill, and needs no note."""
    options = parse(backfillInterval="interval 1 week")
    assert (options.backfill_interval, options.notes) == (timedelta(weeks=1), ())
    with pytest.raises(InvalidSourceOption, match="backfillInterval"):
        parse(backfillInterval="asap")


def test_names_that_only_auto_loader_has():
    """A pattern of files is Spark's under its other name, and a credential of the platform is noted."""
    options = parse(_fileNamePattern="*2.json", **{"_databricks.serviceCredential": "c"})
    assert dict(options.native) == {"pathGlobFilter": "*2.json"}
    assert "databricks.serviceCredential has no effect" in options.notes[0]


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"shemaHints": "a INT"}, "cloudFiles.schemaHints"),
        ({"format": "jsonl"}, "json, csv"),
        ({"format": "xml"}, '.option("rowTag", "book")'),
        ({"format": ""}, "json, csv"),
        ({"schemaEvolutionMode": "sometimes"}, "addNewColumns"),
        ({"maxFilesPerTrigger": "0"}, "whole number"),
        ({"inferSchema": "false"}, ".schema(...)"),
        ({"inferSchema": "yes"}, "true, false"),
        ({"header": "true"}, "without the prefix, which is for options of Auto Loader: 'header'"),
        ({"multiline": "true"}, "'multiLine'"),
        ({"schemaEvolution": "true"}, "cloudFiles.schemaEvolutionMode"),
        ({"validateOptions": "false", "format": "xlm"}, "json, csv"),
        ({"validateOptions": "perhaps"}, "true, false"),
        ({"maxBytesPerTrigger": "much"}, "10g"),
        ({"includeExistingFiles": "maybe"}, "true, false"),
        ({"cleanSource": "move"}, "MOVE"),
        ({"cleanSource__moveDestination": "/x"}, "MOVE"),
        ({"cleanSource": "delete", "cleanSource__retentionDuration": "1 day"}, "7 days"),
        ({"cleanSource__retentionDuration": "soon"}, "14 days"),
        ({"_badRecordsPath": "/x"}, "rescued"),
        ({"format": "csv", "_skipRows": "2"}, "from_csv"),
        ({"_fileNamePattern": "*.json", "_pathGlobFilter": "*.json"}, "Keep one"),
        ({"_mode": "DROPMALFORMED"}, "_rescued_data"),
        ({"_recursiveFileLookup": "false"}, "pathGlobFilter"),
        ({"_encoding": "latin1"}, "UTF-8"),
        ({"format": "csv", "_encoding": "UTF-16"}, "single bytes"),
        ({"format": "csv", "_encoding": "windows-1252"}, "spark.sql.legacy.javaCharsets"),
        ({"format": "xml", "_rowTag": "r", "_encoding": "latin1"}, "first line"),
        ({"format": "csv", "_charset": "latin-eins"}, "ISO-8859-1"),
        ({"format": "text", "schemaEvolutionMode": "rescue"}, "fixed schema"),
        ({"_singleVariantColumn": "v", "rescuedDataColumn": "r"}, "fixed schema"),
        ({"_singleVariantColumn": "v", "schemaEvolutionMode": "addNewColumns"}, "fixed schema"),
        ({"_singleVariantColumn": "v", "schemaHints": "a INT"}, "schemaHints"),
        ({"_singleVariantColumn": "v", "format": "csv"}, "JSON"),
        ({"_singleVariantColumn": ""}, "Name the column"),
        ({"format": "text", "rescuedDataColumn": "r"}, "fixed schema"),
    ],
)
def test_refusals(given: dict[str, str], remedy: str):
    """What can't be honoured is refused, with what to do."""
    with pytest.raises(InvalidSourceOption) as caught:
        parse(**given)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "ISO-8859-1", "US-ASCII"])
def test_encodings_of_csv_files(encoding: str):
    """Whose line ends are single bytes; Spark's older name for the option counts too."""
    assert parse(format="csv", _charset=encoding).encoding == (
        "UTF-8" if encoding.startswith(("utf", "UTF")) else encoding
    )


def test_encodings_that_spark_takes_by_a_setting():
    """With the setting any encoding of single bytes is one of a CSV file, and no other."""
    given = {"cloudFiles.format": "csv", "encoding": "windows-1252"}
    assert parse_options(given, schema_given=False, java_charsets=True).encoding == "windows-1252"
    with pytest.raises(InvalidSourceOption, match="UTF-16"):
        parse_options({**given, "encoding": "UTF-16"}, schema_given=False, java_charsets=True)


def test_a_record_may_be_one_variant():
    """Its column is all the schema: nothing evolves, and nothing is rescued."""
    options = parse(_singleVariantColumn="v")
    assert (options.variant, options.fixed, options.rescued, str(options.mode)) == ("v", True, None, "none")
    with pytest.raises(InvalidSourceOption, match="v can't"):
        parse(schema_given=True, _singleVariantColumn="v")


def test_a_given_schema_does_not_evolve():
    """addNewColumns with a schema is refused, and hints are named as the way."""
    with pytest.raises(InvalidSourceOption, match="can't be") as caught:
        parse(schema_given=True, schemaEvolutionMode="addNewColumns")
    assert "schemaHints" in caught.value.remedy


def test_times_of_change_name_moments():
    """They are the session's where they have no zone, and what Auto Loader's guide shows is taken; the manifest has them in UTC."""
    options = {
        "cloudFiles.format": "json",
        "modifiedAfter": "2021-01-01 00:00:00.000000 UTC+0",
        "modifiedBefore": "2021-02-01",
    }
    parsed = parse_options(options, schema_given=False, time_zone="America/New_York")
    assert parsed.native == {
        "modifiedAfter": "2021-01-01T00:00:00+00:00", "modifiedBefore": "2021-02-01T05:00:00+00:00",
    }  # fmt: skip
