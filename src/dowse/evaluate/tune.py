"""Tuning of search settings by cross-validation on judged queries, and the file of tuned profiles.

Settings are chosen on some queries and tried on others: each of several collections is held out in turn; a single one
is split into five parts. A change is advised only if its gain on held-out queries is significant and no collection
loses significantly; anything else would fit the noise.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from dowse.errors import BadRequestError
from dowse.evaluate.datasets import shuffle_key
from dowse.evaluate.metrics import Figures, Interval, difference, interval
from dowse.evaluate.pools import CandidatePool, Knobs, figures
from dowse.evaluate.report_tables import interval_object, interval_text
from dowse.evaluate.run import QueryRunner, SearchSetting
from dowse.ports import Bm25, Mask, Progress, Reporter
from dowse.query.plan.profiles import PROFILES, Profile
from dowse.query.stages.freshness_and_boost import BoostRule
from dowse.types import QueryRequest

PARTS = 5
FEWEST = 2 * PARTS  # queries; with fewer a part has none or one
ALPHAS = (0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 0.9)
PROSE_SHARES = (0.25, 0.5, 0.75)
EXPONENTS = (1.5, 2.0)
DEPTHS = (100, 200)
K1S = (0.9, 1.2, 1.8)  # chosen: Anserini's, Lucene's, and as far above
BS = (0.5, 0.75, 0.9)
HALF, TWICE = 0.5, 2.0  # of the part of a boost above 1; chosen
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")

Choice = TypeVar("Choice", Knobs, SearchSetting)


class Fold(msgspec.Struct, Generic[Choice], frozen=True):
    """Setting chosen without a part of the queries, and its gain on that part."""

    name: str
    chosen: Choice
    gain: float


class Advice(msgspec.Struct, Generic[Choice], frozen=True):
    """Advised setting with its figures."""

    default: Choice
    chosen: Choice  # differs from the default only when the gain holds
    best: Choice  # on all queries, whether the gain holds or not
    default_mean: float
    best_mean: float  # in-sample: too optimistic
    held_out: Interval  # gain over the default on held-out queries
    folds: tuple[Fold[Choice], ...]
    losing: tuple[str, ...]  # collections that lose significantly with the best setting
    tried: int

    @property
    def keep(self) -> bool:
        return self.chosen == self.default


def constants(default: Bm25) -> list[Bm25]:
    """List the constants of BM25 to try, the default first. Each needs its own candidates."""
    return list(dict.fromkeys([default, *(Bm25(*each) for each in product(K1S, BS))]))


def grid(default: Knobs, *, dense: bool) -> list[Knobs]:
    """List the settings to try, not all of the thousands; the default is first, so that it wins ties."""
    alphas = ALPHAS if dense else (default.alpha,)
    own = (default.hubness, default.smoothing)
    smoothings = dict.fromkeys((own, (0.0, 0.0)) if dense else (own,))
    turned = product(alphas, PROSE_SHARES, EXPONENTS, DEPTHS, smoothings)
    found = [
        Knobs(alpha, share, exponent, depth, hubness, smoothing, default.bm25)
        for alpha, share, exponent, depth, (hubness, smoothing) in turned
    ]
    found += [
        msgspec.structs.replace(default, alpha=alpha, bm25=bm25)
        for bm25 in constants(default.bm25)[1:]
        for alpha in alphas
    ]
    return [default, *(each for each in found if each != default)]


Candidates = Mapping[Bm25, Sequence[CandidatePool]]  # of one collection, by the constants of BM25
_Table = Mapping[str, Figures]  # by collection: a row for each setting, a column for each query
_Questions = Mapping[str, Sequence[str]]  # query ids by collection


def advise(
    collections: Mapping[str, Candidates], tried: Sequence[Knobs], report: Reporter | None = None
) -> Advice[Knobs]:
    """Choose among settings up to fusion; the first of `tried` is the default."""
    questions = {
        name: [pool.question.id for pool in candidates[tried[0].bm25]] for name, candidates in collections.items()
    }
    _check(questions)
    table = {}
    for name, candidates in collections.items():
        rows = []
        for number, knobs in enumerate(tried, start=1):
            rows.append(figures(candidates[knobs.bm25], knobs))
            if report:
                report(Progress(f"{name}: settings", number, len(tried)))
        table[name] = np.array(rows)
    return cross_validated(table, questions, tried)


def cross_validated(table: _Table, questions: _Questions, tried: Sequence[Choice]) -> Advice[Choice]:
    """Choose by the figures of all settings; the first is the default."""
    _check(questions)
    folds: list[Fold[Choice]] = []
    gains: list[Figures] = []
    for name, held in _parts(questions):
        chosen = _best(table, {key: ~mask for key, mask in held.items()})
        own = [table[key][chosen][mask] - table[key][0][mask] for key, mask in held.items() if mask.any()]
        gains += own
        folds.append(Fold(name, tried[chosen], float(np.mean([each.mean() for each in own]))))
    everything = {key: np.ones(len(asked), np.bool_) for key, asked in questions.items()}
    best = _best(table, everything)
    # The parts of one collection are joined again; collections count separately.
    held_out = interval(gains if len(questions) > 1 else [np.concatenate(gains)])
    losing = tuple(key for key in questions if difference([table[key][best]], [table[key][0]]).high < 0)
    holds = held_out.low > 0 and not losing
    before, after = (float(np.mean([table[key][each].mean() for key in questions])) for each in (0, best))
    advised = tried[best] if holds else tried[0]
    return Advice(tried[0], advised, tried[best], before, after, held_out, tuple(folds), losing, len(tried))


def _check(questions: _Questions) -> None:
    if len(questions) > 1:
        return
    ((name, asked),) = questions.items()
    if len(asked) < FEWEST:
        raise BadRequestError(
            f"{name} has {len(asked)} judged queries; tuning needs at least {FEWEST}. Add some with `dowse judge QUERY`"
        )


def _parts(questions: _Questions) -> list[tuple[str, dict[str, Mask]]]:
    """Split the queries: a name and a mask of the held-out ones for each part."""
    if len(questions) > 1:
        return [
            (left_out, {key: np.full(len(asked), key == left_out) for key, asked in questions.items()})
            for left_out in questions
        ]
    ((name, asked),) = questions.items()
    by_hash = sorted(range(len(asked)), key=lambda number: shuffle_key(asked[number]))
    part_of = np.empty(len(asked), np.int64)
    part_of[by_hash] = np.arange(len(asked)) % PARTS
    return [(f"part {part + 1} of {PARTS}", {name: part_of == part}) for part in range(PARTS)]


def _best(table: _Table, masks: Mapping[str, Mask]) -> int:
    """Return the setting with the highest mean over the collections; the first of equals."""
    means = [table[key][:, mask].mean(axis=1) for key, mask in masks.items() if mask.any()]
    return int(np.argmax(np.mean(means, axis=0)))


def stage_settings(profile: Profile, *, cross_encoder: bool) -> list[SearchSetting]:
    """List the profile as it is, then with one stage changed. Only fields that a profile can store."""
    asked = QueryRequest("", profile=profile.name)
    links = [("cross-encoder",), ("heuristic", "cross-encoder")] if cross_encoder else []
    running = tuple(link for link in profile.rerank if link != "cross-encoder" or cross_encoder)
    chains = [chain for chain in ((), ("heuristic",), *links) if chain != running]
    cap = () if profile.boost_cap is None else (("boost_cap", 1 + TWICE * (profile.boost_cap - 1)),)
    turned: list[tuple[str, tuple[tuple[str, object], ...]]] = [
        *((f"rerank by {', then '.join(chain) or 'nothing'}", (("rerank", chain),)) for chain in chains),
        ("boosts off", (("boost", False),)),
        ("boosts halved", (("boost_rules", scaled(profile.boost_rules, HALF)),)),
        ("boosts doubled", (("boost_rules", scaled(profile.boost_rules, TWICE)), *cap)),
        ("freshness off", (("freshness_weight", 0.0),)),
        ("exact names off" if profile.exact else "exact names on", (("exact", not profile.exact),)),
    ]
    return [SearchSetting("as it is", asked), *(SearchSetting(name, asked, knobs) for name, knobs in turned)]


def scaled(rules: Sequence[BoostRule], by: float) -> tuple[BoostRule, ...]:
    """Scale the part of each factor above 1: 1.3 halved is 1.15."""
    return tuple(msgspec.structs.replace(rule, factor=1 + by * (rule.factor - 1)) for rule in rules)


def advise_stages(
    runners: Sequence[QueryRunner], profile: Profile, report: Reporter | None = None
) -> Advice[SearchSetting]:
    """Choose among settings of the stages after fusion."""
    tried = stage_settings(profile, cross_encoder=runners[0].parts.cross_encoder is not None)
    by_name = {runner.collection.dataset.name: runner for runner in runners}
    table = {name: np.array([own.run(each, report).figures() for each in tried]) for name, own in by_name.items()}
    questions = {name: [each.id for each in own.collection.dataset.questions] for name, own in by_name.items()}
    return cross_validated(table, questions, tried)


def advice_lines(advice: Advice[Choice]) -> Iterator[str]:
    yield f"{advice.tried} settings tried; nDCG@10, mean of the collections:"
    yield f"  {advice.default_mean:.4f}  default: {_choice_text(advice.default)}"
    yield f"  {advice.best_mean:.4f}  best on the same queries (too optimistic): {_choice_text(advice.best)}"
    yield "gain on each held-out part, with the setting chosen on the other parts:"
    for fold in advice.folds:
        yield f"  {fold.gain:+.4f}  {fold.name}: {_choice_text(fold.chosen)}"
    yield f"gain on all held-out queries: {interval_text(advice.held_out)}"
    if advice.keep:
        yield f"keep the default: {_reason(advice)}"
    else:
        yield f"change to: {_choice_text(advice.chosen)}"


def _reason(advice: Advice[Choice]) -> str:
    if advice.best == advice.default:
        return "no other setting is better"
    if advice.held_out.low <= 0:
        return "the gain is not significant"
    return f"{', '.join(advice.losing)} would lose significantly"


def _choice_text(choice: Knobs | SearchSetting) -> str:
    if isinstance(choice, SearchSetting):
        return choice.name
    turned = f"dense {choice.alpha:g}, prose share {choice.prose_share:g}, exponent {choice.exponent:g}"
    turned += f", depth {choice.depth}, hubness {choice.hubness:g}, smoothing {choice.smoothing:g}"
    return f"{turned}, k1 {choice.bm25.k1:g}, b {choice.bm25.b:g}"


def choice_object(choice: Knobs | SearchSetting) -> dict[str, Any]:
    if isinstance(choice, SearchSetting):
        return {"setting": choice.name}
    shown: dict[str, Any] = msgspec.to_builtins(choice)
    return {**shown, **shown.pop("bm25")}


def advice_object(advice: Advice[Choice]) -> dict[str, Any]:
    return {
        "keep_default": advice.keep,
        "reason": _reason(advice) if advice.keep else "the gain holds on held-out queries",
        "default": choice_object(advice.default) | {"ndcg@10": advice.default_mean},
        "best": choice_object(advice.best) | {"ndcg@10": advice.best_mean},
        "chosen": choice_object(advice.chosen),
        "held_out": interval_object(advice.held_out),
        "folds": [
            {"name": each.name, "chosen": choice_object(each.chosen), "gain": each.gain} for each in advice.folds
        ],
        "losing": list(advice.losing),
        "tried": advice.tried,
    }


def checked_name(name: str) -> str:
    """Return the name if TOML needs no quotes for it and no built-in profile has it."""
    if not _NAME.fullmatch(name):
        raise BadRequestError(f"invalid profile name {name!r}; use small letters, digits, - and _, as in team-docs")
    if name in (each.name for each in PROFILES):
        raise BadRequestError(f"{name!r} is a built-in profile; choose another name")
    return name


class Tuned(msgspec.Struct, frozen=True):
    """Tuned settings: knobs up to fusion, and fields of a profile for the stages after it."""

    knobs: Knobs
    stages: tuple[tuple[str, Any], ...] = ()
    base: str = "default"  # the tuned profile; its other fields stay


def profile_text(name: str, tuned: Tuned) -> str:
    knobs = tuned.knobs
    rows = [f"[profiles.{name}]", f'base = "{tuned.base}"', 'fusion = "z"']
    if knobs.prose_share == 0.5:
        rows.append(f"alpha = {float(knobs.alpha)}")
    else:
        weights = ", ".join(f"{leg} = {round(weight, 6)}" for leg, weight in knobs.leg_weights)
        rows.append(f"weights = {{ {weights} }}")
    rows += [f"exponent = {float(knobs.exponent)}", f"depth = {knobs.depth}"]
    rows += [f"hubness = {float(knobs.hubness)}", f"smoothing = {float(knobs.smoothing)}"]
    rows += [f"k1 = {float(knobs.bm25.k1)}", f"b = {float(knobs.bm25.b)}"]
    rows += [f"{field} = {_toml(value)}" for field, value in tuned.stages]
    return "\n".join([*rows, ""])


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, BoostRule):
        words, kinds = _toml(value.words), _toml(value.corpus_types)
        return f"{{ words = {words}, corpus_types = {kinds}, factor = {round(value.factor, 6)} }}"
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(each) for each in value)}]"
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False)
    return repr(value)


def save_profile(file: Path, name: str, tuned: Tuned) -> Path:
    """Add the profile at the end of the file; replace one of the same name."""
    try:
        old = file.read_text("utf-8") if file.exists() else ""
        tomllib.loads(old)
        kept = re.sub(rf"^\[profiles\.{re.escape(name)}\]\n(?:(?!\[).*\n?)*", "", old, flags=re.MULTILINE)
        text = f"{kept.rstrip()}\n\n{profile_text(name, tuned)}".lstrip()
        tomllib.loads(text)
        scratch = file.with_name(f".{file.name}.new")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(file)
    except tomllib.TOMLDecodeError as err:
        raise BadRequestError(f"{file} is not valid TOML: {err}; correct it, then run `dowse tune` again") from err
    except OSError as err:
        raise BadRequestError(f"cannot write {file}: {err.strerror}; run `dowse tune` in another folder") from err
    return file
