"""A table whose commits a catalog owns is refused for that reason, and not as one that is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.delta_log.conditions import CatalogManagedTable
from headwater.delta_log.table_history import readable_table_id, table_id
from headwater.delta_log.versions import table_head
from headwater.errors import SourceUnreachable


def managed_table(folder: Path, feature: str = "catalogManaged") -> None:
    """A Delta table with the feature, as a catalog makes it."""
    features = [feature, "vacuumProtocolCheck"]
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": [*features, "inCommitTimestamp"],
    }
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    metadata = {
        "id": "1c2e4a7e-0000-4000-8000-000000000001",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": [],
        "configuration": {"delta.enableInCommitTimestamps": "true"},
        "createdTime": 1,
    }
    info = {"timestamp": 1, "inCommitTimestamp": 1, "operation": "CREATE TABLE", "operationParameters": {}}
    actions = [{"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}]
    (folder / "_delta_log").mkdir(parents=True)
    text = "\n".join(map(json.dumps, actions)) + "\n"
    (folder / "_delta_log" / f"{0:020}.json").write_text(text)


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogOwned-preview"])
def test_it_is_named_for_what_it_is(tmp_path, feature):
    """Looks that say so, and looks that leave it to others: the condition is a terminal one."""
    managed_table(tmp_path / "t", feature)
    for look in (readable_table_id, table_head):
        with pytest.raises(CatalogManagedTable, match="A catalog manages this table") as refused:
            look(tmp_path / "t")
        assert not refused.value.transient
    assert table_id(tmp_path / "t") is None


def test_a_damaged_table_is_still_a_damaged_one(tmp_path):
    """The other reasons why a log can't be opened keep their condition."""
    managed_table(tmp_path / "t")
    (tmp_path / "t" / "_delta_log" / f"{0:020}.json").write_text("{")
    with pytest.raises(SourceUnreachable) as refused:
        readable_table_id(tmp_path / "t")
    assert refused.value.condition == "SOURCE_UNREACHABLE"
