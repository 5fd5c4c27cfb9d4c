from __future__ import annotations

from pathlib import Path

from headwater.checkpoints.pending_replacement import PendingReplacement, pending_replacements

ONE = PendingReplacement("orders", "shop.orders@backfill-1", "day = '2026-01-02'", "{}", {"shop.orders@0": 7})
OTHER = PendingReplacement("clicks", "shop.clicks@backfill-2", "true", "{}", {})


def test_a_replacement_is_known_until_it_is_crossed_out(tmp_path: Path):
    """Also after the process that wrote it down has ended; of one table or of all."""
    assert list(pending_replacements(tmp_path)) == []
    for pending in (ONE, OTHER):
        with pending.written_down(tmp_path):
            assert pending in pending_replacements(tmp_path, pending.dataset)
    assert list(pending_replacements(tmp_path)) == [OTHER, ONE]
    assert list(pending_replacements(tmp_path, "orders")) == [ONE]
    for _ in range(2):
        ONE.cross_out(tmp_path)
    assert list(pending_replacements(tmp_path)) == [OTHER]


def test_only_who_has_ended_has_abandoned_it(tmp_path: Path):
    """The lock of the operating system tells, and ends with its holder."""
    with ONE.written_down(tmp_path):
        assert not ONE.is_abandoned(tmp_path)
    assert ONE.is_abandoned(tmp_path)
    ONE.cross_out(tmp_path)
    assert not ONE.is_abandoned(tmp_path)
