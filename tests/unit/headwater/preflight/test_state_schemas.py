"""Paths in a state's metadata follow a checkpoint that was moved or copied."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headwater.checkpoints.layout import FlowCheckpoint, FlowState
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.state_schemas import schema_is_damaged, schemas_lie_elsewhere


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


def utf(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()


ONE = (1).to_bytes(4)
SCHEMAS = {
    "v1": utf("v1") + utf("keys") + utf("values"),
    "v2": utf("v2") + ONE + utf("keys") + (2).to_bytes(4) + utf("values") + utf("more"),
    "a form of tomorrow": utf("v9") + b"whatever",
}


def with_schema(epochs: Path, data: bytes) -> tuple[FlowStart, Path]:
    """A stateful flow after a batch, and the file that says which columns its state has."""
    state = FlowState(state_settings={"spark.sql.shuffle.partitions": "1"})
    one = replace(start(epochs), state=state)
    for name in ("commits/0", "state/0/0/1.zip", "state/0/0/_metadata/schema"):
        file = one.folder / name
        assert isinstance(file, Path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return one, file


@pytest.mark.parametrize("form", SCHEMAS)
def test_whole_schemas_are_no_finding(tmp_path: Path, form: str):
    """In each form that Spark has, and in those that are not known."""
    assert list(schema_is_damaged(with_schema(tmp_path, SCHEMAS[form])[0])) == []


@pytest.mark.parametrize("form", ["v1", "v2"])
def test_a_schema_that_is_cut_off(tmp_path: Path, form: str):
    """Wherever it ends; a repair that is asked for lets Spark write it again, and no start does so by itself."""
    for end in range(len(SCHEMAS[form])):
        one, file = with_schema(tmp_path, SCHEMAS[form][:end])
        (damage,) = schema_is_damaged(one)
        assert (damage.condition, damage.blocks, damage.mends_itself) == ("STATE_DAMAGED", True, False)
    assert damage.mend is not None
    damage.mend()
    assert not file.exists()
    assert (one.folder / ".aside/state/0/0/_metadata/schema").is_file()
    assert list(schema_is_damaged(one)) == []


def test_a_schema_that_is_gone_is_not_made_up(tmp_path: Path):
    """Then Spark's own message is the right one."""
    file = laid_down(tmp_path / "f")
    (tmp_path / "f").rename(tmp_path / "g")
    next((tmp_path / "g").rglob("0_ab")).unlink()
    text = (tmp_path / "g" / file).read_text()
    assert list(schemas_lie_elsewhere(start(tmp_path / "g"))) == []
    assert (tmp_path / "g" / file).read_text() == text
