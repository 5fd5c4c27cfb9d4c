"""Before a flow starts: problems that Spark would pass over or misreport, found without a JVM.

Decision 0090.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headwater.checkpoints.conditions import CheckFailed
from headwater.errors import HeadwaterError
from headwater.preflight.change_memory_checks import (
    change_memory_files_are_gone,
    change_memory_is_damaged,
    change_memory_was_lost,
)
from headwater.preflight.change_record_checks import change_record_is_damaged, snapshot_versions_are_damaged
from headwater.preflight.damage import Damage
from headwater.preflight.delta_source_checks import delta_sources, table_is_gone
from headwater.preflight.denied_files import checkpoint_is_denied
from headwater.preflight.file_source_checks import names_are_patterns, planned_files_are_gone
from headwater.preflight.flow_start import FlowStart
from headwater.preflight.inferred_schema_checks import inferred_schema_is_damaged
from headwater.preflight.kafka_checks import messages_are_gone, topic_is_gone
from headwater.preflight.log_checks import (
    checksums_are_left,
    first_batch_left_remains,
    last_mark_is_damaged,
    last_mark_was_lost,
    metadata_was_lost,
    offsets_are_damaged,
    offsets_are_missing,
    positions_are_others,
)
from headwater.preflight.moved_folders import folder_was_moved
from headwater.preflight.position_checks import position_went_back
from headwater.preflight.quarantine_checks import (
    quarantine_files_are_gone,
    quarantine_log_is_damaged,
    quarantine_was_lost,
)
from headwater.preflight.role_checks import role_was_changed
from headwater.preflight.sink_checks import (
    batches_are_forgotten,
    checkpoint_was_lost,
    checkpoint_was_rewound,
    commit_is_damaged,
    query_id_was_changed,
    table_log_has_a_hole,
    table_was_dropped,
    table_was_recreated,
    table_was_rolled_back,
)
from headwater.preflight.source_checks import file_log_was_lost, sources_were_changed, topic_was_recreated
from headwater.preflight.state_checks import plan_was_changed, state_was_lost
from headwater.preflight.state_schemas import schema_is_damaged, schemas_lie_elsewhere
from headwater.preflight.table_file_checks import files_are_gone
from headwater.runtime.secret_values import without_known
from headwater.storage.listing import looked_over
from headwater.storage.walking import unchecked

__all__ = ["CHECKS", "CHECKS_OF_ONCE_FLOWS", "CHECKS_OF_VIEWS", "FlowStart", "examine", "mended"]

Check = Callable[[FlowStart], Iterator[Damage]]

# In this order: first what makes all other checks meaningless. New checks are added here.
CHECKS: tuple[Check, ...] = (
    table_log_has_a_hole,
    commit_is_damaged,
    role_was_changed,
    table_was_dropped,
    table_was_recreated,
    table_was_rolled_back,
    quarantine_was_lost,
    quarantine_log_is_damaged,
    quarantine_files_are_gone,
    files_are_gone,
    change_memory_is_damaged,
    change_memory_was_lost,
    change_memory_files_are_gone,
    change_record_is_damaged,
    batches_are_forgotten,
    checkpoint_was_lost,
    metadata_was_lost,
    query_id_was_changed,
    offsets_are_damaged,
    offsets_are_missing,
    position_went_back,
    positions_are_others,
    checkpoint_was_rewound,
    first_batch_left_remains,
    last_mark_is_damaged,
    last_mark_was_lost,
    state_was_lost,
    schema_is_damaged,
    schemas_lie_elsewhere,
    plan_was_changed,
    sources_were_changed,
    topic_was_recreated,
    topic_is_gone,
    file_log_was_lost,
    folder_was_moved,
    planned_files_are_gone,
    names_are_patterns,
    table_is_gone,
    delta_sources,
    messages_are_gone,
    checksums_are_left,
    inferred_schema_is_damaged,
)
# A flow that runs once, or takes snapshots, has no checkpoint of Spark's.
CHECKS_OF_ONCE_FLOWS: tuple[Check, ...] = (
    table_log_has_a_hole,
    commit_is_damaged,
    role_was_changed,
    table_was_dropped,
    table_was_recreated,
    table_was_rolled_back,
    files_are_gone,
    change_record_is_damaged,
    snapshot_versions_are_damaged,
    batches_are_forgotten,
    inferred_schema_is_damaged,
)
# The query of a view has no position.
CHECKS_OF_VIEWS: tuple[Check, ...] = (
    table_log_has_a_hole,
    commit_is_damaged,
    role_was_changed,
    files_are_gone,
    inferred_schema_is_damaged,
)


def examine(start: FlowStart, checks: Sequence[Check] = CHECKS) -> list[Damage]:
    """Run every check and give all findings; changes nothing.

    A check that fails with an error is a finding of its own, which blocks: what it would have found is not known.
    """
    with looked_over(start.checkpoint.folder):
        denied = list(_findings(checkpoint_is_denied, start))
        # The other checks would take an unreadable file for a lost or damaged one.
        return denied or [damage for check in checks for damage in _findings(check, start)]


def _findings(check: Check, start: FlowStart) -> Iterator[Damage]:
    name = check.__name__
    try:
        yield from check(start)
    except HeadwaterError as error:
        yield Damage(error, (f"the check {name} ended with it",))
    except Exception as error:
        cause = without_known(f"{type(error).__name__}: {error}")
        yield Damage(
            CheckFailed(
                f"Whether {start.flow!r} may start is not known: the check {name} failed with {cause}",
                where=getattr(error, "filename", None) or start.folder,
                remedy="Make what it names readable and run the update again. Nothing was changed.",
            ),
            (f"{name}: {cause}",),
        )


def mended(damages: Sequence[Damage], check: Callable[[], None] = unchecked) -> list[tuple[Damage, str]]:
    """Make sure that a flow may start, by what was found. Not inside a look (``looked_over``): a repair writes.

    Args:
        damages: what was found.
        check: raises where the right to write is lost; what was found is then another process's to repair.

    Returns:
        The damage that was repaired, with what was done: only such as can be repaired without losing or
        doubling a row.

    Raises:
        RefusedForSafety: for the first finding that can't.
    """
    blocking = next((damage for damage in damages if damage.blocks and not damage.mends_itself), None)
    if blocking is not None:
        raise blocking.error
    done = []
    for damage in damages:
        if damage.mend is not None and damage.unasked:
            check()
            done.append((damage, damage.mend()))
    return done
