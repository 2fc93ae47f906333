"""Advice goes in; lines for people and an object for programs come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from dowse.evaluate.pools import Knobs
from dowse.evaluate.report_tables import interval_object, told_interval
from dowse.evaluate.run import Setting
from dowse.evaluate.tune import Advice, Choice

Told = Callable[[Choice], str]


def advice_lines(advice: Advice[Choice], told: Told[Choice]) -> Iterator[str]:
    yield f"{advice.tried} settings were tried; nDCG@10, mean of the collections:"
    yield f"  {advice.default_mean:.4f}  the default: {told(advice.default)}"
    yield f"  {advice.best_mean:.4f}  the best of all on the same questions: {told(advice.best)}"
    yield "chosen on the other questions, and tried on these:"
    for fold in advice.folds:
        yield f"  {fold.gain:+.4f}  {fold.name}: {told(fold.chosen)}"
    yield f"gain where it was not chosen: {told_interval(advice.held_out)}"
    if not advice.keep:
        yield f"turn these knobs: {told(advice.chosen)}"
        return
    yield f"keep the default: {_reason(advice)}"


def _reason(advice: Advice[Choice]) -> str:
    if advice.best == advice.default:
        return "nothing that was tried is better"
    if advice.held_out.low <= 0:
        return "the gain can be chance"
    return f"{', '.join(advice.losing)} would lose beyond chance"


def told_knobs(knobs: Knobs) -> str:
    turned = f"dense {knobs.alpha:g}, prose share {knobs.prose_share:g}, exponent {knobs.exponent:g}"
    turned += f", depth {knobs.depth}, crowd {knobs.crowd:g}, pull {knobs.pull:g}"
    return f"{turned}, k1 {knobs.bm25.k1:g}, b {knobs.bm25.b:g}"


def told_setting(setting: Setting) -> str:
    return setting.name


def knobs_object(knobs: Knobs) -> dict[str, Any]:
    shown = asdict(knobs)
    constants: dict[str, float] = shown.pop("bm25")
    return shown | constants


def setting_object(setting: Setting) -> dict[str, Any]:
    return {"setting": setting.name}


def advice_object(advice: Advice[Choice], shown: Callable[[Choice], dict[str, Any]]) -> dict[str, Any]:
    return {
        "keep_default": advice.keep,
        "reason": _reason(advice) if advice.keep else "the gain holds where it was not chosen",
        "default": shown(advice.default) | {"ndcg@10": advice.default_mean},
        "best": shown(advice.best) | {"ndcg@10": advice.best_mean},
        "chosen": shown(advice.chosen),
        "held_out": interval_object(advice.held_out),
        "folds": [{"name": each.name, "chosen": shown(each.chosen), "gain": each.gain} for each in advice.folds],
        "losing": list(advice.losing),
        "tried": advice.tried,
    }
