"""A table that a stream joins is read anew for each batch; ``versionAsOf`` pins it; rows that are written stay."""

from __future__ import annotations

import pyarrow as pa
from deltalake import write_deltalake
from tests.pipeline_case import read_rows

SOURCE = """
SHOPS = LANDING + "/../shops"

def landed(folder):
    rows = spark.readStream.schema("id INT, shop STRING").option("maxFilesPerTrigger", 1)
    return rows.json(LANDING + "/" + folder)

@dp.foreach_batch_sink
def moving(df, batch_id):
    df.write.format("delta").mode("append").save(LANDING + "/../seen")
    if batch_id == 0:
        moved = spark.createDataFrame([("a", "Rome")], "shop STRING, city STRING")
        moved.write.format("delta").mode("overwrite").save(SHOPS)

@dp.append_flow(target="moving")
def send():
    return landed("sent").join(spark.read.format("delta").load(SHOPS), "shop").select("id", "city")

@dp.materialized_view
def cities():
    return spark.read.format("delta").load(SHOPS)

@dp.table
def placed():
    return landed("orders").join(dp.read("cities"), "shop", "left").select("id", "city")

@dp.table
def pinned():
    shops = spark.read.format("delta").option("versionAsOf", 0).load(SHOPS)
    return landed("orders").join(shops, "shop", "left").select("id", "city")
"""


def test_a_dimension_moves(pipeline):
    """Between two batches of an update, and between updates: the next batch sees it, the pinned read does not."""
    case = pipeline(SOURCE)

    def move(city: str) -> None:
        shops = pa.table({"shop": ["a"], "city": [city]})
        write_deltalake(str(case.root / "shops"), shops, mode="overwrite")

    move("Oslo")
    case.land([{"id": 1, "shop": "a"}], "sent")
    case.land([{"id": 2, "shop": "a"}], "sent")
    (case.landing / "orders").mkdir()
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert read_rows(case.root / "seen") == [(1, "Oslo"), (2, "Rome")]
    for number, city in enumerate(("Bern", "Lima"), start=1):
        move(city)
        case.land([{"id": number, "shop": "a"}, {"id": 10 + number, "shop": "b"}], "orders")
        assert case.update().state == "COMPLETED"
    assert case.rows("placed") == [(1, "Bern"), (2, "Lima"), (11, None), (12, None)]
    assert case.rows("pinned") == [(1, "Oslo"), (2, "Oslo"), (11, None), (12, None)]
