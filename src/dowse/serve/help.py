"""The first page of help: the table of commands and the shared flags go in, plain lines come out.

Not made by click: importing that takes most of the time of `dowse --help`.
"""

from __future__ import annotations

# name, module and attribute in `dowse.serve`, what it does
COMMANDS = (
    ("index", "cli_index:index", "Read files and folders into the index."),
    ("search", "cli_search:search", "Search the index; `dowse QUERY` does the same."),
    ("explain", "cli_explain:explain", "Say why a chunk, a line or a document is not among the hits."),
    ("services", "cli_services:services", "Say which services there are and who uses whom."),
    ("show", "cli_show:show", "Print a chunk, a file or some of its lines."),
    ("symbols", "cli_lookup:symbols", "Find where a name is defined."),
    ("outline", "cli_lookup:outline", "Show what stands in a file or folder."),
    ("related", "cli_lookup:related", "Show what a place or symbol is tied to, and how."),
    ("status", "cli_status:status", "Say what the index holds and what is stale."),
    ("doctor", "cli_status:doctor", "Check the installation and the index."),
    ("serve", "cli_serve:serve", "Answer over HTTP, with a page for people."),
    ("models", "cli_models:models", "List, fetch and locate embedding models."),
    ("demo", "cli_demo:demo", "Index a small sample company and search it."),
    ("config", "cli_config:config", "Show and change settings."),
    ("completion", "cli_config:completion", "Print the completion script of a shell."),
    ("mcp", "cli_mcp:mcp", "Serve the index to agents over stdio, as an MCP server."),
    ("link", "cli_link:link", "Tie chunks to what they speak of."),
    ("remove", "cli_index:remove", "Remove documents from the index."),
    ("rebuild", "cli_index:rebuild", "Make the derived parts of the index anew."),
    ("reembed", "cli_index:reembed", "Make all vectors anew with another model."),
    ("eval", "cli_eval:evaluate", "Measure how good the answers are."),
    ("judge", "cli_judge:judge", "Say which hits are right, for `dowse eval --judged`."),
    ("tune", "cli_tune:tune", "Find out whether other settings would answer better."),
)
# The shared flags of `cli_options`, in its order.
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
