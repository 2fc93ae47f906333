"""`dowse eval`: collections or judgments enter; metrics, comparisons, failures and a report leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from dowse.cli.evaluate.eval_inputs import INPUT_OPTIONS, runners
from dowse.cli.options import add, option
from dowse.cli.query_options import QueryCommand, query_options, request_fields
from dowse.cli.session import CommandSession
from dowse.errors import BadRequestError
from dowse.serve.plain_text import clean_line, table
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.evaluate.ablate import AblationRow
    from dowse.evaluate.failures import Failure
    from dowse.evaluate.run import EvalRun, QueryRunner, SearchSetting
    from dowse.ports import Reporter

FILE = click.Path(path_type=Path, dir_okay=False)

BM25_OPTIONS = (
    option("--k1", type=click.FloatRange(0), metavar="N", group="What",
           help="Set the k1 of BM25, the term saturation [default: by profile]."),
    option("--b", type=click.FloatRange(0, 1), metavar="0..1", group="What",
           help="Set the b of BM25, the length penalty [default: by profile]."),
)  # fmt: skip
OUTPUT = (
    option("--ablate", is_flag=True, group="Output", help="Also measure without each part, to show its effect."),
    option("--worst", type=click.IntRange(1), metavar="N", group="Output", help="Show the N worst queries and why."),
    option("--report", "page", type=FILE, metavar="FILE", group="Output", help="Write a self-contained HTML report."),
    option("--csv", "as_csv", is_flag=True, group="Output", help="Print CSV, one line per query."),
    option("--run", "foreign", type=FILE, metavar="FILE", group="Output", help="Compare with this TREC run."),
    option("--save-run", type=FILE, metavar="FILE", group="Output", help="Write the rankings as a TREC run."),
)


class EvalResults(msgspec.Struct, frozen=True, eq=False):
    """All measurements of one run of `dowse eval`."""

    runs: Sequence[EvalRun]
    foreign: EvalRun | None
    ablation: Sequence[AblationRow]
    failures: Sequence[Failure]


@click.command(name="eval", cls=QueryCommand)
@click.argument("datasets", nargs=-1, metavar="[DATASET]...", type=click.Path(path_type=Path))
@add(INPUT_OPTIONS)
@option("--cut", is_flag=True, group="Input",
        help="Split documents into chunks as `dowse index` does, and group results by document "
             "[default: one chunk per document].")  # fmt: skip
@add(query_options(("profile", "rerank"), old=("fusion", "legs", "alpha", "depth")))
@add(BM25_OPTIONS)
@add(OUTPUT)
def evaluate(session: CommandSession, datasets: tuple[Path, ...], **flags: Any) -> int:
    """Measure the quality of the results.

    \b
    dowse eval ~/data/scifact                    a folder in BEIR layout
    dowse eval judgments.tsv                     query, FILE:LINE and grade, on the index
    dowse eval --judged                          judgments of `dowse judge`
    dowse eval ~/data/* --ablate --report r.html

    A folder holds corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, plain or .gz. Dowse caches its index, so a second
    run is fast.
    """
    from dowse.cli.rich_output import progress
    from dowse.evaluate.run import SearchSetting
    from dowse.types import QueryRequest

    request = QueryRequest("", **({"profile": session.config.profile} | request_fields(flags)))
    knobs = tuple((name, value) for name in ("k1", "b") if (value := flags.pop(name)) is not None)
    name = "default" if request == QueryRequest("") and not knobs else "as asked"
    with progress(wanted=not session.quiet) as report, runners(session, datasets, flags, report) as asked:
        found = _measure(asked, SearchSetting(name, request, knobs), flags, report)
    if flags["page"]:
        from dowse.evaluate.report import page
        from dowse.evaluate.trec import write_lines

        write_lines(flags["page"], [page(found.ablation, found.failures).rstrip("\n")])
    _print(session, flags, found)
    return Exit.HITS


def _measure(
    asked: Sequence[QueryRunner], setting: SearchSetting, outputs: Mapping[str, Any], report: Reporter | None
) -> EvalResults:
    from dowse.evaluate.ablate import ablate, legs_alone, settings
    from dowse.evaluate.failures import worst
    from dowse.evaluate.trec import falling, run_lines, write_lines

    foreign = _foreign(asked, outputs["foreign"]) if outputs["foreign"] else None
    ways = [setting]
    if outputs["ablate"] or outputs["page"]:
        ways = settings(setting)
    elif outputs["worst"] and foreign is None:
        ways = [setting, *legs_alone(setting)]
    rows = ablate(asked, ways, report)
    failures: list[Failure] = []
    if outputs["worst"] or outputs["page"]:
        count = outputs["worst"] or 20
        for number, runner in enumerate(asked):
            rivals = [foreign] if foreign else [row.runs[number] for row in rows[1:4]]
            failures += worst(runner, setting, [rows[0].runs[number], *rivals], count)
        failures = sorted(failures, key=lambda each: -each.loss)[:count]
    if outputs["save_run"]:
        _only(asked, "--save-run")
        rankings = {each.question.id: falling(each.ranking) for each in rows[0].runs[0].answered}
        write_lines(outputs["save_run"], run_lines(rankings))
    return EvalResults(rows[0].runs, foreign, rows if len(ways) > 4 else (), failures)


def _foreign(asked: Sequence[QueryRunner], file: Path) -> EvalRun:
    from dowse.evaluate.run import graded_run
    from dowse.evaluate.trec import read_run

    dataset = _only(asked, "--run").collection.dataset
    rankings = read_run(file)
    if not any(each.id in rankings for each in dataset.questions):
        raise BadRequestError(f"{file} has no query of {dataset.name}; check that the query ids are the same")
    return graded_run(dataset, file.stem, rankings)


def _only(asked: Sequence[QueryRunner], flag: str) -> QueryRunner:
    if len(asked) != 1:
        raise BadRequestError(f"{flag} needs exactly one collection, not {len(asked)}; name one")
    return asked[0]


def _print(session: CommandSession, outputs: Mapping[str, Any], found: EvalResults) -> None:
    from dowse.evaluate import report_tables as tables

    for run in found.runs:
        for lost in run.degraded:
            session.note(f"dowse: {run.dataset}: stage {lost.stage}: {lost.reason}")
    if session.as_json:
        row = tables.runs_object(found.runs)
        row |= tables.comparison_object(found.runs[0], found.foreign) if found.foreign else {}
        row |= tables.ablation_object(found.ablation) if found.ablation else {}
        row |= {"worst": [tables.failure_object(each) for each in found.failures]} if outputs["worst"] else {}
        session.emit_json(row)
    elif outputs["as_csv"]:
        session.emit(tables.runs_csv([*found.runs, *([found.foreign] if found.foreign else [])]).rstrip("\n"))
    else:
        _print_tables(session, outputs, found)
    if outputs["page"]:
        session.note(f"Wrote {outputs['page']}.")


def _print_tables(session: CommandSession, outputs: Mapping[str, Any], found: EvalResults) -> None:
    from dowse.evaluate import report_tables as tables

    session.emit(*table(tables.runs_cells(found.runs), right=range(2, 10)))
    if found.foreign:
        compared = tables.comparison_text(found.runs[0], found.foreign)
        session.emit(f"\n{clean_line(found.foreign.setting)}: {found.foreign.metrics['ndcg@10']:.4f}; ours: {compared}")
    if outputs["ablate"]:
        session.emit("", *table(tables.ablation_cells(found.ablation), right=range(1, len(found.runs) + 2)))
    for failure in found.failures if outputs["worst"] else ():
        session.emit("")
        for line in tables.failure_lines(failure):
            session.emit(line[: len(line) - len(line.lstrip())] + clean_line(line))
