"""The columns of every quarantine table. The row's own columns stand beside them; who has one of these names is in ``_row``."""

from __future__ import annotations

from enum import StrEnum

REASON = "error_reason"
ID = "_id"
RULES = "_rules"
FLOW = "_flow"
EPOCH = "_epoch"
BATCH = "_batch"
UPDATE_ID = "_update_id"
TOPIC = "_topic"
PARTITION = "_partition"
OFFSET = "_offset"
FILE = "_file"
SOURCE_OFFSETS = "_source_offsets"
SOURCE_RECORD = "_source_record"
SOURCE_VALUE = "_source_value"
ROW = "_row"
QUARANTINED_AT = "_quarantined_at"
STATUS = "_status"
STATUS_AT = "_status_at"
STATUS_REASON = "_status_reason"
REPLAY_ID = "_replay_id"

# The rule name of unreadable files: no row was judged, so it is none of the user's rules.
UNREADABLE_FILE = "unreadable_file"

MANAGED = (
    REASON, ID, RULES, FLOW, EPOCH, BATCH, UPDATE_ID, TOPIC, PARTITION, OFFSET, FILE, SOURCE_OFFSETS, SOURCE_RECORD,
    SOURCE_VALUE, ROW, QUARANTINED_AT, STATUS, STATUS_AT, STATUS_REASON, REPLAY_ID,
)  # fmt: skip


class RowStatus(StrEnum):
    """Where a quarantined row stands.

    ``REPLAYING``: marked before its replay is written, so that a crash is noticed. ``PENDING``: a row of a file that is
    being replayed, held once that replay is done.
    """

    HELD = "held"
    PENDING = "pending"
    REPLAYING = "replaying"
    REPLAYED = "replayed"
    DISCARDED = "discarded"
