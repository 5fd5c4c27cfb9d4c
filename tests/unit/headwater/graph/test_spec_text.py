"""Whatever stands in a spec file, the answer is a spec or an InvalidSpec that says where and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.headwater.graph.test_spec_file import fault

from headwater.definitions.pipeline_spec import PipelineSpec
from headwater.errors import HeadwaterError, InvalidSpec, UsageError
from headwater.graph.pipeline_project import open_project
from headwater.graph.spec_file import read_spec
from headwater.graph.spec_text import parse_spec

# What each of them does to a reader that is not prepared, and the line that the message must name.
BAD_VALUES = {
    "a date that is none": ("name: a\nairflow:\n  start: 2025-02-30\n", 3),
    "a time that is none": ("name: a\nstorage: 2025-02-03 99:00:00\n", 2),
    "a number of 5,000 digits": ("name: a\nairflow: {retries: " + "9" * 5000 + "}\n", 2),
    "a number of 5,000 hexadecimal digits": ("name: a\nairflow: {priority_weight: 0x" + "f" * 5000 + "}\n", 2),
    "a NUL": ('name: a\n\nstorage: "x\\0y"\n', 3),
    "half a character": ('name: a\nstorage: "\\ud800"\n', 2),
    "an alias of itself": ("name: a\nconfiguration: &a {x: *a}\n", 2),
    "a list of itself": ("name: a\nlibraries: &a [*a]\n", 2),
    "a tag on a wrong text": ("name: a\nstorage: !!timestamp soon\n", 2),
    "a flag that is none": ("name: a\nstorage: !!bool soon\n", 2),
    "a number that is none": ("name: a\nstorage: !!int soon\n", 2),
    "a Python object": ("name: a\nstorage: !!python/object/apply:os.getcwd []\n", 2),
    "a key that is a list": ("name: a\nconfiguration:\n  ? [x]\n  : y\n", 3),
    "a key twice": ("name: a\nspark: {x: 1}\nlint: {}\nspark: {y: 1}\n", 4),
    "a key twice on one line": ("name: a\nconfiguration: {x: 1, x: 2}\n", 2),
    "a key twice, once in quotes": ("name: a\nconfiguration:\n  x: 1\n  'x': 2\n", 4),
    "a name with a line break": ('name: "a\\n"\n', 1),
    "an id with a line break": ('name: a\nid: "a\\n"\n', 2),
    "a schema with a line break": ('name: a\nschema: "a\\n"\n', 2),
    "a duration beyond all time": ("name: a\nairflow:\n  timeout: 99999999999999 days\n", 3),
    "an address that is none": ('name: a\nstorage: "file://[x"\n', 2),
    "a store that is none": ('name: a\nlease: "s3://b\\n"\n', 2),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_bad_value_is_told_with_its_line(tmp_path: Path, text: str, line: int):
    """Dates, numbers, signs and keys that Python stumbles over are faults of the spec like any other."""
    (tmp_path / "pipeline.yml").write_text(text)
    with pytest.raises(InvalidSpec) as caught:
        open_project(tmp_path, environment={})
    assert caught.value.where == f"{tmp_path / 'pipeline.yml'}:{line}"
    assert caught.value.remedy
    str(caught.value).encode()


def test_a_key_twice_names_both_lines(tmp_path: Path):
    """The reader sees which of them to remove."""
    error = fault(tmp_path, "name: a\nspark: {x: 1}\nlint: {}\nspark: {y: 1}\n")
    assert "The key `spark` is given twice, on line 2 and on line 4" in error.what


def test_an_alias_used_twice_is_fine(tmp_path: Path):
    """Anchors and merges are YAML's own way to say things once."""
    (tmp_path / "pipeline.yml").write_text(
        "name: a\nconfiguration: &a {x: '1', y: '2'}\nspark:\n  <<: *a\n  y: '3'\n"
    )
    assert read_spec(tmp_path / "pipeline.yml", {}).spark == {"x": "1", "y": "3"}


def test_a_file_that_grows_in_memory(tmp_path: Path):
    """Aliases of aliases of aliases are a few lines on disk and billions of values in memory."""
    lines = ["name: a", "configuration:", "  a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
    assert "more than" in fault(tmp_path, "\n".join(lines)).what


@pytest.mark.parametrize("text", ["name: " + "[" * 3000, "a: {" * 3000, "[" * 60 + "]" * 60])
def test_a_file_that_is_too_deep(tmp_path: Path, text: str):
    """Python's own limit of calls is never met."""
    assert "nested deeper" in fault(tmp_path, text).what


def test_how_deep_a_file_may_be(tmp_path: Path):
    """Fifty levels below the settings are taken, and one more is refused."""
    file = tmp_path / "pipeline.yml"
    file.write_text("a: " + "[" * 50 + "]" * 50)
    assert parse_spec(file)[0].keys() == {"a"}
    assert "nested deeper than 50 levels" in fault(tmp_path, "a: " + "[" * 51 + "]" * 51).what


def test_files_that_are_none(tmp_path: Path):
    """Too large, not UTF-8, not readable as text: each is said."""
    assert "larger than" in fault(tmp_path, "name: a\n#" + "x" * (1 << 20)).what
    (tmp_path / "pipeline.yml").write_bytes(b"name: a\nschema: \xff\n")
    with pytest.raises(InvalidSpec, match="not UTF-8") as caught:
        read_spec(tmp_path / "pipeline.yml")
    assert caught.value.where.endswith(":2")
    with pytest.raises(InvalidSpec, match="can't be read"):
        read_spec(tmp_path)


def test_the_line_of_a_variable_that_is_not_set(tmp_path: Path):
    """Also deep in the file; a value that is not text is reported by its name alone."""
    text = "name: a\nconfiguration:\n  x: y\n  z: ${env:NOT_SET}\n"
    assert fault(tmp_path, text).where.endswith(":4")
    with pytest.raises(InvalidSpec, match="The environment variable NOT_SET holds half") as caught:
        read_spec(tmp_path / "pipeline.yml", {"NOT_SET": "secret\udcff"})
    assert "secret" not in str(caught.value)


_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**200, max_value=10**210),
    st.floats(),
    st.dates(),
    st.datetimes(),
    st.binary(max_size=8),
    st.text(st.characters(codec=None), max_size=12),
    st.sampled_from(["${env:X}", "${env:Y}", "${env:Y:z}", "available_now", "3 s", "*/5 * * * *", "a", "..", "/"]),
)  # fmt: skip
_KEYS = st.one_of(
    st.sampled_from([*PipelineSpec.model_fields, "schema", "trigger", "database", "alerts", "glob", "include", "run_for"]),
    st.text(max_size=6),
    st.integers(),
)  # fmt: skip
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5), max_leaves=12
)  # fmt: skip


def _answer(root: Path, content: bytes) -> None:
    folder = root / "pipeline"  # beside other tests' folders, its id could be taken
    folder.mkdir(exist_ok=True)
    (folder / "pipeline.yml").write_bytes(content)
    try:
        project = open_project(folder, environment={"X": "x"})
        project.source_hash()
    except (InvalidSpec, UsageError) as error:
        assert error.where or isinstance(error, UsageError)  # noqa: PT017 - any answer but another error is right
        str(error).encode()
        json.dumps(error.as_dict())
    except HeadwaterError as error:
        pytest.fail(f"another error: {error}")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.dictionaries(_KEYS, _VALUES, max_size=6))
def test_generated_yaml(tmp_path: Path, data: dict[Any, Any]):
    """Any tree of values below any keys is read or refused."""
    data = {"name": "a", **data}
    try:
        text = yaml.safe_dump(data, allow_unicode=False)
    except (ValueError, TypeError):  # keys that can't be sorted, numbers that can't be printed
        text = repr(data)
    _answer(tmp_path, text.encode("utf-8", "surrogatepass"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=60)
    | st.text(alphabet="ab:-?&*!|>'\"%@`{}[], \n\t#0\\x<~", max_size=60).map(lambda text: f"name: a\n{text}".encode())
)  # fmt: skip
def test_generated_text(tmp_path: Path, content: bytes):
    """Any bytes, and any row of YAML's own signs, too."""
    _answer(tmp_path, content)


def test_what_is_read_as_json(tmp_path: Path):
    """A file of that name, whatever is in it, and one of YAML that begins as JSON and is read as such; a mapping in braces is YAML."""
    file, json_file = tmp_path / "pipeline.yml", tmp_path / "pipeline.JSON"
    for text in ('{"name": "a" // what it is called\n}', "{name: a}"):
        file.write_text(text)
        assert parse_spec(file)[0] == {"name": "a"}
    json_file.write_text("{name: a}")
    with pytest.raises(InvalidSpec, match="is not JSON"):
        parse_spec(json_file)
