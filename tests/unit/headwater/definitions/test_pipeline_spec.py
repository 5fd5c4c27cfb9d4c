"""Values of ``pipeline.yml`` that are none, each with its reason."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from headwater.definitions.pipeline_spec import PipelineSpec


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("s3://b/f", "the name of a bucket has 3 to 63 letters"),
        ("s3://b", "the name of a bucket has 3 to 63 letters"),
        ("s3:///f", "the name of a bucket has 3 to 63 letters"),
        (f"s3://{'b' * 64}/f", "the name of a bucket has 3 to 63 letters"),
        ("s3://key:secret@bucket/f", "the name of a bucket has 3 to 63 letters"),
        ("s3://bucket/a folder", "there is a blank or a line break in it"),
        ("gs://bucket/f", "leases can lie in no other store"),
        ("/leases", "leases can lie in no other store"),
    ],
)
def test_where_no_lease_can_lie(place: str, reason: str):
    """Each says what is wrong with it: a short name is no other store."""
    with pytest.raises(ValidationError, match=reason):
        PipelineSpec(name="p", lease=place)


@pytest.mark.parametrize("place", ["s3://abc", "s3://my_bucket/f", "s3://my.bucket-1/a/b=c", None])
def test_where_a_lease_may_lie(place: str | None):
    """Buckets with short and with older names are accepted."""
    assert PipelineSpec(name="p", lease=place).lease == place
