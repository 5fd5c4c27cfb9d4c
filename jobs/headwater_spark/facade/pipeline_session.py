from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol, Self

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.streaming.readwriter import DataStreamReader

from headwater.definitions.source import ANY_FILE_AGE
from headwater.errors import UnsupportedSource
from headwater_spark.facade.colon_paths import colon_paths, replaced
from headwater_spark.facade.pinned_tables import pinned_version
from headwater_spark.facade.session_parts import PipelineConf, PipelineQueries
from headwater_spark.facade.source_substitutes import (
    SourceSubstitutes,
    SubstitutingReader,
    current_substitutes,
)
from headwater_spark.sources import event_hubs, kinesis, rescued_columns
from headwater_spark.sources.delta_options import check_limits, delta_overrides
from headwater_spark.sources.file_addresses import FILE_FORMATS, addresses, check_address
from headwater_spark.sources.file_options import (
    CHANGED_WITHIN,
    check_file_limits,
    file_overrides,
    spark_times,
)
from headwater_spark.sources.kafka_options import kafka_overrides
from headwater_spark.sources.misspelled_options import refuse_misspelled

_CLOUD_FILES = "cloudfiles"
_DELTA_PATH = re.compile(r"delta\s*\.\s*`([^`]+)`", re.IGNORECASE)
_NOT_HERE = {
    "pubsub": "Bring the messages to Kafka or into files, or write a data source in Python.",
    "pulsar": "Read through Pulsar's Kafka endpoint, or write a data source in Python.",
}


class NameResolution(Protocol):
    """What the facade needs: the frame behind a name, and SQL text with the names in it replaced."""

    def batch(self, name: str, reader: PipelineBatchReader) -> DataFrame:
        """The rows of ``name`` as they stand."""

    def stream(self, name: str, reader: PipelineStreamReader) -> DataFrame:
        """The rows of ``name`` as they come."""

    def cloud_files(
        self, path: str, schema: Any, options: dict[str, str], *, streaming: bool = True
    ) -> DataFrame:
        """The rows of ``format("cloudFiles")``; the options are spelled as the user did."""

    def rescued(self, frame: DataFrame, column: str) -> DataFrame:
        """The rows of a Delta stream in the columns of its first start, the rest in ``column``."""

    def sql_text(self, text: str, qualified: Callable[[str], str] | None = None) -> str:
        """``text`` with configuration values put in and the names of datasets replaced by views of them.

        ``qualified``: of a SQL source's text, which has its values already: the names in it with the parts that USE gives.
        """


class PipelineSession(SparkSession):
    """A session over a clone of the update's own, so that a source's settings and registrations stay in it.

    The constructor is Spark's: Spark itself creates sessions of this class.
    """

    resolution: NameResolution | None = None
    substitutes: SourceSubstitutes | None = None

    @classmethod
    def over(cls, base: SparkSession) -> PipelineSession:
        """A facade over a clone of ``base``: own settings and temporary views, same catalog and data."""
        session = cls(base.sparkContext, base._jsparkSession.cloneSession())  # noqa: SLF001 - no public way to clone
        session.substitutes = current_substitutes()
        return session

    @property
    def conf(self) -> PipelineConf:
        """Settings of this session alone."""
        if not isinstance(getattr(self, "_pipeline_conf", None), PipelineConf):
            self._pipeline_conf = PipelineConf(self._jsparkSession.conf())
        return self._pipeline_conf

    @property
    def streams(self) -> PipelineQueries:
        """The session's streaming queries."""
        return PipelineQueries(self._jsparkSession.streams())

    @property
    def read(self) -> PipelineBatchReader:
        """A reader whose ``table`` finds the pipeline's datasets first."""
        return PipelineBatchReader(self)

    @property
    def readStream(self) -> PipelineStreamReader:  # noqa: N802 - Spark's spelling
        """A stream reader whose ``table`` finds the pipeline's datasets first."""
        if self.substitutes is not None and self.substitutes.bounded:
            return BoundedStreamReader(self)  # type: ignore[return-value]  # it is used in the same way
        return PipelineStreamReader(self)

    def newSession(self) -> PipelineSession:  # noqa: N802 - Spark's spelling
        """As Spark's; it knows the same datasets."""
        session = PipelineSession(self.sparkContext, self._jsparkSession.newSession())
        session.resolution = self.resolution
        session.substitutes = self.substitutes
        return session

    def table(self, tableName: str) -> DataFrame:  # noqa: N803
        """Same as ``read.table``."""
        return self.read.table(tableName)

    def query_of_source(self, text: str, qualified: Callable[[str], str]) -> DataFrame:
        """The rows of a query in a SQL source, whose values are in place; ``qualified`` completes the names in it."""
        assert self.resolution is not None
        return self._run(self.resolution.sql_text(text, qualified), None)

    def _run(self, text: str, args: Any) -> DataFrame:
        """Spark's own ``sql``; colons in it are paths into JSON text where Spark says that they are not into VARIANT."""
        try:
            return super().sql(text, args)
        except (AnalysisException, Py4JJavaError) as error:
            # Spark 4.2 has lost the text of this condition, and says so as an internal error.
            if "COLUMN_IS_NOT_VARIANT_TYPE" not in str(error):
                raise
        plan = self._jsparkSession.sessionState().sqlParser().parsePlan(text)
        return super().sql(replaced(text, list(colon_paths(plan, text))), args)

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803
        """Run a query in which names of the pipeline's datasets stand for them (``STREAM t`` for a stream)."""
        if self.resolution is None:
            return super().sql(sqlQuery, args, **kwargs)
        formatter = SQLStringFormatter(self)
        try:
            text = formatter.format(sqlQuery, **kwargs) if kwargs else sqlQuery
            return self._run(self.resolution.sql_text(text), args)
        finally:
            if kwargs:
                formatter.clear()


class _KnowsFormats(SubstitutingReader):
    """Refuses formats that open Spark lacks, by name, where Spark would report a missing class."""

    session: PipelineSession
    options_spelled: dict[str, str]
    source_format = ""
    bounded = False

    def __init__(self, spark: PipelineSession) -> None:
        super().__init__(spark)  # type: ignore[call-arg]
        self.session = spark
        self.options_given, self.options_spelled = {}, {}

    @property
    def substitutes(self) -> SourceSubstitutes | None:
        """The session's, at the time of the call."""
        return self.session.substitutes

    def format(self, source: str) -> Self:
        """As Spark's; refuses formats that are not there."""
        self._check(source)
        super().format(source)  # type: ignore[misc]
        return self

    def option(self, key: str, value: Any) -> Self:
        """As Spark's."""
        self._note({key: value})
        super().option(key, value)  # type: ignore[misc]
        return self

    def options(self, **options: Any) -> Self:
        """As Spark's."""
        self._note(options)
        super().options(**options)  # type: ignore[misc]
        return self

    def _note(self, options: dict[str, Any]) -> None:
        self.options_given.update(
            {key.lower(): str(value) for key, value in options.items() if value is not None}
        )
        for key, value in options.items():
            for old in [spelling for spelling in self.options_spelled if spelling.lower() == key.lower()]:
                del self.options_spelled[old]
            if value is not None:
                self.options_spelled[key] = str(value).lower() if isinstance(value, bool) else str(value)

    def _check(self, source: str | None) -> None:
        if source is None:
            return
        self.source_format = source.lower()
        if self.source_format in _NOT_HERE and self.session.substitutes is None:
            raise UnsupportedSource(
                f"Open Spark has no source {source!r}.", remedy=_NOT_HERE[self.source_format]
            )

    def load(
        self,
        path: Any = None,
        format: str | None = None,  # noqa: A002 - the name is Spark's
        schema: Any = None,
        **options: Any,
    ) -> DataFrame:
        """As Spark's; formats that only the closed platform has are translated, or refused."""
        self._check(format)
        self._note(options)
        path, frame = self.substituted_load(path, schema)
        if frame is not None:
            return frame
        if self.source_format == event_hubs.FORMAT:
            reader = (DataStreamReader if self.streaming else DataFrameReader)(self.session)
            return event_hubs.event_hubs_frame(reader, self.options_given, streaming=self.streaming)
        if self.source_format == kinesis.FORMAT:
            return self._load_kinesis()
        if self.source_format == _CLOUD_FILES:
            return self._load_cloud_files(path, schema if schema is not None else self._schema)
        self._refuse_rescue()
        self._check_files()
        self._check_addresses(path)
        super().options(**{**options, **self._translated()})  # type: ignore[misc]
        pinned = self._pinned(path) if self.source_format == "delta" and schema is None else None
        return self._rescued(super().load(path, format, schema)) if pinned is None else pinned  # type: ignore[misc]

    def _pinned(self, path: Any) -> DataFrame | None:  # noqa: ARG002 - for batch reads
        """The Delta table at ``path`` at the version that was noted for it; None where it is read as it stands."""
        return None

    def _check_addresses(self, path: Any) -> None:
        if self.source_format in FILE_FORMATS:
            for address in addresses(path if path is not None else self.options_given.get("path")):
                check_address(self.session, address)

    def xml(self, path: Any, *more: Any, **options: Any) -> DataFrame:
        """As Spark's."""
        self.source_format = "xml"
        self._check_files()
        self._check_addresses(path)
        return super().xml(path, *more, **options)  # type: ignore[misc,no-any-return]

    def catalog_table(self, name: str) -> DataFrame:
        """A table of the session's own catalog."""
        frame: DataFrame = super().table(name)  # type: ignore[misc]
        return frame

    def changes(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's spelling
        """Refused: it uses a catalog that does not have the pipeline's tables, and Delta's does not support the call."""
        raise UnsupportedSource(
            f"changes({tableName!r}) can't be honoured: Delta tables give their changes by an option.",
            remedy=f'Write .option("readChangeFeed", "true").option("startingVersion", 0).table({tableName!r}).',
        )

    def _refuse_rescue(self) -> None:
        """Open Spark ignores ``rescuedDataColumn``, and rows would lose the data that it is meant to keep."""
        if rescued_columns.OPTION in self.options_given and not self._can_rescue:
            raise UnsupportedSource(
                f"rescuedDataColumn can't be honoured on {'a stream' if self.streaming else 'a batch read'} of format "
                f"{self.source_format or 'parquet'!r}.",
                remedy='Files: spark.readStream.format("cloudFiles"). Delta: a stream of a table that is not of the pipeline.',
            )

    def _check_files(self) -> None:
        if self.source_format not in FILE_FORMATS:
            return
        refuse_misspelled(self.source_format, self.options_spelled)
        if self.streaming:
            check_file_limits(self.options_given)
        super().options(**file_overrides(self.source_format, self.options_given))  # type: ignore[misc]
        if not self.options_given.keys().isdisjoint(CHANGED_WITHIN):
            zone = self.session.conf.get("spark.sql.session.timeZone") or "UTC"
            times = spark_times(self.options_given, zone, streaming=self.streaming)
            super().options(**times)  # type: ignore[misc]

    @property
    def _can_rescue(self) -> bool:
        return self.streaming and self.source_format == "delta" and self.session.resolution is not None

    def _translated(self) -> dict[str, str]:
        """Options to set over those given, so that open Spark's source means the same."""
        refuse_misspelled(self.source_format, self.options_spelled)
        if self.source_format in ("delta", ""):
            if self.streaming:
                check_limits(self.options_given)
            return delta_overrides(self.options_given)
        if self.source_format != "kafka":
            return {}
        zone = self.session.conf.get("spark.sql.session.timeZone") or "UTC"
        return kafka_overrides(self.options_given, zone)

    def _load_kinesis(self) -> DataFrame:
        if not self.streaming:
            raise UnsupportedSource(
                "Kinesis is a stream, and is read as a batch here.",
                remedy='Use spark.readStream into a streaming table, and dp.read("THE_TABLE") for all of its rows.',
            )
        return kinesis.kinesis_frame(self.session, self.options_given)

    def _load_cloud_files(self, path: str | None, schema: Any) -> DataFrame:
        if not (self.streaming or self.bounded):
            raise UnsupportedSource(
                "cloudFiles is a stream, and is read as a batch here.",
                remedy="Use spark.readStream, or spark.read with the files' own format.",
            )
        spelled = dict(self.options_spelled)
        path = path or spelled.pop("path", None)
        if path is None or self.session.resolution is None:
            raise UnsupportedSource(
                f"cloudFiles {'needs the folder to read' if path is None else 'is read in a pipeline'}.",
                remedy="End the read with .load(folder), in the function of a dataset.",
            )
        return self.session.resolution.cloud_files(path, schema, spelled, streaming=self.streaming)

    def _rescued(self, frame: DataFrame) -> DataFrame:
        column = self.options_given.get(rescued_columns.OPTION)
        if column is None or self.session.resolution is None:
            return frame
        return self.session.resolution.rescued(frame, column)


class PipelineBatchReader(_KnowsFormats, DataFrameReader):  # type: ignore[misc]  # text's first name differs
    """``spark.read`` of the facade."""

    streaming = False

    def table(self, tableName: str) -> DataFrame:  # noqa: N803
        """A dataset of the pipeline, or else an existing table."""
        refuse_misspelled("delta", self.options_spelled)
        if self.session.substitutes is not None:
            frame = self.session.substitutes.table(tableName, self.session, streaming=self.bounded)
            if frame is not None:
                return frame
        if self.session.resolution is None:
            return super().table(tableName)
        return self.session.resolution.batch(tableName, self)

    def frame_at(self, path: str) -> DataFrame:
        """The Delta table at ``path``, with the options given so far."""
        pinned = self._pinned(path)
        return self._df(self._jreader.format("delta").load(path)) if pinned is None else pinned

    def _pinned(self, path: Any) -> DataFrame | None:
        # The reader's own options stay as they are: it may be used for another table next.
        version = pinned_version(path, self.options_given)
        if version is None or self._schema is not None:
            return None
        options = {**self.options_spelled, "versionAsOf": str(version)}
        return DataFrameReader(self.session).format("delta").options(**options).load(path)


class PipelineStreamReader(_KnowsFormats, DataStreamReader):
    """``spark.readStream`` of the facade."""

    streaming = True

    def _check_addresses(self, path: Any) -> None:
        super()._check_addresses(path)
        if self.source_format in FILE_FORMATS and "maxfileage" not in self.options_given:
            # Spark would pass over files a week older than the newest it has read, without a word: `cp -p` would lose them.
            DataStreamReader.option(self, "maxFileAge", ANY_FILE_AGE)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803
        """A dataset of the pipeline, or else an existing table, also by its folder (``delta.`/folder```), as a stream."""
        by_path = _DELTA_PATH.fullmatch(tableName.strip())
        if by_path is not None:  # Delta has no table of a folder as a stream
            return self.format("delta").load(by_path[1])
        if self.session.substitutes is not None:
            frame = self.session.substitutes.table(tableName, self.session, streaming=True)
            if frame is not None:
                return frame
        super().options(**self._translated())
        if self.session.resolution is None:
            return super().table(tableName)
        return self.session.resolution.stream(tableName, self)

    def frame_at(self, path: str) -> DataFrame:
        """The Delta table at ``path`` as a stream, with the options given so far."""
        return self._rescued(self._df(self._jreader.format("delta").load(path)))


class BoundedStreamReader(PipelineBatchReader):
    """``spark.readStream`` where everything available is read as one batch."""

    bounded = True

    def name(self, source_name: str) -> BoundedStreamReader:  # noqa: ARG002 - Spark's signature
        """Do nothing: the name is that of a checkpoint's source, and a batch has none."""
        return self
