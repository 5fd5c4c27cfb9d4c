"""The key ``object_store`` of the spec."""

import pytest
from pydantic import ValidationError

from headwater.definitions.object_store_spec import ObjectStoreSpec


@pytest.mark.parametrize(
    "wrong",
    [
        {"endpoint": "minio:9000"},
        {"endpoint": "http://key:secret@minio:9000"},
        {"endpoint": "http://minio:9000/bucket"},
        {"endpoint": "http://minio 9000"},
        {"region": "eu west"},
        {"access_key_id": "AKIA"},
    ],
)
def test_what_is_no_address_is_refused(wrong):
    """An endpoint is a host and a port, and credentials are no keys of the file."""
    with pytest.raises(ValidationError):
        ObjectStoreSpec.model_validate(wrong)


def test_an_address_is_taken():
    """A server of one's own is named by its URL."""
    assert ObjectStoreSpec.model_validate({"endpoint": "https://minio:9000"}).endpoint == "https://minio:9000"
