"""The page about testing shows code that works: its files are written out, and its tests are run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from headwater.testing import fixtures

PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python file=(\S+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
TESTS = "\n\n".join(re.findall(r"^```python test\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
NAMES = re.findall(r"^def (test_\w+)\(", TESTS, re.MULTILINE)

pytestmark = pytest.mark.usefixtures("one_partition")

run_dataset = fixtures.run_dataset
run_pipeline = fixtures.run_pipeline
event_generator = fixtures.event_generator


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page's tests, beside the pipeline that it shows."""
    folder = tmp_path / "pipeline"
    (folder / "transformations").mkdir(parents=True)
    (folder / "pipeline.yml").write_text("name: page\n")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(folder))
    namespace: dict = {}
    exec(compile(TESTS, "docs/testing.md", "exec"), namespace)
    yield namespace
    sys.modules.pop("enrichment", None)


def test_there_are_tests():
    """The page has the tests that it speaks of."""
    assert len(NAMES) == 6
    assert set(FILES) == {"enrichment.py", "transformations/events.py"}


@pytest.mark.parametrize("name", NAMES)
def test_of_the_page(name, page, request):
    """Each test that the page shows passes."""
    test = page[name]
    arguments = test.__code__.co_varnames[: test.__code__.co_argcount]
    test(*(request.getfixturevalue(argument) for argument in arguments))


def test_fixtures(event_generator):
    """The fixture for events makes generators with a seed."""
    assert event_generator().batches(1, 5) == event_generator("clicks", seed=0).batches(1, 5)
    assert event_generator("orders", seed=1).schema.startswith("order_id")
