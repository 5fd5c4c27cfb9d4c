"""The file by which others find the Spark UI of a running update."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.event_log.live_driver import LiveDriver, live_driver, published_driver


def test_a_driver_is_there_as_long_as_its_update(tmp_path: Path):
    """It goes with the update, also with one that fails."""
    with published_driver(tmp_path, "r1", "u1", "http://driver:4040"):
        assert live_driver(tmp_path) == LiveDriver("r1", "u1", "http://driver:4040")
    assert live_driver(tmp_path) is None
    with pytest.raises(KeyError), published_driver(tmp_path, None, "u2", "http://driver:4041"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_driver_without_a_page(tmp_path: Path):
    """Nothing is published, and what another one has published stays."""
    with published_driver(tmp_path, None, "u1", None):
        assert list(tmp_path.iterdir()) == []
    with published_driver(tmp_path, "r1", "u1", "http://driver:4040"):
        with published_driver(tmp_path, "r2", "u2", None):
            pass
        assert live_driver(tmp_path) == LiveDriver("r1", "u1", "http://driver:4040")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"update_id": "u1", "another": 1}'])
def test_a_file_that_says_nothing(tmp_path: Path, text: str):
    """One that a killed driver left half written, or that another version wrote, is no driver."""
    (tmp_path / "driver.json").write_text(text)
    assert live_driver(tmp_path) is None
