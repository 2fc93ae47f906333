"""Formatting of runs, ablations and failures as JSON objects, CSV, table cells and text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dowse.evaluate.ablate import AblationRow
from dowse.evaluate.failures import Failure
from dowse.evaluate.metrics import METRICS, Interval, difference
from dowse.evaluate.run import EvalRun, mean_metrics

Object = dict[str, Any]
Cells = list[tuple[str, ...]]  # rows of a table, the header first
_DIGITS = 4


def runs_object(runs: Sequence[EvalRun]) -> Object:
    return {
        "datasets": [
            {
                "name": run.dataset,
                "split": run.split,
                "setting": run.setting,
                "queries": len(run.answered),
                "metrics": run.metrics,
                "cpu_ms_per_query": run.cpu_ms_per_query,
                "degraded": [{"stage": each.stage, "reason": each.reason} for each in run.degraded],
            }
            for run in runs
        ],
        "mean": mean_metrics(runs),
    }


def runs_cells(runs: Sequence[EvalRun]) -> Cells:
    rows: Cells = [("dataset", "split", "queries", *METRICS, "CPU ms")]
    for run in runs:
        figures = (_figure(run.metrics[name]) for name in METRICS)
        rows.append((run.dataset, run.split, str(len(run.answered)), *figures, f"{run.cpu_ms_per_query:.1f}"))
    if len(runs) > 1:
        mean = mean_metrics(runs)
        rows.append(("mean", "", "", *(_figure(mean[name]) for name in METRICS), ""))
    return rows


def runs_csv(runs: Sequence[EvalRun]) -> str:
    """Write one line for each query."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("dataset", "split", "setting", "query_id", *METRICS, "cpu_ms"))
    for run in runs:
        for each in run.answered:
            figures = (f"{each.metrics[name]:.6f}" for name in METRICS)
            writer.writerow((run.dataset, run.split, run.setting, each.question.id, *figures, f"{each.cpu_ms:.3f}"))
    return out.getvalue()


def ablation_object(rows: Sequence[AblationRow]) -> Object:
    return {
        "ablation": [
            {
                "setting": row.setting.name,
                "ndcg@10": row.mean,
                "by_dataset": {run.dataset: run.metrics["ndcg@10"] for run in row.runs},
                "difference": interval_object(row.against),
                "cpu_ms_per_query": row.cpu_ms_per_query,
            }
            for row in rows
        ]
    }


def ablation_cells(rows: Sequence[AblationRow]) -> Cells:
    names = [run.dataset for run in rows[0].runs]
    cells: Cells = [("nDCG@10", *names, "mean", "difference", "", "CPU ms")]
    for row in rows:
        figures = (_figure(run.metrics["ndcg@10"]) for run in row.runs)
        change = ("", "") if row.against is None else (interval_text(row.against), verdict(row.against))
        cells.append((row.setting.name, *figures, _figure(row.mean), *change, f"{row.cpu_ms_per_query:.1f}"))
    return cells


def comparison_text(ours: EvalRun, theirs: EvalRun) -> str:
    found = difference([ours.figures()], [theirs.figures()])
    return f"{interval_text(found)} nDCG@10, {verdict(found)}"


def comparison_object(ours: EvalRun, theirs: EvalRun) -> Object:
    found = difference([ours.figures()], [theirs.figures()])
    return {"run": {"name": theirs.setting, "metrics": theirs.metrics, "difference": interval_object(found)}}


def interval_object(found: Interval | None) -> Object | None:
    if found is None:
        return None
    return msgspec.structs.asdict(found) | {"significant": found.significant}


def interval_text(found: Interval) -> str:
    return f"{found.mean:+.{_DIGITS}f} [{found.low:+.{_DIGITS}f}, {found.high:+.{_DIGITS}f}]"


def verdict(found: Interval) -> str:
    """Describe a difference: better, worse, not significant, or the same for every query."""
    if found.nothing:
        return "the same"
    if not found.significant:
        return "not significant"
    return "better" if found.mean > 0 else "worse"


def failure_object(failure: Failure) -> Object:
    return {
        "dataset": failure.dataset,
        "query_id": failure.question.id,
        "query": failure.question.text,
        "ndcg@10": failure.value,
        "better": failure.better,
        "better_ndcg@10": failure.better_value,
        "relevant": [
            {"document": each.document, "ranks": dict(each.ranks), "why": list(each.why)} for each in failure.relevant
        ],
        "instead": list(failure.instead),
    }


def failure_lines(failure: Failure) -> Iterator[str]:
    yield (
        f"{failure.dataset} {failure.question.id}  {failure.value:.3f}, {failure.better} has"
        f" {failure.better_value:.3f}: {failure.question.text}"
    )
    for each in failure.relevant:
        ranks = ", ".join(f"{name} {'-' if rank is None else rank}" for name, rank in each.ranks)
        yield f"    relevant: {each.document}, at rank {ranks}"
        yield from (f"        {line}" for line in each.why)
    for number, line in enumerate(failure.instead):
        yield f"        {line}" if number else f"    not relevant: {line}"


def _figure(value: float) -> str:
    return f"{value:.{_DIGITS}f}"
