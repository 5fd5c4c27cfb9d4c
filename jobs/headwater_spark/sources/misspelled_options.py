"""Options of reads that are not spelled right: Spark passes over them, and reads other rows than were meant."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.errors import InvalidSourceOption
from headwater.suggestions import nearest

_DELTA = (
    "versionAsOf", "timestampAsOf", "startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp", "readChangeFeed",
    "readChangeData", "maxFilesPerTrigger", "maxBytesPerTrigger", "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion",
    "skipChangeCommits", "withEventTimeOrder", "failOnDataLoss", "excludeRegex", "schemaTrackingLocation", "schemaLocation",
    "streamingSourceTrackingId", "mergeSchema", "allowSourceColumnRename", "allowSourceColumnDrop", "allowSourceColumnTypeChange",
    "allowSourceColumnRenameAndDrop", "rescuedDataColumn",
)  # fmt: skip
_KAFKA = (
    "subscribe", "subscribePattern", "assign", "startingOffsets", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "startingTimestamp", "endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp", "failOnDataLoss", "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "includeHeaders", "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs",
)  # fmt: skip
_FILES = (
    "pathGlobFilter", "fileNamePattern", "recursiveFileLookup", "ignoreMissingFiles", "ignoreCorruptFiles", "modifiedBefore",
    "modifiedAfter", "basePath", "maxFilesPerTrigger", "maxBytesPerTrigger", "latestFirst", "maxFileAge", "fileNameOnly",
    "maxCachedFiles", "discardCachedInputRatio", "cleanSource", "sourceArchiveDir", "badRecordsPath", "compression",
)  # fmt: skip
_TEXTS = (
    *_FILES, "mode", "columnNameOfCorruptRecord", "rescuedDataColumn", "encoding", "charset", "locale", "timeZone", "dateFormat",
    "timeFormat", "timestampFormat", "timestampNTZFormat", "multiLine", "samplingRatio", "singleVariantColumn", "inferSchema",
)  # fmt: skip
_JSON = (
    *_TEXTS, "primitivesAsString", "prefersDecimal", "inferTimestamp", "dropFieldIfAllNull", "enableDateTimeParsingFallback", "lineSep",
    "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes", "allowNumericLeadingZeros", "allowNonNumericNumbers",
    "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars", "ignoreNullFields", "useUnsafeRow", "pretty", "sortKeys",
    "writeNonAsciiCharacterAsCodePoint",
)  # fmt: skip
_CSV = (
    *_TEXTS, "sep", "delimiter", "header", "quote", "escape", "comment", "enforceSchema", "ignoreLeadingWhiteSpace",
    "ignoreTrailingWhiteSpace", "nullValue", "emptyValue", "nanValue", "positiveInf", "negativeInf", "maxColumns", "maxCharsPerColumn",
    "unescapedQuoteHandling", "charToEscapeQuoteEscaping", "enableDateTimeParsingFallback", "preferDate", "columnPruning", "lineSep",
    "inputBufferSize", "skipRows", "quoteAll", "escapeQuotes", "codec", "extension",
)  # fmt: skip
_XML = (
    *_TEXTS, "rowTag", "rootTag", "attributePrefix", "valueTag", "excludeAttribute", "ignoreNamespace", "ignoreSurroundingSpaces",
    "nullValue", "prefersDecimal", "preferDate", "rowValidationXSDPath", "wildcardColName", "arrayElementName", "declaration", "indent",
    "validateName", "useLegacyXMLParser",
)  # fmt: skip
_TEXT = (*_FILES, "wholetext", "lineSep", "encoding")
_ORC = (*_FILES, "mergeSchema", "orc.compress")
_PARQUET = (*_FILES, "mergeSchema", "datetimeRebaseMode", "int96RebaseMode", "parquet.compression")
_AVRO = (
    *_FILES, "avroSchema", "avroSchemaUrl", "datetimeRebaseMode", "ignoreExtension", "mode", "positionalFieldMatching", "mergeSchema",
    "recursiveFieldMaxDepth", "enableStableIdentifiersForUnionType", "stableIdentifierPrefixForUnionType", "recordName", "recordNamespace",
)  # fmt: skip
_KNOWN = {
    "delta": _DELTA, "": _DELTA, "kafka": _KAFKA, "json": _JSON, "csv": _CSV, "xml": _XML, "text": _TEXT, "parquet": _PARQUET,
    "orc": _ORC, "avro": _AVRO, "binaryfile": _FILES,
}  # fmt: skip
# Only what is almost the name of an option: others may be for a reader that Spark has got from elsewhere.
_ALMOST = 0.9


def refuse_misspelled(source_format: str, names: Iterable[str]) -> None:
    """Refuse the first of the ``names`` that is almost an option of the format; raises InvalidSourceOption with that one."""
    known = {name.lower(): name for name in _KNOWN.get(source_format, ())}
    for name in names:
        lowered = name.lower()
        if lowered in known or lowered.startswith("kafka."):
            continue
        near = nearest(lowered, known, cutoff=_ALMOST)
        if near is not None:
            raise InvalidSourceOption(
                f"There is no option {name!r} of {source_format or 'delta'}, and Spark would pass over it.",
                remedy=f"Did you mean {known[near]!r}?",
            )
