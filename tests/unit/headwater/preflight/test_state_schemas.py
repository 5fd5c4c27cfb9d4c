"""Paths in a state's metadata follow a checkpoint that was moved or copied."""

from __future__ import annotations

import json
from pathlib import Path

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.state_schemas import schemas_lie_elsewhere


def start(folder: Path) -> FlowStart:
    """The start of a flow whose first epoch lies below a folder."""
    return FlowStart("p", "f", "d", FlowCheckpoint(folder), FlowState(), None, None)


def laid_down(flow: Path) -> Path:
    """Metadata as Spark writes them, with the schema beside; the checksum is of what Spark wrote."""
    epoch = flow / "0"
    schema = epoch / "state" / "0" / "_stateSchema" / "default" / "0_ab"
    file = epoch / "state" / "0" / "_metadata" / "v2" / "0"
    for path in (schema, file):
        path.parent.mkdir(parents=True)
    schema.write_text("schema")
    store = {"storeName": "default", "stateSchemaFilePaths": [f"file:{schema}"]}
    file.write_text(f"v2\n{json.dumps({'stateStoreInfo': [store]}, ensure_ascii=False)}")
    file.with_name(".0.crc").write_bytes(b"crc")
    return file.relative_to(flow)


def test_a_moved_checkpoint_is_mended(tmp_path: Path):
    """Nothing changes in its own folder; elsewhere the paths are corrected, once; names with blanks work, too."""
    before, after = tmp_path / "a table" / "f", tmp_path / "ünd" / "another" / "f"
    file = laid_down(before)
    assert list(schemas_lie_elsewhere(start(before))) == []
    after.parent.mkdir(parents=True)
    before.rename(after)
    (damage,) = schemas_lie_elsewhere(start(after))
    assert (damage.condition, damage.mends_itself) == ("STATE_LOST", True)
    assert damage.mend is not None
    damage.mend()
    metadata = json.loads((after / file).read_text().splitlines()[1])
    (path,) = metadata["stateStoreInfo"][0]["stateSchemaFilePaths"]
    assert Path(path.removeprefix("file:")).read_text() == "schema"
    assert not (after / file).with_name(".0.crc").exists()
    assert list(schemas_lie_elsewhere(start(after))) == []


def test_a_schema_that_is_gone_is_not_made_up(tmp_path: Path):
    """Then Spark's own message is the right one."""
    file = laid_down(tmp_path / "f")
    (tmp_path / "f").rename(tmp_path / "g")
    next((tmp_path / "g").rglob("0_ab")).unlink()
    text = (tmp_path / "g" / file).read_text()
    assert list(schemas_lie_elsewhere(start(tmp_path / "g"))) == []
    assert (tmp_path / "g" / file).read_text() == text
