"""What an existing table is changed to, and what only a full refresh can change."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType
from tests.object_stores import StoreServer, leading_to
from tests.unit.headwater.delta_log.test_catalog_managed import managed_table
from tests.unit.headwater_spark.update_parts import dataset
from tests.unit.headwater_spark.written_table import commit

from headwater.definitions.dataset import DatasetKind
from headwater.delta_log.conditions import CatalogManagedTable
from headwater.delta_log.table_history import readable_table_id
from headwater.errors import FlowFailed
from headwater_spark.delta_writes import table_upkeep
from headwater_spark.delta_writes.table_upkeep import apply_declaration
from headwater_spark.delta_writes.tables import (
    DECLARED,
    declared_names,
    has_shape,
    needs_creating_first,
    remove_empty_logs,
)
from headwater_spark.plans.schema_text import GENERATED

TABLE, VIEW = DatasetKind.STREAMING_TABLE, DatasetKind.MATERIALIZED_VIEW
ID = StructField("id", LongType())


def kept_up(
    monkeypatch: pytest.MonkeyPatch,
    table: Path,
    declared: Any,
    schema: StructType | None = None,
    kind: DatasetKind = TABLE,
    **stored: Any,
) -> tuple[list[str], list[Any]]:
    """The statements that a declared table is kept up with, and the shapes it was given."""
    commit(table, **stored)
    said: list[str] = []
    shaped: list[Any] = []
    monkeypatch.setattr(table_upkeep, "reshape_table", lambda *given: shaped.append(given[-1]))
    apply_declaration(SimpleNamespace(sql=said.append), declared, kind, table, schema)  # type: ignore[arg-type]
    return [text.replace(f"delta.`{table}`", "T") for text in said], shaped


def test_nothing_has_changed(monkeypatch, tmp_path: Path):
    """No commit where the table is as declared; one without any declaration is left alone."""
    declared = dataset(comment="c", table_properties={"a": "1"})
    properties = {"a": "1", DECLARED: declared_names(declared)}
    assert kept_up(monkeypatch, tmp_path / "t", declared, properties=properties, description="c") == ([], [])
    assert kept_up(monkeypatch, tmp_path / "u", dataset(), properties={"a": "1"}, description="c") == ([], [])


def test_what_delta_keeps_in_its_own_way_is_not_set_again(monkeypatch, tmp_path: Path):
    """Features and versions lie in the protocol, and Delta's own names have one spelling: no commit with each update."""
    declared = dataset(
        table_properties={
            "delta.feature.timestampNtz": "supported", "delta.minWriterVersion": "5", "DELTA.appendonly": "true",
            "delta.feature.invariants": "supported",
        }
    )  # fmt: skip
    stored = {"delta.appendOnly": "true", DECLARED: declared_names(declared)}
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz", "appendOnly", "invariants"],
    }  # fmt: skip
    assert kept_up(monkeypatch, tmp_path / "t", declared, properties=stored, protocol=protocol) == ([], [])
    said, _ = kept_up(monkeypatch, tmp_path / "u", declared, properties=stored)
    assert said == [
        "ALTER TABLE T SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported', 'delta.minWriterVersion' = '5')"
    ]
    listed = {**protocol, "writerFeatures": ["timestampNtz", "appendOnly"]}
    said, _ = kept_up(monkeypatch, tmp_path / "w", declared, properties=stored, protocol=listed)
    assert said == ["ALTER TABLE T SET TBLPROPERTIES ('delta.feature.invariants' = 'supported')"]
    said, _ = kept_up(monkeypatch, tmp_path / "v", dataset(), properties=stored, protocol=protocol)
    assert "ALTER TABLE T UNSET TBLPROPERTIES IF EXISTS ('delta.appendOnly')" in said


def test_what_is_declared_anew(monkeypatch, tmp_path: Path):
    """Only what differs is set; quotes and backslashes stay what they are."""
    declared = dataset(comment="it's", table_properties={"a": "1", "b": "\\"})
    said, _ = kept_up(monkeypatch, tmp_path, declared, properties={"a": "1"}, description="c")
    names = '["a", "b", "comment"]'
    assert said == [
        f"ALTER TABLE T SET TBLPROPERTIES ('b' = '\\\\', '{DECLARED}' = '{names}')",
        "COMMENT ON TABLE T IS 'it\\'s'",
    ]


def test_what_is_declared_no_more(monkeypatch, tmp_path: Path):
    """It goes, where the declaration had brought it; what somebody else set stays, comments too."""
    before = {"a": "1", "b": "1", "mine": "1", DECLARED: '["a", "b", "comment", "gone"]'}
    said, _ = kept_up(monkeypatch, tmp_path / "t", dataset(), properties=before, description="c")
    assert said == [
        f"ALTER TABLE T SET TBLPROPERTIES ('{DECLARED}' = '[]')",
        "ALTER TABLE T UNSET TBLPROPERTIES IF EXISTS ('a', 'b')",
        "COMMENT ON TABLE T IS NULL",
    ]
    before[DECLARED] = '["a"]'
    said, _ = kept_up(monkeypatch, tmp_path / "u", dataset(), properties=before, description="c")
    assert not any(text.startswith("COMMENT") for text in said)


SHAPES: list[tuple[Any, StructType, str | None]] = [
    (dataset(), StructType([ID]), None),
    (dataset(partition_columns=("ID",)), StructType([ID]), "partition_cols"),
    (dataset(), StructType([StructField("ID", LongType(), False)]), "NOT NULL"),
    (dataset(), StructType([ID, StructField("n", LongType(), False)]), "new column n"),
    (dataset(), StructType([ID, StructField("n", LongType())]), None),
    (
        dataset(),
        StructType([ID, StructField("n", LongType(), metadata={GENERATED: "id + 1"})]),
        "new column n",
    ),
    (
        dataset(),
        StructType([StructField("id", LongType(), metadata={GENERATED: "1"})]),
        "another way to compute",
    ),
]


@pytest.mark.parametrize(("declared", "schema", "changed"), SHAPES)
def test_what_takes_a_full_refresh(monkeypatch, tmp_path: Path, declared, schema, changed):
    """Partitions, and the nature of columns: a streaming table is refused with what to do, and nothing is changed."""
    if changed is None:
        assert kept_up(monkeypatch, tmp_path, declared, schema)[0] == []
        return
    with pytest.raises(FlowFailed) as caught:
        kept_up(monkeypatch, tmp_path, declared, schema)
    assert changed in caught.value.what
    assert "--full-refresh orders" in caught.value.remedy


@pytest.mark.parametrize(
    ("declared", "schema", "shaped"),
    [
        (
            dataset(schema="id INT"),
            StructType([StructField("id", IntegerType())]),
            '{"replaced": "other columns"}',
        ),
        (dataset(schema="id LONG"), StructType([ID]), None),
        (dataset(), StructType([StructField("id", IntegerType())]), None),  # overwriting the rows does it
    ],
)
def test_a_view_takes_another_shape(monkeypatch, tmp_path: Path, declared, schema, shaped):
    """Its rows are computed again anyway; with a declared schema the table is shaped before."""
    _, shapes = kept_up(monkeypatch, tmp_path, declared, schema, VIEW)
    assert shapes == ([] if shaped is None else [shaped])


def test_comments_of_columns(monkeypatch, tmp_path: Path):
    """They are set where they differ, also to nothing; columns that the table does not have yet are left out."""
    stored = {"type": "struct", "fields": [
        {"name": "id", "type": "long", "nullable": True, "metadata": {"comment": "old"}},
        {"name": "n", "type": "long", "nullable": True, "metadata": {"comment": "same"}},
        {"name": "o`dd", "type": "long", "nullable": True, "metadata": {}}]}  # fmt: skip
    schema = StructType(
        [
            StructField("ID", LongType()),
            StructField("n", LongType(), metadata={"comment": "same"}),
            StructField("o`dd", LongType(), metadata={"comment": "new"}),
            StructField("more", StringType(), metadata={"comment": "x"}),
        ]
    )
    commit(tmp_path, schema=stored)
    said: list[str] = []
    apply_declaration(SimpleNamespace(sql=said.append), dataset(), TABLE, tmp_path, schema)  # type: ignore[arg-type]
    assert said == [
        f"ALTER TABLE delta.`{tmp_path}` ALTER COLUMN `ID` COMMENT ''",
        f"ALTER TABLE delta.`{tmp_path}` ALTER COLUMN `o``dd` COMMENT 'new'",
    ]


@pytest.mark.parametrize(
    ("declared", "flows", "schema", "first"),
    [
        (dataset(), 1, StructType([ID]), False),
        (dataset(), 2, StructType([ID]), True),
        (dataset(comment="c"), 1, StructType([ID]), True),
        (dataset(table_properties={"a": "1"}), 1, StructType([ID]), True),
        (dataset(cluster_columns=("id",)), 1, StructType([ID]), True),
        (dataset(schema="id LONG"), 1, StructType([ID]), True),
        (dataset(partition_columns=("id",)), 1, StructType([ID]), False),
        (dataset(), 1, StructType([StructField("sum(id)", LongType())]), True),
    ],
)
def test_what_is_created_before_its_first_row(declared, flows, schema, first):
    """A table that the first write can't make as declared; flows that write side by side find one that is there."""
    assert needs_creating_first(declared, flows, schema) is first


def test_logs_without_a_commit(tmp_path: Path):
    """They are taken away, since Delta makes no table beside them; a table's log is not touched."""
    born, unborn = tmp_path / "born", tmp_path / "unborn"
    commit(born)
    (unborn / "_delta_log").mkdir(parents=True)
    remove_empty_logs(MagicMock(), None, born, unborn, tmp_path / "none")
    assert (readable_table_id(born) is not None, (unborn / "_delta_log").exists(), unborn.exists()) == (
        True,
        False,
        True,
    )
    assert readable_table_id(unborn) is None


def test_logs_without_a_commit_on_a_store(light_store: StoreServer):
    """Hadoop's mark of the log's folder is enough for Delta to refuse, and only Hadoop can remove it: it has to, and nothing else."""
    spark = MagicMock()
    path = MagicMock()
    setattr(spark._jvm, "org.apache.hadoop.fs.Path", path)
    with leading_to(light_store):
        light_store.make_bucket("lake")
        unborn, half, born, none = (
            light_store.place("lake", name) for name in ("unborn", "half", "born", "none")
        )
        for log in (unborn / "_delta_log", born / "_delta_log", half / "_delta_log" / "_staged_commits"):
            light_store.put_mark(log)
        (born / "_delta_log" / f"{0:020d}.json").write_text("{}")
        assert not (unborn / "_delta_log").exists()
        remove_empty_logs(spark, unborn, half, born, none)
    removed = [call.args[0] for call in path.call_args_list]
    assert removed == [str(unborn / "_delta_log"), str(half / "_delta_log")]
    system = path.return_value.getFileSystem.return_value
    assert [call.args[1] for call in system.delete.call_args_list] == [True, True]


@pytest.mark.parametrize(
    ("schema", "partitions", "same"),
    [
        (StructType([StructField("ID", LongType())]), (), True),
        (StructType([StructField("id", IntegerType())]), (), False),
        (StructType([StructField("id", LongType(), False)]), (), False),
        (StructType([StructField("id", LongType(), metadata={GENERATED: "1"})]), (), False),
        (StructType([ID, StructField("n", LongType())]), (), False),
        (StructType([ID]), ("id",), False),
    ],
)
def test_whether_a_table_has_the_declared_shape(tmp_path: Path, schema, partitions, same):
    """Columns with their types and nature, and partitions; letter case does not tell columns apart."""
    commit(tmp_path)
    assert has_shape(tmp_path, dataset(partition_columns=partitions), schema) is same


def test_a_table_that_a_catalog_manages_is_refused(tmp_path):
    """Before anything is written to it, and for that reason."""
    managed_table(tmp_path / "t")
    with pytest.raises(CatalogManagedTable, match="A catalog manages this table"):
        apply_declaration(None, dataset("t"), TABLE, tmp_path / "t", None)


@pytest.mark.parametrize(
    ("stored", "declared", "said"),
    [
        (None, (), []), ([], (), []), (["Id"], ("id",), []), (["`a.b`"], ("a.b",), []),
        ([], ("id",), ["(`id`)"]), (["id"], (), ["NONE"]), (["id", "day"], ("day", "id"), ["(`day`, `id`)"]),
    ],
)  # fmt: skip
def test_clustering_that_an_overwrite_drops(
    monkeypatch, tmp_path: Path, stored: list[str] | None, declared: tuple[str, ...], said: list[str]
):
    """It is declared again where it is another one, in letters that count alike; a table that never had any is not asked."""
    features = [] if stored is None else ["clustering"]
    log = SimpleNamespace(protocol=lambda: SimpleNamespace(writer_features=features))
    monkeypatch.setattr(table_upkeep, "delta_table", lambda _: log)
    monkeypatch.setattr(table_upkeep, "columns_of", lambda _: dict.fromkeys(["id", "day", "a.b"]))
    texts: list[str] = []

    def sql(text: str) -> Any:
        if not text.startswith("DESCRIBE DETAIL"):
            texts.append(text.rpartition("CLUSTER BY ")[2])
        chosen = SimpleNamespace(collect=lambda: [(stored,)])
        return SimpleNamespace(select=lambda _: chosen)

    session: Any = SimpleNamespace(sql=sql)
    table_upkeep.keep_clustering(session, dataset(cluster_columns=declared), tmp_path)
    assert texts == said
