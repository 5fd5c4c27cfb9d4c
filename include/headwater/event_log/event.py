"""One record of the event log, and the table's schema (the columns that Lakeflow's queries expect)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from headwater.storage.place import Place

_NAMESPACE = uuid.UUID("6f1c6c43-6f0f-5d0e-9c0c-6b1e5a8d7a11")


@dataclass(frozen=True)
class Origin:
    """What a record is about. ``flow_id`` changes with the flow's epoch.

    ``maintenance_id``: of a run of maintenance. The fields below it are Lakeflow's, for queries that name them; there is
    nothing to say in them here, so they are None.
    """

    pipeline_id: str
    pipeline_name: str
    update_id: str
    request_id: str | None = None
    flow_id: str | None = None
    flow_name: str | None = None
    dataset_name: str | None = None
    sink_name: str | None = None
    batch_id: int | None = None
    epoch: int | None = None
    host: str | None = None
    maintenance_id: str | None = None
    cluster_id: str | None = None
    cloud: str | None = None
    region: str | None = None
    org_id: str | None = None
    user_id: str | None = None
    pipeline_type: str | None = None
    materialization_name: str | None = None
    table_id: str | None = None
    uc_resource_id: str | None = None


@dataclass(frozen=True)
class Event:
    """A record. ``details`` is JSON text, ``error`` has the shape of the column of that name."""

    id: str
    instance: str
    sequence: int
    origin: Origin
    timestamp: datetime
    message: str
    level: str
    event_type: str
    details: str
    error: Mapping[str, Any] | None = None
    maturity_level: str = "STABLE"

    def row(self) -> dict[str, Any]:
        """The record as values of the table's columns."""
        return {
            "id": self.id,
            "sequence": {
                "data_plane_id": {"instance": self.instance, "seq_no": self.sequence},
                "control_plane_seq_no": None,
            },
            "origin": asdict(self.origin),
            "timestamp": self.timestamp,
            "message": self.message,
            "level": self.level,
            "maturity_level": self.maturity_level,
            "error": self.error,
            "details": self.details,
            "event_type": self.event_type,
        }


def event_table(state_folder: Place) -> Place:
    """The folder of a pipeline's event log; ``state_folder`` is the pipeline's folder in storage."""
    return state_folder / "system" / "events"


def batch_event_id(pipeline_id: str, flow: str, epoch: int, batch_id: int) -> str:
    """The id of a batch's record: the same when the batch is replayed, so that it is recognised."""
    return str(uuid.uuid5(_NAMESPACE, "\0".join((pipeline_id, flow, str(epoch), str(batch_id), "RUNNING"))))


def flow_id(pipeline_id: str, flow: str, epoch: int) -> str:
    """The id of one life of a flow: a full refresh or reset begins another."""
    return str(uuid.uuid5(_NAMESPACE, "\0".join((pipeline_id, flow, str(epoch)))))


def arrow_schema() -> Any:
    """The table's schema for the writer (pyarrow)."""
    import pyarrow as pa

    text, long = pa.string(), pa.int64()
    frame = pa.struct(
        [("declaring_class", text), ("method_name", text), ("file_name", text), ("line_number", long)]
    )
    failure = pa.struct([("class_name", text), ("message", text), ("stack", pa.list_(frame))])
    origin = [(name, text) for name in Origin.__dataclass_fields__]
    typed = {"batch_id": long, "epoch": pa.int32()}
    return pa.schema(
        [
            ("id", text),
            (
                "sequence",
                pa.struct(
                    [
                        ("data_plane_id", pa.struct([("instance", text), ("seq_no", long)])),
                        ("control_plane_seq_no", long),
                    ]
                ),
            ),
            ("origin", pa.struct([(name, typed.get(name, kind)) for name, kind in origin])),
            ("timestamp", pa.timestamp("us", "UTC")),
            ("message", text),
            ("level", text),
            ("maturity_level", text),
            ("error", pa.struct([("fatal", pa.bool_()), ("exceptions", pa.list_(failure))])),
            ("details", text),
            ("event_type", text),
        ]
    )
