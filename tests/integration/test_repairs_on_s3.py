"""Damage to checkpoints on S3 is named before a row is read, and after repairs tables equal the batch."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.integration.test_damage_is_named_before_a_row_is_read import CHECKPOINTS, NEED_CHECKSUMS
from tests.object_stores import StoreServer, store_server
from tests.pipeline_case import SMALL_QUERIES, SPARK, spec_of
from tests.prepared_pipeline import FLOWS, conditions_in
from tests.store_driver import StoreDriver

import run_update
from headwater.checkpoints.layout import flow_checkpoint
from headwater.commands.command_line import main
from headwater.delta_log.commits import commit_file
from headwater.delta_log.table_history import head_version
from headwater.graph.pipeline_project import open_project
from headwater.storage.access import object_store
from headwater.storage.delta_tables import small_table
from headwater.storage.object_path import ObjectPath
from headwater.storage.place import Place, parts_below, place_of
from headwater.storage.walking import files_below, remove_tree
from headwater_spark.session import start_session

STORE = ["--storage=s3://mended/storage", "--warehouse=s3://mended/warehouse", "--json"]
JOB = "s3://mended/jobs/taken"
SOURCE = """
from pyspark.sql import functions as F
from headwater import pipelines as dp
SCHEMA = "id INT, team STRING, points INT"

@dp.table
def bronze():
    return spark.readStream.schema(SCHEMA).json("{landing}")

@dp.table
def silver():
    return dp.read_stream("bronze").select("id", (F.col("points") * 2).alias("twice"))

@dp.table
def running():
    return dp.read_stream("bronze").groupBy("team").count()
"""
TAKEN = f"""
dp.create_streaming_table("taken", path="{JOB}/table")

@dp.append_flow(target="taken", import_checkpoint="s3a://{JOB.removeprefix("s3://")}/checkpoint")
def goes_on():
    return spark.readStream.schema(SCHEMA).json("{{landing}}")
"""


def by_hand(folder: str, landing: str, job: str, *roots: str) -> None:
    """In the driver: a job by hand, in the session that all updates go on with."""
    project = open_project(folder, storage=roots[0].partition("=")[2], warehouse=roots[1].partition("=")[2])
    spark = start_session(project.pipeline_id, project.spark_conf)
    rows = spark.readStream.schema("id INT, team STRING, points INT").json(landing)
    writer = rows.writeStream.format("delta").option("checkpointLocation", f"{job}/checkpoint")
    writer.trigger(availableNow=True).start(f"{job}/table").awaitTermination()


def updated(*arguments: str) -> tuple[int, dict[str, Any]]:
    """In the driver: an update's exit code and report."""
    output = io.StringIO()
    with redirect_stdout(output):
        code = run_update.main(list(arguments))
    return code, json.loads(output.getvalue().splitlines()[-1])


@pytest.fixture(scope="module")
def s3() -> Iterator[StoreServer]:
    with store_server(light=True) as server:
        server.make_bucket("mended")
        yield server


class Shop:
    """The pipeline, its input, and the process that runs its updates."""

    def __init__(self, root: Path, driver: StoreDriver, server: StoreServer) -> None:
        self.driver, self.server = driver, server
        self.folder, self.landing = root / "shop", root / "landing"
        (self.folder / "transformations").mkdir(parents=True)
        self.landing.mkdir()
        spec = f"name: shop\nschema: shop\n{spec_of({**SPARK, **SMALL_QUERIES})}"
        (self.folder / "pipeline.yml").write_text(spec)
        self.write(SOURCE)
        self.rows: list[dict[str, Any]] = []
        self.roots = [f"--storage={root}/storage", f"--warehouse={root}/warehouse", "--json"]

    def write(self, source: str) -> None:
        """Write the source."""
        text = source.replace("{landing}", str(self.landing))
        (self.folder / "transformations" / "tables.py").write_text(text)

    def land(self) -> None:
        """Six more rows."""
        first = len(self.rows)
        rows = [{"id": first + n, "team": "abc"[n % 3], "points": n} for n in range(6)]
        (self.landing / f"{first:05d}.json").write_text("\n".join(map(json.dumps, rows)))
        self.rows += rows

    def by_hand(self) -> None:
        """A job that somebody wrote takes in what has landed."""
        arguments = (str(self.folder), str(self.landing), JOB, *STORE)
        self.driver.run(by_hand, *arguments, server=self.server.environment())

    def update(self) -> tuple[int, dict[str, Any]]:
        """An update's exit code and report."""
        code, report = self.driver.run(
            updated, str(self.folder), *self.roots, server=self.server.environment(), goes_on=True
        )
        return code, report

    def verb(self, *words: str) -> tuple[int, dict[str, Any]]:
        """A verb's exit code and answer."""
        verb, *rest = words
        action = [rest.pop(0)] if verb == "checkpoints" else []
        output = io.StringIO()
        with redirect_stdout(output):
            code = main([verb, *action, str(self.folder), *rest, *self.roots])
        answer: dict[str, Any] = json.loads(output.getvalue().splitlines()[-1])
        return code, answer

    def epoch(self, table: str, flow: str = "") -> ObjectPath:
        """The live epoch of a flow."""
        live = flow_checkpoint(place("storage/pipelines/shop"), table, flow or table).live_folder()
        assert isinstance(live, ObjectPath)
        return live

    def relocate(self) -> None:
        """From folders to S3; then a flow goes on where a job by hand stood."""
        to = [word.replace("--", "--to-") for word in STORE[:2]]
        assert self.verb("relocate", *to)[1]["state"] == "PLANNED"
        assert self.verb("relocate", *to, "--yes")[0] == 0
        assert self.update()[0] == 3
        self.roots = STORE
        self.write(SOURCE + TAKEN)

    def check(self) -> None:
        """Every table is what its query gives over all that was landed."""
        whole = Counter((row["id"], row["team"], row["points"]) for row in self.rows)
        assert read("warehouse/shop/bronze") == read("jobs/taken/table") == whole
        assert read("warehouse/shop/silver") == Counter((row["id"], row["points"] * 2) for row in self.rows)
        teams = Counter(row["team"] for row in self.rows)
        assert read("warehouse/shop/running") == Counter(teams.items())


def place(key: str) -> Place:
    return place_of(f"s3://mended/{key}", store=object_store("s3"))


def read(key: str) -> Counter[tuple[Any, ...]]:
    from deltalake import QueryBuilder

    answer = QueryBuilder().register("t", small_table(place(key))).execute("select * from t").read_all()
    return Counter(tuple(row.values()) for row in pa.table(answer).to_pylist())


def written() -> list[tuple[str, int, float]]:
    """All tables, and all checkpoints."""
    roots = ("warehouse", "jobs", "storage/pipelines/shop/checkpoints")
    return sorted(
        (str(file), about.st_size, about.st_mtime)
        for root in roots
        for file, about in files_below(place(root))
    )


def last(folder: ObjectPath, log: str) -> ObjectPath:
    return max(
        (file for file in (folder / log).iterdir() if file.name.isdigit()), key=lambda file: int(file.name)
    )


def damage(shop: Shop) -> dict[str, str]:
    """One of each kind that no start may mend; what each flow's first finding is to be."""
    for log in ("offsets", "commits"):
        remove_tree(shop.epoch("silver") / log)
    remove_tree(shop.epoch("bronze") / "sources")
    for file in (shop.epoch("running") / "state" / "0" / "1").glob("2*"):
        file.unlink()
    (shop.epoch("taken", "goes_on") / "metadata").write_text('{"id":"00000000-0000-0000-0000-000000000000"}')
    return {
        "bronze": "FILE_LOG_LOST", "goes_on": "QUERY_ID_CHANGED", "running": "STATE_LOST", "silver": "CHECKPOINT_REWOUND",
    }  # fmt: skip


def small_damage(shop: Shop) -> dict[str, str]:
    """What a start mends by itself."""
    last(shop.epoch("bronze"), "offsets").unlink()
    last(shop.epoch("silver"), "commits").write_text("")
    (shop.epoch("running") / "metadata").unlink()
    offsets = last(shop.epoch("taken", "goes_on"), "offsets")
    offsets.write_bytes(offsets.read_bytes()[:30])
    return {
        "bronze": "OFFSETS_LOST", "goes_on": "OFFSETS_DAMAGED", "running": "METADATA_LOST", "silver": "COMMITS_DAMAGED",
    }  # fmt: skip


def each_damage_is_named(shop: Shop) -> None:
    """What is found on a disk is found here, with the same name, but for what only a checksum shows; all is put back as it was."""
    project = open_project(shop.folder, storage=place("storage"), warehouse=place("warehouse"))
    kept = {flow: content(shop.epoch(flow)) for flow in FLOWS}
    outcomes = []
    for flow, harm, condition, mends_itself in CHECKPOINTS:
        if (flow, harm) in NEED_CHECKSUMS:
            continue
        folder = shop.epoch(flow)
        harm(folder)
        outcomes.append((flow, conditions_in(project, flow)[:1], [(condition, mends_itself)]))
        remove_tree(folder)
        for name, data in kept[flow].items():
            (folder / name).write_bytes(data)
    wrong = [entry for entry in outcomes if entry[1] != entry[2]]
    assert not wrong
    assert len(outcomes) == len(CHECKPOINTS) - len(NEED_CHECKSUMS)


def content(folder: ObjectPath) -> dict[str, bytes]:
    """Every object below a folder."""
    return {
        "/".join(parts_below(file, folder)): file.read_bytes()
        for file, about in files_below(folder)
        if about.st_size
    }


def refused_without(shop: Shop, file: Place, flow: str) -> str:
    """The condition by which an update refuses a flow while a file is away."""
    whole = file.read_bytes()
    file.unlink()
    code, report = shop.update()
    file.write_bytes(whole)
    assert code == 3
    return next(str(entry["error"]["condition"]) for entry in report["flows"] if entry["flow"] == flow)


def newest_file(table: str) -> Place:
    """The last data file of the table's newest commit."""
    folder = place(f"warehouse/shop/{table}")
    lines = commit_file(folder, head_version(folder)).read_text().splitlines()
    return folder / str([json.loads(line)["add"]["path"] for line in lines if line.startswith('{"add"')][-1])


def findings(shop: Shop) -> tuple[int, dict[str, str]]:
    """The first finding of each flow, and the exit code."""
    code, answer = shop.verb("checkpoints", "diagnose")
    return code, {entry["flow"]: entry["condition"] for entry in reversed(answer["findings"])}


@pytest.mark.timeout(300)
def test_repairs_on_s3(s3: StoreServer, tmp_path: Path, store_driver: StoreDriver):
    """A job's checkpoint is taken over, and folders become S3; four kinds of damage are named, refused before a write, and repaired; four are mended."""
    shop = Shop(tmp_path, store_driver, s3)
    shop.land()
    shop.by_hand()
    assert shop.update()[0] == 0, shop.driver.said[-4000:]
    shop.land()
    shop.relocate()
    assert shop.update()[0] == 0, shop.driver.said[-4000:]
    shop.check()
    assert findings(shop) == (0, {})
    each_damage_is_named(shop)
    assert findings(shop) == (0, {})
    assert len(shop.verb("checkpoints", "snapshot")[1]["snapshots"]) == 4

    expected = damage(shop)
    assert findings(shop) == (3, expected)
    before = written()
    shop.land()
    assert shop.update()[0] == 3
    assert written() == before

    actions = {"silver": "rebuild", "bronze": "restore", "running": "rewind", "goes_on": "mend"}
    for flow, action in actions.items():
        code, answer = shop.verb("repair", flow, f"--action={action}", "--yes")
        assert (code, answer["state"]) == (0, "COMPLETED")
        assert answer["repair"]["doubled"].startswith("no rows"), answer
    assert findings(shop) == (0, {})
    assert shop.update()[0] == 0, shop.driver.said[-4000:]
    shop.check()

    expected = small_damage(shop)
    assert findings(shop) == (0, expected)
    shop.land()
    assert refused_without(shop, newest_file("bronze"), "bronze") == "TABLE_FILES_GONE"
    assert shop.update()[0] == 0, shop.driver.said[-4000:]
    shop.check()
    assert findings(shop) == (0, {})
