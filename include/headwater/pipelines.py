"""The face of Headwater: declare tables, views, flows and expectations.

    from headwater import pipelines as dp

    @dp.table
    def orders():
        return spark.readStream.format("json").schema("id int, amount double").load("landing/orders")

    @dp.materialized_view
    def revenue():
        return dp.read("orders").groupBy().sum("amount")

Declaring runs nothing; ``python -m headwater run DIR`` does. Outside a pipeline the decorators give the function
back as it is, so it can be imported and tested like any other.
"""

from headwater.declarations.auto_cdc import apply_changes, create_auto_cdc_flow
from headwater.declarations.auto_cdc_snapshots import (
    apply_changes_from_snapshot,
    create_auto_cdc_from_snapshot_flow,
)
from headwater.declarations.datasets import (
    create_streaming_table,
    materialized_view,
    streaming_table,
    table,
    temporary_view,
)
from headwater.declarations.expectations import (
    expect,
    expect_all,
    expect_all_or_drop,
    expect_all_or_fail,
    expect_all_or_quarantine,
    expect_or_drop,
    expect_or_fail,
    expect_or_quarantine,
    expect_unique,
)
from headwater.declarations.flows import append_flow, replace_flow, update_flow
from headwater.declarations.hooks import on_event_hook
from headwater.declarations.managed_tables import create_table
from headwater.declarations.reads import read, read_stream
from headwater.declarations.sinks import create_sink, foreach_batch_sink

# Legacy names, as they are met in code written for Delta Live Tables.
view = create_view = temporary_view
create_target_table = create_streaming_live_table = create_streaming_table
readStream = read_stream  # noqa: N816 - the platform's spelling

__all__ = [
    "append_flow",
    "apply_changes",
    "apply_changes_from_snapshot",
    "create_auto_cdc_flow",
    "create_auto_cdc_from_snapshot_flow",
    "create_sink",
    "create_streaming_live_table",
    "create_streaming_table",
    "create_table",
    "create_target_table",
    "create_view",
    "expect",
    "expect_all",
    "expect_all_or_drop",
    "expect_all_or_fail",
    "expect_all_or_quarantine",
    "expect_or_drop",
    "expect_or_fail",
    "expect_or_quarantine",
    "expect_unique",
    "foreach_batch_sink",
    "materialized_view",
    "on_event_hook",
    "read",
    "readStream",
    "read_stream",
    "replace_flow",
    "streaming_table",
    "table",
    "temporary_view",
    "update_flow",
    "view",
]
