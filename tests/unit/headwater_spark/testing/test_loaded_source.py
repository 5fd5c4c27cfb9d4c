"""A source written for the closed platform is a module to a plain test: its functions can be called."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from headwater import testing
from headwater.errors import PipelineNotFound, SourceFileFailed

CODE = """
import {face}
from rules import cheap
LIMIT = int(dbutils.widgets.get("limit"))

def kept(prices):
    return [price for price in prices if cheap(price, LIMIT)]

@{name}.table(comment="x")
@{name}.expect_or_drop("paid", "price > 0")
def orders():
    return kept([1, 9, 3])

if __name__ == "__main__":
    raise SystemExit("of the notebook only")
"""


def written(folder: Path, text: str, form: str) -> Path:
    """A pipeline's folder with a source in one form, and a module beside it."""
    (folder / "transformations").mkdir()
    (folder / "pipeline.yml").write_text("name: shop\n")
    (folder / "transformations" / "rules.py").write_text(
        "import dlt\ndef cheap(price, limit):\n    return price < limit\n"
    )
    path = folder / "transformations" / f"orders.{'ipynb' if form == 'ipynb' else 'py'}"
    content = {
        "plain": text,
        "databricks": f"# Databricks notebook source\n# MAGIC %md\n# MAGIC # Orders\n\n# COMMAND ----------\n{text}",
        "ipynb": json.dumps({"cells": [{"cell_type": "code", "source": text}], "nbformat": 4}),
    }[form]
    path.write_text(content)
    return path


@pytest.mark.parametrize("form", ["plain", "databricks", "ipynb"])
@pytest.mark.parametrize(
    ("face", "name"),
    [("dlt", "dlt"), ("databricks.pipelines as dp", "dp"), ("pyspark.pipelines as dp", "dp")],
)
def test_functions_of_a_source(tmp_path: Path, face: str, name: str, form: str):
    """`import dlt` needs no pipeline around it: helpers and datasets are plain functions, and the process is left as it was."""
    before = set(sys.modules)
    path = written(tmp_path, CODE.format(face=face, name=name), form)
    source = testing.load_source(path, configuration={"limit": "5"})
    assert source.kept([4, 5, 6]) == [4]
    assert source.orders() == [1, 3]
    assert not {"dlt", "rules", "databricks"} & (set(sys.modules) - before)


def test_a_source_that_fails_has_its_line(tmp_path: Path):
    """An error at its top is told as an update tells it."""
    path = written(tmp_path, "import dlt\n\nx = dlt.tabel\n", "plain")
    with pytest.raises(SourceFileFailed) as caught:
        testing.load_source(path)
    assert (caught.value.where, caught.value.remedy) == (f"{path}:3", "Did you mean 'table'?")


@pytest.mark.parametrize("name", ["nowhere.py", "a.sql", "."])
def test_what_is_no_source_of_python(tmp_path: Path, name: str):
    """A file that is not there, SQL, and a folder have no functions."""
    (tmp_path / "a.sql").write_text("SET a = b;")
    with pytest.raises(PipelineNotFound):
        testing.load_source(tmp_path / name)
