"""A look misses no word, and tells of none whose letter does not begin one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dowse.ingest.privacy.secret_forms import literal_prefilters, possible_literals

WORDS = ("ghp_", "github_pat_", "sk-", "SG.", "a+", "://")
LOOKS = literal_prefilters(WORDS)


@given(st.lists(st.sampled_from((*WORDS, "gh", "s", "k-", ":", "/", "+", "a", "\n", "xG.")), max_size=6).map("".join))
def test_every_word_of_a_text_is_told_and_else_only_those_that_begin_alike(text: str) -> None:
    held = {word for word in WORDS if word in text}
    told = set(possible_literals(text, LOOKS))
    assert held <= told
    assert {word[0] for word in told} == {word[0] for word in held}
