"""The Java from PyPI trusts what the machine trusts."""

from pathlib import Path

import pytest

from headwater.runtime import trust_store as subject
from headwater.runtime.trust_store import trust_options


def test_a_machine_without_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where no bundle is found, Java keeps its own authorities."""
    monkeypatch.setattr(subject, "_bundle", lambda: None)
    assert trust_options(tmp_path / "store.p12") == []
