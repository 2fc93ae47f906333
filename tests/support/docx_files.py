"""Writer of small Word files from paragraphs and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
# As a German Word writes them: the ids are translated, the names are not.
STYLES = f"""<w:styles {_W}>
<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style>
</w:styles>"""


def paragraph(text: str, style: str = "", more: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/>{more}</w:pPr>' if style or more else ""
    return f"<w:p>{properties}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def table(rows: Iterable[Sequence[str]]) -> str:
    cells = ("".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in row) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def docx(body: str, *, prologue: str = "", core: str = "", footnotes: str = "") -> bytes:
    """`body` is what stands in w:body; `core` what stands in docProps/core.xml."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", f"{prologue}<w:document {_W}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/styles.xml", STYLES)
        if footnotes:
            archive.writestr("word/footnotes.xml", f"<w:footnotes {_W}>{footnotes}</w:footnotes>")
        if core:
            names = 'xmlns:dc="d" xmlns:dcterms="t" xmlns:cp="c"'
            archive.writestr("docProps/core.xml", f"<cp:coreProperties {names}>{core}</cp:coreProperties>")
    return file.getvalue()
