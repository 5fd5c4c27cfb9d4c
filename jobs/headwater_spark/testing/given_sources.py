"""Which given rows stand for which source of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset, DatasetKind
from headwater.errors import HeadwaterError, InvalidName, SourceNotGiven
from headwater.graph.registry import Registry
from headwater_spark.facade.source_substitutes import EvaluatedPipeline, Moved, SourceRequest
from headwater_spark.plans.schemas import plain_schema, stored_schema
from headwater_spark.testing.given_input import GivenInput, as_batches

_AS_FILES = {"json", "csv", "text", "parquet"}
_FILES = _AS_FILES | {"orc", "avro", "xml", "binaryfile"}
# The option that names what is read, where that is not a path.
_IDENTITY = {
    "kafka": ("subscribe", "subscribepattern", "assign"),
    "eventhubs": ("eventhubs.name",),
    "kinesis": ("streamname", "streamarn"),
    "jdbc": ("dbtable", "query"),
}


class RowsInPlace:
    """The rows that a test gives, by the dataset, table or source that they stand for.

    Args:
        inputs: rows by key: a dataset's or table's name, or ``format:what`` (``kafka:orders``, ``json:clicks/web``,
            ``files:clicks/web`` for files of any format; of a path, the last parts are enough).
        schemas: columns by the same keys, as a StructType or DDL text, where they are not known otherwise.
        target: the one dataset under test, or None for all.

    """

    def __init__(
        self, inputs: Mapping[str, Any], schemas: Mapping[str, Any] | None, target: str | None, folder: Path
    ) -> None:
        self.bounded = False
        self.one_by_one = False
        self._target = target
        self._landed = 0
        self._lenient = False
        self._evaluation: EvaluatedPipeline | None = None
        self._registry: Registry | None = None
        self._originals: dict[str, Dataset] = {}
        self._nothing = folder / "nothing"
        self._nothing.mkdir(parents=True)
        given_schemas = {key: plain_schema(schema, None) for key, schema in (schemas or {}).items()}
        for key in given_schemas:
            if key not in inputs:
                raise SourceNotGiven(
                    f"schemas has {key!r}, and inputs has not.", remedy="Give it rows, or []."
                )
        self._inputs = {
            key: GivenInput(key, as_batches(key, rows), folder / f"input-{number}", given_schemas.get(key))
            for number, (key, rows) in enumerate(inputs.items())
        }

    @property
    def batches(self) -> int:
        """How many batches the longest input has; at least one."""
        return max([len(entry.batches) for entry in self._inputs.values()] + [1])

    def land(self, batches: int) -> None:
        """Make the first ``batches`` of every input available."""
        self._landed = batches
        for entry in self._inputs.values():
            entry.land(batches, empty_ones=self.one_by_one)

    def check_all_read(self) -> None:
        """Raise SourceNotGiven where rows are given for something that nothing reads."""
        unread = [key for key, entry in self._inputs.items() if not entry.used]
        if unread:
            raise SourceNotGiven(
                f"Nothing that was run reads {', '.join(map(repr, unread))}.",
                remedy="Check the name, or leave it out of inputs.",
            )

    # -- for the facade --------------------------------------------------------------------------------------------

    def has_table(self, name: str) -> bool:
        """Whether rows are given for a dataset or table."""
        return self._input_of_table(name) is not None

    def table(self, name: str, session: SparkSession, *, streaming: bool) -> DataFrame | None:
        """The rows given for a dataset or table, or None."""
        entry = self._input_of_table(name)
        if entry is None:
            return None
        entry.used = entry.used or not self._lenient
        return self._frame(entry, *entry.as_table(self._declared_schema(name)), session, streaming=streaming)

    def source(self, request: SourceRequest, session: SparkSession) -> DataFrame | Moved | None:
        """The rows given for a source; raises SourceNotGiven where there are none."""
        form = (
            request.options.get("cloudfiles.format", "").lower()
            if request.format == "cloudfiles"
            else request.format
        )
        identity = _identity(request)
        entry = next((i for key, i in self._inputs.items() if _matches(key, request, form, identity)), None)
        if entry is None:
            return self._not_given(request, form, identity)
        entry.used = entry.used or not self._lenient
        if request.format == "kafka":
            headers = request.options.get("includeheaders", "false").lower() == "true"
            place = entry.as_messages(identity, headers=headers)
            return self._frame(entry, *place, session, streaming=request.streaming)
        if request.format == "kinesis":
            return self._frame(entry, *entry.as_records(identity), session, streaming=request.streaming)
        schema = plain_schema(request.schema, None)
        if form in _AS_FILES:
            folder = entry.as_files(form, request, schema)
            self._land(entry)
            return Moved(str(folder), self._pace(request.format) if request.streaming else {})
        return self._frame(entry, *entry.as_table(schema), session, streaming=request.streaming)

    def narrow(self, registry: Registry, evaluation: EvaluatedPipeline) -> None:
        """Reduce the pipeline to what has to run: the target with what it reads, down to given inputs."""
        self._evaluation, self._registry = evaluation, registry
        self._originals = {dataset.name.lower(): dataset for dataset in registry.datasets()}
        target = registry.canonical(self._target) if self._target is not None else None
        if target is not None and target.lower() not in self._originals:
            raise SourceNotGiven(
                f"There is no dataset {self._target!r}.",
                remedy=f"The source declares: {', '.join(d.name for d in self._originals.values())}.",
            )
        target = self._originals[target.lower()].name if target is not None else None
        for name in self._originals:
            entry = self._input_of_table(name)
            if entry is not None and entry.schema is None:
                entry.schema = self._declared_schema(name)
        evaluation.forget()
        run = [d for d in self._originals.values() if _runs(d, self._input_of_table(d.name), target)]
        registry.keep([_in_test(dataset, target) for dataset in run])
        if target is not None:
            dataset = next(d for d in registry.datasets() if d.name == target)
            evaluation.schema_of(dataset)
            needed = _closure(dataset.name, registry, evaluation)
            registry.keep([d for d in registry.datasets() if d.name in needed])

    # -- parts ---------------------------------------------------------------------------------------------------

    def _input_of_table(self, name: str) -> GivenInput | None:
        return next((i for key, i in self._inputs.items() if ":" not in key and self._same(key, name)), None)

    def _same(self, one: str, other: str) -> bool:
        def spelled(name: str) -> str:
            with suppress(InvalidName):
                if self._registry is not None:
                    return self._registry.canonical(name).lower()
            return name.lower()

        return spelled(one) == spelled(other)

    def _declared_schema(self, name: str) -> StructType | None:
        """The columns that the pipeline's own definition of a given dataset gives, if it can be evaluated."""
        if self._evaluation is None or self._registry is None:
            return None
        dataset = next((d for d in self._originals.values() if self._same(d.name, name)), None)
        if dataset is None or dataset.name not in {d.name for d in self._registry.datasets()}:
            return None
        before, self._lenient = self._lenient, True
        try:
            return stored_schema(self._evaluation.schema_of(dataset))
        except HeadwaterError:
            return None  # inferred from the rows
        finally:
            self._lenient = before

    def _not_given(self, request: SourceRequest, form: str, identity: str) -> Moved | None:
        if self._lenient:  # only the columns are wanted
            return Moved(str(self._nothing)) if form in _FILES else None
        key = f"{form}:{identity}"
        available = f" The test gives: {', '.join(self._inputs)}." if self._inputs else ""
        raise SourceNotGiven(
            f"It reads {request.format} {identity!r}, and the test gives no rows for that.{available}",
            remedy=f'Give them: inputs={{"{key}": [...]}}; or give the rows of the dataset that reads it, by its name.',
        )

    def _frame(
        self,
        entry: GivenInput,
        folder: Path,
        schema: StructType,
        session: SparkSession,
        *,
        streaming: bool,
    ) -> DataFrame:
        self._land(entry)
        if streaming and not self.bounded:
            stream = DataStreamReader(session).schema(stored_schema(schema)).format("parquet")
            return stream.options(**self._pace("parquet")).load(str(folder))
        return DataFrameReader(session).schema(stored_schema(schema)).format("parquet").load(str(folder))

    def _land(self, entry: GivenInput) -> None:
        entry.land(self._landed, empty_ones=self.one_by_one)

    def _pace(self, source: str) -> dict[str, str]:
        if not self.one_by_one:
            return {}
        return {"cloudFiles.maxFilesPerTrigger" if source == "cloudfiles" else "maxFilesPerTrigger": "1"}


def _runs(dataset: Dataset, entry: GivenInput | None, target: str | None) -> bool:
    """Whether a test runs a dataset: not where its rows are given, and never a sink, which writes to the world."""
    return dataset.kind.value != "sink" and (entry is None or dataset.name == target)


def _in_test(dataset: Dataset, target: str | None) -> Dataset:
    """The declaration without a folder of its own (a test writes nowhere else), and a view under test as a table."""
    if dataset.kind is DatasetKind.TEMPORARY_VIEW and dataset.name == target:
        return replace(dataset, kind=DatasetKind.TABLE)
    return replace(dataset, path=None)


def _closure(name: str, registry: Registry, evaluation: EvaluatedPipeline) -> set[str]:
    reached, remaining = set(), [name]
    while remaining:
        current = remaining.pop()
        if current in reached:
            continue
        reached.add(current)
        for flow in registry.flows():
            if flow.target == current:
                remaining += evaluation.reads_of.get(flow.name, [])
    return reached


def _identity(request: SourceRequest) -> str:
    for option in _IDENTITY.get(request.format, ()):
        if request.options.get(option):
            return request.options[option]
    return (request.path or "").removeprefix("file:").rstrip("/")


def _matches(key: str, request: SourceRequest, form: str, identity: str) -> bool:
    kind, colon, pattern = key.partition(":")
    if not colon or not pattern:
        return False
    kinds = {request.format, form} | ({"files"} if form in _FILES else set())
    if kind.lower() not in kinds:
        return False
    pattern = pattern.rstrip("/")
    return identity == pattern or (
        request.format not in _IDENTITY and identity.endswith("/" + pattern.lstrip("/"))
    )
