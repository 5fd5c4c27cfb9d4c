"""The options of ``format("cloudFiles")``: a closed list, each honoured, noted, or refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from headwater.definitions.source import CLOUD_FILES_AGE
from headwater.errors import InvalidSourceOption
from headwater.suggestions import did_you_mean, nearest
from headwater_spark.sources.file_options import (
    NAME_PATTERN,
    SKIPPED_ROWS,
    instants,
    name_pattern,
    refuse_skipping,
)
from headwater_spark.sources.misspelled_options import refuse_misspelled

_PREFIX = "cloudfiles."
_CREDENTIAL = "databricks.servicecredential"
FORMATS = ("json", "csv", "parquet", "avro", "orc", "xml", "text", "binaryFile")
RESCUED = "_rescued_data"
# They tune file discovery and scaling in the closed runtime. Here each start lists the folder.
_NOTED = (
    "useNotifications", "useManagedFileEvents", "useIncrementalListing", "useStrictGlobber",
    "fetchParallelism", "listOnStart", "queueUrl", "region", "pathRewrites", "resourceTag", "resourceTags",
    "connectionString", "resourceGroup", "subscriptionId", "tenantId", "clientId", "clientSecret", "projectId",
    "subscription", "client", "clientEmail", "privateKey", "privateKeyId", "awsAccessKey", "awsSecretKey", "roleArn",
    "roleExternalId", "roleSessionName", "stsEndpoint", "queueName",
)  # fmt: skip
# Options of Spark's readers that public code writes with the prefix, where they do nothing.
_WITHOUT_PREFIX = (
    "header", "sep", "delimiter", "quote", "escape", "encoding", "charset", "multiLine", "dateFormat", "timestampFormat",
    "mode", "comment", "nullValue", "mergeSchema", "pathGlobFilter", "recursiveFileLookup", "modifiedAfter",
    "modifiedBefore", "ignoreCorruptFiles", "ignoreMissingFiles", "rowTag", "lineSep", "wholetext", "singleVariantColumn",
)  # fmt: skip
_HONOURED = (
    "format", "schemaLocation", "inferColumnTypes", "schemaHints", "schemaEvolutionMode", "rescuedDataColumn",
    "maxFilesPerTrigger", "maxBytesPerTrigger", "maxFileAge", "includeExistingFiles", "allowOverwrites",
    "partitionColumns", "cleanSource", "cleanSource.retentionDuration", "cleanSource.moveDestination", "backfillInterval",
)  # fmt: skip
CLOUD_FILES_NAMES = (*_HONOURED, *_NOTED, "inferSchema", "validateOptions")
# Options of Spark's readers that would not do what they say, given how these files are read.
_REFUSED = {
    "badrecordspath": "Malformed lines are kept in the rescued data column.",
    "readercasesensitive": "Names are compared exactly; what differs in case only is rescued.",
    "cleansource": "Write it as cloudFiles.cleanSource.",
    "sourcearchivedir": "Use cloudFiles.cleanSource.moveDestination.",
    "basepath": "Folders below are always read; name partitions with cloudFiles.partitionColumns.",
}
# Encodings with line ends of one byte that Spark takes as it is, and the setting with which it takes any of Java's.
_CHARSETS = ("iso-8859-1", "us-ascii")
JAVA_CHARSETS = "spark.sql.legacy.javaCharsets"
UTF_8 = "UTF-8"
_VARIANT = "singleVariantColumn"
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_AGE = re.compile(r"(\d+)\s*(second|minute|hour|day|week|s|m|h|d|w)s?", re.IGNORECASE)
_INTERVAL = re.compile(r"^interval\s+", re.IGNORECASE)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class EvolutionMode(StrEnum):
    """What happens when files have fields that the schema lacks."""

    ADD = "addNewColumns"
    WIDEN = "addNewColumnsWithTypeWidening"
    RESCUE = "rescue"
    FAIL = "failOnNewColumns"
    NONE = "none"

    @property
    def evolves(self) -> bool:
        """Whether the schema takes new columns."""
        return self in (EvolutionMode.ADD, EvolutionMode.WIDEN)


@dataclass(frozen=True)
class CloudFilesOptions:
    """The options of a read. ``native``: options for Spark's own reader, as they were spelled.

    ``rescued``: the name of the rescued data column, None where there is none. ``max_files``, ``max_bytes``: per batch, None
    where there is no limit; ``batch_limit`` makes one of the two.
    ``backfill_interval``: how often a listing is recorded as a backfill; each start lists the whole folder.
    ``partition_columns``: None where they come from the paths. ``notes``: options that have no effect.
    """

    format: str
    mode: EvolutionMode
    rescued: str | None
    schema_location: str | None = None
    infer_types: bool = False
    hints: str = ""
    max_files: int | None = 1000
    max_bytes: int | None = None
    max_file_age: str = CLOUD_FILES_AGE
    include_existing: bool = True
    allow_overwrites: bool = False
    partition_columns: tuple[str, ...] | None = None
    clean: str = "off"
    retention: timedelta = timedelta(days=30)
    move_to: str | None = None
    backfill_interval: timedelta | None = None
    native: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def native_option(self, name: str, default: str = "") -> str:
        """An option of Spark's reader, whatever its letter case."""
        return next((v for k, v in self.native.items() if k.lower() == name.lower()), default)

    @property
    def variant(self) -> str:
        """The one column that takes each record whole, as a VARIANT; empty where records become columns."""
        return self.native_option(_VARIANT)

    @property
    def fixed(self) -> bool:
        """Whether the columns are known without a look into files."""
        return _fixed(self.format, self.native) != ""

    @property
    def encoding(self) -> str:
        """Of the files' text, UTF-8 in one spelling. Where both options are given, Spark takes this one, too."""
        given = self.native_option("encoding") or self.native_option("charset") or UTF_8
        return UTF_8 if given.upper().replace("-", "") == "UTF8" else given

    @property
    def header(self) -> bool:
        """Whether CSV files begin with the names of their columns; true by default."""
        return self.native_option("header", "true").lower() == "true"

    @property
    def multi_line(self) -> bool:
        """Whether a record may take several lines."""
        return self.native_option("multiLine", "false").lower() == "true"


def parse_options(
    options: Mapping[str, str], *, schema_given: bool, java_charsets: bool = False, time_zone: str = "UTC"
) -> CloudFilesOptions:
    """Check the options of a read; ``options`` as the user spelled them.

    ``java_charsets``: whether Spark takes all of Java's encodings, as JAVA_CHARSETS says. ``time_zone``: of times without one,
    unless the read's own option ``timeZone`` says another.

    Raises:
        InvalidSourceOption: an unknown option (with the nearest name), a bad value, or an impossible combination.
    """
    own: dict[str, str] = {}
    native: dict[str, str] = {}
    notes = []
    spellings = {name.lower(): name for name in CLOUD_FILES_NAMES}
    unknown_allowed = _unvalidated(options)
    for key, value in options.items():
        lowered = key.lower()
        if lowered == "rescueddatacolumn":
            own["rescuedDataColumn"] = value
        elif not lowered.startswith(_PREFIX):
            notes += _take_native(key, value, native)
        elif (name := spellings.get(lowered.removeprefix(_PREFIX))) is None:
            if not unknown_allowed:
                raise _unknown(key)
            notes.append(f"{key} is no option of Auto Loader and has no effect; {_way_out(key)}")
        elif name in _NOTED:
            notes.append(f"cloudFiles.{name} has no effect here: each start lists the folder")
        elif name == "validateOptions":
            if not _flag(name, {name: value}, default=True):
                notes.append(
                    "cloudFiles.validateOptions = false: options that are not known are noted; the values of the others are "
                    "checked nevertheless"
                )
        elif name == "inferSchema":
            notes.append(_infer_schema(value, schema_given=schema_given))
        else:
            own[name] = value
    native |= name_pattern({key.lower(): value for key, value in options.items()})
    native |= instants(native, time_zone)
    parsed = _checked(own, native, tuple(notes), schema_given=schema_given)
    _check_encoding(parsed, java_charsets=java_charsets)
    _check_variant(parsed, schema_given=schema_given)
    refuse_misspelled(parsed.format, () if unknown_allowed else native)
    return parsed


def _take_native(key: str, value: str, native: dict[str, str]) -> list[str]:
    """Check an option without the prefix, and add it to ``native`` where Spark knows it by this name; notes about it."""
    lowered = key.lower()
    if lowered == _CREDENTIAL:
        return [f"{key} has no effect here: keys of a store are found in the environment"]
    _check_native(key, value)
    if lowered != NAME_PATTERN:
        native[key] = value
    return []


def _checked(
    own: Mapping[str, str], native: Mapping[str, str], notes: tuple[str, ...], *, schema_given: bool
) -> CloudFilesOptions:
    source_format = _choice("format", own.get("format", ""), FORMATS)
    if source_format == "xml" and not any(key.lower() == "rowtag" for key in native):
        raise InvalidSourceOption(
            "cloudFiles.format = 'xml' needs to know which element is a row.",
            remedy='Name it: .option("rowTag", "book").',
        )
    fixed = _fixed(source_format, native)
    mode = _mode(own.get("schemaEvolutionMode"), fixed, schema_given=schema_given)
    rescued = own.get("rescuedDataColumn")
    if rescued is None and not schema_given and mode is not EvolutionMode.NONE and not fixed:
        rescued = RESCUED
    if rescued is not None and fixed:
        _bad("rescuedDataColumn", rescued, f"{fixed} have a fixed schema; leave it out")
    clean = _choice("cleanSource", own.get("cleanSource", "off"), ("off", "delete", "move"))
    retention = _age("cleanSource.retentionDuration", own.get("cleanSource.retentionDuration", "30 days"))
    if clean == "delete" and retention < timedelta(days=7):
        _bad(
            "cleanSource.retentionDuration", str(retention), "files are deleted after 7 days at the earliest"
        )
    if (clean == "move") != ("cleanSource.moveDestination" in own):
        _bad("cleanSource.moveDestination", own.get("cleanSource.moveDestination", ""),
             "it belongs to cloudFiles.cleanSource = MOVE, which needs it")  # fmt: skip
    columns = own.get("partitionColumns")
    return CloudFilesOptions(
        source_format, mode, rescued,
        schema_location=own.get("schemaLocation"),
        infer_types=_flag("inferColumnTypes", own, default=False),
        hints=own.get("schemaHints", ""),
        max_files=_number("maxFilesPerTrigger", own) if "maxFilesPerTrigger" in own else 1000,
        max_bytes=_size("maxBytesPerTrigger", own),
        max_file_age=own.get("maxFileAge", CLOUD_FILES_AGE),
        include_existing=_flag("includeExistingFiles", own, default=True),
        allow_overwrites=_flag("allowOverwrites", own, default=False),
        partition_columns=None if columns is None else tuple(c.strip() for c in columns.split(",") if c.strip()),
        clean=clean, retention=retention, move_to=own.get("cleanSource.moveDestination"),
        backfill_interval=_age("backfillInterval", own["backfillInterval"]) if "backfillInterval" in own else None,
        native=native, notes=notes,
    )  # fmt: skip


def _fixed(source_format: str, native: Mapping[str, str]) -> str:
    """What has a fixed schema, empty where files decide the columns."""
    if any(key.lower() == _VARIANT.lower() for key in native):
        return f"records in one column ({_VARIANT})"
    return f"{source_format} files" if source_format in ("text", "binaryFile") else ""


def _mode(mode_option: str | None, fixed: str, *, schema_given: bool) -> EvolutionMode:
    if fixed:
        if mode_option is not None and mode_option.lower() != "none":
            _bad("schemaEvolutionMode", mode_option, f"{fixed} have a fixed schema; leave it out")
        return EvolutionMode.NONE
    if mode_option is None:
        return EvolutionMode.NONE if schema_given else EvolutionMode.ADD
    mode = EvolutionMode(_choice("schemaEvolutionMode", mode_option, tuple(EvolutionMode)))
    if schema_given and mode.evolves:
        _bad(
            "schemaEvolutionMode",
            mode_option,
            "a schema that is given does not evolve: give it as cloudFiles.schemaHints",
        )
    return mode


def _check_native(key: str, value: str) -> None:
    lowered = key.lower()
    if lowered in _REFUSED:
        raise InvalidSourceOption(f"{key} can't be used with cloudFiles.", remedy=_REFUSED[lowered])
    if lowered == SKIPPED_ROWS:
        refuse_skipping(value)
    if lowered == "mode" and value.upper() == "DROPMALFORMED":
        raise InvalidSourceOption(
            "mode = DROPMALFORMED can't be used with cloudFiles.",
            remedy="Malformed records come with a rescued data column: drop them with where(_rescued_data IS NULL).",
        )
    if lowered == "recursivefilelookup" and value.lower() != "true":
        raise InvalidSourceOption(
            "recursiveFileLookup = false can't be used with cloudFiles, which reads the folders below too.",
            remedy="Narrow the path with a glob, or use pathGlobFilter.",
        )


def _check_encoding(options: CloudFilesOptions, *, java_charsets: bool) -> None:
    """Refuse an encoding that files of this format are not read in, or that would cut them into lines at the wrong places."""
    encoding, need = options.encoding, ""
    if encoding == UTF_8:
        return
    if options.format == "xml":
        need = "XML files are read in the encoding that their first line names. Leave the option out."
    elif options.format != "csv":
        need = f"Files of the format {options.format} are read as UTF-8. Convert them."
    elif not _is_codec(encoding):
        need = "No encoding has this name. One that is known: ISO-8859-1."
    elif "\n".encode(encoding) != b"\n":
        need = "CSV files are read in encodings whose line ends are single bytes. Convert them to UTF-8."
    elif encoding.lower() not in _CHARSETS and not java_charsets:
        need = f"Spark takes {' and '.join(_CHARSETS)}, and others with {JAVA_CHARSETS}: 'true' under spark in pipeline.yml."
    if need:
        raise InvalidSourceOption(f"encoding = {encoding} can't be used with cloudFiles.", remedy=need)


def _check_variant(options: CloudFilesOptions, *, schema_given: bool) -> None:
    need = ""
    if options.native_option(_VARIANT, "none") == "":
        need = "Name the column."
    elif options.variant and options.format != "json":
        need = f"Records of JSON files can be one VARIANT; columns of {options.format} files can't."
    elif options.variant and (schema_given or options.hints):
        need = "It is the schema: leave .schema(...) and cloudFiles.schemaHints out."
    if need:
        raise InvalidSourceOption(f"{_VARIANT} = {options.variant} can't be used here.", remedy=need)


def _is_codec(encoding: str) -> bool:
    try:
        return "\n".encode(encoding) != b""
    except (LookupError, UnicodeError):
        return False


def _unvalidated(options: Mapping[str, str]) -> bool:
    """Whether unknown options are to be passed over, as Auto Loader does with ``validateOptions`` off."""
    given = next((v for k, v in options.items() if k.lower() == f"{_PREFIX}validateoptions"), "true")
    return given.lower() == "false"


def _infer_schema(value: str, *, schema_given: bool) -> str:
    """The note for a spelling of Spark's readers that public code gives to Auto Loader."""
    if not _flag("inferSchema", {"inferSchema": value}, default=True) and not schema_given:
        _bad(
            "inferSchema", value, "the columns are inferred where none are given: give them with .schema(...)"
        )
    return (
        "cloudFiles.inferSchema has no effect: columns are inferred wherever no schema is given. Their types are with "
        "cloudFiles.inferColumnTypes = true"
    )


def _unknown(key: str) -> InvalidSourceOption:
    return InvalidSourceOption(f"There is no option {key!r}.", remedy=_way_out(key))


def _way_out(key: str) -> str:
    plain = {name.lower(): name for name in _WITHOUT_PREFIX}.get(key.lower().removeprefix(_PREFIX))
    if plain is not None:
        return f"Write it without the prefix, which is for options of Auto Loader: {plain!r}."
    names = [f"cloudFiles.{name}" for name in CLOUD_FILES_NAMES]
    lowered = {name.lower(): name for name in names}
    near = nearest(key.lower(), lowered)
    return did_you_mean(near and lowered[near], f"Known are: {', '.join(names[: len(_HONOURED)])}.")


def _bad(name: str, value: str, need: str) -> None:
    raise InvalidSourceOption(
        f"cloudFiles.{name} = {value!r} can't be.", remedy=f"{need[0].upper()}{need[1:]}."
    )


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    choice = next((candidate for candidate in choices if candidate.lower() == value.lower()), None)
    if choice is None:
        _bad(name, value, f"it is one of {', '.join(choices)}")
    assert choice is not None
    return choice


def _flag(name: str, own: Mapping[str, str], *, default: bool) -> bool:
    return _choice(name, own.get(name, str(default)), ("true", "false")) == "true"


def _number(name: str, own: Mapping[str, str]) -> int:
    if not own[name].isdigit() or int(own[name]) < 1:
        _bad(name, own[name], "it is a whole number from 1")
    return int(own[name])


def _size(name: str, own: Mapping[str, str]) -> int | None:
    if name not in own:
        return None
    match = _SIZE.fullmatch(own[name].strip())
    if match is None or int(match[1]) < 1:
        _bad(name, own[name], "it is a number of bytes, as 10g")
    assert match is not None
    return int(match[1]) << (10 * " kmgt".index(match[2].lower() or " "))


def _age(name: str, value: str) -> timedelta:
    match = _AGE.fullmatch(_INTERVAL.sub("", value.strip()))
    if match is None:
        _bad(name, value, "it is a duration, as 14 days")
    assert match is not None
    return timedelta(**{_UNITS[match[2].lower()[0]]: int(match[1])})
