"""How the tests of tests/integration are shared out among processes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from tests.integration.scheduling import LONG, SHARED, ByFile, in_order

FOLDER = Path(__file__).parents[1] / "integration"


def test_long_files_come_first():
    """In the order of their list; the others stay as they were collected."""
    names = ["test_a.py", LONG[1], "test_b.py", LONG[0], LONG[1]]
    items: Any = [SimpleNamespace(path=Path(name)) for name in names]
    in_order(items)
    assert [item.path.name for item in items] == [LONG[0], LONG[1], LONG[1], "test_a.py", "test_b.py"]


def test_files_that_share_something_go_to_one_process():
    """One broker is started, not one in each process, and one driver for S3; every other file is a unit of its own, in the order of
    the collection.
    """
    options = SimpleNamespace(loadscopereorder=True)
    config: Any = SimpleNamespace(option=options, getvalue=lambda _: ["2*popen"])
    scheduler = ByFile(config, MagicMock())
    assert not options.loadscopereorder
    files = sorted(FOLDER.glob("test_*.py"))
    units = {
        file.name: scheduler._split_scope(f"tests/integration/{file.name}::test_it[a]") for file in files
    }
    for shared in ("shared_broker", "store_driver"):
        sharing = {file.name for file in files if shared in file.read_text()}
        assert len(sharing) > 2
        assert len({units[name] for name in sharing}) == 1
    alone = [name for name, unit in units.items() if unit == f"tests/integration/{name}"]
    assert len(alone) > 100
    assert len(set(units.values())) == len(alone) + len(SHARED)
