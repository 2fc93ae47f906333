"""The house keeps its shape: imports point one way, vendors stay at the border, the map names every room."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dowse

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dowse"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "acme" not in path.parts)

# A module may import from its own row and from the rows above it; peers on one row do not know each other.
ROWS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("filters", "types", "reports", "fusion_kernel"),
    ("identity", "ports"),
    ("link_names", "tokenizer", "config", "tracing"),
    ("ingest", "models", "store", "query", "sample"),
    ("lookup", "wiring"),
    ("engine",),
    ("adapters",),
    ("evaluate",),
    ("serve",),
    ("cli",),
    ("__main__",),
)
CORE = {
    "errors",
    "filters",
    "reports",
    "fusion_kernel",
    "types",
    "identity",
    "ports",
    "link_names",
    "tokenizer",
    "config",
    "tracing",
}
VENDORS = {
    "cli": {"anyio", "click", "rich"},
    "adapters": {"langchain_core", "llama_index"},
    "ingest": {"markdown_it", "msgspec", "numpy", "pypdfium2", "selectolax", "tree_sitter", "watchfiles", "yaml"},
    "models": {"huggingface_hub", "numpy", "onnxruntime", "tokenizers"},
    "store": {"llvmlite", "msgspec", "numba", "numpy"},
    "query": {"msgspec", "numpy"},
    "evaluate": {"numpy", "msgspec"},
    "serve": {
        *("anyio", "click", "fastapi", "jinja2", "markupsafe", "mcp", "mcp_types", "msgspec", "prometheus_client"),
        *("rich", "starlette", "uvicorn", "uvloop"),
    },
    "fusion_kernel": {"numpy"},
    "tokenizer": {"Stemmer"},
    "ports": {"numpy"},
    "tracing": {"opentelemetry"},
}


def room(path: Path) -> str:
    """The package or top-level module that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    """Dotted names of all modules that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute"
            yield node.module or ""


def row_of(name: str) -> int:
    return next(number for number, row in enumerate(ROWS) if name in row)


@pytest.mark.parametrize(
    "path", [p for p in MODULES if room(p) != "__init__"], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_one_way(path: Path) -> None:
    own = room(path)
    for name in imports(path):
        if not name.startswith("dowse."):
            continue
        other = name.split(".")[1]
        if other == own:
            continue
        fine = row_of(other) < row_of(own) or (row_of(other) == row_of(own) and {own, other} <= CORE)
        assert fine, f"{path.relative_to(PACKAGE)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_vendors_are_met_at_the_border_only(path: Path) -> None:
    allowed = VENDORS.get(room(path), set())
    for name in imports(path):
        top = name.split(".")[0]
        if top != "dowse" and top not in sys.stdlib_module_names and top != "__future__":
            assert top in allowed, f"{path.relative_to(PACKAGE)} imports {name}"


def test_architecture_names_every_module_and_only_those() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    named = set(re.findall(r"`((?!tests/)[a-z0-9_]+(?:/[a-z0-9_]+)*\.py)`", text))
    there = {str(path.relative_to(PACKAGE)) for path in MODULES if path.name != "__init__.py"}
    assert named == there


def test_modules_stay_readable() -> None:
    long = {
        str(path.relative_to(PACKAGE)): n for path in MODULES if (n := len(path.read_text("utf-8").splitlines())) > 400
    }
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_every_module_opens_with_a_sentence(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_only_the_outermost_handler_catches_everything() -> None:
    faces = {PACKAGE / "cli" / "main.py"}  # the outermost handlers
    for path in set(MODULES) - faces:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                names = {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)} if node.type else {""}
                reraises = any(isinstance(part, ast.Raise) and part.exc is None for part in ast.walk(node))
                assert reraises or not names & {"", "Exception", "BaseException"}, f"{path.name}:{node.lineno}"


def test_public_names_are_sorted_and_importable() -> None:
    names = [name for name in dowse.__all__ if name != "__version__"]
    assert names == sorted(names)
    assert all(hasattr(dowse, name) for name in names)


def test_importing_dowse_loads_nothing_heavy() -> None:
    script = "import sys, dowse; print([m for m in ('numpy', 'rich', 'onnxruntime') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_no_file_names_this_machine_or_a_registry() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    forbidden = re.compile(r"(py" + r"pi|pythonhosted|npm" + r"js)\.(org|com)|/(root|home/\w+)/\.|/work/(main|shared)")
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.is_file() and path.suffix not in (".png",):
            found = forbidden.search(path.read_text("utf-8", errors="replace"))
            assert not found, f"{name}: {found.group()}" if found else ""
