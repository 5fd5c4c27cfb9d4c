"""A Delta table whose log is written by hand, as Spark's writers leave it: transactions, metadata, counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwater.delta_log.commits import commit_file, newest_version

_SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


def commit(
    table: Path,
    *,
    transactions: Mapping[str, int] | None = None,
    metadata: Any = None,
    operation: str = "WRITE",
    metrics: Mapping[str, Any] | None = None,
    schema: Mapping[str, Any] | None = None,
    properties: Mapping[str, str] | None = None,
    description: str | None = None,
    partitions: tuple[str, ...] = (),
    protocol: Mapping[str, Any] | None = None,
    **info: Any,
) -> int:
    """Add a commit, the first one with the table's metadata; ``metadata``: its user metadata, as JSON. The version."""
    newest = newest_version(table)
    version = 0 if newest is None else newest + 1
    actions: list[dict[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": 1_700_000_000_000 + version,
                "operation": operation,
                "operationMetrics": dict(metrics or {}),
                **(
                    {}
                    if metadata is None
                    else {"userMetadata": metadata if isinstance(metadata, str) else json.dumps(metadata)}
                ),
                **info,
            }
        }
    ]
    actions += [{"txn": {"appId": name, "version": last}} for name, last in (transactions or {}).items()]
    if version == 0:
        actions.append({"protocol": protocol or {"minReaderVersion": 1, "minWriterVersion": 2}})
        actions.append(
            {
                "metaData": {
                    "id": "11111111-2222-3333-4444-555555555555",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps(schema or _SCHEMA),
                    "partitionColumns": list(partitions),
                    "configuration": dict(properties or {}),
                    **({} if description is None else {"description": description}),
                    "createdTime": 0,
                }
            }
        )
    file = commit_file(table, version)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(action, separators=(",", ":")) for action in actions) + "\n")
    return version
