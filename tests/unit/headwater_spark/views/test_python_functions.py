"""What a Python function does decides whether it is the same, not where it stands."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType

import pytest
from pyspark import cloudpickle

from headwater_spark.views.installed_code import is_installed_code, version_of
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
        (partial(int), (int, (), {})),
        (max, min),
        (None, False),
        ([[1], 2], [[1, 2]]),
        ({"a": {"b": 1}, "c": 2}, {"a": {"b": 1, "c": 2}}),
        ({"a": 1}.get, {"a": 2}.get),
        ("a".join, "b".join),
    ],
)
def test_values_that_differ(one: object, other: object):
    """By the keys of a dict as well as by its values, in their order, by what kind of collection holds which, and by whose method it is."""

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


@pytest.mark.parametrize(
    "value",
    [
        "object()",
        "__import__('tests.seeds').seeds",
        "__import__('collections').defaultdict(lambda: 1)",
        "type('Names', (dict,), {})()",
    ],
)
def test_what_can_not_be_told(value: str):
    """An object of any class, also of one that is a kind of dict, or a module beside the pipeline: what they do is not known."""
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    total = x\n    return total", "    summe = x\n    return summe"),
        ("    'one'\n    return x", "    'other'\n    return x"),
        ("    def g(y):\n        z = y\n        return z\n    return g(x)", "    def g(y):\n        a = y\n        return a\n    return g(x)"),
    ],
)  # fmt: skip
def test_names_and_texts_that_do_nothing(before: str, after: str):
    """What a function calls its own variables and what its docstring says are no part of what it does."""
    one, other = (function_digest(run_in_a_module(f"def f(x):\n{body}")) for body in (before, after))
    assert one == other


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x):\n    a = x\n    return locals()", "def f(x):\n    b = x\n    return locals()"),
        ("def f(x):\n    'one'\n    return 'one'", "def f(x):\n    'one'\n    return 'two'"),
        ("def f(x, y):\n    return y", "def f(x, z):\n    return z"),
    ],
)
def test_names_and_texts_that_do_something(before: str, after: str):
    """A variable's name that the function looks at, a text that it returns, and what its callers call an argument are part of it."""
    assert function_digest(run_in_a_module(before)) != function_digest(run_in_a_module(after))


NAMED_AFTER = (
    "import functools, textwrap\n@functools.wraps(textwrap.dedent)\ndef f(x):\n    return x * {factor}\n"
)


def test_a_function_that_is_named_after_a_librarys():
    """`functools.wraps` gives a function a library's name and module; what it does is still the pipeline's."""
    two, three = (function_digest(run_in_a_module(NAMED_AFTER.format(factor=number))) for number in (2, 3))
    assert two != three


def test_what_a_library_made_of_a_function():
    """A library's decorator that leaves its own name on what it makes is known by what it was called with, too."""
    text = "import contextlib\n@contextlib.contextmanager\ndef g(x):\n    yield x * {0}\ndef f(x):\n    return g(x)\ng.__module__ = 'contextlib'\ndel g.__wrapped__"
    two, three = (function_digest(run_in_a_module(text.format(number))) for number in (2, 3))
    assert two != three


def test_a_module_of_the_pipeline_with_the_name_of_one_of_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its functions are known by what they do, though Python has a module of this name."""

    def rate_of(factor: int) -> object:
        module = ModuleType("chunk")
        module.__file__ = str(tmp_path / "chunk.py")
        monkeypatch.setitem(sys.modules, "chunk", module)
        exec(compile(f"def rate(x):\n    return x * {factor}", module.__file__, "exec"), vars(module))
        return module.rate

    assert function_digest(rate_of(2)) != function_digest(rate_of(3))


def as_workers_get_it(**values: object) -> object:
    """A function that uses a module of the pipeline, which workers get with what it has."""
    module = ModuleType("rates")
    vars(module).update(values, __file__="rates.py")
    scope: dict[str, object] = {"__name__": "transformations.main", "rates": module}
    exec(compile("def f(x):\n    return x * rates.VAT", "main.py", "exec"), scope)
    return scope["f"]


def test_modules_that_workers_get():
    """A module beside the sources counts by what it has, so that an edit elsewhere is none of it."""
    assert function_digest(as_workers_get_it(VAT=2)) == function_digest(as_workers_get_it(VAT=2))
    assert function_digest(as_workers_get_it(VAT=2)) != function_digest(as_workers_get_it(VAT=3))
    with pytest.raises(NotDigestible):
        function_digest(as_workers_get_it(VAT=object()))


def test_the_version_of_a_library_counts(monkeypatch: pytest.MonkeyPatch):
    """A function of an installed library may do something else in another version of it."""
    text = "from pyspark.util import fail_on_stopiteration\ndef f(x):\n    return fail_on_stopiteration(x)"
    digests = set()
    for number in ("1.0", "2.0"):
        version_of.cache_clear()
        monkeypatch.setattr("pyspark.__version__", number)
        digests.add(function_digest(run_in_a_module(text)))
    version_of.cache_clear()
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("module", "installed"),
    [("json", True), ("numpy", True), ("a_module_of_the_pipeline", False), (None, False)],
)
def test_code_that_stands_in_no_file(module: str | None, installed: bool):
    """Libraries make such functions; one is installed where the module is that it was made in."""
    function = FunctionType(compile("0", "<made>", "eval"), {"__name__": module})
    assert is_installed_code(function) is installed
