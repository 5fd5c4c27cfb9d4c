"""The shapes of code that people bring from Lakeflow: each runs as it is written, or is refused with the form that works.

The shapes are those of published examples, in words of our own; ``test_seed_blocks_are_accounted_for.py`` runs the
examples themselves where they are at hand. Windows that slide, and approximate counts: ``test_forms_of_the_guides_run.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lakeflow_blocks import (
    FILE_FORMS,
    SPELLINGS,
    Block,
    Member,
    NotADataset,
    Outcome,
    Refused,
    as_file,
    build_world,
    count,
    link_tables,
    run_block,
    spelled,
)
from tests.pipeline_case import PRELUDE as PRELUDE_OF_CASES
from tests.pipeline_case import PipelineCase

from headwater.errors import DatasetReadAtImport
from headwater.updates.news import has_news

PRELUDE = """from pyspark.sql import functions as F
from pyspark.sql.functions import *
from pyspark.sql.types import *
events_df = spark.readStream.table("bronze.events")"""


pytestmark = pytest.mark.usefixtures("one_partition")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables that the forms read."""
    return build_world(tmp_path_factory.mktemp("world") / "warehouse")


REFUSALS: dict[str, tuple[str, Outcome]] = {
    "exact distinct count over windows": (
        """
@dp.table
def visitors_by_hour():
    timed = spark.readStream.table("raw.events").withWatermark("event_time", "1 hour")
    return timed.groupBy(F.window("event_time", "1 hour")).agg(
        F.count("*").alias("n"),
        F.countDistinct("user_id").alias("visitors"),
    )
""",
        Refused("UNSUPPORTED_STREAM_OPERATION", "F.countDistinct(", 'F.approx_count_distinct("user_id")'),
    ),
    "exact distinct count in SQL": (
        """
@dp.table
def visitors():
    return spark.sql("select page, count(distinct user_id) as n from stream raw.events group by page")
""",
        Refused("UNSUPPORTED_STREAM_OPERATION", "count(distinct", 'F.approx_count_distinct("user_id")'),
    ),
    "a stream that is cached": (
        "\n@dp.table\ndef kept():\n    rows = spark.readStream.table('raw.events')\n    return rows.filter('amount > 1').cache()\n",
        Refused("UNSUPPORTED_STREAM_OPERATION", ".cache()", "@dp.temporary_view"),
    ),
    "a stream that is persisted at the top": (
        "\nkept = events_df.persist()\n\n@dp.table\ndef rows():\n    return kept\n",
        Refused("UNSUPPORTED_STREAM_OPERATION", ".persist()", "@dp.temporary_view"),
    ),
    "a query that writes to a table": (
        """
query = (
    events_df.writeStream.format("delta")
    .option("checkpointLocation", "/mnt/checkpoints/x")
    .trigger(availableNow=True)
    .table("silver.events")
)
""",
        Refused("ACTION_IN_DEFINITION", '.table("silver.events")', '@dp.table(name="silver.events")'),
    ),
    "open Spark's spelling of it": (
        '\nquery = events_df.writeStream.toTable("silver.events")\n',
        Refused("ACTION_IN_DEFINITION", "toTable", '@dp.table(name="silver.events")'),
    ),
    "a query that is started": (
        "\nquery = events_df.writeStream.format('delta').start()\n",
        Refused("ACTION_IN_DEFINITION", "start()", "@dp.table"),
    ),
    "a continuous trigger": (
        "\nwriter = events_df.writeStream.trigger(continuous='1 second')\n",
        Refused("UNSUPPORTED_ARGUMENT", "trigger(continuous", "trigger: continuous"),
    ),
    "a listener that extends nothing": (
        "\nclass Progress:\n    def onQueryProgress(self, event):\n        print(event)\n\nspark.streams.addListener(Progress())\n",
        Refused("UNSUPPORTED_ARGUMENT", "addListener", "StreamingQueryListener"),
    ),
    "executors that are asked for too late": (
        "\nspark.conf.set('spark.executor.memory', '8g')\n",
        Refused("UNSUPPORTED_ARGUMENT", "spark.conf.set", "spark:\n        spark.executor.memory: 8g"),
    ),
    "a batch write at the top": (
        "\nspark.range(3).write.format('delta').saveAsTable('x')\n",
        Refused("ACTION_IN_DEFINITION", "saveAsTable", "@dp.table"),
    ),
    "a join that has a column twice": (
        """
@dp.table
def both():
    seen = spark.readStream.table("bronze.impressions").withWatermark("impression_timestamp", "5 minutes")
    timed = spark.readStream.table("bronze.events").withWatermark("event_timestamp", "5 minutes")
    return timed.alias("e").join(
        seen.alias("i"),
        expr("e.user_id = i.user_id and e.event_timestamp between i.impression_timestamp and i.impression_timestamp + interval 1 hour"),
    )
""",
        Refused("DUPLICATE_COLUMN", "def both", '.select("e.*"'),
    ),
    "a dataset that is read at the top": (
        """
@dp.table
def clean():
    return spark.readStream.table("raw.events")

cleaned = dp.read("clean")

@dp.table
def pages():
    return cleaned.groupBy("page").count()
""",
        Refused("DATASET_READ_AT_IMPORT", "cleaned = ", 'dp.read("clean")'),
    ),
    "a dataset that is read at the top before it is declared": (
        """
cleaned = spark.read.table("not_yet_there")

@dp.table
def not_yet_there():
    return spark.readStream.table("raw.events")
""",
        Refused("UNKNOWN_DATASET", "cleaned = spark", "inside functions"),
    ),
    "decorators without a function": (
        '\n@dp.expect("age", "age >= 0")\n\n@dp.expect_or_drop("mail", "mail like \'%@%\'")\n',
        NotADataset("no function", says="invalid syntax"),
    ),
    "a chain without a beginning": ('\n.withWatermark("at", "2 minutes")\n', NotADataset("a fragment", says="invalid syntax")),
    "a setting alone": (
        '\nspark.conf.set("spark.sql.shuffle.partitions", "200")\n',
        NotADataset("a setting", "INVALID_PIPELINE", "declare no dataset"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_trap(name: str, world: Path, tmp_path: Path):
    """It is refused by validation: condition, the user's line, the form that works; nothing is written."""
    text, outcome = REFUSALS[name]
    turn = list(REFUSALS).index(name)
    run_block(Member(Block(name, text, PRELUDE), outcome, turn), world, tmp_path)


FORMS = '''
@dp.table
def customers():
    """A snapshot: no brackets, a batch read."""
    return spark.table("raw.customers")

@dp.streaming_table
def from_name():
    return spark.readStream.format("delta").table("raw.events")

@dp.streaming_table(name="bronze_events", comment="as they came", table_properties={"quality": "bronze"})
def anything():
    return spark.readStream.option("mergeSchema", "true").table("raw.events")

def parsed(df):
    return df.withColumn("parsed_at", F.to_timestamp("timestamp_str", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"))

@dp.streaming_table
def enriched():
    return (
        spark.readStream.table("raw.events").transform(parsed)
        .withColumn("device", F.when(F.col("user_agent").like("%Mobile%"), "mobile").otherwise("desktop"))
        .select("event_id", "parsed_at", "device")
    )

@dp.streaming_table
def running_sum():
    return spark.readStream.table("raw.events").withWatermark("timestamp", "1 hour").groupBy("user_id").agg(F.sum("amount"))

@dp.streaming_table
def clicks_with_impressions():
    clicks = spark.readStream.table("clicks").withWatermark("click_time", "10 minutes")
    shown = spark.readStream.table("impressions").withWatermark("impression_time", "10 minutes")
    return clicks.join(shown, F.expr("""
        click_id = impression_id and click_time >= impression_time and click_time <= impression_time + interval 5 minutes
    """), "leftOuter")

@dp.streaming_table
def transactions_with_customers():
    people = dp.read("customers")
    moved = spark.readStream.table("raw.transactions")
    return moved.join(F.broadcast(people), "customer_id", "left").select("transaction_id", people["customer_tier"], "amount")

@dp.table
@dp.expect_all_or_drop({"has_user": "user_id IS NOT NULL", "paid": "amount >= 50"})
@dp.expect("known_page", "page IN ('a', 'b')")
def sessions():
    rows = dp.read_stream("bronze_events")
    return rows.select(
        F.col("event_id"), "user_id", "page", "amount", F.col("properties.duration_seconds").cast("int").alias("seconds")
    ).dropDuplicates(["event_id"])

@dp.table
def sessions_of_users():
    found, users = dp.read_stream("sessions"), dp.read("silver_users")
    return found.join(users, "user_id", "left").select(found["*"], users["user_name"])

@dp.streaming_table
def user_sessions():
    timed = spark.readStream.table("raw.events").withWatermark("event_timestamp", "1 hour")
    return timed.groupBy("user_id", F.session_window("event_timestamp", "30 minutes")).agg(
        F.count("*").alias("n"), F.collect_list("page").alias("pages")
    )
'''
ROWS = {
    "customers": 1, "from_name": 6, "bronze_events": 6, "enriched": 6, "running_sum": 2,
    "clicks_with_impressions": 3, "transactions_with_customers": 2, "sessions": 4, "sessions_of_users": 4,
    "user_sessions": 2,
}  # fmt: skip


def case_of(root: Path, world: Path, text: str, spelling: str, form: str) -> PipelineCase:
    """A pipeline of one source in a spelling and a kind of file."""
    name, content = as_file(PRELUDE, spelled(text, spelling), form)
    case = PipelineCase(root, files={name: content})
    link_tables(case, world, text)
    return case


def test_the_forms_run(world: Path, tmp_path: Path):
    """Every form that works on Lakeflow gives its rows, and stands at its sources' ends then: a second update would find nothing."""
    case = case_of(tmp_path, world, FORMS, "dp", "databricks")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert {name: count(case, name) for name in ROWS} == ROWS
    assert has_news(case.project()).reasons == ()
    assert case.rows("running_sum", order="1") == [("u1", 550.0), ("u2", 210.0)]
    assert case.rows("transactions_with_customers", "transaction_id, customer_tier") == [
        ("t1", "gold"),
        ("t2", None),
    ]


@pytest.mark.parametrize("form", FILE_FORMS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_in_every_file(world: Path, tmp_path: Path, spelling: str, form: str):
    """Whatever the face is called, and in whatever kind of file, the graph is the same."""
    text = FORMS[: FORMS.index("@dp.streaming_table\ndef running_sum")]
    entries = case_of(tmp_path, world, text, spelling, form).manifest().datasets
    assert [entry.name for entry in entries] == ["customers", "from_name", "bronze_events", "enriched"]


IN_A_LOOP = """
def declare(number):
    @dp.table(name=f"t{number}")
    def rows(number=number):
        return spark.readStream.schema("id INT").json(f"{LANDING}/t{number}")

for number in range(18):
    declare(number)
"""
WITH_A_SETTING = """
spark.conf.set("spark.sql.shuffle.partitions", "3")

@dp.table
def counted():
    return spark.readStream.schema("id INT").json(f"{LANDING}/t3").groupBy("id").count()
"""
WITH_A_HELPER = """
import sys
sys.path.append(spark.conf.get("landing") + "/../shared")
from databricks.sdk.runtime import dbutils as tools, spark as session
from pyspark.dbutils import DBUtils
from rules import cheap
SCHEMA = session.createDataFrame([(1,)], "id INT").schema
assert DBUtils(spark) is tools is dbutils

@dp.create_view
def source():
    return spark.readStream.schema(SCHEMA).json(f"{LANDING}/rows")

dp.create_target_table("copy")

@dp.append_flow(target="copy")
def fill():
    return cheap(dp.read_stream("source"))
"""
HELPER = """
import dlt
from pyspark.sql import functions as F

def cheap(df):
    return df.where(F.col("id") < 5)

@dlt.table
def from_helper():
    return spark.range(2)
"""


def test_forms_of_whole_sources(pipeline):
    """Eighteen tables declared in a loop, most of whose folders are empty: empty sources give empty tables, not errors. A setting at the top
    of a source is in force in its stateful query: the state has that many parts. A module that imports dlt and reads spark, reached
    by extending sys.path; imports of the platform's runtime.
    """
    files = {"transformations/loop.py": IN_A_LOOP, "transformations/setting.py": WITH_A_SETTING}
    case = pipeline(WITH_A_HELPER, files={name: PRELUDE_OF_CASES + text for name, text in files.items()})
    (case.root / "shared").mkdir()
    (case.root / "shared" / "rules.py").write_text(HELPER)
    for number in range(18):
        (case.landing / f"t{number}").mkdir()
    case.land([{"id": 7}], "t3")
    case.land([{"id": 1}, {"id": 9}], "rows")
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert {n: count(case, f"t{n}") for n in range(18)} == {n: int(n == 3) for n in range(18)}
    state = case.checkpoint("counted").live_folder() / "state" / "0"
    assert sorted(path.name for path in state.iterdir() if path.name.isdigit()) == ["0", "1", "2"]
    assert case.rows("copy") == [(1,)]
    assert count(case, "from_helper") == 2


def test_a_dataset_of_an_earlier_update_read_at_the_top(pipeline):
    """Its table is there, so the read would work, and give the rows of then: it is refused all the same."""
    case = pipeline("@dp.table\ndef clean():\n    return spark.range(2)\n")
    assert case.update().state == "COMPLETED"
    case.rewrite(
        'before = spark.read.table("clean")\n\n@dp.table\ndef clean():\n    return spark.range(2)\n\n'
        "@dp.table\ndef copy():\n    return before\n"
    )
    with pytest.raises(DatasetReadAtImport) as caught:
        case.manifest()
    assert caught.value.where == case.line_of("before = spark")
    assert 'dp.read("clean")' in caught.value.remedy


def test_an_empty_text_as_a_number(pipeline):
    """Casting text that is no number fails in ANSI mode, which is Spark's default; the message has the two ways out."""
    source = '@dp.table\ndef t():\n    return spark.readStream.schema("v STRING").json(LANDING).selectExpr("cast(v as int) as v")\n'
    case = pipeline(source)
    case.land([{"v": ""}])
    error = str(case.update().error)
    assert "try_cast" in error
    assert "spark.sql.ansi.enabled" in error
    relaxed = source.replace("def t", "def u")
    case.write(
        "pipeline.yml", (case.folder / "pipeline.yml").read_text() + '  spark.sql.ansi.enabled: "false"\n'
    )
    case.rewrite(relaxed)
    assert case.update().state == "COMPLETED"
    assert case.rows("u") == [(None,)]
