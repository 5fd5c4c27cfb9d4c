"""Options of file reads that only the closed platform's readers know: open Spark passes over them, and reads other rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from headwater.definitions.spark_timestamp import clock_at, instant_of
from headwater.errors import InvalidSourceOption

GLOB = "pathGlobFilter"
_SPELLED = {"modifiedafter": "modifiedAfter", "modifiedbefore": "modifiedBefore"}
CHANGED_WITHIN = tuple(_SPELLED)
NAME_PATTERN = "filenamepattern"
SKIPPED_ROWS = "skiprows"
# Limits of batches with the largest number that each may be.
_LIMITS = {"maxFilesPerTrigger": 2**31 - 1, "maxBytesPerTrigger": 2**63 - 1}
_NUMBER = re.compile(r"\+?[0-9]+")
NO_SKIPPING = (
    'Cut the lines off where the files come from; or read them with format("text"), leave the lines out by a filter, and parse the rest '
    "with from_csv."
)
_BAD_RECORDS = 'Give the schema a column _corrupt_record STRING, and the table a rule: dp.expect_or_quarantine("readable", "_corrupt_record IS NULL").'


def file_overrides(source_format: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options to set over those ``options`` (keys in lower case) of a read of files.

    ``fileNamePattern`` is the platform's other name for ``pathGlobFilter``.

    Raises:
        InvalidSourceOption: one that would change which rows come, and can't be honoured.
    """
    if "badrecordspath" in options:
        raise InvalidSourceOption(
            "badRecordsPath is not in open Spark, which would pass over it.", remedy=_BAD_RECORDS
        )
    if source_format == "csv":
        refuse_skipping(options.get(SKIPPED_ROWS))
    return name_pattern(options)


def check_file_limits(options: Mapping[str, str]) -> None:
    """Raise InvalidSourceOption where limits of a stream's batches (``options``: keys in lower case) are none that Spark takes."""
    limits = {name: options[name.lower()] for name in _LIMITS if name.lower() in options}
    for name, value in limits.items():
        if not _NUMBER.fullmatch(value) or not 0 < int(value) <= _LIMITS[name]:
            raise InvalidSourceOption(
                f"{name} is {value!r}: the limit of a batch of files is a whole number above 0, without a unit.",
                remedy=f"Give it one; or leave {name} out.",
            )
    if len(limits) > 1:
        raise InvalidSourceOption(
            "maxFilesPerTrigger and maxBytesPerTrigger exclude each other where Spark reads files.",
            remedy='Keep one; format("cloudFiles") takes both.',
        )


def refuse_skipping(rows: str | None) -> None:
    """Refuse ``skipRows``: the header would be looked for in the wrong line. Raises InvalidSourceOption."""
    if rows is not None and rows.strip() != "0":
        raise InvalidSourceOption(
            f"skipRows = {rows} can't be honoured: open Spark's reader of CSV files skips no lines.",
            remedy=NO_SKIPPING,
        )


def name_pattern(options: Mapping[str, str]) -> dict[str, str]:
    """``fileNamePattern`` under its other name; nothing where it is not given. Raises InvalidSourceOption where both are."""
    if NAME_PATTERN not in options:
        return {}
    if GLOB.lower() in options:
        raise InvalidSourceOption(
            "fileNamePattern and pathGlobFilter are two names of one option.", remedy="Keep one."
        )
    return {GLOB: options[NAME_PATTERN]}


def spark_times(options: Mapping[str, str], time_zone: str, *, streaming: bool) -> dict[str, str]:
    """``modifiedAfter`` and ``modifiedBefore`` of a read by Spark itself, so that they mean the moments that they name.

    Spark adds the zone's offset to the time of a file, and compares that with the moment: in a session at UTC-5 five hours of files
    would be left out. So the moment gets the offset, too.

    Args:
        options: of the read, keys in lower case.
        time_zone: of the session.
        streaming: Spark's streams of files don't have these options.

    Raises:
        InvalidSourceOption: on a stream; a text that is no point in time.
    """
    limits = [key for key in CHANGED_WITHIN if key in options]
    if not limits:
        return {}
    if streaming:
        raise InvalidSourceOption(
            f"Spark's streams of files don't have the option {_SPELLED[limits[0]]}.",
            remedy='Read them by format("cloudFiles"), with cloudFiles.format, which has it.',
        )
    zone = options.get("timezone", time_zone)
    shifted = {}
    for key, text in instants(options, time_zone).items():
        clock = clock_at(datetime.fromisoformat(text), zone)
        if clock is not None and clock.utcoffset():
            shifted[_SPELLED[key]] = f"{clock.replace(tzinfo=None).isoformat()}Z"
    return shifted


def instants(options: Mapping[str, str], time_zone: str) -> dict[str, str]:
    """``modifiedAfter`` and ``modifiedBefore`` as moments in UTC, under the keys that they have in ``options``.

    Args:
        options: of a read, in any letter case.
        time_zone: of a text that names none, unless the read's option ``timeZone`` says another.

    Raises:
        InvalidSourceOption: a text that is no point in time.
    """
    zone = next((value for key, value in options.items() if key.lower() == "timezone"), time_zone)
    return {
        key: _instant(key, value, zone) for key, value in options.items() if key.lower() in CHANGED_WITHIN
    }


def _instant(option: str, text: str, zone: str) -> str:
    moment = instant_of(text, zone)
    if moment is None:
        raise InvalidSourceOption(
            f"{option} = {text!r} is not a point in time.",
            remedy="Write it as 2026-01-31T08:00:00, with a zone behind it where it is not that of the session: Z, +01:00, "
            "Europe/Berlin.",
        )
    return moment.isoformat()
