"""Rules of the tree: import directions, third-party imports, module sizes, names, and the architecture page."""

import ast
import re
import subprocess
import sys
from collections import Counter
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
    ("globs", "filters", "types", "reports", "views"),
    ("identity", "link_names", "ports"),
    ("tokenizer", "config", "tracing", "private_hash", "trust", "fusion_kernel"),
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
    "views",
    "filters",
    "globs",
    "reports",
    "fusion_kernel",
    "types",
    "identity",
    "ports",
    "link_names",
    "tokenizer",
    "config",
    "tracing",
    "private_hash",
    "trust",
}
VENDORS = {
    "cli": {"anyio", "click", "rich"},
    "adapters": {"haystack", "langchain_core", "llama_index", "numpy"},
    "ingest": {"markdown_it", "numpy", "pypdfium2", "selectolax", "tree_sitter", "watchfiles", "yaml"},
    "models": {"huggingface_hub", "numpy", "onnxruntime", "tokenizers"},
    "store": {"numpy"},
    "query": {"numpy"},
    "evaluate": {"numpy"},
    "serve": {
        *("anyio", "click", "jinja2", "markupsafe", "mcp", "mcp_types", "prometheus_client"),
        *("rich", "starlette", "uvicorn", "uvloop"),
    },
    "fusion_kernel": {"numpy"},
    "tokenizer": {"Stemmer"},
    "ports": {"numpy"},
    "tracing": {"opentelemetry"},
}


def package_of(path: Path) -> str:
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
    "path", [p for p in MODULES if package_of(p) != "__init__"], ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_point_one_way(path: Path) -> None:
    own = package_of(path)
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
    allowed = VENDORS.get(package_of(path), set()) | {"msgspec"}  # the idiom for values, in every package
    for name in imports(path):
        top = name.split(".")[0]
        if top != "dowse" and top not in sys.stdlib_module_names and top != "__future__":
            assert top in allowed, f"{path.relative_to(PACKAGE)} imports {name}"


def folders() -> list[str]:
    """All folders of the package that hold modules, as the page names them."""
    return sorted({f"{path.parent.relative_to(PACKAGE)}/" for path in MODULES if path.parent != PACKAGE})


def test_architecture_names_every_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    assert [each for each in folders() if f"`{each}`" not in text] == []


def test_paths_on_the_architecture_page_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    names = {path.name for path in PACKAGE.rglob("*.py")}
    for path in re.findall(r"`([a-z_/]+\.py|[a-z_]+(?:/[a-z_]+)*/)`", text):
        there = (ROOT / path).exists() or (PACKAGE / path).exists() or ("/" not in path and path in names)
        assert there, f"ARCHITECTURE.md names {path}"


def test_architecture_page_stays_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text("utf-8").split()) < 3000


def test_every_folder_says_what_enters_and_leaves() -> None:
    for folder in folders():
        assert ast.get_docstring(ast.parse((PACKAGE / folder / "__init__.py").read_text("utf-8"))), folder


def test_folders_stay_small_and_flat() -> None:
    counts = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert {str(folder): count for folder, count in counts.items() if count > 22} == {}
    assert [str(path) for path in MODULES if len(path.relative_to(PACKAGE).parts) > 3] == []


def test_modules_stay_readable() -> None:
    long = {
        str(path.relative_to(PACKAGE)): n for path in MODULES if (n := len(path.read_text("utf-8").splitlines())) > 400
    }
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_every_module_opens_with_a_sentence(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


def test_only_the_outermost_handler_catches_everything() -> None:
    faces = {PACKAGE / "cli" / "main.py", PACKAGE / "query" / "guard.py"}  # the outermost handlers, and plug-ins
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


def test_no_two_classes_share_a_name() -> None:
    found = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in found.items() if count > 1] == []


def test_no_reference_that_a_reader_cannot_follow() -> None:
    """Requirement codes and documents outside the repository: the reason itself belongs there."""
    codes = re.compile(r"\b[SCBRT][0-9]?-[0-9]{2,3}\b|\bdesign (?:section )?[0-9]|\blab/[a-z-]+\.md|\bhouse\.md\b")
    pages = [*PACKAGE.rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    code = [path for folder in ("tests", "bench") for path in (ROOT / folder).rglob("*.py")]
    for path in pages + code:
        if "acme" not in path.parts and path != Path(__file__):
            found = codes.search(path.read_text("utf-8"))
            assert not found, f"{path.relative_to(ROOT)}: {found.group()}" if found else ""
