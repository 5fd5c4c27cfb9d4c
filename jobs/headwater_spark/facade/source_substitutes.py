"""Reads whose source is substituted: by a test's rows, or by a limited read of a backfill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headwater.definitions.dataset import Dataset
from headwater.graph.registry import Registry


@dataclass(frozen=True)
class SourceRequest:
    """A reader's settings. ``options`` have lower-case keys; ``schema`` is a StructType, DDL text or None.

    ``bounded``: it is a stream of the source that is read as a batch.
    """

    format: str
    path: str | None
    streaming: bool
    options: Mapping[str, str] = field(default_factory=dict)
    schema: Any = None
    bounded: bool = False


@dataclass(frozen=True)
class Moved:
    """The same source at another path, with more options."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)


class EvaluatedPipeline(Protocol):
    """The results of calling the functions of a pipeline's datasets. ``reads_of``: what each flow reads."""

    @property
    def reads_of(self) -> Mapping[str, list[str]]: ...  # noqa: D102

    def schema_of(self, dataset: Dataset) -> StructType:
        """The columns that a dataset has."""

    def forget(self) -> None:
        """Drop all results; the next call evaluates again."""


class SourceSubstitutes(Protocol):
    """Rows by what would be read. ``bounded``: what a source reads as a stream is read as a batch."""

    bounded: bool

    def has_table(self, name: str) -> bool:
        """Whether rows are given in place of this dataset or table."""

    def table(self, name: str, session: SparkSession, *, streaming: bool) -> DataFrame | None:
        """The rows given in place of a dataset or table, if any."""

    def source(self, request: SourceRequest, session: SparkSession) -> DataFrame | Moved | None:
        """What to read in place of a source: a frame, or another place for the same reader. Raises SourceNotGiven."""

    def narrow(self, registry: Registry, evaluation: EvaluatedPipeline) -> None:
        """Remove from the pipeline what is given, and what is not requested."""


_SUBSTITUTES: ContextVar[SourceSubstitutes | None] = ContextVar("headwater_source_substitutes", default=None)


def current_substitutes() -> SourceSubstitutes | None:
    """The substitutes for pipelines that are being resolved; None outside a test."""
    return _SUBSTITUTES.get()


@contextmanager
def substituting(sources: SourceSubstitutes) -> Iterator[None]:
    """Let pipelines that are resolved inside the block read substitutes."""
    token = _SUBSTITUTES.set(sources)
    try:
        yield
    finally:
        _SUBSTITUTES.reset(token)


class SubstitutingReader:
    """A reader that looks for substitutes first. It precedes Spark's reader in the order of base classes."""

    session: SparkSession
    options_given: dict[str, str]
    streaming: bool
    source_format: str
    _schema: Any = None

    def schema(self, schema: Any) -> Any:
        """As Spark's."""
        self._schema = schema
        return super().schema(schema)  # type: ignore[misc]

    def substituted_load(self, path: Any, schema: Any) -> tuple[Any, DataFrame | None]:
        """What ``load`` has to do once format and options are known: read another path, or return this frame."""
        if self.substitutes is None:
            return path, None
        return self._substituted(self.source_format or "parquet", path, schema, {})

    def json(self, path: Any, schema: Any = None, *more: Any, **options: Any) -> DataFrame:
        """As Spark's."""
        return self._by_shorthand("json", path, schema, schema, *more, **options)

    def csv(self, path: Any, schema: Any = None, *more: Any, **options: Any) -> DataFrame:
        """As Spark's."""
        return self._by_shorthand("csv", path, schema, schema, *more, **options)

    def text(self, path: Any = None, *more: Any, paths: Any = None, **options: Any) -> DataFrame:
        """As Spark's."""
        return self._by_shorthand("text", paths if path is None else path, None, *more, **options)

    def parquet(self, *paths: Any, **options: Any) -> DataFrame:
        """As Spark's."""
        return self._by_shorthand("parquet", paths[0] if len(paths) == 1 else list(paths), None, **options)

    def orc(self, path: Any, *more: Any, **options: Any) -> DataFrame:
        """As Spark's."""
        return self._by_shorthand("orc", path, None, *more, **options)

    def jdbc(self, url: str, table: str, *more: Any, **options: Any) -> DataFrame:
        """As Spark's."""
        if self.substitutes is not None:
            _, frame = self._substituted("jdbc", None, None, {"dbtable": table})
            if frame is not None:
                return frame
        return super().jdbc(url, table, *more, **options)  # type: ignore[misc,no-any-return]

    def _by_shorthand(self, name: str, path: Any, schema: Any, *more: Any, **options: Any) -> DataFrame:
        if self.substitutes is not None:
            path, frame = self._substituted(name, path, schema, options)
            if frame is not None:
                return frame
        self.source_format = name
        self._refuse_rescue()
        self._check_files()
        self._check_addresses(path)
        paths = path if name == "parquet" and isinstance(path, list) else [path]
        return getattr(super(), name)(*paths, *more, **options)  # type: ignore[no-any-return]

    @property
    def substitutes(self) -> SourceSubstitutes | None:
        """The session's, at the time of the call; overridden by readers that know their session."""
        return None

    def _check_addresses(self, path: Any) -> None:
        """Refuse a store that can't be read; overridden by readers that know their session."""

    def _refuse_rescue(self) -> None:
        """Refuse an option that would be ignored; overridden by readers that know formats."""

    def _check_files(self) -> None:
        """Translate, or refuse, options of files that would be ignored; overridden by readers that know formats."""

    def _substituted(
        self, source: str, path: Any, schema: Any, options: Mapping[str, Any]
    ) -> tuple[Any, DataFrame | None]:
        assert self.substitutes is not None
        lowered_options = {key.lower(): str(value) for key, value in options.items() if value is not None}
        everything = {**self.options_given, **lowered_options}
        where = path[0] if isinstance(path, list) and len(path) == 1 else path
        request = SourceRequest(
            source.lower(),
            str(where) if where is not None else everything.get("path"),
            self.streaming,
            everything,
            schema if schema is not None else self._schema,
            bool(getattr(self, "bounded", False)),
        )
        substitute = self.substitutes.source(request, self.session)
        if isinstance(substitute, Moved):
            self.options(**substitute.options)  # type: ignore[attr-defined]
            return substitute.path, None
        return path, substitute
