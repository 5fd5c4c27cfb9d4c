"""Two JVMs write the same keys of an S3 server at once, by the classes that commits and checkpoints go through."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from py4j import java_gateway
from py4j.protocol import get_return_value
from tests import light_store
from tests.pipeline_case import SMALL_QUERIES, SPARK
from tests.racing_writers import REFUSALS, Writer, at_once, java
from tests.store_driver import StoreDriver

from headwater.runtime.conditions import UnsafeStoreSetting
from headwater.runtime.object_store import session_conf, store_settings
from headwater.storage.access import ObjectStore
from headwater_spark.object_store import refuse_unsafe_session
from headwater_spark.session import start_session

ROUNDS = 40
BUCKET = "races"


class Server(light_store.Server):
    """An S3 server on loopback that can lose the answer to a put: it stores the object, and says that it failed."""

    def __init__(self, log: Path) -> None:
        super().__init__(log, "/_age")
        self.lost: list[str] = []
        self._to_lose: set[str] = set()
        self._loop = asyncio.new_event_loop()
        starting = self._loop.create_server(lambda: self.connection(self), "127.0.0.1", 0)
        port = self._loop.run_until_complete(starting).sockets[0].getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        super().answer("PUT", f"/{BUCKET}", {}, b"")

    def metadata(self, key: str) -> dict[str, str]:
        """What was put along with an object."""
        return self._store.buckets[BUCKET].get(key).metadata

    def lose_answer_to(self, key: str) -> None:
        """Lose the first answer to a put of this key."""
        self._to_lose.add(f"/{BUCKET}/{key}")

    def end(self) -> None:
        """Stop answering."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> light_store.Answer:
        """As of a light store."""
        answer = super().answer(method, target, headers, body)
        path = unquote(target.partition("?")[0])
        if method != "PUT" or path not in self._to_lose:
            return answer
        self._to_lose.remove(path)
        self.lost.append(path.removeprefix(f"/{BUCKET}/"))
        return light_store.Answer(500)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests, with a bucket."""
    running = Server(tmp_path_factory.mktemp("store") / "requests")
    yield running
    running.end()


@pytest.fixture(scope="module")
def writers(server: Server) -> Iterator[list[Writer]]:
    """Two JVMs."""
    settings = store_settings(ObjectStore("s3", server.endpoint, "us-east-1", path_style=True))
    with pytest.MonkeyPatch.context() as environment, ExitStack() as machines:
        environment.setenv("AWS_ACCESS_KEY_ID", "k")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "k")
        # A session of this process has errors of every JVM translated by its own, which has other objects by the same names.
        environment.setattr(java_gateway, "get_return_value", get_return_value)
        yield [Writer(machines.enter_context(java(settings)), settings, f"s3://{BUCKET}") for _ in range(2)]


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_one_of_two_writers_wins_each_key(writers: list[Writer], kind: str):
    """Also where both write the same bytes; the loser gets what Delta or Spark expects, and the winner's content stays."""
    for number in range(ROUNDS):
        key = f"{kind}/{number:020}.json"
        texts = ["the same"] * 2 if number % 2 else ["of the first", "of the second"]
        pairs = zip(writers, texts, strict=True)
        ends = at_once([partial(getattr(writer, kind), key, text) for writer, text in pairs])
        assert sorted(ends) == ["", REFUSALS[kind]], (number, ends)
        assert writers[0].read(key) == texts[ends.index("")]


@pytest.mark.parametrize("kind", sorted(REFUSALS))
def test_a_put_whose_answer_was_lost_is_a_success(server: Server, writers: list[Writer], kind: str):
    """The client sends it again, and the store refuses it because of itself; the next writer is refused all the same."""
    key = f"{kind}/lost.json"
    server.lose_answer_to(key)
    getattr(writers[0], kind)(key, "written once")
    assert server.lost[-1:] == [key]
    assert at_once([partial(getattr(writers[1], kind), key, "written once")]) == [REFUSALS[kind]]
    assert writers[1].read(key) == "written once"


def test_what_is_cancelled_or_may_be_replaced(writers: list[Writer]):
    """A cancelled file never appears and can be written by another; one that may replace another does."""
    first, second = writers
    cancelled = first.checkpoints.createAtomic(first.path("checkpoint/3"), False)
    cancelled.write(bytearray(b"half"))
    cancelled.cancel()
    second.record("checkpoint/3", "whole")
    assert first.read("checkpoint/3") == "whole"
    again = first.checkpoints.createAtomic(first.path("checkpoint/3"), True)
    again.write(bytearray(b"newer"))
    assert second.read("checkpoint/3") == "whole"
    again.close()
    assert second.read("checkpoint/3") == "newer"


def counted(endpoint: str, quick: dict[str, str]) -> dict[str, Any]:
    """In the driver: a table and what a stateful stream makes of it, twice; why a session that is not safe is refused."""
    roots = ("s3://races/storage", "s3://races/warehouse")
    spark = start_session(
        "store", session_conf(roots, ObjectStore("s3", endpoint, None, path_style=True), quick)
    )
    for ids in (range(10), range(5, 15)):
        frame = spark.createDataFrame([(i,) for i in ids], "id INT")
        frame.write.format("delta").mode("append").save(f"{roots[1]}/source")
        rows = spark.readStream.format("delta").load(f"{roots[1]}/source").groupBy("id").count()
        write = rows.writeStream.format("delta").outputMode("complete").trigger(availableNow=True)
        write = write.option("checkpointLocation", f"{roots[0]}/checkpoint")
        write.start(f"{roots[1]}/counts").awaitTermination()
    counts = sorted(tuple(row) for row in spark.read.format("delta").load(f"{roots[1]}/counts").collect())
    spark._jsc.hadoopConfiguration().set("fs.s3a.bucket.races.performance.flags", "create")
    with pytest.raises(UnsafeStoreSetting) as refused:
        refuse_unsafe_session(spark)
    return {"counts": counts, "refused": refused.value.what}


def test_spark_writes_commits_and_batches_with_the_mark(server: Server, store_driver: StoreDriver):
    """A session with the settings of a store: Delta's commits, offsets and commits of a stateful stream are conditional puts; what Hadoop's own files say is checked too."""
    quick = {**SPARK, **SMALL_QUERIES, "spark.sql.shuffle.partitions": "1"}
    answer = store_driver.run(counted, server.endpoint, quick)
    assert answer["counts"] == [[i, 2 if 5 <= i < 10 else 1] for i in range(15)]
    assert "fs.s3a.bucket.races.performance.flags" in answer["refused"]
    checkpoint, tables = "storage/checkpoint", ("warehouse/source", "warehouse/counts")
    written = [f"{checkpoint}/{log}/{batch}" for log in ("offsets", "commits") for batch in (0, 1)]
    written += [f"{table}/_delta_log/{version:020}.json" for table in tables for version in (0, 1)]
    written += [f"{checkpoint}/metadata"]
    assert [key for key in written if "x-amz-meta-headwater-put" not in server.metadata(key)] == []
