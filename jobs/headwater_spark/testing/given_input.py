"""The rows that a test gives for one source, and the files in which Spark finds them: one file a batch."""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StructType

from headwater.errors import UsageError
from headwater_spark.facade.source_substitutes import SourceRequest
from headwater_spark.testing.typed_rows import (
    KAFKA,
    KAFKA_WITH_HEADERS,
    KINESIS,
    arrow_table,
    inferred_schema,
    json_text,
    kafka_row,
    kinesis_row,
)

Write = Callable[[Path, Sequence[Any], int], None]


def as_batches(key: str, rows: Any) -> list[list[Any]]:
    """What a test gives for a source, as a list of batches; one list of rows is one batch."""
    if isinstance(rows, DataFrame):
        return [_rows(rows)]
    if isinstance(rows, str | bytes | Mapping) or not hasattr(rows, "__iter__"):
        raise UsageError(
            f"The rows of {key!r} are {type(rows).__name__}.",
            remedy="Give a list of rows, or a list of batches: [[row, row], [row]].",
        )
    parts = list(rows)
    if any(isinstance(part, list | tuple | DataFrame) and not isinstance(part, Row) for part in parts):
        return [_rows(part) for part in parts]
    return [_rows(parts)]


def _rows(batch: Any) -> list[Any]:
    if isinstance(batch, DataFrame):
        rows: list[Any] = batch.toArrow().to_pylist()
        return rows
    return [row.asDict() if isinstance(row, Row) else row for row in batch]


class GivenInput:
    """Batches of rows for one source. They are written to files, in each form in which the source is read."""

    def __init__(self, key: str, batches: list[list[Any]], folder: Path, schema: StructType | None) -> None:
        self.key = key
        self.batches = batches
        self.schema = schema
        self.used = False
        self._folder = folder
        self._forms: dict[str, _Form] = {}
        self._began = time.time() - 100_000

    def land(self, batches: int, *, empty_ones: bool) -> None:
        """Write the first ``batches`` of them to the folders. ``empty_ones``: also batches without a row."""
        for form in self._forms.values():
            while form.landed < min(batches, len(self.batches)):
                rows = self.batches[form.landed]
                if rows or empty_ones:
                    self._write(form, rows)
                form.landed += 1

    def as_table(self, schema: StructType | None) -> tuple[Path, StructType]:
        """A folder of Parquet files with the rows as columns."""
        chosen = self.schema or schema or inferred_schema(self._mappings(), self.key)
        return self._form("table", _parquet(chosen, self.key)), chosen

    def as_messages(self, topic: str, *, headers: bool) -> tuple[Path, StructType]:
        """A folder of Parquet files with the rows as messages of a Kafka topic."""
        schema = KAFKA_WITH_HEADERS if headers else KAFKA

        def write(path: Path, rows: Sequence[Any], first: int) -> None:
            messages = [kafka_row(row, topic, first + number) for number, row in enumerate(rows)]
            if not headers:
                messages = [{k: v for k, v in message.items() if k != "headers"} for message in messages]
            _parquet(schema, self.key)(path, messages, first)

        return self._form(f"messages-{headers}", write), schema

    def as_records(self, stream: str) -> tuple[Path, StructType]:
        """A folder of Parquet files with the rows as records of a Kinesis stream."""

        def write(path: Path, rows: Sequence[Any], first: int) -> None:
            records = [kinesis_row(row, stream, first + number) for number, row in enumerate(rows)]
            _parquet(KINESIS, self.key)(path, records, first)

        return self._form("records", write), KINESIS

    def as_files(self, form: str, request: SourceRequest, schema: StructType | None) -> Path:
        """A folder of files in a format of their own: ``json``, ``csv``, ``text`` or ``parquet``."""
        if form == "parquet":
            return self.as_table(schema)[0]
        if form == "csv":
            return self._csv(request, schema)
        return self._form(form, _lines)

    def _csv(self, request: SourceRequest, schema: StructType | None) -> Path:
        header = request.options.get("header", "false").lower() == "true"
        separator = request.options.get("sep", request.options.get("delimiter", ","))
        plain = all(isinstance(row, str) for batch in self.batches for row in batch)
        if plain:
            return self._form("csv", _lines)
        columns = (
            schema.fieldNames() if schema else list(dict.fromkeys(n for r in self._mappings() for n in r))
        )

        def write(path: Path, rows: Sequence[Any], _first: int) -> None:
            text = io.StringIO()
            if header:
                csv.writer(text, delimiter=separator, lineterminator="\n").writerow(columns)
            for row in rows:
                if isinstance(row, str):
                    text.write(f"{row}\n")
                else:
                    csv.writer(text, delimiter=separator, lineterminator="\n").writerow(
                        [row.get(n) for n in columns]
                    )
            path.write_text(text.getvalue(), encoding="utf-8")

        return self._form(f"csv-{header}-{separator}", write)

    def _mappings(self) -> list[Mapping[str, Any]]:
        rows = [row for batch in self.batches for row in batch]
        _check_mappings(self.key, rows)
        return rows

    def _form(self, name: str, write: Write) -> Path:
        if name not in self._forms:
            folder = self._folder / name
            folder.mkdir(parents=True)
            self._forms[name] = _Form(folder, write)
        return self._forms[name].folder

    def _write(self, form: _Form, rows: Sequence[Any]) -> None:
        first = sum(len(batch) for batch in self.batches[: form.landed])
        target = form.folder / f"batch-{form.landed:05d}"
        hidden = target.with_name(f".{target.name}")
        form.write(hidden, rows, first)
        # Spark takes files in the order of their times.
        moment = self._began + form.landed
        os.utime(hidden, (moment, moment))
        hidden.rename(target)


class _Form:
    def __init__(self, folder: Path, write: Write) -> None:
        self.folder = folder
        self.write = write
        self.landed = 0


def _check_mappings(key: str, rows: Sequence[Any]) -> None:
    wrong = next((row for row in rows if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise UsageError(
            f"A row of {key!r} is {type(wrong).__name__}, and it is read as columns.",
            remedy='Give each row as a dict: {"id": 1, "name": "a"}.',
        )


def _parquet(schema: StructType, key: str) -> Write:
    def write(path: Path, rows: Sequence[Any], first: int) -> None:
        import pyarrow.parquet as pq

        _check_mappings(key, rows)
        pq.write_table(arrow_table(rows, schema, f"{key!r} (from row {first + 1})"), path)

    return write


def _lines(path: Path, rows: Sequence[Any], _first: int) -> None:
    path.write_text("".join(f"{json_text(row)}\n" for row in rows), encoding="utf-8")
