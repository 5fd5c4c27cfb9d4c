"""What a name in a source refers to: a dataset of the pipeline, a table of the warehouse, or one of Spark's catalog."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from headwater.definitions.dataset import QUARANTINE_SUFFIX, Dataset
from headwater.definitions.expectation import quarantines
from headwater.definitions.source_location import SourceLocation
from headwater.delta_log.table_history import table_exists
from headwater.errors import (
    DatasetReadAtImport,
    FlowWithoutTarget,
    InvalidName,
    SourceNotFound,
    UnknownDataset,
)
from headwater.graph.registry import Registry
from headwater.storage.place import Place
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.messages.source_errors import line_being_run

# What Spark and Delta say of a folder without a table: of a batch read, and of a stream.
_WITHOUT_TABLE = (
    "PATH_NOT_FOUND",
    "DELTA_SCHEMA_NOT_SET",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
)


class KnownNames:
    """The names of one pipeline. ``warehouse``: the folder with the tables."""

    def __init__(self, registry: Registry, warehouse: Place) -> None:
        self._registry = registry
        self._warehouse = warehouse
        self._read_at_import: list[tuple[str, SourceLocation | None]] = []

    def dataset(self, name: str) -> Dataset | None:
        """The pipeline's dataset of that name, in any letter case."""
        try:
            canonical = self._registry.canonical(name)
        except InvalidName:
            return None
        return next((d for d in self._registry.datasets() if d.name.lower() == canonical.lower()), None)

    def quarantined_dataset(self, name: str) -> Dataset | None:
        """The dataset whose quarantine has this name, None where it is not a quarantine's."""
        short = name[: -len(QUARANTINE_SUFFIX)] if name.lower().endswith(QUARANTINE_SUFFIX) else ""
        dataset = self.dataset(short) if short else None
        return (
            dataset if dataset is not None and dataset.stored and quarantines(dataset.expectations) else None
        )

    def in_warehouse(self, name: str) -> Place | None:
        """The folder of a table of the warehouse, None where there is none of that name."""
        with suppress(InvalidName):
            path = self._warehouse / self._registry.dataset_name(name).location
            return path if table_exists(path) else None
        return None

    def external(
        self,
        name: str,
        at_path: Callable[[str], DataFrame],
        in_catalog: Callable[[str], DataFrame],
        *,
        at_import: bool,
    ) -> DataFrame:
        """The rows of a table that is not a dataset; raises UnknownDataset where nothing has that name.

        ``at_import``: it is read at the top of a source, where it may yet turn out to be a dataset.
        """
        if at_import:
            self._read_at_import.append((name, line_being_run()))
        path = self.in_warehouse(name)
        if path is not None:
            return at_path(str(path))
        try:
            return in_catalog(name)
        except AnalysisException as error:
            if error.getCondition() not in ("TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"):
                raise
            raise self._unknown(name, at_import=at_import) from None

    def check_reads_at_import(self) -> None:
        """Raise DatasetReadAtImport where a table that was read at a source's top turned out to be a dataset."""
        for name, where in self._read_at_import:
            if self.dataset(name) is not None:
                raise read_at_import(name, where)

    def _unknown(self, name: str, *, at_import: bool) -> UnknownDataset:
        names = [dataset.name for dataset in self._registry.datasets()]
        short = name.removeprefix("LIVE.").removeprefix("live.")
        remedy = did_you_mean(
            nearest(short, names, cutoff=0.5), f"The pipeline has: {', '.join(names) or 'none yet'}."
        )
        if at_import:
            remedy += " Datasets of the pipeline are read inside functions, where it is known what they are."
        return UnknownDataset(
            f"{name!r} is neither a dataset of this pipeline nor an existing table.", remedy=remedy
        )


def rows_of_table(dataset: Dataset, read: Callable[[], DataFrame]) -> DataFrame:
    """The rows that ``read`` gives of a dataset's own table; raises SourceNotFound where no update has made that yet."""
    try:
        return read()
    except AnalysisException as error:
        if error.getCondition() not in _WITHOUT_TABLE:
            raise
        name = dataset.name
        raise SourceNotFound(
            f"The table {name!r}, which is read here, is not there: no update has made it yet.",
            remedy=f"An update of some tables reads the others as they stand. Update {name!r} first or in the same update "
            f"(`headwater run DIR --tables={name},...`), or run an update of all tables.",
        ) from None


def read_at_import(name: str, where: SourceLocation | None) -> DatasetReadAtImport:
    """The error of a dataset that is read outside a function."""
    return DatasetReadAtImport(
        f"{name!r} is a dataset of this pipeline, and is read at the top of a source, outside a function.",
        where=where,
        remedy=f'Read it inside the function that needs it: dp.read("{name}") or dp.read_stream("{name}").',
    )


def unfilled(dataset: Dataset) -> FlowWithoutTarget:
    """The error of a table into which no flow writes."""
    return FlowWithoutTarget(
        f"Nothing fills {dataset.name!r}.",
        where=dataset.location,
        remedy=f'Add @dp.append_flow(target="{dataset.name}") over a function (CREATE FLOW f AS INSERT INTO {dataset.name} BY NAME query), '
        "or drop the table.",
    )
