"""withEventTimeOrder, which open Delta passes over, is given its effect, or refused; so are limits that are none."""

from __future__ import annotations

import pytest

from headwater.errors import InvalidSourceOption, UnsupportedArgument
from headwater_spark.sources.delta_options import check_limits, delta_overrides


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


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("maxFilesPerTrigger", ("0", "-1", "", "many", "1.5", "1k", "2147483648")),
        ("maxBytesPerTrigger", ("0", "0g", "-1", "", "much", "0.5g", "1 g", "1gib")),
    ],
)
def test_limits_that_are_none(name: str, values: tuple[str, ...]):
    """What Delta would refuse once the flow starts is refused by validate, with a value that it takes."""
    for value in values:
        with pytest.raises(InvalidSourceOption, match=name) as caught:
            check_limits({name.lower(): value})
        assert "leave" in caught.value.remedy


def test_limits_that_delta_takes():
    """Numbers of files, and bytes with or without a unit, in any case."""
    check_limits({})
    for files in ("1", "+5", "007", "2147483647"):
        check_limits({"maxfilespertrigger": files})
    for size in ("1", "100b", "10k", "10kb", "5M", "1GB", " 1g ", "2t", "1p"):
        check_limits({"maxbytespertrigger": size, "maxfilespertrigger": "1"})
