"""What a killed drop has left gets no other name: the same drop ends it where it was begun."""

from __future__ import annotations

import pytest
from tests.killed_removals import Killed, killed_at_tree

from headwater.doctor import dropping
from headwater.doctor.dropping import drop, plan_drop
from headwater.errors import RefusedForSafety
from headwater.moves.move_plan import plan_move
from headwater.moves.move_request import Wish


@pytest.mark.parametrize("removed", [0, 1])
def test_a_rename_is_refused(done, monkeypatch, removed):
    """Where the log has another name, and where it has gone; the command in the message ends the drop."""

    def dropped():
        plans = [
            plan_drop(done.project, done.manifest, name, ("silver", "gold")) for name in ("silver", "gold")
        ]
        drop(done.project, plans, lambda: plans)

    with monkeypatch.context() as patched:
        patched.setattr(dropping, "remove_tree", killed_at_tree(removed, dropping.remove_tree))
        with pytest.raises(Killed):
            dropped()
    wish = Wish(done.project, done.project, "silver", "purified", "headwater rename")
    with pytest.raises(RefusedForSafety, match="a drop was killed") as refused:
        plan_move(wish)
    assert "headwater drop PIPELINE_DIR silver --yes" in refused.value.remedy
    dropped()
    assert not done.checkpoint("silver").folder.exists()
