"""`metastore` in pipeline.yml: what it takes, and what it refuses with a reason."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from headwater.definitions.metastore_spec import MetastoreSpec
from headwater.definitions.pipeline_spec import PipelineSpec


def test_addresses_are_tried_in_their_order():
    """Several addresses stand with commas; a port that is not given is the usual one."""
    spec = MetastoreSpec(uri="thrift://one:9999, thrift://two")
    assert spec.addresses == (("one", 9999), ("two", 9083))
    assert spec.type == "hive"


def test_without_the_key_there_is_no_metastore():
    """Tables are found by their path, and nothing else happens."""
    assert PipelineSpec(name="orders").metastore is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"type": "unity", "uri": "thrift://one"}, "Unity Catalog can't be registered with"),
        ({"type": "Glue", "uri": "thrift://one"}, "AWS Glue is reached by an API of its own"),
        ({"type": "iceberg", "uri": "thrift://one"}, "an Iceberg catalog can't list them"),
        ({"type": "hdfs", "uri": "thrift://one"}, "Input should be 'hive'"),
        ({"uri": "https://one:443"}, "write thrift://host:9083"),
        ({"uri": "one:9083"}, "write thrift://host:9083"),
        ({"uri": ""}, "at least 1 character"),
        ({"uri": "thrift://one:9083,"}, "write thrift://host:9083"),
        ({"uri": "thrift://one:port"}, "Port could not be cast"),
        ({"uri": "thrift://me:hush@one"}, "credentials have no place in this file"),
        ({"uri": "thrift://one:9083/shop"}, "the database follows from the names"),
        ({"uri": "thrift://one", "user": "me"}, "Extra inputs are not permitted"),
    ],
)
def test_what_can_not_be_reached_is_refused(given, said):
    """Each refusal says what is wanted, or why it is not possible."""
    with pytest.raises(ValidationError, match=said):
        PipelineSpec(name="orders", metastore=given)
