"""Which unit tests are near a change."""

from __future__ import annotations

from pathlib import Path

import grimp
from tests.near import near_tests


def test_who_is_near(tmp_path: Path):
    """Tests that import what has changed, those that mirror who imports it, and those that have changed; no others."""
    graph = grimp.ImportGraph()
    for module in ("headwater.a.low", "headwater.a.user", "headwater.a.other"):
        graph.add_module(module)
    graph.add_import(importer="headwater.a.user", imported="headwater.a.low")
    texts = {
        "headwater/a/test_low.py": "",
        "headwater/a/test_user.py": "",
        "headwater/a/test_other.py": "",
        "headwater/b/test_promise.py": "from headwater.a import low",
        "headwater/b/test_plain.py": "import headwater.a.low as it",
        "headwater/b/test_far.py": "from headwater.a.other import low",
        "headwater/b/test_edited.py": "",
        "headwater/b/test_rows.py": "from tests.unit.headwater.b.rows import ROW",
        "test_store.py": "from tests.light_store import Store",
    }
    for name, text in texts.items():
        path = tmp_path / "tests" / "unit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def near(*changed: str) -> list[str]:
        return [test.removeprefix("tests/unit/") for test in near_tests(changed, graph, tmp_path)]

    assert near("include/headwater/a/low.py", "README.md") == [
        "headwater/a/test_low.py",
        "headwater/a/test_user.py",
        "headwater/b/test_plain.py",
        "headwater/b/test_promise.py",
    ]
    assert near("tests/unit/headwater/b/test_edited.py") == ["headwater/b/test_edited.py"]
    assert near("tests/light_store.py") == ["test_store.py"]
    assert near("tests/unit/headwater/b/rows.py") == ["headwater/b/test_rows.py"]
    assert near("docs/sql.md", "java/A.java") == []
