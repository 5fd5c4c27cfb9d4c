"""An option that is almost one that the format has is refused with the name that was meant."""

from __future__ import annotations

import pytest

from headwater.errors import InvalidSourceOption
from headwater_spark.sources.cloud_files.options import parse_options
from headwater_spark.sources.misspelled_options import _KNOWN, refuse_misspelled

# What Delta 4.4 and Spark 4.2's Kafka source and file sources take, writers' options among them: a dict of options may serve both.
_OF_DELTA = """
    allowSourceColumnDrop allowSourceColumnRename allowSourceColumnTypeChange checkpointLocation compression dataChange endingTimestamp
    endingVersion excludeRegex failOnDataLoss ignoreChanges ignoreDeletes ignoreFileDeletion maxBytesPerTrigger maxFilesPerTrigger
    maxRecordsPerFile mergeSchema optimizeWrite overwriteSchema parquet.writer.version partitionOverwriteMode path queryName
    readChangeData readChangeFeed replaceOn replaceUsing replaceWhere responseFormat schemaLocation schemaTrackingLocation
    skipChangeCommits startingTimestamp startingVersion streamingSourceTrackingId targetAlias timestampAsOf txnAppId txnVersion
    useNullIntolerantEqualityWithDPO userMetadata versionAsOf writePartitionColumns withEventTimeOrder __time_travel_source__
"""
_OF_KAFKA = """
    assign endingOffsets endingOffsetsByTimestamp endingTimestamp failOnDataLoss fetchOffset.numRetries fetchOffset.retryIntervalMs
    groupIdPrefix includeHeaders kafka.bootstrap.servers kafka.group.id kafka.auto.offset.reset kafka.max.poll.records
    kafkaConsumer.pollTimeoutMs maxOffsetsPerTrigger maxRecordsPerPartition maxTriggerDelay minOffsetsPerTrigger minPartitions
    startingOffsets startingOffsetsByTimestamp startingOffsetsByTimestampStrategy startingTimestamp subscribe subscribePattern topic
    databricks.serviceCredential
"""
_OF_FILES = """
    path paths basePath pathGlobFilter recursiveFileLookup ignoreMissingFiles ignoreCorruptFiles modifiedBefore modifiedAfter
    fileNameOnly latestFirst maxFileAge maxCachedFiles cleanSource sourceArchiveDir discoveryTimeout mergeSchema datetimeRebaseMode
    int96RebaseMode fs.s3a.endpoint schema inferSchema header samplingRatio timestampFormat dateFormat mode
"""
# What the classes of Spark 4.2 for the formats name, and the options of its streams of files.
_BY_FORMAT = {
    "json": """
        allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros allowSingleQuotes
        allowUnquotedControlChars allowUnquotedFieldNames charset columnNameOfCorruptRecord compression dateFormat dropFieldIfAllNull
        enableDateTimeParsingFallback encoding ignoreNullFields inferTimestamp lineSep locale mode multiLine prefersDecimal pretty
        primitivesAsString samplingRatio singleVariantColumn sortKeys timeFormat timeZone timestampFormat timestampNTZFormat useUnsafeRow
        writeNonAsciiCharacterAsCodePoint
    """,
    "csv": """
        charToEscapeQuoteEscaping charset codec columnNameOfCorruptRecord columnPruning comment compression dateFormat delimiter emptyValue
        enableDateTimeParsingFallback encoding enforceSchema escape escapeQuotes extension header ignoreLeadingWhiteSpace
        ignoreTrailingWhiteSpace inferSchema inputBufferSize lineSep locale maxCharsPerColumn maxColumns mode multiLine nanValue negativeInf
        nullValue positiveInf preferDate quote quoteAll samplingRatio sep singleVariantColumn timeFormat timeZone timestampFormat
        timestampNTZFormat unescapedQuoteHandling
    """,
    "xml": """
        arrayElementName attributePrefix charset columnNameOfCorruptRecord compression dateFormat declaration encoding excludeAttribute
        ignoreNamespace ignoreSurroundingSpaces indent inferSchema locale mode multiLine nullValue preferDate prefersDecimal rootTag rowTag
        rowValidationXSDPath samplingRatio singleVariantColumn timeFormat timeZone timestampFormat timestampNTZFormat useLegacyXMLParser
        validateName valueTag wildcardColName
    """,
    "text": "compression encoding lineSep wholetext",
    "parquet": "compression datetimeRebaseMode int96RebaseMode mergeSchema parquet.compression",
    "orc": "compression mergeSchema orc.compress",
    "avro": """
        avroSchema avroSchemaUrl compression datetimeRebaseMode enableStableIdentifiersForUnionType ignoreExtension mode
        positionalFieldMatching recordName recordNamespace recursiveFieldMaxDepth stableIdentifierPrefixForUnionType
    """,
    "binaryfile": "",
}


@pytest.mark.parametrize(
    ("source_format", "name", "meant"),
    [
        ("delta", "skipChangeComits", "skipChangeCommits"),
        ("", "maxFilesPerTriger", "maxFilesPerTrigger"),
        ("delta", "starting_version", "startingVersion"),
        ("kafka", "startingOffset", "startingOffsets"),
        ("kafka", "maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("json", "multi_line", "multiLine"),
        ("csv", "ignoreLeadingWhitespaces", "ignoreLeadingWhiteSpace"),
        ("csv", "nullValues", "nullValue"),
        ("xml", "rowTags", "rowTag"),
        ("parquet", "maxFilesPerTriger", "maxFilesPerTrigger"),
        ("text", "wholeTexts", "wholetext"),
        ("orc", "mergeSchemas", "mergeSchema"),
        ("avro", "avroSchemaURI", "avroSchemaUrl"),
        ("binaryfile", "pathGlobFilters", "pathGlobFilter"),
    ],
)
def test_almost_an_option(source_format: str, name: str, meant: str):
    """Spark would pass over it: a stream would begin elsewhere, or have no limit, without a word."""
    with pytest.raises(InvalidSourceOption, match=f"'{name}'") as caught:
        refuse_misspelled(source_format, [name])
    assert caught.value.remedy == f"Did you mean {meant!r}?"


def test_what_is_left_alone():
    """Each known name in any case, settings of Kafka's client, options unlike any known one, and other formats."""
    for source_format, known in _KNOWN.items():
        refuse_misspelled(source_format, [*known, *map(str.upper, known), "path", "my.own", "compression"])
    refuse_misspelled("kafka", ["kafka.bootstrap.server", "kafka.group.id"])
    refuse_misspelled("jdbc", ["maxFilesPerTriger"])


@pytest.mark.parametrize(
    ("source_format", "names"),
    [("delta", _OF_DELTA), ("", _OF_DELTA), ("kafka", _OF_KAFKA), ("delta", _OF_FILES), ("kafka", _OF_FILES),
     *((source_format, names + _OF_FILES) for source_format, names in _BY_FORMAT.items())],
)  # fmt: skip
def test_no_option_that_is_one(source_format: str, names: str):
    """What the sources do take is no misspelling of anything, in any case."""
    for name in names.split():
        refuse_misspelled(source_format, [name, name.lower(), name.upper()])


def test_a_stream_of_cloud_files():
    """Options of the format, without the prefix, are looked at there, too; unless the read itself says that it wants none looked at."""
    options = {"cloudFiles.format": "csv", "headers": "true"}
    with pytest.raises(InvalidSourceOption, match="'headers' of csv"):
        parse_options(options, schema_given=False)
    unchecked = parse_options({**options, "cloudFiles.validateOptions": "false"}, schema_given=False)
    assert unchecked.native["headers"] == "true"
