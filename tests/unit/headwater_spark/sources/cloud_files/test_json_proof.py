"""What is proven of JSON files, so that Spark may read them without a second look."""

import json

import pytest
from pyspark.sql.types import ArrayType, DoubleType, StructType

from headwater.metrics.file_listing import list_files
from headwater_spark.sources.cloud_files.json_proof import Proof, proven

SCHEMA = (
    StructType()
    .add("id", "long")
    .add("name", "string")
    .add("price", "double")
    .add("sold", "boolean")
    .add("s", StructType().add("a", "long"))
    .add("l", ArrayType(DoubleType()))
    .add("small", "integer")
)


def proof_of(folder, *files: bytes) -> Proof:
    for number, content in enumerate(files):
        (folder / f"{number}.json").write_bytes(content)
    return proven(list_files(str(folder), {}), SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1, "name": "a", "price": 2, "sold": true}\n{"id": 2, "price": null}\n',
        '{"id": 1}',
        '{"s": {"a": 1}, "l": [1, 2.5, null]}\n{}\n',
        '{"name": {"any": [1, 2]}}\n',
        '{"name": "\u00e9\\u00e9\\n"}\n',
        '{"name": "2026-01-31"}\n',
        "",
    ],
)
def test_values_that_fit_are_proven(tmp_path, text: str):
    """Known keys, one record a line, and values that each column's type takes: nothing is left to look for."""
    assert proof_of(tmp_path, text.encode()) is Proof.VALUES


@pytest.mark.parametrize(
    "text",
    [
        b'{"id": 1.5}\n',
        b'{"id": "x"}\n',
        b'{"id": 9223372036854775808}\n',
        b'{"small": 1}\n',
        b'{"s": {"a": "x"}}\n',
        b'{"l": ["x"]}\n',
        b'{"price": NaN}\n',
        b'{"name": Inf}\n',
        b'{"price": 0.' + b"1" * 1000 + b"}\n",
        b'{"name": "\xe9"}\n',
        b'{"name": {"\xe9": 1}}\n',
        b'{\n"id": 1}\n',
        b'{"id": 1}\n\n{"id": 2}\n',
        b'{"id": 1}\r\n{"id": 2}\r\n',
        b'{"id": 1,\r"name": "a"}\n',
        b'{"s":\n{"a": 1}}\n{"id": 1}{"id": 2}\n',
    ],
)
def test_what_spark_may_read_otherwise_is_not_proven_to_fit(tmp_path, text: bytes):
    """Where a value, a sign or a line's end is not certain to be taken alike, Spark's complaints are listened to."""
    assert proof_of(tmp_path, text) is Proof.KEYS


@pytest.mark.parametrize(
    "text",
    [
        b'{"id": 1}\n{"id": 2, "z": 1}\n',
        b'{"id": 1, "Name": "a"}\n',
        b'{"s": {"a": 1, "q": 2}}\n',
        b'{"id": 1}\n{"id": "x"}\n',
        b'{"id": 1}\nnot json\n',
        b'{"id": 1}{"id": 2}\n',
        b'{"id": 1}\n\0{"z": 2}\n',
        b'{"id": 1, "id": 2}\n',
        b'{"name": ' + b"[" * 1200 + b"]" * 1200 + b"}\n",
        b'[{"id": 1}]\n',
    ],
)
def test_what_may_hold_other_keys_is_not_proven(tmp_path, text: bytes):
    """Anything that is not certain is left to the careful reader."""
    assert proof_of(tmp_path, text) is Proof.NOTHING


def test_the_worst_file_counts(tmp_path):
    """What is certain of all files together is what is certain of the least certain one."""
    assert proof_of(tmp_path, b'{"id": 1}\n', b'{"id": 1.5}\n') is Proof.KEYS


@pytest.mark.parametrize(
    ("last", "proof"), [({"id": 1}, Proof.VALUES), ({"id": 1.5}, Proof.NOTHING), ({"z": 2}, Proof.NOTHING)]
)
def test_the_end_of_a_long_file_is_looked_at(tmp_path, last: dict, proof: Proof):
    """A file of several blocks is read to its end, wherever the blocks part."""
    lines = [
        json.dumps({"id": number, "name": "aaaaaaaaaa\u00e9"}, ensure_ascii=False)
        for number in range(300_000)
    ]
    content = "\n".join([*lines, json.dumps(last)]).encode()
    assert len(content) > 2 * (4 << 20)
    assert proof_of(tmp_path, content) is proof


def test_a_file_that_vanishes_before_it_is_proven(tmp_path):
    """Nothing is certain of a file that is gone when it is looked at; Spark, which reads later, has the last word."""
    (tmp_path / "0.json").write_text('{"id": 1}\n')
    files = list_files(str(tmp_path), {})
    (tmp_path / "0.json").unlink()
    assert proven(files, SCHEMA) == Proof.NOTHING
