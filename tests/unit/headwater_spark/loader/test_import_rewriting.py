"""Every spelling under which a source may import the face, and nothing else, leads to the face."""

from __future__ import annotations

import ast
import os
import traceback
from typing import Any

import pyspark
import pytest

from headwater import pipelines as face
from headwater_spark.loader.import_rewriting import rewrite_imports

SPELLINGS = [
    ("import dlt", "dlt"),
    ("import dlt; import os", "dlt"),
    ("import os, dlt as d", "d"),
    ("from pyspark import pipelines", "pipelines"),
    ("from pyspark import pipelines as dp", "dp"),
    ("from pyspark import SparkConf, pipelines as dp", "dp"),
    ("import pyspark.pipelines as dp, os", "dp"),
    ("from headwater import pipelines as dp", "dp"),
    ("import headwater.pipelines as dp", "dp"),
    ("from __future__ import annotations\nimport dlt", "dlt"),
    ("try:\n    import dlt\nexcept ImportError:\n    dlt = None", "dlt"),
    ("if True:\n    from pyspark import pipelines as dp", "dp"),
    ("def inner():\n    import dlt\n    return dlt\nfound = inner()", "found"),
    ("class Holder:\n    from pyspark import pipelines\nfound = Holder.pipelines", "found"),
    ("import pyspark.pipelines\nfound = pyspark.pipelines", "found"),
    ("def inner():\n    import pyspark.pipelines\n    return pyspark.pipelines\nfound = inner()", "found"),
]


def run(text: str) -> dict[str, Any]:
    """Run a source's text with its imports rewritten."""
    names: dict[str, Any] = {}
    exec(compile(rewrite_imports(ast.parse(text)), "source.py", "exec", dont_inherit=True), names)
    return names


@pytest.mark.parametrize(("text", "name"), SPELLINGS, ids=[text for text, _ in SPELLINGS])
def test_a_spelling_means_the_face(text: str, name: str):
    """Whatever the spelling, the name is bound to Headwater's face."""
    assert run(text)[name] is face


@pytest.mark.parametrize(
    "text",
    [
        "from dlt import table as t",
        "from pyspark.pipelines import table as t",
        "from dlt import *\nt = table",
    ],
)
def test_names_of_the_face_can_be_imported(text: str):
    """Names taken out of the face are the face's own."""
    assert run(text)["t"] is face.table


def test_a_star_brings_the_exported_names_only():
    """`from dlt import *` binds what the face exports."""
    names = run("from dlt import *")
    assert {name for name in names if not name.startswith("__")} == set(face.__all__)


def test_other_imports_stay():
    """Names beside the face in one statement are imported as before, and pyspark keeps its other attributes."""
    names = run(
        "import os, dlt\nfrom pyspark import SparkConf as conf, pipelines\nimport pyspark.pipelines\n"
        "session = pyspark.sql.SparkSession"
    )
    assert names["os"] is os
    assert names["conf"] is pyspark.SparkConf
    assert names["pyspark"] is pyspark
    assert names["session"] is pyspark.sql.SparkSession


def test_relative_imports_are_not_touched():
    """`from . import dlt` in a package of the pipeline is that package's own module."""
    tree = rewrite_imports(ast.parse("from . import dlt\nfrom .pyspark import pipelines"))
    assert ast.unparse(tree) == "from . import dlt\nfrom .pyspark import pipelines"


def test_lines_keep_their_numbers():
    """An error after a statement that became two is reported at the line the user wrote."""
    with pytest.raises(ZeroDivisionError) as caught:
        run("from pyspark import SparkConf, pipelines as dp\nimport os, dlt, sys\n\n1 / 0\n")
    assert traceback.extract_tb(caught.tb)[-1].lineno == 4


def test_nothing_global_is_changed():
    """The rewriting leaves pyspark itself and the table of modules alone."""
    import sys

    run("import dlt\nimport pyspark.pipelines\nx = pyspark.pipelines.table")
    assert "dlt" not in sys.modules
    assert getattr(pyspark, "pipelines", None) is not face


def test_modules_of_the_closed_platform():
    """What is imported from its runtime module is what the loader injects, under the name that was asked for."""
    given = {"__headwater_runtime__": {"spark": 1, "dbutils": 2, "DBUtils": 3}, "display": 4}
    text = (
        "from databricks.sdk.runtime import spark, dbutils as d\nfrom databricks.sdk.runtime import *\n"
        "from pyspark.dbutils import DBUtils\ndef inner():\n    from databricks.sdk.runtime import spark as s\n    return s"
    )
    names: dict[str, Any] = dict(given)
    exec(compile(rewrite_imports(ast.parse(text)), "source.py", "exec", dont_inherit=True), names)
    assert (names["spark"], names["d"], names["DBUtils"], names["inner"]()) == (1, 2, 3, 1)


def test_functions_that_a_star_used_to_bring():
    """`from pyspark.sql.functions import *` still binds countDistinct and the other names that Spark stopped exporting."""
    names = run("from pyspark.sql.functions import *")
    assert {"col", "countDistinct", "approxCountDistinct", "sumDistinct", "shiftLeft"} <= set(names)
