"""One source of settings for the three that reach a store."""

import pytest

from headwater.storage.access import ObjectStore, object_store

_AMAZON = {"AWS_REGION": "eu-west-1"}
_SERVER = {"AWS_ENDPOINT_URL": "http://minio:9000/", "AWS_DEFAULT_REGION": "local"}


@pytest.mark.parametrize(
    ("declared", "environment", "expected"),
    [
        ({}, {}, ObjectStore("s3")),
        ({}, _AMAZON, ObjectStore("s3", region="eu-west-1")),
        ({}, _SERVER, ObjectStore("s3", "http://minio:9000", "local", path_style=True)),
        (
            {"endpoint": "https://s3.lan"},
            _SERVER,
            ObjectStore("s3", "https://s3.lan", "local", path_style=True),
        ),
        ({"path_style": False}, _SERVER, ObjectStore("s3", "http://minio:9000", "local", path_style=False)),
        ({"region": "a", "path_style": None}, _AMAZON, ObjectStore("s3", region="a")),
        (
            {},
            {"AWS_ENDPOINT_URL_S3": "https://a", "AWS_ENDPOINT_URL": "https://b"},
            ObjectStore("s3", "https://a", path_style=True),
        ),
    ],
)
def test_the_spec_counts_before_the_environment(declared, environment, expected):
    """Settings of the spec win over AWS's own variables, and an endpoint of one's own means buckets in the path."""
    assert object_store("s3", declared, environment) == expected


def test_nothing_secret_is_among_the_settings():
    """Keys in the environment reach neither the settings nor what delta-rs is given."""
    store = object_store("s3", {}, {"AWS_SECRET_ACCESS_KEY": "wJalr", "AWS_ACCESS_KEY_ID": "AKIA", **_SERVER})
    assert "wJalr" not in repr((store, store.delta_options))
    assert "AKIA" not in repr((store, store.delta_options))


@pytest.mark.parametrize(
    ("endpoint", "allowed"), [("http://127.0.0.1:1", "true"), ("https://s3.lan", "false")]
)
def test_plain_http_has_to_be_written(endpoint, allowed):
    """delta-rs may go without TLS only where the endpoint says so."""
    assert ObjectStore("s3", endpoint).delta_options["AWS_ALLOW_HTTP"] == allowed
