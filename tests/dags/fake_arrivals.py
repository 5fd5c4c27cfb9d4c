"""Stands in for `spark-submit` and a driver that reads new JSON files into a table: real checkpoint, event log and table."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from tests.dags.pipeline_folder import UpdateLog
from tests.unit.headwater.metrics.conftest import write_checkpoint

from headwater.checkpoints.layout import FlowState, flow_checkpoint
from headwater.checkpoints.offsets import files_seen
from headwater.delta_log.versions import table_head
from headwater.event_log.details import UpdateState
from headwater.graph.manifest import FILE_NAME, read_manifest
from headwater.leases.file_lease import update_lease


def main() -> int:
    values = sys.argv[next(i for i, a in enumerate(sys.argv) if a.endswith("run_update.py")) + 1 :]
    folder = Path(values[0])
    storage, warehouse, request = (
        Path(values[values.index(name) + 1]) for name in ("--storage", "--warehouse", "--request-id")
    )
    state = storage / "pipelines" / folder.name
    with update_lease(state, str(request)):
        log = UpdateLog(state, str(request), str(uuid.uuid4()))
        log.update(UpdateState.RUNNING)
        rows, version = take_in(folder, state, warehouse / "shop" / "landed")
        log.completed("landed", rows, version)
        log.update(UpdateState.COMPLETED)
        log.close()
    print(json.dumps({"state": "COMPLETED", "flows": []}), flush=True)
    return 0


def take_in(folder: Path, state: Path, table: Path) -> tuple[int, int]:
    """Read what the checkpoint has not; gives the rows and the table's version."""
    manifest = read_manifest(folder / FILE_NAME)
    assert manifest is not None
    landing = Path(manifest.flow("landed").sources[0].path or "")
    checkpoint = flow_checkpoint(state, "landed", "landed")
    epoch = checkpoint.epoch_folder(0)
    log = epoch / "sources" / "0"
    log.mkdir(parents=True, exist_ok=True)
    batch = len(list(log.iterdir()))
    seen = {file.path for file in files_seen(epoch, 0)}
    new = [file for file in sorted(landing.iterdir()) if str(file) not in seen]
    ids = [json.loads(line)["id"] for file in new for line in file.read_text().splitlines()]
    write_deltalake(table, pa.table({"id": pa.array(ids, pa.int64())}), mode="append")
    entries = [
        {"path": file.as_uri(), "timestamp": file.stat().st_mtime_ns // 1_000_000, "batchId": batch}
        for file in new
    ]
    (log / str(batch)).write_text("\n".join(["v1", *map(json.dumps, entries)]))
    write_checkpoint(epoch, batch, [{"logOffset": batch}])
    head = table_head(table)
    assert head is not None
    checkpoint.write_state(
        FlowState(sink_id=head.table_id, completed=True, definition_hash=manifest.source_hash)
    )
    (state / FILE_NAME).write_text(manifest.to_json())
    return len(ids), DeltaTable(table).version()


if __name__ == "__main__":
    sys.exit(main())
