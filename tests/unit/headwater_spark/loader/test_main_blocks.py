"""Of the blocks for `__main__`, those that declare datasets are run."""

from __future__ import annotations

import ast

import pytest

from headwater_spark.loader.main_blocks import run_declaring_blocks

DECLARES = {
    "itself": "import dlt\nif __name__ == '__main__':\n    dlt.create_view(name='a')\n    ran = True\n",
    "a function": "import dlt\ndef make():\n    @dlt.table\n    def a(): ...\nif __name__ == '__main__':\n    make()\n    ran = True\n",
    "a function of another": (
        "from pyspark import pipelines as dp\ndef outer():\n    inner()\ndef inner():\n    dp.create_sink('a')\n"
        "if '__main__' == __name__:\n    outer()\n    ran = True\n"
    ),
    "a class": (
        "import databricks.pipelines as dp\nclass Maker:\n    def run(self):\n        dp.append_flow\n"
        "if __name__ == '__main__':\n    Maker().run()\n    ran = True\n"
    ),
    "a name of the face": "from dlt import table\nif __name__ == '__main__':\n    @table\n    def a(): ...\n    ran = True\n",
}
DOES_NOT = {
    "a look at a table": "import dlt\n@dlt.table\ndef a(): ...\nif __name__ == '__main__':\n    a()\n    ran = True\n",
    "no face": "def make(): ...\nif __name__ == '__main__':\n    make()\n    ran = True\n",
    "another condition": "import dlt\nif __name__ == 'x':\n    dlt.read('a')\n    ran = True\n",
    "not equal": "import dlt\nif __name__ != '__main__':\n    pass\nelse:\n    dlt.read('a')\n    ran = True\n",
}


class _Anything:
    """A face of which any member can be called, and decorates."""

    def __getattr__(self, name: str) -> _Anything:
        return self

    def __call__(self, *arguments: object, **named: object) -> object:
        return arguments[0] if arguments else self


def ran(text: str) -> bool:
    """Whether the block of a source runs where the source is not `__main__`."""
    tree = run_declaring_blocks(ast.parse(text))
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    names = {"__name__": "headwater", **dict.fromkeys(("dlt", "dp", "table", "databricks"), _Anything())}
    exec(compile(tree, "a.py", "exec"), names)
    return "ran" in names


@pytest.mark.parametrize("text", DECLARES.values(), ids=list(DECLARES))
def test_a_block_that_declares_is_run(text: str):
    """However it comes to the face: its datasets would be missing in silence."""
    assert ran(text)


@pytest.mark.parametrize("text", DOES_NOT.values(), ids=list(DOES_NOT))
def test_another_block_is_passed_over(text: str):
    """What a notebook does for itself is no part of the pipeline."""
    assert not ran(text)
