"""The rows of a source that changed between two of its versions, read from the files that its log names.

Decision 0163.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, StructField, StructType

from headwater.delta_log.commits import Action
from headwater.incremental.source_changes import ChangeKind, SourceChange, missing_file
from headwater_spark.plans.names import quoted
from headwater_spark.views.digests import can_digest, with_differences
from headwater_spark.views.known_rows import SIGN, KnownRows
from headwater_spark.views.leaf_files import rows_of_files
from headwater_spark.views.plan_surgery import DeltaLeaf

_TEXT = "__headwater_text_"
# Values whose equality is not that of what is made of them: rows that have some inside are all taken as changed.
_UNEQUAL = ("map<", "variant", "collate", "double", "float", "interval")
# Changes of fewer bytes are compared row by row.
DIGESTED_BYTES = 8_000_000
_IGNORED = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")


class FilesUnknown(Exception):
    """The log does not say enough of files that are gone to read them."""


class FilesMissing(Exception):
    """Files that changes lie in were removed."""


class ChangedRows:
    """What changed in one leaf of a plan.

    Args:
        leaf: the table, at the version that the refresh reads.
        change: what its log says.
        columns: the columns that the view uses.
        known: the rows that came or went in these columns, where they are on the driver.
    """

    def __init__(
        self,
        session: SparkSession,
        leaf: DeltaLeaf,
        change: SourceChange,
        columns: Sequence[str],
        known: KnownRows | None = None,
    ) -> None:
        self._session = session
        self._leaf = leaf
        self._change = change
        self._columns = list(columns)
        self._known = known

    def added(self) -> DataFrame:
        """The rows that came, of a source that only grew."""
        return self._read(self._change.added)

    def touched(self, needed: Collection[str] | None = None) -> DataFrame:
        """The rows that came or went, each at least once; rows that did both as often are left out where that can be told.

        Args:
            needed: the columns that are read of them: others may be left out, and rows that are equal in these.
        """
        local = self._known.frame(self._session) if self._known is not None else None
        if local is not None:
            return local
        names = [name for name in self._columns if needed is None or name in needed]
        if self._digests(names):
            return self._net_by_digests(self._signed(), names)
        return self._chosen(self.signed())

    def signed(self) -> DataFrame:
        """The rows that came or went, with ``SIGN``; as ``touched`` otherwise."""
        if self._change.kind is ChangeKind.APPENDED:
            return self._chosen(self.added(), F.lit(1).alias(SIGN))
        signed = self._signed()
        return signed if self._whole_values else self._net(signed)

    def ever(self, now: DataFrame) -> DataFrame:
        """The rows that are there or were: those of ``now``, and those that went."""
        if self._change.kind is ChangeKind.APPENDED:
            return self._chosen(now)
        if self._known is not None:
            local = self._known.gone.frame(self._session)
            return self._chosen(now) if local is None else self._chosen(now).union(self._chosen(local))
        gone = self.signed().where(F.col(SIGN) < 0)
        return self._chosen(now).union(self._chosen(gone))

    def _signed(self) -> DataFrame:
        # A session that reads past missing files would not notice those of a feed.
        if self._change.change_feed and not any(
            str(self._session.conf.get(key, "false")).lower() == "true" for key in _IGNORED
        ):
            feed = (
                DataFrameReader(self._session).format("delta").option("readChangeFeed", "true")
                .option("startingVersion", str(self._change.first + 1))
                .option("endingVersion", str(self._change.last)).load(str(self._leaf.folder))
            )  # fmt: skip
            gone = F.col("_change_type").isin("delete", "update_preimage")
            return self._chosen(feed, F.when(gone, F.lit(-1)).otherwise(F.lit(1)).alias(SIGN))
        came = self._chosen(self._read(self._change.added), F.lit(1).alias(SIGN))
        went = self._chosen(self._read(self._change.removed), F.lit(-1).alias(SIGN))
        return came.union(went)

    def _net(self, signed: DataFrame) -> DataFrame:
        """One row of each set of equal ones that more came than went of, or the reverse."""
        keys, same = _exact_keys(signed, self._columns)
        grouped = signed.groupBy(*keys).agg(F.sum(SIGN).alias(SIGN), *same).where(F.col(SIGN) != 0)
        return self._chosen(grouped, F.col(SIGN))

    def _net_by_digests(self, signed: DataFrame, names: Sequence[str]) -> DataFrame:
        """The values that these columns have in rows of which more came than went, or the reverse; the other columns are digested."""
        keys, same = _exact_keys(signed, names)
        return with_differences(signed, keys, self._others(names), *same).select(
            *(F.col(quoted(name)) for name in names)
        )

    def _digests(self, names: Sequence[str]) -> bool:
        """Whether it is less work to compare digests than rows: of whole files, of which few columns are read."""
        if self._change.kind is not ChangeKind.CHANGED or self._change.change_feed or self._whole_values:
            return False
        others = self._others(names)
        return bool(names and others) and self._change.bytes >= DIGESTED_BYTES and can_digest(others)

    def _others(self, names: Sequence[str]) -> list[StructField]:
        """The columns that the view uses besides these."""
        others = set(self._columns) - set(names)
        return [field for field in column_fields(self._leaf) if field.name in others]

    @property
    def _whole_values(self) -> bool:
        """Whether rows can't be compared with each other."""
        types = _types(self._leaf, self._columns)
        return any(_compares_badly(one) for one in types)

    def _chosen(self, rows: DataFrame, *more: Any) -> DataFrame:
        return rows.select(*(F.col(quoted(name)) for name in self._columns), *more)

    def _read(self, files: Iterable[Action]) -> DataFrame:
        files = list(files)
        missing = missing_file(self._leaf.folder, files)
        if missing is not None:
            raise FilesMissing(f"{missing.name} of {self._leaf.folder.name} was removed")
        partitions = self._leaf.clustering
        return rows_of_files(self._session, self._leaf, [_as_add(file, partitions) for file in files])


def _exact_keys(rows: DataFrame, names: Sequence[str]) -> tuple[list[Column], list[Column]]:
    """What rows that are equal in these columns are grouped by, and what gives back the values that it makes others of.

    Zero and minus zero are equal to a grouping, which makes both of them zero, and not to what is made of them.
    """
    floats = {f.name for f in rows.schema.fields if isinstance(f.dataType, FloatType | DoubleType)}
    keys = [
        F.col(quoted(name)).cast("string").alias(f"{_TEXT}{place}") if name in floats else F.col(quoted(name))
        for place, name in enumerate(names)
    ]
    return keys, [F.first(F.col(quoted(name))).alias(name) for name in names if name in floats]


def _as_add(file: Mapping[str, Any], partitions: Sequence[str]) -> dict[str, Any]:
    """A file as a version has it: what went is named by a ``remove``, which says less."""
    values = file.get("partitionValues")
    if values is None and partitions:
        raise FilesUnknown("the log does not say of which partition removed files are")
    return {
        "path": file["path"],
        "partitionValues": values or {},
        "size": int(file.get("size") or 0),
        "modificationTime": int(file.get("modificationTime") or file.get("deletionTimestamp") or 0),
        "dataChange": True,
        **{key: file[key] for key in ("stats", "deletionVector", "baseRowId", "defaultRowCommitVersion") if file.get(key) is not None},
    }  # fmt: skip


def column_fields(leaf: DeltaLeaf) -> list[StructField]:
    """The columns of a leaf, as Spark knows them."""
    return list(StructType.fromJson(json.loads(leaf.relation.schema().json())).fields)


def _types(leaf: DeltaLeaf, columns: Sequence[str]) -> list[DataType]:
    return [field.dataType for field in column_fields(leaf) if field.name in columns]


def _compares_badly(one: DataType) -> bool:
    if isinstance(one, FloatType | DoubleType):
        return False  # beside it stands its text
    return any(word in one.simpleString() for word in _UNEQUAL)
