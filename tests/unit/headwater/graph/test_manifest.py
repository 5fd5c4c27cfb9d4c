"""The manifest is written and read without loss, and answers questions about the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.definitions.dataset import DatasetKind
from headwater.definitions.expectation import ViolationAction
from headwater.definitions.source import SourceKind
from headwater.errors import InvalidSpec
from headwater.graph.manifest import (
    ColumnEntry,
    DatasetEntry,
    ExpectationEntry,
    FlowEntry,
    IncrementalEntry,
    Manifest,
    SourceEntry,
    SourceTechniques,
    portable,
    read_manifest,
)

ORDERS = DatasetEntry(
    name="orders",
    kind=DatasetKind.STREAMING_TABLE,
    location="shop/orders",
    comment="Bestellungen für heute",
    columns=(ColumnEntry(name="id", type="int"), ColumnEntry(name="at", type="timestamp", nullable=False)),
    expectations=(ExpectationEntry(name="r", constraint="id > 0", action=ViolationAction.DROP),),
    table_properties={"delta.appendOnly": "true"},
    partition_columns=("id",),
    defined_at="src/a.py:3",
)
KAFKA = SourceEntry(
    kind=SourceKind.KAFKA, streaming=True, name="orders", format="kafka", options={"subscribe": "orders"}
)
MANIFEST = Manifest(
    headwater_version="0",
    pipeline_id="p",
    pipeline_name="P",
    catalog="main",
    schema_name="shop",
    source_hash="sha256:0",
    datasets=(
        ORDERS,
        DatasetEntry(name="view", kind=DatasetKind.TEMPORARY_VIEW),
        DatasetEntry(name="other", kind=DatasetKind.STREAMING_TABLE, location="shop/other"),
        DatasetEntry(
            name="daily",
            kind=DatasetKind.MATERIALIZED_VIEW,
            location="shop/daily",
            incremental=IncrementalEntry(
                policy="auto",
                eligible=True,
                sources=(
                    SourceTechniques(
                        source="/base/landing/other",
                        rows_added="APPEND_ONLY",
                        rows_changed="ROW_BASED",
                        found_by=("id",),
                    ),
                ),
            ),
        ),
    ),
    flows=(
        FlowEntry(name="orders", target="orders", streaming=True, sources=(KAFKA,)),
        FlowEntry(name="more", target="orders", streaming=False, once=True),
        FlowEntry(name="other", target="other", streaming=True),
        FlowEntry(name="view", target="view", streaming=False, inputs=("orders",)),
        FlowEntry(
            name="daily",
            target="daily",
            streaming=False,
            inputs=("view", "other", "daily"),
            time_dependent=True,
        ),
    ),
)


def test_written_and_read(tmp_path: Path):
    """What was written is read again, every field of it."""
    path = tmp_path / "manifest.json"
    path.write_text(MANIFEST.to_json(), encoding="utf-8")
    assert read_manifest(path) == MANIFEST
    assert "für" in path.read_text(encoding="utf-8")


def test_the_text_is_stable():
    """Written twice, the text is the same: a review shows changes of the pipeline only."""
    assert Manifest.model_validate_json(MANIFEST.to_json()).to_json() == MANIFEST.to_json()


def test_what_views_allow():
    """Only views have it, and folders in it are spelled as those of sources: the file is the same on each machine."""
    assert MANIFEST.to_json().count('"incremental"') == 1
    incremental = portable(MANIFEST, {"landing": "/base/landing"}).dataset("daily").incremental
    assert incremental is not None
    assert incremental.sources[0].source == "${landing}/other"


def test_none_there(tmp_path: Path):
    """Where there is no manifest, the answer is None and no error."""
    assert read_manifest(tmp_path / "manifest.json") is None


@pytest.mark.parametrize("text", ["{}", "[]", "not json", '{"format_version": 1}'])
def test_not_a_manifest(tmp_path: Path, text: str):
    """Another file under its name is reported, with the command that rewrites it."""
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(InvalidSpec, match="is not a manifest") as caught:
        read_manifest(path)
    assert "validate" in caught.value.remedy


def test_of_a_newer_version(tmp_path: Path):
    """A manifest of a later format is refused by its version, not misread."""
    path = tmp_path / "manifest.json"
    path.write_text(MANIFEST.model_copy(update={"format_version": 99, "headwater_version": "9.9"}).to_json())
    with pytest.raises(InvalidSpec, match=r"9\.9"):
        read_manifest(path)


def test_fields_of_a_later_minor_version_are_passed_over(tmp_path: Path):
    """A field that is not known yet does no harm."""
    path = tmp_path / "manifest.json"
    path.write_text(
        MANIFEST.to_json().replace('"format_version": 1,', '"format_version": 1, "later": {"a": 1},')
    )
    assert read_manifest(path) == MANIFEST


def test_questions_about_the_graph(tmp_path: Path):
    """Upstream looks through views and leaves a table's reading of itself out; tables are what is stored."""
    assert MANIFEST.upstream("daily") == ["orders", "other"]
    assert MANIFEST.upstream("orders") == []
    assert [entry.name for entry in MANIFEST.tables] == ["orders", "other", "daily"]
    assert [flow.name for flow in MANIFEST.flows_into("orders")] == ["orders", "more"]
    assert MANIFEST.flow("more").target == "orders"
    assert MANIFEST.table_path(tmp_path, "orders") == tmp_path / "shop/orders"
    with pytest.raises(KeyError):
        MANIFEST.flow("none")
    with pytest.raises(KeyError):
        MANIFEST.table_path(tmp_path, "view")


def test_texts_of_users_without_secrets(monkeypatch: pytest.MonkeyPatch):
    """A comment, a rule and a property may quote one: the file has none; names and places stand as they are."""
    monkeypatch.setenv("HEADWATER_SECRET_SALT", "Hunter2Canary")
    monkeypatch.setenv("HEADWATER_SECRET_USER", "orders")
    rule = ExpectationEntry(name="r", constraint="sha2('Hunter2Canary') <> x", action=ViolationAction.DROP)
    entry = ORDERS.model_copy(
        update={
            "comment": "salted with Hunter2Canary",
            "expectations": (rule,),
            "table_properties": {"delta.appendOnly": "true", "note": "Hunter2Canary", "my.api.key": "short"},
        }
    )
    text = MANIFEST.model_copy(update={"datasets": (entry, *MANIFEST.datasets[1:])}).to_json()
    assert "Hunter2" not in text
    manifest = Manifest.model_validate_json(text)
    assert manifest.dataset("orders").location == "shop/orders"
    assert manifest.dataset("orders").table_properties == {
        "delta.appendOnly": "true", "note": "[redacted]", "my.api.key": "[redacted]",
    }  # fmt: skip
