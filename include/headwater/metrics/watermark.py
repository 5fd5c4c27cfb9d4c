"""How far the event time of each stream is behind the clock."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from headwater.checkpoints.layout import flow_checkpoint
from headwater.checkpoints.offsets import watermark_ms
from headwater.graph.manifest import Manifest
from headwater.graph.pipeline_project import PipelineProject


@dataclass(frozen=True)
class WatermarkLag:
    """A flow's watermark after its last committed batch: seconds since 1970, and seconds behind now.

    Both None where the flow has none: it declares no watermark, or has not seen a row with a time yet.
    """

    flow: str
    dataset: str
    watermark: float | None = None
    seconds: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The lag as JSON values."""
        return asdict(self)


def pipeline_watermarks(project: PipelineProject, manifest: Manifest) -> list[WatermarkLag]:
    """The watermark of every stream, in the manifest's order, read from the live checkpoints.

    Raises:
        CheckpointUnreadable: if a checkpoint is damaged.

    """
    watermarks = []
    for flow in manifest.output_flows:
        if not flow.streaming or flow.once:
            continue
        checkpoint = flow_checkpoint(project.state_folder, flow.target, flow.name)
        reached = watermark_ms(checkpoint.live_folder())
        if reached is None:
            watermarks.append(WatermarkLag(flow.name, flow.target))
            continue
        seconds = reached / 1000
        watermarks.append(WatermarkLag(flow.name, flow.target, seconds, max(0.0, time.time() - seconds)))
    return watermarks
