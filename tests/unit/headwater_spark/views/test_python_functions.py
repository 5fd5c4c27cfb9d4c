"""What a Python function does decides whether it is the same, not where it stands."""

from __future__ import annotations

import sys
from functools import partial

import pytest
from pyspark import cloudpickle

from headwater_spark.views.python_functions import NotDigestible, function_digest, pickled_digest

FACTOR = "FACTOR = {factor}\ndef helper(x):\n    return x * FACTOR\n{gap}\ndef f(x, y={default!r}):\n    return helper(x) + {constant}\n"


def made(
    *, factor: object = 2, gap: str = "", default: object = 1, constant: object = 3, helper: str = ""
) -> object:
    """A function of a user's module, made from its text."""
    scope: dict[str, object] = {"__name__": "transformations.main"}
    exec(
        compile(
            (FACTOR + helper).format(factor=factor, gap=gap, default=default, constant=constant),
            "f.py",
            "exec",
        ),
        scope,
    )
    return scope["f"]


def test_where_it_stands_is_not_what_it_does():
    """Lines that are put in before it change nothing."""
    assert function_digest(made()) == function_digest(made(gap="\n\n# a comment\n"))


@pytest.mark.parametrize(
    "change",
    [
        {"factor": 5},
        {"default": 9},
        {"constant": 4},
        {"constant": 3.0},
        {"helper": "def helper(x):\n    return x\n"},
    ],
)
def test_what_it_does(change):
    """A constant, a default, a value of its module, a function that it calls."""
    assert function_digest(made()) != function_digest(made(**change))


def test_closures_count():
    """A value that a function was made with is part of what it does."""

    def around(value: object) -> object:
        return lambda x: (x, value)

    assert function_digest(around(1)) == function_digest(around(1))
    assert function_digest(around(1)) != function_digest(around(2))
    assert function_digest(around({"b", "a"})) == function_digest(around({"a", "b"}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"b": 1}),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
        ({1: "a"}, {"1": "a"}),
        ([1, 2], [2, 1]),
        ([1, 2], (1, 2)),
        ({1, 2}, [1, 2]),
        ([[1], 2], [1, [2]]),
        (partial(int, "1"), partial(int, "2")),
        (partial(int, base=2), partial(int, base=8)),
        (partial(int), partial(str)),
        (max, min),
        (None, False),
    ],
)
def test_values_that_differ(one: object, other: object):
    """By the keys of a dict as well as by its values, in their order, and by what kind of collection holds them."""

    def around(value: object) -> object:
        return lambda x: (x, value)

    assert function_digest(around(one)) == function_digest(around(one))
    assert function_digest(around(one)) != function_digest(around(other))


def test_as_spark_pickles_it():
    """The pickle holds the function with its type; it is looked into, not compared byte by byte."""
    one, other = (cloudpickle.dumps((made(gap=gap), "int")) for gap in ("", "\n\n"))
    assert pickled_digest(one) == pickled_digest(other)
    with pytest.raises(NotDigestible):
        pickled_digest(b"no pickle")


@pytest.mark.parametrize("value", ["object()", "__import__('tests.seeds').seeds"])
def test_what_can_not_be_told(value: str):
    """An object of any class, or a module beside the pipeline: what they do is not known."""
    with pytest.raises(NotDigestible):
        function_digest(made(factor=value))


def test_libraries_are_named():
    """A function of an installed library is known by its name and version."""
    assert function_digest(made(factor="__import__('json')")) == function_digest(
        made(factor="__import__('json')")
    )
    assert function_digest(made(factor="__import__('json').loads")) != function_digest(
        made(factor="__import__('json').dumps")
    )


def run_in_a_module(text: str) -> object:
    """The function ``f`` of a user's module with this text."""
    scope: dict[str, object] = {"__name__": "transformations.main"}
    exec(compile(text, "main.py", "exec"), scope)
    return scope["f"]


@pytest.mark.parametrize("imported", ["import rates", "from rates import VAT", "from . import rates"])
def test_a_module_that_it_imports_when_it_runs(imported: str):
    """An import inside of a function brings what no digest of the function has; one of a library does not."""
    inside = f"def f(x):\n    def g():\n        {imported}\n    return g"
    with pytest.raises(NotDigestible, match="imports"):
        function_digest(run_in_a_module(inside))
    for library in ("import json", "from collections import abc"):
        text = f"def f(x):\n    {library}"
        assert function_digest(run_in_a_module(text)) == function_digest(run_in_a_module(text))


def test_an_installed_library_that_nobody_has_imported(monkeypatch: pytest.MonkeyPatch):
    """It is known by where it lies: an import of it inside of a function is no reason to recompute after each edit."""
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    text = "def f(x):\n    import pyarrow.compute\n    return x"
    assert function_digest(run_in_a_module(text)) == function_digest(run_in_a_module(text))


def test_attributes_of_functions_count():
    """A value that is kept on a function is part of what it does."""
    text = "def g(x):\n    return x * g.factor\ng.factor = {factor}\ndef f(x):\n    return g(x)"
    two, three = (function_digest(run_in_a_module(text.format(factor=number))) for number in (2, 3))
    assert two != three


def test_a_variable_that_is_not_set_yet():
    """A function that is made before a variable around it has a value can be digested."""
    text = "def around():\n    def inner(x):\n        return later\n    made.append(inner)\n    later = 1\n    del later\nmade = []\naround()\nf = made[0]"
    assert function_digest(run_in_a_module(text)) == function_digest(run_in_a_module(text))
