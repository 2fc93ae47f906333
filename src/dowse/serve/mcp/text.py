"""Answers of the MCP tools enter; the compact text that an agent reads leaves.

What was indexed is not trusted: it may be written to be obeyed. Every line of it stands behind a bar, `12| text`, and
nothing in it can start a line without one; what cannot be seen is taken out before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import singledispatch

from dowse.query.context import estimated_tokens
from dowse.serve.mcp import answers
from dowse.serve.plain_text import clean, clean_path, plural

LONGEST_TITLE = 160  # characters; chosen
_CUT = " …"
# Zero-width characters and the tag block: they carry words that no person sees, but a model reads.
_UNSEEN = re.compile("[\u00ad\u180e\u200b-\u200d\u2060-\u2064\ufeff\U000e0000-\U000e007f]")


# --- what may be told -------------------------------------------------------------------------------


def told(text: str) -> str:
    """Indexed text without what hides or moves on a screen."""
    return _UNSEEN.sub("", clean(text))


def told_line(text: str | None, longest: int = LONGEST_TITLE) -> str:
    """The same, in one line, not too long."""
    line = " ".join(told(text or "").split())
    return line if len(line) <= longest else line[: longest - len(_CUT)] + _CUT


def told_path(path: str) -> str:
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), clean_path(path))


def shortened(text: str, tokens: int) -> str:
    """As much of the beginning as fits, with a sign that it is cut."""
    if estimated_tokens(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimated_tokens(text[:middle]) < tokens else (low, middle - 1)
    return text[:low].rstrip() + _CUT


def quoted(text: str, first_line: int | None) -> Iterator[str]:
    """Each line behind a bar, with its number where it has one."""
    for offset, line in enumerate(text.split("\n")):
        number = "" if first_line is None else str(first_line + offset)
        yield f"{number:>4}| {line}".rstrip()


def place(path: str, start: int | None, end: int | None, source: str = "") -> str:
    lines = "" if start is None else f":{start}" if end in (None, start) else f":{start}-{end}"
    return f"{path}{lines}" + (f" [{source}]" if source else "")


# --- items ------------------------------------------------------------------------------------------


@singledispatch
def item_text(item: object) -> str:
    raise TypeError(f"{type(item).__name__} has no text")


@item_text.register
def _(item: answers.SearchHit) -> str:
    head = [place(item.path, item.start_line, item.end_line, item.source), item.title, item.corpus, item.id]
    head += ["stale: the file changed since"] if item.stale else []
    return "\n".join([" · ".join(each for each in head if each), *quoted(item.text, item.text_line)])


@item_text.register
def _(item: answers.Line) -> str:
    return "\n".join(quoted(item.text, item.line))


@item_text.register
def _(item: answers.Symbol) -> str:
    head = [item.kind, item.name, place(item.path, item.start_line, item.end_line, item.source), item.id]
    rows = [" · ".join(each for each in head if each)]
    if item.text:
        rows += quoted(item.text, item.start_line)
    else:
        rows += [f"    | {each}" for each in (item.signature, item.summary) if each]
    return "\n".join(rows)


@item_text.register
def _(item: answers.FileReferences) -> str:
    rows = [place(item.path, None, None, item.source)]
    for each in item.references:
        about = " · definition" if each.definition else f" · in {each.inside}" if each.inside else ""
        rows.append(next(quoted(each.text, each.line)) + about)
    return "\n".join(rows)


@item_text.register
def _(item: answers.OutlineEntry) -> str:
    listed = item.kind in ("file", "folder")
    told_by_its_place = listed and item.start_line is None and item.depth > 1  # in a tree of folders
    where = "" if told_by_its_place else place(item.path, item.start_line, item.end_line, item.source)
    row = ("" if listed else item.kind, item.name, where.removeprefix(":"))
    return "  " * (item.depth - 1) + " · ".join(each for each in row if each)


@item_text.register
def _(item: answers.Neighbour) -> str:
    arrow = "→" if item.direction == "out" else "←"
    head = [place(item.path, item.start_line, item.end_line, item.source), item.title, item.corpus, item.id]
    why = f"\n    | {item.why}" if item.why else ""
    return f"{arrow} {item.relation}: " + " · ".join(each for each in head if each) + why


@item_text.register
def _(item: answers.ServiceNode) -> str:
    about = ["external"] * item.external + [each for each in (item.language, item.repo) if each]
    rows = [item.name + (f" ({', '.join(about)})" if about else "")]
    rows += [f"  calls {', '.join(item.calls)}"] if item.calls else []
    rows += [f"  called by {', '.join(item.called_by)}"] if item.called_by else []
    return "\n".join(rows)


@item_text.register
def _(item: answers.ServiceCall) -> str:
    evidence = f" · evidence {' '.join(item.evidence)}" if item.evidence else ""
    why = f"\n    | {item.why}" if item.why else ""
    return f"{item.source} → {item.target}" + (f" ({item.type})" if item.type else "") + evidence + why


@item_text.register
def _(item: answers.SourceState) -> str:
    stale = f", {item.stale:,} stale" if item.stale else ""
    gone = f", {item.missing:,} gone" if item.missing else ""
    when = f", last indexed {item.last_indexed}" if item.last_indexed else ""
    return f"{item.name}: {plural(item.documents, 'document')}, {plural(item.chunks, 'chunk')}{stale}{gone}{when}"


# --- whole answers ----------------------------------------------------------------------------------


@singledispatch
def answer_text(answer: object) -> str:
    raise TypeError(f"{type(answer).__name__} has no text")


@answer_text.register
def _(answer: answers.SearchAnswer) -> str:
    head = f"answer: {answer.answer}" if answer.answer else ""
    if not answer.hits:
        head = head or "nothing found; try other words, fewer filters, or `find_symbol` for a name"
    return _whole(head, answer.hits, answer)


@answer_text.register
def _(answer: answers.ReadAnswer) -> str:
    head = place(answer.path, answer.start_line, answer.end_line, answer.source)
    head += " · stale: the file changed since" if answer.stale else ""
    return _framed([head, *quoted(answer.text, answer.start_line)], answer)


@answer_text.register
def _(answer: answers.SymbolsAnswer) -> str:
    return _whole("", answer.symbols, answer)


@answer_text.register
def _(answer: answers.ReferencesAnswer) -> str:
    return _whole(f"{plural(answer.total, 'line')} in all", answer.files, answer)


@answer_text.register
def _(answer: answers.OutlineAnswer) -> str:
    return _whole("", answer.entries, answer)


@answer_text.register
def _(answer: answers.RelatedAnswer) -> str:
    return _whole(f"around {', '.join(answer.of)}" if answer.of else "", answer.neighbours, answer)


@answer_text.register
def _(answer: answers.ServicesAnswer) -> str:
    rows = [item_text(each) for each in answer.services]
    rows += [f"blast radius: {', '.join(answer.blast_radius)}"] if answer.blast_radius else []
    rows += [f"downstream: {', '.join(answer.downstream)}"] if answer.downstream else []
    return _framed([*rows, *(item_text(each) for each in answer.calls)], answer)


@answer_text.register
def _(answer: answers.StatusAnswer) -> str:
    share = f"{answer.vectors:,} of {plural(answer.chunks, 'chunk')} have a vector"
    head = f"{plural(answer.documents, 'document')}; {share}" + (f" of {answer.model}" if answer.model else "")
    return _whole(head, answer.sources, answer)


@answer_text.register
def _(answer: answers.ReindexAnswer) -> str:
    counts = f"+{answer.added} ~{answer.changed} −{answer.removed}, {answer.unchanged:,} unchanged"
    waiting = f"; {answer.pending:,} chunks wait for a vector" if answer.pending else ""
    return _framed([counts + waiting, *answer.problems], answer)


def _whole(head: str, items: Iterable[object], answer: object) -> str:
    return _framed([*([head] if head else []), *(item_text(each) for each in items)], answer)


def _framed(rows: list[str], answer: object) -> str:
    """With what to know and how to go on below it."""
    rows = [*rows, *(f"note: {each}" for each in getattr(answer, "notes", ()))]
    cursor = getattr(answer, "cursor", "")
    return "\n".join([*rows, *([f'more: call again with cursor="{cursor}"'] if cursor else [])])
