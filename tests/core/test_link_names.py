"""What others may call the chunks of a document."""

from __future__ import annotations

from dowse.link_names import names_of
from dowse.types import Chunk, Defined
from factories import PLAIN, of_chunks
from values import replace

PAGE = replace(PLAIN, corpus_type="DOC_PAGE")


def names(path: str, *chunks: Chunk, kind: str) -> list[str]:
    return [each.name for each in names_of(of_chunks(path, chunks)) if each.kind == kind]


def test_every_definition_of_a_chunk_is_a_name() -> None:
    defines = (Defined("Cart", "class", "shop.Cart", 1, 9), Defined("total", "method", "shop.Cart.total", 3, 4))
    chunk = replace(PLAIN, text="x", symbol_name="Cart", qualified_name="shop.Cart", defines=defines)
    assert names("a.py", chunk, kind="symbol") == ["Cart", "Cart.total", "shop.Cart", "shop.Cart.total", "total"]


def test_the_first_searchable_chunk_bears_a_name_that_several_have() -> None:
    parent = replace(PLAIN, text="whole", level="section", symbol_name="Cart")
    first, second = (replace(PLAIN, text=text, symbol_name="Cart") for text in ("one", "two"))
    document = of_chunks("a.py", [parent, first, second])
    (name,) = (each for each in names_of(document) if each.kind == "symbol")
    assert name.chunk_id == document.chunks[1].id


def test_a_file_that_speaks_for_its_folder_is_a_module_of_that_name() -> None:
    assert names("shop/cart/__init__.py", PLAIN, kind="module") == ["cart"]
    assert names("shop/cart/index.ts", PLAIN, kind="module") == ["cart"]
    assert names("shop/cart.py", PLAIN, kind="module") == ["cart"]
    assert names("shop/cart/total.go", replace(PLAIN, language="go"), kind="module") == ["cart", "total"]


def test_codes_belong_to_the_row_heading_or_literal_that_defines_them() -> None:
    table = replace(PAGE, text="| WF-5031 | LATE | see WF-1 |\n| `WF-5032` | FULL |\nand WF-9 in passing")
    heading = replace(PAGE, text="# INC-207: the storm\n\nIt was like INC-206.")
    code = replace(PLAIN, text="raise Problem('WF-5031')  # as WF-7")
    assert names("codes.md", table, kind="code") == ["WF-5031", "WF-5032"]
    assert names("inc.md", heading, kind="code") == ["INC-207"]
    assert names("a.py", code, kind="code") == ["WF-5031"]
    assert names("ops.json", replace(table, corpus_type="CONVO_SLACK"), kind="code") == []


def test_a_decision_is_known_by_its_number() -> None:
    adr = replace(PLAIN, corpus_type="DOC_ADR", text="words")
    assert names("docs/adr/0006-retry-budget.md", adr, kind="code") == ["ADR-6"]
    assert names("docs/adr/README.md", adr, kind="code") == []
