"""The session: settings that an update needs, and Python functions in queries that end."""

from __future__ import annotations

import sys

import pytest
from pyspark.sql import SparkSession

from headwater_spark.hadoop_origins import forget_origins
from headwater_spark.session import start_session

pytestmark = pytest.mark.usefixtures("adaptive")


def test_settings_that_every_update_needs(spark: SparkSession):
    """Workers run the driver's Python, times are UTC, and the reader that hangs under Python functions is off."""
    assert spark.conf.get("spark.sql.execution.arrow.pythonUDF.columnarInput.enabled") == "false"
    assert spark.conf.get("spark.sql.inMemoryColumnarStorage.enableVectorizedReader") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.pythonExec == sys.executable
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"


def test_a_pipelines_settings_win(spark: SparkSession):
    """What pipeline.yml says is set over the defaults; the process keeps its one session."""
    again = start_session("other", {"spark.sql.session.timeZone": "Europe/Berlin"})
    assert again.sparkContext is spark.sparkContext
    assert again.conf.get("spark.sql.session.timeZone") == "Europe/Berlin"
    start_session("other", {})
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_settings_of_hadoop_are_small(spark: SparkSession):
    """They keep their values, and those that a session gives its queries have no names of files, which would go along with each."""
    given = spark._jsparkSession.sessionState().newHadoopConf()
    assert given.get("io.seqfile.compress.blocksize") == "1000000"
    assert given.getPropertySources("io.seqfile.compress.blocksize") is None


def test_notes_of_hadoop_are_forgotten_at_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    """A thousand of them in a few calls, and not one by one."""
    settings = spark.sparkContext._jsc.hadoopConfiguration()
    for number in range(20):
        settings.set(f"test.setting.{number}", "value", "a file")
    sent: list[str] = []
    send = type(spark._jvm._gateway_client).send_command

    def recorded(client: object, command: str, *rest: object, **named: object) -> str:
        if not command.startswith("m\n"):  # py4j lets go of objects whenever Python does
            sent.append(command)
        return str(send(client, command, *rest, **named))

    with monkeypatch.context() as patch:
        patch.setattr(type(spark._jvm._gateway_client), "send_command", recorded)
        forget_origins(spark)
    assert settings.getPropertySources("test.setting.7") is None
    assert settings.get("test.setting.7") == "value"
    assert 0 < len(sent) < 12
    for number in range(20):
        settings.unset(f"test.setting.{number}")


@pytest.mark.timeout(120)
def test_python_functions_over_rows_in_memory(pipeline):
    """A UDF over the batch of a sink's function, all of whose columns are numbers, ends: Spark 4.2.0 alone waits for ever."""
    case = pipeline(
        """
@F.udf("int")
def doubled(x):
    return x * 2

@dp.foreach_batch_sink
def kept(rows, batch):
    values = sorted(row[0] for row in rows.select(doubled("id")).collect())
    with open(spark.conf.get("landing") + "/../seen", "a") as file:
        file.write(f"{values}\\n")

@dp.append_flow(target="kept")
def all_rows():
    return spark.readStream.schema("id INT, amount INT").json(LANDING)
"""
    )
    case.land([{"id": 1, "amount": 2}, {"id": 2, "amount": 3}])
    assert case.update().state == "COMPLETED"
    assert (case.landing.parent / "seen").read_text() == "[2, 4]\n"


@pytest.mark.timeout(120)
def test_python_functions_over_a_delta_stream(pipeline):
    """A UDF, a pandas UDF and mapInPandas over a table read end, with functions of the source and of a module beside it."""
    case = pipeline(
        """
import pandas as pd
from rates import Rate, with_tax

RATE = Rate(3)

@dp.table
def bronze():
    return spark.readStream.schema("id INT").json(LANDING)

@F.udf("int")
def tripled(x):
    return RATE.times(x)

@F.pandas_udf("int")
def doubled(x: pd.Series) -> pd.Series:
    return x * 2

def batches(frames):
    for frame in frames:
        yield frame.assign(mapped=frame["id"] + RATE.value)

@dp.table
def silver():
    taxed = F.udf(with_tax, "int")
    frame = dp.read_stream("bronze").select("id", tripled("id").alias("t"), doubled("id").alias("d"), taxed("id").alias("x"))
    return frame.mapInPandas(batches, "id INT, t INT, d INT, x INT, mapped LONG")
""",
        files={
            "transformations/rates.py": (
                "from dataclasses import dataclass\n\n@dataclass\nclass Rate:\n    value: int\n\n"
                "    def times(self, x):\n        return x * self.value\n\ndef with_tax(x):\n    return Rate(x).times(10)\n"
            )
        },
        spec="libraries: [{file: {path: transformations/main.py}}]\n",
    )
    case.land([{"id": 1}, {"id": 2}])
    report = case.update()
    assert report.state == "COMPLETED", report.error
    assert case.rows("silver") == [(1, 3, 2, 10, 4), (2, 6, 4, 20, 5)]
