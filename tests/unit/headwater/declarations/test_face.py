"""The face: what it exports, and that declaring is harmless where no pipeline runs."""

from __future__ import annotations

import inspect

import pytest

from headwater import pipelines as dp
from headwater.errors import UsageError

FACE = {
    "append_flow": "query_function target name once spark_conf comment depends_on import_checkpoint",
    "create_auto_cdc_flow": "target source keys sequence_by ignore_null_updates apply_as_deletes apply_as_truncates "
    "column_list except_column_list stored_as_scd_type track_history_column_list track_history_except_column_list name once "
    "ignore_null_updates_column_list ignore_null_updates_except_column_list columns_to_update system_sequence_by where flow_name "
    "spark_conf",
    "create_auto_cdc_from_snapshot_flow": "target source keys stored_as_scd_type track_history_column_list "
    "track_history_except_column_list name once snapshot_and_version flow_name",
    "create_sink": "name format options",
    "create_streaming_table": "name comment spark_conf table_properties path partition_cols cluster_by_auto cluster_by "
    "schema expect_all expect_all_or_drop expect_all_or_quarantine expect_all_or_fail row_filter format",
    "create_table": "query_function name comment spark_conf table_properties path partition_cols cluster_by_auto cluster_by schema "
    "expect_all expect_all_or_drop expect_all_or_quarantine expect_all_or_fail row_filter private replace_using sequence_by "
    "replace_where temporary format",
    "expect": "name constraint",
    "expect_all": "expectations",
    "expect_all_or_drop": "expectations",
    "expect_all_or_fail": "expectations",
    "expect_all_or_quarantine": "expectations",
    "expect_or_drop": "name constraint",
    "expect_or_fail": "name constraint",
    "expect_or_quarantine": "name constraint",
    "expect_unique": "keys name within action",
    "foreach_batch_sink": "batch_handler name",
    "materialized_view": "query_function name comment spark_conf table_properties path partition_cols cluster_by_auto "
    "cluster_by schema row_filter private replace_where refresh_policy format",
    "on_event_hook": "user_event_hook_fn max_allowable_consecutive_failures",
    "read": "name",
    "read_stream": "name",
    "replace_flow": "query_function target replace_using sequence_by name spark_conf comment",
    "streaming_table": "query_function name comment spark_conf table_properties path partition_cols cluster_by_auto "
    "cluster_by schema row_filter private format",
    "table": "query_function name comment spark_conf table_properties path partition_cols cluster_by_auto cluster_by "
    "schema row_filter private replace_using sequence_by replace_where temporary format",
    "temporary_view": "query_function name comment spark_conf",
    "update_flow": "query_function target name spark_conf comment depends_on",
    "view": "query_function name comment spark_conf",
}
# Names of older code, and what each means now.
LEGACY = {
    "apply_changes": dp.create_auto_cdc_flow,
    "apply_changes_from_snapshot": dp.create_auto_cdc_from_snapshot_flow,
    "create_streaming_live_table": dp.create_streaming_table,
    "readStream": dp.read_stream,
    "create_target_table": dp.create_streaming_table,
    "create_view": dp.temporary_view,
}


def test_what_the_face_exports():
    """The names are exactly these: adding or losing one is a decision."""
    assert sorted(dp.__all__) == sorted([*FACE, *LEGACY])
    assert all(callable(getattr(dp, name)) for name in dp.__all__)


@pytest.mark.parametrize("name", LEGACY)
def test_a_legacy_name(name: str):
    """A name of older code is the very function that has the name of today."""
    assert getattr(dp, name) is LEGACY[name]


@pytest.mark.parametrize("name", sorted(FACE))
def test_the_arguments_of_the_face(name: str):
    """Each function has exactly Lakeflow's arguments: users' sources call them by name."""
    assert " ".join(inspect.signature(getattr(dp, name)).parameters) == FACE[name]


def test_functions_can_be_tested_by_themselves():
    """Outside a pipeline every decorator gives the function back as it is, called with or without arguments."""

    def function() -> int:
        return 7

    plain = (
        dp.table, dp.streaming_table, dp.materialized_view, dp.temporary_view, dp.view, dp.create_table,
    )  # fmt: skip
    for decorate in plain:
        assert decorate(function) is function
        assert decorate(name="x")(function) is function
    assert dp.append_flow(target="t")(function) is function
    assert dp.update_flow(target="t")(function) is function
    assert dp.replace_flow(target="t", replace_using=["k"], sequence_by="s")(function) is function
    assert dp.foreach_batch_sink(function) is function
    assert dp.foreach_batch_sink(name="s")(function) is function
    assert dp.create_sink("s", "delta", {"path": "p"}) is None
    assert dp.expect("r", "true")(function) is function
    assert dp.expect_all_or_fail({"r": "true"})(function) is function
    assert dp.create_streaming_table("t") is None


@pytest.mark.parametrize("read", [dp.read, dp.read_stream])
def test_reading_outside_a_pipeline(read):
    """There is nothing to read where no pipeline runs; the error says what to do instead."""
    with pytest.raises(UsageError, match="no pipeline is running") as caught:
        read("orders")
    assert __file__ in caught.value.where
    assert "pass a DataFrame" in caught.value.remedy
