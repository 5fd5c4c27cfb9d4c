"""The linter finds what the page about it says, at the user's line, and is silent where it is told to be."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from headwater.contract.arguments import RunArguments
from headwater.definitions.finding import CODE_OF_CONDITION, LINT_RULES, Finding, Severity
from headwater.errors import InvalidPipeline
from headwater.graph.manifest import read_manifest
from headwater.graph.pipeline_project import open_project
from headwater.graph.spec_file import read_source
from headwater_spark.commands.update import answer
from headwater_spark.linting.linter import LintReport, lint
from headwater_spark.resolution.graph_resolution import resolved_pipeline

PAGE = (Path(__file__).parents[2] / "docs" / "linter.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (HW\d{3})\n(.*?)(?=^### |\Z)", PAGE, re.DOTALL | re.MULTILINE))
# What the page takes as given.
EVENTS = """
@dp.table
def events():
    columns = "event_id STRING, user_id STRING, event_time TIMESTAMP, amount INT"
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", 100).json(LANDING)

"""
# They end the resolution.
RAISED = {"HW105", "HW402"}
DAILY = 'airflow: {schedule: "0 3 * * *"}\nreaders: [duckdb, polars]\n'


def examples(code: str) -> list[str]:
    """The Python blocks of a rule's section; of a rule about the pipeline's file, its JSON."""
    return re.findall(r"^```(?:python|json)\n(.*?)^```", SECTIONS[code], re.DOTALL | re.MULTILINE)


@pytest.fixture
def findings(pipeline, tmp_path):
    """Lint a source after the page's own table; with ``spec`` added to pipeline.yml."""

    def run(source: str, spec: str = DAILY) -> LintReport:
        case = pipeline(EVENTS + source.replace("/landing", str(tmp_path / "landing")), spec=spec)
        (tmp_path / "landing" / "files").mkdir(exist_ok=True)
        with case.resolved() as resolved:
            return lint(resolved)

    return run


@pytest.mark.parametrize(
    ("read", "found"),
    [
        ('format("cloudFiles").option("cloudFiles.format", "json").load("/landing/files")', False),
        ('format("kinesis").option("streamName", "s").load()', False),
        (
            'format("kinesis").options(streamName="s", initialPosition="earliest", maxRecordsPerTrigger=9).load()',
            False,
        ),
        ('format("kinesis").options(streamName="s", initialPosition="earliest").load()', True),
    ],
)
def test_first_loads_of_other_sources(findings, read: str, found: bool):
    """HW501: cloudFiles has a limit of its own, Kinesis has none unless it is set."""
    report = findings(f"@dp.table\ndef t():\n    return spark.readStream.{read}\n")
    assert ("HW501" in codes(report)) == found


def codes(report: LintReport) -> set[str]:
    """The codes of what was found."""
    return {finding.code for finding in report.findings}


def only(report: LintReport) -> Finding:
    """The one finding."""
    assert len(report.findings) == 1, report.findings
    return report.findings[0]


def test_every_rule_is_documented():
    """Each code has a section with two examples and its severity, and the page has no other codes."""
    assert set(SECTIONS) == set(LINT_RULES)
    for code, rule in LINT_RULES.items():
        assert len(examples(code)) == 2, code
        assert f"({rule.severity}" in SECTIONS[code], code
        assert SECTIONS[code].strip().startswith(rule.title), code


@pytest.mark.parametrize("code", sorted(LINT_RULES))
def test_examples(code, findings, tmp_path):
    """The first example of each rule has its finding, at a line of the example; the second one has none."""
    if code == "HW202":
        table = tmp_path / "warehouse" / "shop" / "corrected"
        write_deltalake(str(table), pa.table({"id": [1, 2]}))
        DeltaTable(str(table)).delete("id = 1")
    if code == "HW203":
        about = CommitProperties(custom_metadata={"userMetadata": '{"pipeline": "case", "flow": "former"}'})
        table = tmp_path / "warehouse" / "shop" / "former"
        write_deltalake(str(table), pa.table({"id": [1, 2]}), commit_properties=about)
    bad, good = examples(code)
    if code == "HW603":
        for spec, count in ((bad, 2), (good, 0)):
            (tmp_path / "pipeline.json").write_text(spec)
            assert len(read_source(tmp_path / "pipeline.json").notes) == count
        return
    if code in RAISED:
        with pytest.raises(InvalidPipeline) as raised:
            findings(bad)
        assert CODE_OF_CONDITION[raised.value.condition] == code
        assert "main.py:" in raised.value.where
    else:
        report = findings(bad)
        matching = [one for one in report.findings if one.code == code]
        assert len(matching) == 1, report
        assert matching[0].where is not None
        assert matching[0].where.line > EVENTS.count("\n") + 1
        assert matching[0].severity is LINT_RULES[code].severity
        assert matching[0].remedy
    assert codes(findings(good)) == set()


def test_line_of_the_call(findings):
    """A finding points at the call, not only at the function."""
    finding = only(findings(examples("HW103")[0].replace(".dropDuplicates", "\\\n        .dropDuplicates")))
    assert finding.where is not None
    text = Path(finding.where.file).read_text(encoding="utf-8").splitlines()
    assert ".dropDuplicates" in text[finding.where.line - 1]
    assert finding.dataset == "once_each"


def test_silenced_by_comment(findings):
    """A comment silences its code in its own definition, in any place of it, and nowhere else."""
    source = examples("HW103")[0]
    above = findings("# headwater: ignore[HW103] they are few\n" + source)
    inside = findings(source.replace("():\n", "():\n    # headwater: ignore[hw501, hw103]\n"))
    assert (codes(above), codes(inside)) == (set(), set())
    assert [finding.code for finding in above.silenced] == ["HW103"]
    other = findings(
        "@dp.table\ndef copy():  # headwater: ignore[HW103]\n    return dp.read_stream('events')\n\n\n"
        + source
    )
    assert codes(other) == {"HW103", "HW002"}
    in_text = findings(source.replace("():\n", "():\n    'headwater: ignore[HW103]'\n"))
    assert codes(in_text) == {"HW103"}


def test_silenced_for_the_pipeline(findings):
    """`lint.ignore` silences a code everywhere; a code that does not exist is refused."""
    report = findings(examples("HW501")[0], "lint: {ignore: [HW501]}\n")
    assert (codes(report), [finding.code for finding in report.silenced]) == (set(), ["HW501"])
    with pytest.raises(InvalidPipeline, match="HW999"):
        findings("", "lint: {ignore: [HW999]}\n")


def test_a_view_is_blamed_once(findings):
    """What stands in a view is found at the view, and not again at each of its readers."""
    report = findings(
        "@dp.temporary_view\ndef unique():\n    return dp.read_stream('events').dropDuplicates(['event_id'])\n\n"
        "@dp.table\ndef one():\n    return dp.read_stream('unique')\n\n"
        "@dp.table\ndef other():\n    return dp.read_stream('unique')\n"
    )
    assert only(report).dataset == "unique"


def test_sql_text(findings):
    """SQL text is looked at as any query is."""
    assert codes(findings("@dp.table\ndef s():\n    return spark.sql('SELECT DISTINCT user_id FROM STREAM events')\n")) == {"HW103"}  # fmt: skip
    assert codes(findings("@dp.table\ndef s():\n    return spark.sql('SELECT user_id, count(*) AS n FROM STREAM events GROUP BY user_id')\n")) == {"HW101"}  # fmt: skip


def test_what_is_in_order(findings):
    """Bounded state, batch reads, few-key totals without keys, and a history whose views nothing reads, give no finding."""
    source = (
        "@dp.materialized_view\ndef m():\n    return dp.read('events').dropDuplicates(['event_id']).groupBy('user_id').count()\n\n"
        "@dp.table\ndef total():\n    return dp.read_stream('events').agg(F.count('*').alias('n'))\n\n"
        "@dp.table\ndef d():\n    return dp.read_stream('events').withWatermark('event_time', '1 hour').dropDuplicates(['event_id', 'event_time'])\n\n"
        "@dp.table\ndef w():\n    return dp.read_stream('events').withWatermark('event_time', '1 hour').groupBy(F.session_window('event_time', '5 minutes'), 'user_id').count()\n"
    )
    source += (
        "\ndp.create_streaming_table('history')\n"
        "dp.create_auto_cdc_flow(target='history', source='events', keys=['user_id'], sequence_by='event_time', stored_as_scd_type=2)\n"
    )
    assert codes(findings(source)) == set()


def test_severity_and_strictness(findings):
    """Errors fail always, warnings only where they are told to, infos never."""
    warning = findings(examples("HW103")[0])
    assert (warning.fails(strict=False), warning.fails(strict=True)) == (False, True)
    error = findings(examples("HW201")[0])
    assert error.fails(strict=False)
    assert error.findings[0].severity is Severity.ERROR
    info = findings(examples("HW501")[0])
    assert not info.fails(strict=True)


@pytest.fixture
def validated(pipeline, capsys):
    """Validate a source after the page's own table: the exit code, the JSON object, and whether a manifest was written."""

    def run(source: str, *, spec: str = "", **arguments: bool) -> tuple[int, dict, bool]:
        case = pipeline(EVENTS + source, spec=spec)
        request = RunArguments(str(case.folder), validate=True, as_json=True, **arguments)
        code = answer(case.project(), request)
        written = (case.folder / "manifest.json").exists()
        return code, json.loads(capsys.readouterr().out.splitlines()[-1]), written

    return run


def test_validate_with_a_warning(validated):
    """A warning is told and the manifest is written; with --strict, or `lint.strict`, it is an error and nothing is."""
    source = examples("HW103")[0]
    code, answer, written = validated(source)
    assert (code, answer["state"], written) == (0, "VALID", True)
    finding = answer["findings"][0]
    assert (finding["code"], finding["severity"], finding["dataset"]) == ("HW103", "warning", "once_each")
    assert re.search(r"main\.py:\d+$", finding["where"])
    assert "HW103" in finding["silence"]
    code, answer, _ = validated(source, strict=True)
    assert (code, answer["state"], answer["manifest"]) == (2, "INVALID", None)
    assert validated(source, spec="lint: {strict: true}\n")[0] == 2


def test_validate_with_an_error(validated):
    """An error ends with code 2 and no manifest, also where the graph can't be resolved for it."""
    code, answer, written = validated(examples("HW201")[0])
    assert (code, answer["state"], written) == (2, "INVALID", False)
    code, answer, written = validated(examples("HW105")[0])
    assert (code, answer["state"], written) == (2, "INVALID", False)
    assert answer["findings"][0]["code"] == "HW105"
    assert answer["error"]["condition"] == "UNSUPPORTED_STREAM_OPERATION"


def test_validate_for_people(pipeline, capsys):
    """On a terminal each finding is told with its code, line, remedy and how to silence it, and then counted."""
    case = pipeline(EVENTS + examples("HW103")[0])
    assert answer(case.project(), RunArguments(str(case.folder), validate=True)) == 0
    text = capsys.readouterr().out
    assert "warning HW103  once_each" in text
    assert "what to do: " in text
    assert "# headwater: ignore[HW103]" in text
    assert "The linter found 1 warning." in text


def test_shipped_pipeline_is_clean(spark, tmp_path):
    """The shipped pipeline has no finding that is not silenced with a reason, and its manifest fits its sources."""
    for folder in ("clicks/web", "clicks/app", "customers"):
        (tmp_path / folder).mkdir(parents=True)
    orders = Path(__file__).parents[2] / "jobs" / "pipelines" / "orders"
    project = open_project(
        orders, storage=tmp_path, warehouse=tmp_path, environment={"HEADWATER_LANDING": str(tmp_path)}
    )
    with resolved_pipeline(project, spark) as resolved:
        assert lint(resolved).findings == ()
    manifest = read_manifest(orders / "manifest.json")
    assert manifest is not None
    assert manifest.source_hash == project.source_hash()
