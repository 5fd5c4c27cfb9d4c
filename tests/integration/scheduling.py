"""Which process runs which file, and when: what a file prepares for all of its tests is made once, and long files come first."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdist.scheduler import LoadFileScheduling

# Over half a minute each on two cores, longest first: with the short ones at the end no process waits long for the other.
LONG = (
    "test_views_refreshed_by_what_changed_equal_their_query.py",
    "test_seed_blocks_are_accounted_for.py",
    "test_change_events_converge.py",
    "test_changes_are_rewritten_as_merged.py",
    "test_changes_of_all_types.py",
    "test_columns_may_have_any_name.py",
    "test_views_of_odd_values.py",
    "test_verbs_on_s3.py",
    "test_backfills_beside_a_live_stream.py",
    "test_columns_of_changes_widen.py",
    "test_any_query_is_refreshed_right.py",
    "test_snapshots_are_followed.py",
    "test_a_metastore_follows_the_tables.py",
    "test_repairs_end_in_the_batch_result.py",
    "test_sources_of_files_on_s3.py",
    "test_delta_source_options.py",
    "test_quarantine_keeps_what_rules_keep_out.py",
    "test_sinks_take_what_flows_send.py",
    "test_forms_of_the_guides_run.py",
    "test_bitemporal_histories_equal_the_definition.py",
    "test_quarantined_rows_are_replayed_once.py",
    "test_cloud_files_schema_modes.py",
    "test_pages_run.py",
    "test_full_refresh_begins_anew.py",
    "test_sql_declares_what_python_does.py",
    "test_remedies_work_where_sources_changed.py",
    "test_exercises_are_answered.py",
    "test_position_and_rows_never_disagree.py",
    "test_sql_text_reads_sources.py",
    "test_arguments_of_open_code_have_their_effect.py",
    "test_repairs_on_s3.py",
    "test_functions_for_streams_without_a_pipeline.py",
    "test_changes_are_merged.py",
    "test_refreshes_of_views_say_why.py",
    "test_forms_of_lakeflow.py",
    "test_kinesis_records_are_read_once.py",
    "test_a_continuous_pipeline_keeps_running.py",
    "test_testing_kit_runs_what_an_update_runs.py",
    "test_changed_columns_of_a_source.py",
    "test_writers_of_a_store_never_overwrite_each_other.py",
    "test_tables_follow_their_declaration.py",
    "test_testing_page_is_true.py",
    "test_structs_that_must_be_whole.py",
    "test_unreadable_files_are_kept_out_whole.py",
    "test_running_aggregates_are_merged_by_key.py",
    "test_bad_messages_do_not_stop_a_stream.py",
    "test_damage_is_named_before_a_row_is_read.py",
    "test_a_flow_keeps_its_role.py",
    "test_many_flows_fill_one_table.py",
    "test_empty_sources_give_empty_tables.py",
)
# Files that share what is made once in a process, and takes seconds.
SHARED = ("store_driver", "shared_broker", "prepared_pipeline")
_HERE = Path(__file__).parent


def in_order(items: list[pytest.Item]) -> None:
    """Sort tests: those of long files first."""
    assert [name for name in LONG if not (_HERE / name).is_file()] == []
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


class ByFile(LoadFileScheduling):
    """Each file is run by one process, and files that share something by the same one, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)  # type: ignore[arg-type]
        self._scopes: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        if file not in self._scopes:
            text = (_HERE / Path(file).name).read_text(encoding="utf-8")
            self._scopes[file] = next((name for name in SHARED if name in text), file)
        return self._scopes[file]
