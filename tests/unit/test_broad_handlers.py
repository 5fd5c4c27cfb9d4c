"""Each handler that is wider than one kind of error is argued: it may hide a bug, or give it a name that is not its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
BROAD = {"Exception", "BaseException", ""}
# A handler that ends with a plain `raise` only tidies up, and needs no entry. Of OSError those need one that go on as if
# nothing were wrong, after more than one call of which any may have failed.
ALLOWED = {
    ("include/headwater/advice/reading.py", "_size"): "a file that is gone has no size to judge batches by",
    ("include/headwater/advice/reading.py", "_state"): "checkpoints that can't be read are the doctor's; advice goes on without them",
    ("include/headwater/advice/table_facts.py", "_opened"): "a table that is not there, or can't be opened, has nothing to advise on",
    ("include/headwater/contract/failure_report.py", "run_and_report"): "the end of every program: what nobody foresaw is named as that, with its type and exit code 1",
    ("include/headwater/definitions/bound_names.py", "_same"): "values of a user's that can't be compared are not the same",
    ("include/headwater/doctor/diagnosis.py", "_remedy"): "one remedy that can't be planned, mostly for the damage itself, is shown as such beside the others",
    ("include/headwater/change_feed/reading.py", "arrow_table"): "delta-rs raises plain Exception for a data file that is gone; any subclass is raised again",
    ("include/headwater/doctor/flow_case.py", "_seen"): "what may not be read is the same before and after, and a finding of its own",
    ("include/headwater/event_log/hooks.py", "EventHooks._call"): "a user's hook may raise anything, exit() too: it is recorded, and ends no update",
    ("include/headwater/event_log/live_driver.py", "live_driver"): "a link to Spark's page: without the file, whole, there is none",
    ("include/headwater/event_log/retention.py", "keep_event_log"): "upkeep of the log after an update: what fails is printed, and due again the next day",
    ("include/headwater/event_log/table_query.py", "query"): "delta-rs raises plain Exception for a damaged data file; any subclass is raised again",
    ("include/headwater/event_log/writer.py", "EventLogWriter._append"): "records are kept and tried again; what is left at the end raises EventLogNotWritten",
    ("include/headwater/event_log/writer.py", "EventLogWriter._compact"): "upkeep: the log is whole without it; what fails is printed",
    ("include/headwater/graph/files_read.py", "content_digest"): "a file that can't be read is told from others by the reason, and the pipeline's own code meets it",
    ("include/headwater/graph/pipeline_ids.py", "may_have_id"): "a file that is gone or can't be read is no pipeline of this user's",
    ("include/headwater/graph/pipeline_ids.py", "_beside"): "a parent folder that can't be listed has no pipelines that this user could run",
    ("include/headwater/graph/pipeline_ids.py", "known_homes"): "a hint for people; without it they are not warned",
    ("include/headwater/graph/spec_text.py", "_Constructor.construct_object"): "PyYAML's constructors raise what Python's types raise: each is an error of the value, with its line",
    ("include/headwater/metrics/event_freshness.py", "table_event_freshness"): "a table that can't be read has no age: that is said, and counts as over the limit",
    ("include/headwater/delta_log/commits.py", "commit_written"): "a commit that is gone or damaged says no time: nothing is held against the table",
    ("include/headwater/incremental/refresh_record.py", "view_log"): "a log that can't be read further back names no other change: what was read of it decides",
    ("include/headwater/incremental/refresh_record.py", "last_record"): "a log that can't be read names no refresh: the view is recomputed, with that reason",
    ("include/headwater/incremental/source_changes.py", "changes_between"): "a log that can't be read is the reason for recomputing the view",
    ("include/headwater/incremental/source_changes.py", "metadata_at"): "a version that can't be opened is the reason for recomputing the view",
    ("include/headwater/delta_log/heads.py", "log_head"): "a log that can't be read here is opened by delta-rs, which says what is wrong",
    ("include/headwater/delta_log/file_bounds.py", "table_files"): "a table whose log cannot be read here is left to Delta, which raises what is wrong",
    ("include/headwater/kinesis/shards.py", "KinesisStream.pages"): "raised again at once, as the kind of error that it is",
    ("include/headwater/storage/conditions.py", "store_errors_of_delta"): "delta-rs raises any class for a store that is away: raised again as it is, or as that",
    ("include/headwater/storage/known_contents.py", "KnownFolder.of"): "a cache that can't be read knows nothing: the store is asked",
    ("include/headwater/storage/delta_tables.py", "_mirror"): "without a copy of a log on this machine the store's own is read",
    ("include/headwater/telemetry/exposition.py", "samples"): "a pipeline that can't be read is a figure of its own; the others are shown",
    ("include/headwater/telemetry/otlp.py", "MetricsExport.offer"): "what is measured must not be ended by its metrics: it is logged",
    ("include/headwater/telemetry/otlp.py", "metrics_export"): "the same at the end, where a collector may be gone",
    ("include/headwater/metastore/following.py", "Follower.follow"): "rows are committed: what fails is recorded as a warning, and tried again by the next update",
    ("include/headwater/maintenance/maintain.py", "_one"): "one table's trouble is reported as that step's failure; the others are maintained",
    ("include/headwater/maintenance/maintenance_plan.py", "look"): "one table that can't be looked at is left out with its error; the others are planned",
    ("include/headwater/maintenance/reader_positions.py", "_change_readers"): "the reader's position is not known, which keeps every file",
    ("include/headwater/metrics/source_position.py", "source_backlog"): "clients raise anything: the lag is not known, with the reason, and the update itself meets the cause",
    ("include/headwater/preflight/checks.py", "_findings"): "a check that raises is a finding that blocks, with its type and message",
    ("include/headwater/preflight/file_source_checks.py", "names_are_patterns"): "what can't be read is told by the checks of the logs, and by Spark",
    ("include/headwater/preflight/moved_folders.py", "_is_same"): "a file that can't be looked at is not the same file",
    ("include/headwater/preflight/moved_folders.py", "_read_again"): "a folder that can't be listed has nothing that would be read again; Spark says what it misses",
    ("include/headwater/preflight/moved_folders.py", "_was_read"): "a file that is gone was not moved",
    ("include/headwater/runtime/class_archive.py", "ClassArchive.is_whole"): "an archive that is not known to be whole is not used; drivers start without one",
    ("include/headwater/runtime/class_sharing.py", "class_archive"): "no archive: what Java, Spark or a jar lacks, the start of the driver names",
    ("include/headwater/runtime/shared_classes.py", "main"): "no archive: printed with its reason; drivers start without one",
    ("include/headwater/runtime/jar_stamps.py", "_recorded_stamps"): "without stamps every jar is hashed again",
    ("include/headwater/runtime/java.py", "_major_version"): "a Java that can't be run is none; the search goes on and ends with an error that lists what was tried",
    ("include/headwater/updates/news.py", "has_news"): "a search that fails is a reason to run: the update meets the cause, or does not",
    ("include/headwater_demo/processes.py", "ProcessTable._is_ours"): "a process that has ended has no files below /proc",
    ("jobs/headwater_spark/java_references.py", "_give_back"): "a JVM that is gone took its objects along; whoever asks it for something is told so",
    ("jobs/headwater_spark/loader/shipped_modules.py", "PipelineModule._is_shipped"): "objects of users and of Spark raise anything when they are pickled: they stay on the driver",
    ("jobs/headwater_spark/facade/noted_reads.py", "NotedReads.note"): "raised in an audit hook it would fail the user's own call: what was not noted is logged",
    ("jobs/headwater_spark/backfills/backfill.py", "_fill"): "recorded in the event log under its name, and raised",
    ("jobs/headwater_spark/backfills/then_stream.py", "_write"): "user's query, Spark and Delta: flow_error names each by its class, what it does not know as FLOW_FAILED",
    ("jobs/headwater_spark/execution/file_cleaning.py", "clean_read"): "a file that can't be removed stays, and is tried after the next update",
    ("jobs/headwater_spark/execution/flow_lifecycle.py", "_measured_lag"): "rows are committed: a lag that can't be measured must not make their flow fail",
    ("jobs/headwater_spark/execution/recounting.py", "_recount"): "rows are committed: the count is not known, and says why",
    ("jobs/headwater_spark/execution/restarts.py", "_remedied"): "a remedy that fails gives the error that its flow ends with",
    ("jobs/headwater_spark/execution/restarts.py", "run_with_restarts"): "user's query, Spark and Delta: a remedy explains the failure, or it is the flow's error",
    ("jobs/headwater_spark/execution/schedule.py", "_Prepared.ensure"): "kept for each flow of the table, and raised there",
    ("jobs/headwater_spark/execution/schedule.py", "_run"): "a table that can't be prepared fails its flows; the others run",
    ("jobs/headwater_spark/execution/update_context.py", "UpdateContext.next_epoch"): "a number for records; the flow's own start says what is damaged",
    ("jobs/headwater_spark/execution/view_refresh.py", "_begun"): "one error, by its name, is a reason to look at the sources again; all others are raised",
    ("jobs/headwater_spark/execution/view_refresh.py", "_Refresh._increment"): "nothing is committed: the view is recomputed in the same update, with the failure as the reason",
    ("jobs/headwater_spark/linting/retention_rules.py", "_properties"): "a table that is not there yet has no properties to be warned of",
    ("jobs/headwater_spark/linting/source_rules.py", "_first_batch"): "a table that is not there, or can't be opened, is for the update's own checks",
    ("jobs/headwater_spark/linting/source_rules.py", "_changed_before"): "a table that is not there yet has no history to be warned of",
    ("jobs/headwater_spark/loader/loader.py", "run_source"): "the user's module may raise anything: named with its line",
    ("jobs/headwater_spark/messages/user_errors.py", "user_errors"): "the user's function may raise anything: named with its line",
    ("jobs/headwater_spark/replays/replay.py", "_replay_flow"): "user's query, Spark and Delta: flow_error names each by its class",
    ("jobs/headwater_spark/sources/cloud_files/json_proof.py", "_proof"): "no proof: the file is read the careful way",
    ("jobs/headwater_spark/sources/reachability.py", "_failure"): "the text is the finding: why a broker does not answer",
    ("jobs/headwater_spark/views/python_functions.py", "pickled_digest"): "whatever a pickle raises, what its function does is not known: any edit then recomputes the view",
    ("plugins/headwater_airflow/driver/health.py", "_watch"): "the log may be unreadable for a moment; the driver is watched in any case",
    ("plugins/headwater_airflow/driver/on_kubernetes.py", "_api"): "the client, Airflow's settings and a file may raise anything: it is named as no way to the API",
    ("plugins/headwater_airflow/driver/pods.py", "Pods._patiently"): "whoever signs requests, urllib3 and the client raise anything: it is waited out, and then named",
    ("plugins/headwater_airflow/driver/process.py", "_terminate_children"): "a child that has ended needs no signal",
    ("plugins/headwater_airflow/entities.py", "_usable_manifest"): "without a manifest that can be read the DAG is one task, which says why",
    ("plugins/headwater_airflow/links.py", "SparkUiLink.get_link"): "a task's own view must not fail for a link; it is logged",
    ("plugins/headwater_airflow/notifications/alert.py", "send"): "the other notifiers are called all the same; then it is raised",
    ("plugins/headwater_airflow/page/diagnoses.py", "diagnoses"): "one flow's trouble is shown beside the others' findings",
    ("plugins/headwater_airflow/page/pipeline_view.py", "read_part"): "one part's trouble is shown beside the rest of the page",
    ("plugins/headwater_airflow/page/projects.py", "_checked"): "a pipeline's trouble is shown at its name; the others are listed",
    ("plugins/headwater_airflow/page/projects.py", "_open"): "a pipeline's trouble is shown at its name; the others are listed",
    ("plugins/headwater_airflow/pipelines.py", "_made"): "whatever Airflow raises about a DAG is raised again, as an error of its pipeline's spec",
    ("plugins/headwater_airflow/pipelines.py", "_projects"): "a pipeline's trouble is an import error of its own; the others have their DAGs",
    ("plugins/headwater_airflow/pipelines.py", "pipeline_dags"): "a pipeline's trouble is an import error of its own; the others have their DAGs",
    ("plugins/headwater_airflow/triggers/patience.py", "patiently"): "stores and Airflow's API raise anything while they are away: it is waited out, and then raised",
    ("plugins/headwater_airflow/triggers/watching.py", "WatchStream.open_stream"): "a watch outlives whatever a look raises: it is logged, and looked at again later",
    ("plugins/headwater_airflow/roots.py", "_has_spec"): "opening the pipeline says why it can't be read",
}  # fmt: skip


def handlers(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.Try, ast.ExceptHandler]]:
    """Every handler, with the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if isinstance(node, ast.Try | ast.TryStar):
            yield from ((inside, node, handler) for handler in node.handlers)
        yield from handlers(node, f"{inside}.{node.name}".lstrip(".") if named else inside)


def suppressions(tree: ast.AST) -> Iterator[str]:
    """The kinds that are given to ``suppress``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "suppress":
            yield from map(ast.unparse, node.args)


def kinds(handler: ast.ExceptHandler) -> set[str]:
    """What it catches; an empty name where it says nothing."""
    if handler.type is None:
        return {""}
    return {ast.unparse(kind) for kind in getattr(handler.type, "elts", [handler.type])}


def is_broad(block: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether the handler needs an entry."""
    last = handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    if kinds(handler) & BROAD:
        return True
    raises = any(isinstance(node, ast.Raise) for part in handler.body for node in ast.walk(part))
    calls = [node for part in block.body for node in ast.walk(part) if isinstance(node, ast.Call)]
    return "OSError" in kinds(handler) and not raises and len(calls) > 1


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Every module of ours."""
    for root in ("include", "jobs", "plugins", "dags"):
        for path in sorted((ROOT / root).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


@cache
def in_all_sources() -> tuple[set[tuple[str, str]], list[str]]:
    """The file and the function of each broad handler, and the files that suppress every error; read once."""
    broad, suppressing = set(), []
    for name, tree in sources():
        broad |= {(name, function) for function, *handler in handlers(tree) if is_broad(*handler)}
        suppressing += [name] * bool(BROAD & set(suppressions(tree)))
    return broad, suppressing


def test_each_broad_handler_is_argued():
    """A new one says in the table why it may be as wide, or names the kinds of error that it explains."""
    assert sorted(in_all_sources()[0] - ALLOWED.keys()) == []


def test_the_table_is_not_older_than_the_code():
    """An entry whose handler was narrowed, moved or removed goes, too."""
    assert sorted(ALLOWED.keys() - in_all_sources()[0]) == []


def test_nothing_passes_over_every_error():
    """``suppress`` has no place for a reason: it names kinds of error."""
    assert in_all_sources()[1] == []


def test_what_counts_as_broad():
    """Bare, by name, in a tuple, over several calls; not a handler that tidies up and raises again."""
    text = "try:\n    f(g())\nexcept {}:\n    {}"
    for kind, body, broad in (
        ("Exception", "pass", True), ("BaseException", "raise ValueError", True), ("(ValueError, Exception)", "pass", True),
        ("BaseException", "tidy()\n    raise", False), ("OSError", "pass", True), ("OSError", "raise X from None", False),
        ("FileNotFoundError", "pass", False), ("ValueError", "pass", False),
    ):  # fmt: skip
        ((_, block, handler),) = handlers(ast.parse(text.format(kind, body)))
        assert is_broad(block, handler) is broad, (kind, body)
    ((_, block, handler),) = handlers(ast.parse("try:\n    f()\nexcept OSError:\n    pass"))
    assert not is_broad(block, handler)
    ((where, _, handler),) = handlers(
        ast.parse(
            "class A:\n    def b(self):\n        try:\n            f()\n        except:\n            pass"
        )
    )
    assert (where, kinds(handler)) == ("A.b", {""})
