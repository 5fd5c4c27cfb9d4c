"""withEventTimeOrder, which open Delta passes over, is given its effect, or refused."""

from __future__ import annotations

import pytest

from headwater.errors import UnsupportedArgument
from headwater_spark.sources.delta_options import delta_overrides


def test_one_batch_for_all():
    """The default limit of files would cut the first load into batches: it is taken away."""
    assert delta_overrides({"witheventtimeorder": "true"}) == {"maxFilesPerTrigger": "2147483647"}
    assert delta_overrides({"witheventtimeorder": "false", "maxfilespertrigger": "1"}) == {}


@pytest.mark.parametrize("limit", ["maxFilesPerTrigger", "maxBytesPerTrigger"])
def test_a_limit_beside_it(limit: str):
    """A limit would make the watermark drop rows: refused with the choice."""
    with pytest.raises(UnsupportedArgument, match=limit) as caught:
        delta_overrides({"witheventtimeorder": "True", limit.lower(): "5"})
    assert "one batch" in caught.value.remedy
