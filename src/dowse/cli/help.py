"""The first page of help: the table of commands and the shared flags go in, plain lines come out.

Not made by click: importing that takes most of the time of `dowse --help`.
"""

from __future__ import annotations

# name, module and attribute in `dowse.cli`, what it does
COMMANDS = (
    ("index", "manage.index:index", "Read files and folders into the index."),
    ("search", "find.search:search", "Search the index; `dowse QUERY` does the same."),
    ("explain", "find.explain:explain", "Say why a chunk, a line or a document is not among the hits."),
    ("services", "find.services:services", "Say which services there are and who uses whom."),
    ("show", "find.show:show", "Print a chunk, a file or some of its lines."),
    ("symbols", "find.lookup:symbols", "Find where a name is defined."),
    ("outline", "find.lookup:outline", "Show what stands in a file or folder."),
    ("related", "find.lookup:related", "Show what a place or symbol is tied to, and how."),
    ("status", "manage.status:status", "Say what the index holds and what is stale."),
    ("doctor", "manage.status:doctor", "Check the installation and the index."),
    ("serve", "manage.serve:serve", "Answer over HTTP, with a page for people."),
    ("models", "manage.models:models", "List, fetch and locate embedding models."),
    ("demo", "manage.demo:demo", "Index a small sample company and search it."),
    ("config", "manage.config:config", "Show and change settings."),
    ("completion", "manage.config:completion", "Print the completion script of a shell."),
    ("mcp", "manage.mcp:mcp", "Serve the index to agents over stdio, as an MCP server."),
    ("link", "manage.link:link", "Tie chunks to what they speak of."),
    ("remove", "manage.index:remove", "Remove documents from the index."),
    ("rebuild", "manage.index:rebuild", "Make the derived parts of the index anew."),
    ("reembed", "manage.index:reembed", "Make all vectors anew with another model."),
    ("eval", "evaluate.eval:evaluate", "Measure how good the answers are."),
    ("judge", "evaluate.judge:judge", "Say which hits are right, for `dowse eval --judged`."),
    ("tune", "evaluate.tune:tune", "Find out whether other settings would answer better."),
)
# The shared flags of `options`, in its order.
FLAGS = (
    ("--version", "Print it."),
    ("--index DIR", "The index folder; else DOWSE_INDEX or the nearest .dowse/."),
    ("--json", "Print JSON on stdout."),
    ("-q, --quiet", "No notes and no progress."),
    ("-v, --verbose", "Timings and other details on stderr."),
    ("--no-color", "No colours; NO_COLOR does the same."),
    ("-h, --help", "Show this message and exit."),
)
_TOP = """\
Usage: dowse [OPTIONS] COMMAND [ARGS]...

  One search over everything an engineering team has written.

  dowse index .                              read this folder
  dowse "where do we retry payments"         search it
  dowse search --lang go --explain Backoff   only Go, and why each hit is there

  Exit codes: 0 hits, 1 none, 2 usage, 3 no usable index, 4 done in part,
  5 a model could not be had."""


def page() -> str:
    commands = [(name, summary) for name, _, summary in COMMANDS]
    return "\n".join([_TOP, "", "Options:", *_rows(FLAGS), "", "Commands:", *_rows(commands)])


def _rows(rows: tuple[tuple[str, str], ...] | list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name:{width}}  {text}" for name, text in rows]
