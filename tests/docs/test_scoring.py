"""The pages on scores and profiles: every worked example is computed, every profile and key is named."""

from __future__ import annotations

import doctest
import re
import tomllib
from dataclasses import fields
from pathlib import Path

from dowse.query.plan.profiles import PROFILES, Profile, named
from dowse.query.stages.freshness_and_boost import BOOST_RULES
from dowse.query.user_profiles import with_own
from dowse.types import ScoredChunk

DOCS = Path(__file__).parents[2] / "docs"


def test_worked_examples_are_what_the_code_computes() -> None:
    found = doctest.testfile(str(DOCS / "scoring.md"), module_relative=False)
    assert found.attempted > 30
    assert found.failed == 0


def test_every_score_of_a_hit_is_told() -> None:
    page = (DOCS / "scoring.md").read_text("utf-8")
    for each in fields(ScoredChunk):
        if each.name.endswith("_score") or each.name in ("confidence", "scores"):
            assert f"`{each.name}`" in page


def test_boost_table_has_the_factors_of_the_rules() -> None:
    rows = re.findall(
        r"^\| (.+) \| ([A-Z_, ]+) \| ([\d.]+) \|$", (DOCS / "scoring.md").read_text("utf-8"), re.MULTILINE
    )
    assert [(kinds, float(factor)) for _, kinds, factor in rows] == [
        (", ".join(rule.corpus_types), rule.factor) for rule in BOOST_RULES
    ]


def test_profiles_page_names_every_profile_and_key() -> None:
    page = (DOCS / "profiles.md").read_text("utf-8")
    header = next(line for line in page.splitlines() if line.startswith("| |"))
    assert [cell.strip() for cell in header.strip("|").split("|")[1:]] == [each.name for each in PROFILES]
    keys = page.split("<!-- fields -->")[1].split("<!-- end -->")[0]
    assert re.findall(r"^\| `(\w+)` \|", keys, re.MULTILINE) == list(Profile.__struct_fields__[1:])


def test_the_example_of_a_users_profile_is_valid() -> None:
    page = (DOCS / "profiles.md").read_text("utf-8")
    tables = tomllib.loads(page.split("```toml")[1].split("```")[0])["profiles"]
    profiles = with_own(tables)
    oncall = named("oncall", profiles)
    assert (oncall.top_k, oncall.freshness_weight, oncall.rerank) == (8, 0.3, ("heuristic",))
    assert named("default", profiles).parents == "off"
