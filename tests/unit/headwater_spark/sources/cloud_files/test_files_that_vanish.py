"""Others rename and remove files between our listing and our look into them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import StringType, StructField, StructType

from headwater.checkpoints.conditions import StorageNotReadable
from headwater.errors import CheckpointUnreadable, SchemaNotInferred
from headwater_spark.sources.cloud_files import inference
from headwater_spark.sources.cloud_files.inference import csv_headers, file_schemas
from headwater_spark.sources.cloud_files.json_proof import Proof, _proof
from headwater_spark.sources.cloud_files.options import parse_options
from headwater_spark.sources.cloud_files.schema_log import SchemaLog

FOUND = StructType([StructField("a", StringType())])
OPTIONS = parse_options({"cloudFiles.format": "json"}, schema_given=False)


def spark_that_wants(paths: list[Path], seen: list[list[str]]):
    """Spark's inference as far as files go: it fails where one is not there."""

    def infer(_session, given, _options):
        seen.append(list(given))
        for path in paths:
            if str(path) in given and not path.exists():
                raise AnalysisException(f"[PATH_NOT_FOUND] Path does not exist: file:{path}.")
        return FOUND

    return infer


def test_columns_are_inferred_from_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A file that is gone by now is not an error while others are there; one that is damaged still is."""
    files = [tmp_path / name for name in ("a.json", "b.json")]
    files[0].write_text("{}")
    seen: list[list[str]] = []
    monkeypatch.setattr(inference, "_of_format", spark_that_wants(files, seen))
    assert inference._inferred(None, [str(path) for path in files], OPTIONS) == FOUND
    assert seen == [[str(path) for path in files], [str(files[0])]]

    def damaged(*_):
        raise AnalysisException("[BAD] It is damaged.")

    monkeypatch.setattr(inference, "_of_format", damaged)
    with pytest.raises(SchemaNotInferred, match="damaged"):
        inference._inferred(None, [str(files[0])], OPTIONS)
    assert inference._inferred(None, [str(files[1])], OPTIONS) == StructType()


def test_headers_footers_and_proofs(tmp_path: Path):
    """A file that is gone has none; it is not an error."""
    gone = str(tmp_path / "gone")

    class NoSession:
        """No file is left to be opened by Spark."""

        @property
        def read(self):
            return self

        def format(self, _):
            return self

        def option(self, *_):
            return self

    csv = parse_options({"cloudFiles.format": "csv"}, schema_given=False)
    assert csv_headers([gone], csv) == {}
    assert file_schemas(NoSession(), [gone], "parquet") == []
    assert _proof(gone, FOUND) is Proof.NOTHING


def test_a_schema_that_may_not_be_read_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where a right is missing, or the disk fails, nobody is told to remove the file."""
    log = SchemaLog(tmp_path)
    log.append(FOUND, "test")

    def denied(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", denied)
        with pytest.raises(StorageNotReadable) as caught:
            log.latest()
    assert "leave it where it is" in caught.value.remedy
    (tmp_path / "_schemas" / "0").write_text("{")
    with pytest.raises(CheckpointUnreadable, match="can't be read"):
        log.latest()
