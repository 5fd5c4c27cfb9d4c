"""Classes of the JVM are looked up once: a warm update of ours sends no look-up, PySpark's short names are not searched, and no error
of Java's is made. No object is given back by a call of its own.
"""

from __future__ import annotations

import sys

import pytest
from py4j.clientserver import ClientServerConnection
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession

from headwater_spark import java_classes

SOURCE = """
@dp.table
@dp.expect_or_quarantine("positive", "amount > 0")
def orders():
    return spark.readStream.schema("id INT, amount INT").json(LANDING)

dp.create_streaming_table("latest")
dp.create_auto_cdc_flow(target="latest", source="orders", keys=["id"], sequence_by="amount")

@dp.materialized_view
def total():
    return spark.read.table("orders").agg(F.sum("amount").alias("amount"))

@dp.materialized_view
def joined():
    return spark.sql("SELECT o.id FROM orders o JOIN latest l ON o.id = l.id")
"""


def test_a_warm_update_looks_nothing_up(pipeline, spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    """Appended, quarantined and merged rows and a view: what the first update asked for, the next ones know."""
    case = pipeline(SOURCE)
    case.land([{"id": 1, "amount": 1}])
    assert case.update().state == "COMPLETED"
    case.land([{"id": 1, "amount": 2}, {"id": 2, "amount": -1}])
    assert case.update().state == "COMPLETED"
    kept = vars(spark._jvm)
    names = {*java_classes._SHORT_NAMES, *java_classes._SHORT_NAMES.values(), *java_classes._FULL_NAMES}
    assert {name for name in names if not isinstance(kept.get(name), JavaClass)} == set()
    looked_up: list[tuple[str, str]] = []

    def record(view: type) -> None:
        ask = view.__getattr__

        def recorded(self: object, name: str) -> object:
            looked_up.append((sys._getframe(1).f_code.co_filename, name))
            return ask(self, name)

        monkeypatch.setattr(view, "__getattr__", recorded)

    record(JavaPackage)
    record(JVMView)
    raised: list[str] = []
    convert = captured.convert_exception

    def converted(error: object) -> object:
        raised.append(str(error))
        return convert(error)

    monkeypatch.setattr(captured, "convert_exception", converted)
    given_back: list[str] = []
    send = ClientServerConnection.send_command

    def sent(self: ClientServerConnection, command: str) -> object:
        if command.startswith(MEMORY_COMMAND_NAME):
            given_back.append(command)
        return send(self, command)

    monkeypatch.setattr(ClientServerConnection, "send_command", sent)
    case.land([{"id": 1, "amount": 3}, {"id": 2, "amount": -2}])
    assert case.update().state == "COMPLETED"
    assert given_back == []
    assert (case.rows("latest"), case.rows("total")) == ([(1, 3)], [(6,)])
    assert looked_up, "PySpark itself looks some up: nothing was recorded"
    assert [name for file, name in looked_up if "headwater_spark" in file] == []
    assert names & {name for _, name in looked_up} == set()
    # Each costs sixteen calls of PySpark; a collection of Java's that Python goes through ends with one.
    assert raised == []
