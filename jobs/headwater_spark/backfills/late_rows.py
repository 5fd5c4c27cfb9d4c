"""Rows that the live stream wrote while a backfill computed: replacing the range took them along, and they are put back.

A backfill reads its sources up to where the live stream stood at one version of the table. What the stream wrote between
that version and the one that Delta's transaction began from is in neither. (What it wrote later is left alone by Delta.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headwater_spark.backfills.added_rows import rows_of_commit
from headwater_spark.execution.foreach_batch import BatchTransaction
from headwater_spark.execution.sink_commits import SinkCommits
from headwater_spark.execution.targets.delta_append import DeltaAppend

# In the commit's metadata: by the id that a stream commits under, the version whose rows of it the backfill knew.
KNOWN = "known_versions"


def put_back_late_rows(
    spark: SparkSession, table: Path, condition: str, transaction: BatchTransaction
) -> int:
    """Append again what the streams wrote to the range in between; returns how many commits that were.

    Each is a commit of its own, under an id of its own: after a crash the same call does what is left.
    """
    commit = SinkCommits(table, transaction.application).find(transaction.batch_id)
    if commit is None:
        return 0
    known: Mapping[str, int] = commit.told.get(KNOWN) or {}
    began = int(_commit_info(table, commit.version).get("readVersion", commit.version - 1))
    count = 0
    for version in range(min(known.values(), default=began) + 1, began + 1):
        if not any(known.get(name, began) < version for name in _transactions(table, version)):
            continue
        rows = rows_of_commit(spark, table, version).where(condition)
        late = BatchTransaction(f"{transaction.application}-late-{version}", 0, transaction.user_metadata)
        DeltaAppend(table).write(rows, late)
        count += 1
    return count


def _actions(table: Path, version: int) -> list[dict[str, Any]]:
    text = (table / "_delta_log" / f"{version:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith(('{"commitInfo"', '{"txn"'))]


def _commit_info(table: Path, version: int) -> dict[str, Any]:
    return next((a["commitInfo"] for a in _actions(table, version) if "commitInfo" in a), {})


def _transactions(table: Path, version: int) -> set[str]:
    return {str(action["txn"]["appId"]) for action in _actions(table, version) if "txn" in action}
