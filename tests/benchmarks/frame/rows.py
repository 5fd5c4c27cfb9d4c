"""The rows of the page: what each benchmark measures, against whom, and what was aimed at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A benchmark. ``note``: why a target is missed, or what has to be known to read the figures."""

    name: str
    work: str
    peers: str
    target: str
    note: str = ""


ROWS = (
    Row(
        "append",
        "an append flow over a large backlog of a Delta table and of a Kafka topic, and 50 small batches",
        "the same job written by hand",
        "at least 0.97 of its throughput; overhead per batch under 5%",
        "Both are whole jobs: our side also resolves the pipeline, checks the start and records the update. A batch of ours takes one Spark job where Delta's own sink takes four ([decision 0207](decisions/0207-a-checksum-says-which-batches-a-table-has.md)).",
    ),
    Row(
        "graph",
        "ten tables, bronze to gold: first update, incremental, nothing new",
        "one submit per table; `spark-pipelines run`",
        "equal settings: 5 times as fast as submits, 1.5 times as SDP; each as documented: 8 and 3 times",
        'With equal settings the separate programs map the archive of classes, too, and no longer pay much for their start: CPU time is 3.2 to 4.1 times ours, and a first update, which creates ten tables and loads the most classes, stays below its target. `spark-pipelines run` starts two JVMs, needs a metastore, and recomputes its materialized views; with nothing new it was not run. The programs run one after another; with nothing new they start all the same, and ours reads logs and starts no JVM. "As documented" is Delta\'s quick start: no archive, both JIT compilers, 200 shuffle partitions.',
    ),
    Row(
        "small",
        "an update with one new row, of 2, 5, 10 and 50 flows",
        "a hand-written job of the same queries",
        "at most 0.75 of its time",
        "By CPU time a later update costs 0.60 to 0.88 of the job by hand, which has the same session settings: a batch takes one Spark job instead of four ([decision 0207](decisions/0207-a-checksum-says-which-batches-a-table-has.md)), and that pays for imports of Python (about one second an update), resolution, checks and records. With two flows the start of Spark, which both have, is 0.42 of our time.",
    ),
    Row(
        "class_sharing",
        "a first update of two tables with the archive of classes",
        "the same update without it",
        "at most 0.85 of its time",
    ),
    Row(
        "quality",
        "three rules, with and without a quarantine, on JSON, Delta and Kafka",
        "hand-written filters; DQX where it is installed",
        "0.9 of the throughput without rules; a quarantine at most 1.5 of the time without",
        "What rules cost is a cost per row: of a Delta table a million rows take some 2.7 CPU seconds without rules, 3.2 with three that drop and 4.5 with a quarantine, a thousand rows 0.95, 1.0 and 1.4. Rules are counted by a step of our own that is part of the generated code ([decision 0215](decisions/0215-each-part-of-a-batch-counts-once.md)); while Spark counted, each row was copied twice more, and rules kept 0.88 of the throughput of a Delta table and 0.82 of JSON. A quarantine goes through Python's foreachBatch, which copies rows once more, and writes a second table.",
    ),
    Row(
        "files",
        "cloudFiles in its default mode: few large files, and 10,000 small ones (BENCH_MANY=100000 for more)",
        "plain `readStream.json` with the schema given",
        "at least 0.9 of its throughput",
        "The default mode reads each file twice, once to prove that it has no unknown key, and each row has a column more and a condition on its file's name. The proof takes 0.1 CPU seconds for 600,000 lines of one shape, 0.3 for others.",
    ),
    Row(
        "cdc",
        "AUTO CDC of type 1 and 2, neighbouring and spread keys, with and without deletion vectors",
        "the MERGE statements that guides teach",
        "not slower; flat with the table's size where keys are neighbours; deletion vectors no slower",
        "Targets are made without deletion vectors. In a table that has them, rows of large files are marked as deleted instead of written again, without a MERGE as well ([decision 0208](decisions/0208-rows-are-marked-where-a-table-has-deletion-vectors.md)). The guides' MERGE got 260 to 8,400 rows wrong: it loses late events.",
    ),
    Row(
        "views",
        "materialized views of which a thousandth of the source is new, or changed on one day or all over it; twenty in one update",
        "the same queries recomputed, by hand",
        "at 10 million rows 3 times as fast for simple shapes, 10 for joins with distinct, shares and windows of a day; never over 1.15 of its time; twenty views 3 times as fast",
        "The file has a million rows, of which the fixed price of an update hides most of the gain. At 10 million, BENCH_ROWS=10000000 BENCH_CHANGED=10000 (four rounds each, beside other work, cut short after each part): distinct customers, changed near 16.9 times as fast as by hand (11 to 22; 2.3 s and 38), running by day 12 (10 to 14 without one round of other work; 2.3 s and 27), shares of a day 3.1 (2.2 to 3.8; 1.8 s and 6), where 10 are aimed at: an update of one table takes 0.7 s at least, whatever it does. Refreshes take as long over ten million rows as over one, a thousandth changed on one day; whole updates of one view, the median of four after a first one (2026-11-28): joined 2.4 and 2.3 s, summed by day 0.9 and 1.0, distinct customers 1.4 and 1.3, running by day 1.3 and 1.3. Filtered, appended, with 1,000 rows: 39.8 (39.4 to 41.5). The choices were measured apart, three rounds of each of 24 pairs of a view and a change after a warm one, nothing else running, the fastest round of each: in all 24 the two ways differ by a fifth, and in 22 the cost chose the faster one. What it chose took 0.17 to 1.06 of the full refresh, and in sum 1.04 of the faster ways. The two others, the latest row of each customer, were recomputed; since what is only scanned counts a quarter instead of four tenths, they take 0.50 and 0.66 of the full refresh (three rounds, beside other work). With that, the twenty views were measured again, apart, four rounds: 12.1 to 13.3 s, and 37.0 to 39.7 s by hand.",
    ),
    Row(
        "observe",
        "lag, freshness and health of 50 tables with 1,000 commits each",
        "a warm Spark session doing the same; delta-rs used naively",
        "100 times as fast as Spark; the page under 300 ms",
        "All looks but the first count, on each side, as on a page or in a sensor: a look reads what is new of a table's log since the one before. The first one reads for each table its head, its history and its flow's state. How long the page takes stands under [memory](#memory).",
    ),
    Row(
        "latency",
        "Kafka to bronze to silver to gold at a steady pace, a trigger of one second: from an event's sending to the commit that has it",
        "a hand-written chain of streams",
        "p50 and p99 at most 1.05 of it",
        "The figures are seconds of one run: each round gives a p50 and a p99; a batch of ours takes one Spark job instead of four ([decision 0202](decisions/0202-latency-ends-with-the-commit-file.md)). Spark's real-time mode is left out: open Spark writes no Delta table with it.",
    ),
    Row(
        "recover",
        "from kill -9 to the first new committed row",
        "a hand-written job",
        "at most 1.1 of its time",
    ),
    Row(
        "parse",
        "the DAG processor with 200 pipelines, 1,000 DAGs",
        "200 hand-written DAGs of one task",
        "at most 1.2 of their time; bytes per DAG reported",
    ),
    Row(
        "growth",
        "an update's time with one new row after 10 to 10,000 batches and commits, with one through 5 to 50 tables (BENCH_TABLES=200), and with up to 10 million rows (BENCH_ROWS=100000000)",
        "hand-written",
        "flat, linear, linear: slopes are reported",
        "Batches are laid out, not run: commits of both tables, the checkpoint, and our event log are as after so many.",
    ),
    Row(
        "memory",
        "a driver over many rounds, the process of the page over many requests, a triggerer with 200 watches",
        "Airflow alone, and with as many of its own triggers",
        "flat; reported",
        "Resident memory of a JVM grows to the size of its heap; the heap is what a full collection leaves. The driver's Python warms up in these rounds: what grows is the writer of the event log, which by itself stays at 240 to 250 MB from 400 to 1,600 appends; its own objects do not grow (traced).",
    ),
)
