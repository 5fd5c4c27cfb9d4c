"""Comments, properties, clustering, partitioning, schemas and privacy of tables are what the sources say now.

One pipeline, whose declarations change from update to update: each table with what is tried of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.pipeline_case import PipelineCase, UpdateReport, read_rows

from headwater.errors import FlowFailed, UnknownDataset, UnsupportedArgument
from headwater.graph.stored_manifest import stored_manifest
from headwater_spark.testing.local_session import forget_tables

COLUMNS = "id INT, name STRING, day DATE"


def declared(name: str, arguments: str, *, folder: str = "rows", query: str = "") -> str:
    """A table, or where its name ends so a materialized view, of the files of a folder."""
    kind, read = ("materialized_view", "read") if name.endswith("_v") else ("table", "readStream")
    rows = f'spark.{read}.schema("{COLUMNS}").json(f"{{LANDING}}/{folder}"){query}'
    return f"@dp.{kind}({arguments})\ndef {name}():\n    return {rows}\n\n"


def both(name: str, arguments: str, **more: str) -> str:
    """A table of a stream and a view of the same files, declared alike."""
    return declared(f"{name}_t", arguments, **more) + declared(f"{name}_v", arguments, **more)


def row(number: int | None, day: str = "2026-01-01") -> dict[str, Any]:
    """A row of the files."""
    return {"id": number, "name": "a", "day": day}


CLUSTERED = ("clustered_t", "clustered_v")
NAMED = ("named_t", "named_v")
COMPUTED = ("computed_t", "computed_v")
PROPERTIES = '"delta.appendOnly": "true", "team": "a", "delta.autoOptimize.optimizeWrite": "true"'
IN_PROTOCOL = {
    "delta.feature.timestampNtz": "supported",
    "delta.feature.invariants": "supported",
    "delta.appendonly": "true",
}
NAMES = """.selectExpr("id AS `a b`", "id AS `c.d`", "named_struct('x', id) AS st")"""
WIDE = '.selectExpr(*[f"id + {n} AS c{n}" for n in range(33)])'
DDL = f"{COLUMNS.replace('INT', 'INT NOT NULL COMMENT 0')}, year INT GENERATED ALWAYS AS (year(day)), later BIGINT"
PRIVATE = """
@dp.table(private=True)
def hidden():
    return spark.readStream.schema("id INT").json(f"{LANDING}/private")

@dp.materialized_view
def shown():
    return dp.read("hidden").groupBy().count()

"""


def definition(*, clusters: str, described: str, partition: str, key: str) -> str:
    """The source, with what changes in it."""
    ddl = DDL.replace("COMMENT 0", f"COMMENT '{key}'")
    computed = both("computed", f'schema="{ddl}", partition_cols=["year"]', folder="computed")
    return (
        both("clustered", f"cluster_by={clusters}")
        + both("named", 'cluster_by=["a b", "c.d", "st.x"]', query=NAMES)
        + declared("described", described, folder="still")
        + declared("quiet", f"table_properties={IN_PROTOCOL}", folder="still")
        + declared("parted", f'partition_cols=["{partition}"]')
        + declared("wide", 'cluster_by=["c32"], table_properties={"delta.dataSkippingNumIndexedCols": "33"}', query=WIDE)
        + computed.replace("@dp.", '@dp.expect_or_drop("few", "id < 9")\n@dp.')
        + PRIVATE
    )  # fmt: skip


FIRST = definition(
    clusters='["id"]', described=f'comment="one", table_properties={{{PROPERTIES}}}', partition="day", key="the key"
)  # fmt: skip
CHANGED = definition(
    clusters='["name", "id"]', described='comment="two", table_properties={"team": "b"}', partition="name", key="the key"
)  # fmt: skip
BARE = definition(clusters='["name", "id"]', described="", partition="name", key="another")


@dataclass(frozen=True)
class Round:
    """What an update reported, and each table of the schema as it was after it."""

    report: UpdateReport
    tables: Mapping[str, DeltaTable]
    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    clusters: Mapping[str, Sequence[str]]

    def fields(self, name: str) -> dict[str, Any]:
        """The columns of a table by name."""
        return {field.name: field for field in self.tables[name].schema().fields}


def clusters_of(place: Path) -> list[str]:
    """The columns that a table is clustered by, as the newest word of its log on them has it."""
    commits = [commit.read_text() for commit in sorted((place / "_delta_log").glob("*.json"))]
    actions = [json.loads(line) for commit in commits for line in commit.splitlines()]
    said = [action["domainMetadata"] for action in actions if "domainMetadata" in action]
    words = [one for one in said if one["domain"] == "delta.clustering" and not one["removed"]]
    columns = json.loads(words[-1]["configuration"])["clusteringColumns"] if words else []
    fields = json.loads(DeltaTable(str(place)).schema().to_json())["fields"]
    return [".".join(_logical(fields, column)) for column in columns]


def _logical(fields: Any, column: Sequence[str]) -> Iterator[str]:
    for step in column:
        field = next(
            f for f in fields if f["metadata"].get("delta.columnMapping.physicalName", f["name"]) == step
        )
        fields = field["type"]["fields"] if isinstance(field["type"], dict) else []
        yield field["name"]


@pytest.fixture(scope="module")
def case(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, one_partition: None
) -> Iterator[PipelineCase]:
    yield PipelineCase(tmp_path_factory.mktemp("declared"), FIRST)
    forget_tables(spark)


@pytest.fixture(scope="module")
def rounds(case: PipelineCase) -> list[Round]:
    """Five updates: of what is new, of more rows, of changed declarations, refilled by them, and of bare ones."""
    made: list[Round] = []

    def update(**selection: Any) -> None:
        report = case.update(**selection)
        places = {
            path.name: path for path in case.table("quiet").parent.iterdir() if (path / "_delta_log").is_dir()
        }
        tables = {name: DeltaTable(str(path)) for name, path in places.items()}
        rows = {name: read_rows(path) for name, path in places.items()}
        made.append(Round(report, tables, rows, {name: clusters_of(path) for name, path in places.items()}))

    for folder in ("rows", "still"):
        case.land([row(1)], folder)
    case.land([row(1), row(9)], "computed")
    case.land([{"id": 1}, {"id": 2}], "private")
    update()
    case.land([row(2)], "rows")
    case.land([{"id": 3}], "private")
    update(tables=(*CLUSTERED, *NAMED, "hidden", "shown"))
    case.rewrite(CHANGED)
    update(tables=(*CLUSTERED, "described", "quiet", "parted"))
    update(tables=("described",), full_refresh=(*CLUSTERED, *COMPUTED, "parted"))
    case.rewrite(BARE)
    case.land([row(None, "2025-01-01")], "computed")
    update(tables=("described", *COMPUTED))
    return made


def test_every_update_ends_as_it_should(rounds: list[Round]):
    """Only where a declaration or a row can't be taken, the flow of its table fails."""
    failed = [[flow for flow, status in one.report.statuses.items() if status == "FAILED"] for one in rounds]
    assert failed == [[], [], ["parted"], [], list(COMPUTED)]


def test_comments_and_properties(rounds: list[Round]):
    """What the source gives is set, what changes there changes, what is taken away there is taken back, and no more."""
    first, _, changed, again, bare = (one.tables for one in rounds)
    assert first["described"].metadata().description == "one"
    assert (
        first["described"].metadata().configuration.items()
        >= {"delta.appendOnly": "true", "team": "a"}.items()
    )
    metadata = changed["described"].metadata()
    assert (metadata.description, metadata.configuration["team"]) == ("two", "b")
    assert "delta.appendOnly" not in metadata.configuration
    assert again["described"].version() == changed["described"].version()
    metadata = bare["described"].metadata()
    assert not metadata.description
    assert "team" not in metadata.configuration


def test_an_update_without_news_commits_nothing(rounds: list[Round]):
    """Also where Delta keeps a property in its protocol, or under its own spelling: readers of the table see no news."""
    assert rounds[2].tables["quiet"].version() == rounds[0].tables["quiet"].version()


def test_clustering(rounds: list[Round]):
    """cluster_by holds from the first write, follows the source, and survives appends, recomputes and full refreshes."""
    for name in CLUSTERED:
        assert [one.clusters[name] for one in rounds[:4]] == [["id"]] * 2 + [["name", "id"]] * 2
        assert [len(one.rows[name]) for one in rounds[:4]] == [1, 2, 2, 2]


def test_clustering_by_columns_of_any_name(rounds: list[Round]):
    """Names with blanks and dots are columns, and a dotted name that is none is a field of a struct; each survives a recompute."""
    for name in NAMED:
        assert [one.clusters[name] for one in rounds[:2]] == [["a b", "c.d", "st.x"]] * 2
        assert [len(one.rows[name]) for one in rounds[:2]] == [1, 2]


def test_clustering_by_a_column_beyond_the_first(rounds: list[Round], pipeline):
    """Delta keeps ranges of 32 columns: another to cluster by is refused before the update, and taken with the property that is named."""
    refused = pipeline(declared("wide", 'cluster_by=["c32"]', folder=".", query=WIDE))
    with pytest.raises(UnsupportedArgument, match="first 32 columns") as caught:
        refused.update()
    assert refused.nothing_written()
    assert 'delta.dataSkippingNumIndexedCols to "33"' in caught.value.remedy
    assert rounds[0].clusters["wide"] == ["c32"]


def test_partitioning(rounds: list[Round]):
    """partition_cols are the table's partitions; another set is refused with the way out, which works."""
    first, _, refused, refilled, _ = rounds
    assert first.tables["parted"].metadata().partition_columns == ["day"]
    error = refused.report["parted"].error
    assert isinstance(error, FlowFailed)
    assert "partition_cols" in error.what
    assert "--full-refresh parted" in error.remedy
    assert refilled.tables["parted"].metadata().partition_columns == ["name"]
    assert [number for number, *_ in refilled.rows["parted"]] == [1, 2]


def test_a_schema_as_ddl(rounds: list[Round]):
    """Comments, NOT NULL and computed columns of the DDL are the table's, before and after a full refresh; a table can be
    partitioned by a computed one, and the rows that its rule drops are counted.
    """
    for one in (rounds[0], rounds[3]):
        for name in COMPUTED:
            outcome = one.report[name]
            assert (outcome.input_rows, outcome.output_rows, outcome.dropped_rows) == (2, 1, 1)
            assert one.tables[name].metadata().partition_columns == ["year"]
            assert not one.fields(name)["id"].nullable
            assert one.fields(name)["id"].metadata["comment"] == "the key"
            assert [(r[0], *r[3:]) for r in one.rows[name]] == [(1, 2026, None)]
    for name in COMPUTED:
        assert "NOT NULL" in rounds[4].report[name].error.what
        assert [number for number, *_ in rounds[4].rows[name]] == [1]
        assert rounds[4].fields(name)["id"].metadata["comment"] == "another"


def test_private_tables(rounds: list[Round], case: PipelineCase, pipeline):
    """A private table feeds its own pipeline; it is no table of the schema, and others can't read it by its name."""
    assert [one.rows["shown"] for one in rounds[:2]] == [[(2,)], [(3,)]]
    assert "hidden" not in rounds[0].tables
    assert stored_manifest(case.project()).dataset("hidden").private
    other = pipeline('@dp.materialized_view\ndef x():\n    return spark.read.table("shop.hidden")\n')
    other.warehouse = case.warehouse
    with pytest.raises(UnknownDataset):
        other.manifest()


@pytest.mark.parametrize(
    ("ddl", "what"),
    [
        ("id INT DEFAULT 1", "DEFAULT"),
        ("id INT, PRIMARY KEY (id)", "more in it"),
        ("id INTT", "does not parse"),
        (
            f"{COLUMNS}, twice INT GENERATED ALWAYS AS (nope * 2)",
            "compute 'twice' of 't': .*non-existent column",
        ),
        (f"{COLUMNS}, twice DATE GENERATED ALWAYS AS (id * 2)", "compute 'twice' of 't': .*expression type"),
        (
            f"{COLUMNS}, chance DOUBLE GENERATED ALWAYS AS (rand())",
            "compute 'chance' of 't': .*non deterministic",
        ),
    ],
)
def test_a_schema_that_cannot_be(pipeline, ddl, what):
    """What open Delta can't keep up in a table of flows is refused before anything is written."""
    case = pipeline(declared("t", f'schema="{ddl}"', folder="."))
    with pytest.raises(UnsupportedArgument, match=what):
        case.manifest()
    assert case.nothing_written()


@pytest.mark.parametrize(
    ("setting", "what"),
    [
        ({"spark.executor.memory": "1g"}, "spark.executor.memory can't be set"),
        ({"spark.sql.warehouse.dir": "/x"}, "spark.sql.warehouse.dir can't be set"),
        ({"spark.sql.shuffle.partitions": "many"}, "spark.sql.shuffle.partitions can't be set"),
    ],
)
def test_settings_that_no_query_has(pipeline, setting, what):
    """A setting of the whole application, or a value that Spark does not take, is refused with its line before anything is written."""
    case = pipeline(declared("t", f"spark_conf={setting}", folder="."))
    with pytest.raises(UnsupportedArgument, match=what) as caught:
        case.update()
    assert caught.value.where == case.line_of("@dp.table")
    assert "under `spark`" in caught.value.remedy
    assert case.nothing_written()


def test_settings_that_a_query_has(pipeline, spark):
    """Settings of queries, of pipelines, and of the user's own are taken, and the session is left as it was."""
    given = {"pipelines.trigger.interval": "10 seconds", "my.own": "x", "spark.sql.shuffle.partitions": "7"}
    before = {name: spark.conf.get(name, None) for name in given}
    assert pipeline(declared("t", f"spark_conf={given}", folder=".")).manifest().flows
    assert {name: spark.conf.get(name, None) for name in given} == before
