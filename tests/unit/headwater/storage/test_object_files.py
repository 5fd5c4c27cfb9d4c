"""What is asked of a store as a whole."""

from __future__ import annotations

import pytest

from headwater.storage.conditions import StoreRefused
from headwater.storage.object_files import refuse_missing_bucket


def test_a_bucket_that_is_not_there(s3, tmp_path):
    """It is refused by one request; one that is there may be empty, and a folder of this machine is made when it is needed."""
    with pytest.raises(StoreRefused, match="bucket is not there"):
        refuse_missing_bucket(s3.place("nobucket", "warehouse"))
    with s3.counted() as requests:
        refuse_missing_bucket(s3.place("places", "nothing-here/warehouse"))
    assert requests.total() <= 2
    refuse_missing_bucket(tmp_path / "none")
