"""`dowse eval`: collections or judgments enter; figures, comparisons, failures and a report leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowse.cli.evaluate import eval_inputs as cli_collections
from dowse.cli.evaluate.eval_inputs import What
from dowse.cli.session import Session, shared_options
from dowse.errors import BadRequestError
from dowse.serve.wire import flag_values as cli_values
from dowse.serve.wire import flags as cli_search_flags
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.evaluate.ablate import Row
    from dowse.evaluate.failures import Failure
    from dowse.evaluate.run import Asker, Run, Setting
    from dowse.ports import Reporter

FILE = click.Path(path_type=Path, dir_okay=False)

HOW = (
    click.option("--profile", metavar="NAME", help="The named query pipeline."),
    click.option("--fusion", type=click.Choice(["z", "rrf", "minmax"]), help="How the legs become one list."),
    click.option("--legs", callback=cli_values.legs, metavar="LEG,…", help="Of dense, bm25_code, bm25_nlp; else all."),
    click.option("--alpha", type=float, metavar="0..1", help="Weight of the dense leg."),
    click.option("--rerank", metavar="NAMES", help="none, heuristic, cross-encoder, llm, or several with commas."),
    click.option("--depth", type=int, metavar="N", help="How many candidates each leg brings."),
    click.option("--k1", type=click.FloatRange(0), metavar="N", help="Of BM25: how soon a repeated word adds no more."),
    click.option("--b", type=click.FloatRange(0, 1), metavar="0..1", help="Of BM25: how much length is discounted."),
)  # fmt: skip

OUTPUT = (
    click.option("--ablate", is_flag=True, help="Also ask with parts taken away, and say what each part adds."),
    click.option("--worst", type=click.IntRange(1), metavar="N", help="The N questions that lose most, and why."),
    click.option("--report", "page", type=FILE, metavar="FILE", help="Write one self-contained page of HTML."),
    click.option("--csv", "as_csv", is_flag=True, help="Print one line of CSV a question."),
    click.option("--run", "foreign", type=FILE, metavar="FILE", help="Judge this TREC run beside ours."),
    click.option("--save-run", type=FILE, metavar="FILE", help="Write our rankings as a TREC run."),
)  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """What `dowse eval` shall do besides the figures."""

    ablate: bool
    worst: int | None
    page: Path | None
    as_csv: bool
    foreign: Path | None
    save_run: Path | None


@dataclass(frozen=True, eq=False)
class Found:
    """All that was measured."""

    runs: Sequence[Run]
    foreign: Run | None
    ablation: Sequence[Row]
    failures: Sequence[Failure]


@click.command(name="eval")
@click.argument("datasets", nargs=-1, metavar="DATASET...", type=click.Path(path_type=Path))
@cli_search_flags.add(cli_collections.FLAGS)
@cli_search_flags.add(HOW)
@cli_search_flags.add(OUTPUT)
@shared_options
def evaluate(session: Session, datasets: tuple[Path, ...], **flags: Any) -> int:
    """Measure how good the answers are.

    \b
    dowse eval ~/data/scifact                    a folder in BEIR layout
    dowse eval judgments.tsv                     query, FILE:LINE and grade; asks the index
    dowse eval --judged                          what `dowse judge` collected
    dowse eval ~/data/* --ablate --report r.html

    A folder holds corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv; .gz is fine. Its index is kept in a cache, so
    the second time is quick.
    """
    from dowse.cli import rich_output as terminal_rich
    from dowse.evaluate.run import Setting
    from dowse.types import QueryRequest

    what = What(**{field.name: flags.pop(field.name) for field in fields(What)})
    how = {name: flags.pop(name) for name in ("profile", "fusion", "legs", "alpha", "rerank", "depth")}
    turned = {name: flags.pop(name) for name in ("k1", "b")}
    knobs = tuple((name, value) for name, value in turned.items() if value is not None)
    wanted = Wanted(**flags)
    request = QueryRequest("", **(how | {"profile": how["profile"] or session.config.profile}))
    name = "default" if request == QueryRequest("") and not knobs else "as asked"
    with (
        terminal_rich.progress(wanted=not session.quiet) as report,
        cli_collections.askers(session, datasets, what, report) as asked,
    ):
        found = _measure(asked, Setting(name, request, knobs), wanted, report)
        if wanted.page:
            _write_page(found, wanted.page)
    _print(session, wanted, found)
    return Exit.HITS


def _measure(asked: Sequence[Asker], setting: Setting, wanted: Wanted, report: Reporter | None) -> Found:
    from dowse.evaluate.ablate import ablate, legs_alone, settings
    from dowse.evaluate.failures import worst

    foreign = _foreign(asked, wanted.foreign) if wanted.foreign else None
    ways = [setting]
    if wanted.ablate or wanted.page:
        ways = settings(setting)
    elif wanted.worst and foreign is None:
        ways = [setting, *legs_alone(setting)]
    rows = ablate(asked, ways, report)
    failures: list[Failure] = []
    if wanted.worst or wanted.page:
        count = wanted.worst or 20
        for number, asker in enumerate(asked):
            rivals = [foreign] if foreign else [row.runs[number] for row in rows[1:4]]
            failures += worst(asker, setting, [rows[0].runs[number], *rivals], count)
        failures = sorted(failures, key=lambda each: -each.loss)[:count]
    if wanted.save_run:
        _save_run(asked, rows[0].runs, wanted.save_run)
    return Found(rows[0].runs, foreign, rows if len(ways) > 4 else (), failures)


def _foreign(asked: Sequence[Asker], file: Path) -> Run:
    from dowse.evaluate.run import graded_run
    from dowse.evaluate.trec import read_run

    dataset = _only(asked, "--run").collection.dataset
    rankings = read_run(file)
    if not any(each.id in rankings for each in dataset.questions):
        raise BadRequestError(f"{file} answers no question of {dataset.name}; check that the query ids are the same")
    return graded_run(dataset, file.stem, rankings)


def _save_run(asked: Sequence[Asker], runs: Sequence[Run], file: Path) -> None:
    from dowse.evaluate.trec import falling, run_lines

    _only(asked, "--save-run")
    rankings = {each.question.id: falling(each.ranking) for each in runs[0].answered}
    _write(file, "".join(f"{line}\n" for line in run_lines(rankings)))


def _only(asked: Sequence[Asker], flag: str) -> Asker:
    if len(asked) != 1:
        raise BadRequestError(f"{flag} goes with one collection, not {len(asked)}; name one of them")
    return asked[0]


def _write_page(found: Found, file: Path) -> None:
    from dowse.evaluate.report import page

    _write(file, page(found.ablation, found.failures))


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as err:
        raise BadRequestError(f"cannot write {file}: {err.strerror}; name another file") from err


def _print(session: Session, wanted: Wanted, found: Found) -> None:
    from dowse.evaluate import report_tables as tables

    for run in found.runs:
        for lost in run.degraded:
            session.note(f"dowse: {run.dataset}: {lost.stage}: {lost.reason}")
    if session.as_json:
        row = tables.runs_object(found.runs)
        row |= tables.comparison_object(found.runs[0], found.foreign) if found.foreign else {}
        row |= tables.ablation_object(found.ablation) if found.ablation else {}
        row |= {"worst": [tables.failure_object(each) for each in found.failures]} if wanted.worst else {}
        session.emit_json(row)
    elif wanted.as_csv:
        session.emit(tables.runs_csv([*found.runs, *([found.foreign] if found.foreign else [])]).rstrip("\n"))
    else:
        _print_tables(session, wanted, found)
    if wanted.page:
        session.note(f"wrote {wanted.page}")


def _print_tables(session: Session, wanted: Wanted, found: Found) -> None:
    from dowse.evaluate import report_tables as tables
    from dowse.serve.plain_text import clean_line, table

    for line in table(tables.runs_cells(found.runs), right=range(2, 10)):
        session.emit(line)
    if found.foreign:
        compared = tables.compared(found.runs[0], found.foreign)
        session.emit(f"\n{clean_line(found.foreign.setting)}: {found.foreign.metrics['ndcg@10']:.4f}; ours: {compared}")
    if wanted.ablate:
        session.emit("")
        for line in table(tables.ablation_cells(found.ablation), right=range(1, len(found.runs) + 2)):
            session.emit(line)
    for failure in found.failures if wanted.worst else ():
        session.emit("")
        for line in tables.failure_lines(failure):
            session.emit(line[: len(line) - len(line.lstrip())] + clean_line(line))
