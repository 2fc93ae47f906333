"""First page of help: the table of commands and the shared flags as plain lines.

Made without click, whose import takes most of the time of `dowse --help`.
"""

from __future__ import annotations

from collections.abc import Sequence

# name, module and attribute in `dowse.cli`, summary
COMMANDS = (
    ("index", "manage.index:index", "Index files and folders, or update the index."),
    ("add", "manage.index:add_documents", "Add documents that are not files, as JSON Lines."),
    ("search", "find.search:search", "Search the index; `dowse QUERY` does the same."),
    ("explain", "find.explain:explain", "Explain the rank of a file, line or chunk, or why it is missing."),
    ("services", "find.services:services", "List services and the calls between them."),
    ("show", "find.lookup:show", "Print a chunk, a file or a range of lines."),
    ("symbols", "find.lookup:symbols", "Find the definition of a symbol."),
    ("outline", "find.lookup:outline", "List the symbols or headings of a file or folder."),
    ("related", "find.lookup:related", "Show callers, callees, docs and threads linked to a symbol, file or line."),
    ("status", "manage.status:status", "Show the contents of the index and its stale files."),
    ("doctor", "manage.status:doctor", "Check the installation and the index."),
    ("serve", "manage.serve:serve", "Serve the HTTP API and the web page."),
    ("models", "manage.models:models", "List, download and locate embedding models."),
    ("demo", "manage.demo:demo", "Index the bundled sample project and search it."),
    ("config", "manage.config:config", "Show and change settings."),
    ("trust", "manage.trust:trust", "Allow a folder's settings to use servers, models and other folders."),
    ("completion", "manage.config:completion", "Print the completion script of a shell."),
    ("mcp", "manage.serve:mcp", "Serve the index to agents over stdio, as an MCP server."),
    ("link", "manage.index:link", "Rebuild the links between code, docs and conversations."),
    ("remove", "manage.index:remove", "Remove documents from the index."),
    ("rebuild", "manage.index:rebuild", "Rebuild search structures from the stored documents."),
    ("backup", "manage.backup:backup", "Write the index to one checked file."),
    ("restore", "manage.backup:restore", "Make an index from a backup."),
    ("reembed", "manage.index:reembed", "Recompute all vectors with another model."),
    ("eval", "evaluate.eval:evaluate", "Measure the quality of the results."),
    ("judge", "evaluate.judge:judge", "Grade results, for `dowse eval --judged`."),
    ("tune", "evaluate.tune:tune", "Find settings that improve the results."),
)
# The shared flags of `cli.options`, in the order of click's own help.
FLAGS = (
    ("--json", "Print JSON on stdout."),
    ("-q, --quiet", "Hide notes and progress."),
    ("-v, --verbose", "Print timings and other details on stderr."),
    ("--no-color", "Print without colours, as with NO_COLOR."),
    ("--index DIR", "Use this index folder [default: DOWSE_INDEX, or the nearest .dowse/]."),
    ("--version", "Print the version and exit."),
    ("-h, --help", "Show this message and exit."),
)
_COLUMNS = 80
_TOP = """\
Usage: dowse [OPTIONS] COMMAND [ARGS]...

  Search everything an engineering team has written: code, docs, conversations.

  dowse index .                              index this folder
  dowse "where do we retry payments"         search it
  dowse search --lang go --explain Backoff   search Go code, show the scoring

  Exit codes: 0 results, 1 no results, 2 usage error, 3 no usable index,
  4 partly done, 5 model unavailable."""


def page() -> str:
    commands = [(name, summary) for name, _, summary in COMMANDS]
    return "\n".join([_TOP, "", "Options:", *_rows(FLAGS), "", "Commands:", *_rows(commands)])


def _rows(rows: Sequence[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    lines = []
    for name, text in rows:
        cut = text.rfind(" ", 0, _COLUMNS - width - 3) if len(text) > _COLUMNS - width - 4 else len(text)
        lines.append(f"  {name:{width}}  {text[:cut]}")
        lines += [f"  {'':{width}} {text[cut:]}"] if text[cut:] else []
    return lines
