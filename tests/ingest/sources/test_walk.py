"""Which files a walk finds, what it leaves out, and to which source they belong."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from dowse.errors import NotFoundError
from dowse.ingest.sources.content import FileContent, Unread, read_content
from dowse.ingest.sources.gitignore import Rules, read_rules
from dowse.ingest.sources.requests import IndexRequest
from dowse.ingest.sources.skip_rules import Skip
from dowse.ingest.sources.walk import Discovery, WalkOptions, discover
from dowse.types import Source

LIMIT = 10_000


def make(root: Path, *paths: str, text: str = "text\n") -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def walk(*paths: Path, registered: tuple[Source, ...] = ()) -> Discovery:
    return discover([IndexRequest(path) for path in paths], registered, WalkOptions(LIMIT))


def found(result: Discovery) -> list[str]:
    return [f"{file.source.name}/{file.path}" for file in result.files]


# --- sources ---------------------------------------------------------------------------------------


def test_a_folder_is_a_source_by_its_own_name(tmp_path: Path) -> None:
    make(tmp_path / "app", "b.txt", "a/c.txt")
    assert found(walk(tmp_path / "app")) == ["app/a/c.txt", "app/b.txt"]


def test_a_folder_of_a_git_work_tree_belongs_to_its_root(tmp_path: Path) -> None:
    make(tmp_path / "repo", "docs/a.md", "other.md", ".git/HEAD")
    result = walk(tmp_path / "repo" / "docs")
    assert found(result) == ["repo/docs/a.md"]
    assert [(scope.source, scope.path) for scope in result.scopes] == [("repo", "docs")]


def test_a_single_file_belongs_to_its_folder(tmp_path: Path) -> None:
    make(tmp_path / "notes", "a.txt", "b.txt")
    assert found(walk(tmp_path / "notes" / "a.txt")) == ["notes/a.txt"]


def test_a_second_source_of_the_same_name_gets_a_number(tmp_path: Path) -> None:
    make(tmp_path, "one/app/a.txt", "two/app/a.txt", "three/app/a.txt")
    result = walk(tmp_path / "one" / "app", tmp_path / "two" / "app", tmp_path / "three" / "app")
    assert found(result) == ["app/a.txt", "app-2/a.txt", "app-3/a.txt"]


def test_a_path_inside_a_registered_source_is_of_that_source(tmp_path: Path) -> None:
    make(tmp_path, "a/b/c.txt", "a/b/.git/HEAD")
    registered = (Source("known", str(tmp_path / "a")),)
    assert found(walk(tmp_path / "a" / "b", registered=registered)) == ["known/b/c.txt"]


def test_a_walk_that_enters_another_source_gives_its_files_to_it(tmp_path: Path) -> None:
    make(tmp_path / "all", "x.txt", "inner/y.txt")
    result = walk(tmp_path / "all", registered=(Source("inner", str(tmp_path / "all" / "inner")),))
    assert found(result) == ["all/x.txt", "inner/y.txt"]
    assert {(scope.source, scope.path) for scope in result.scopes} == {("all", ""), ("inner", "")}


def test_paths_that_overlap_give_each_file_once(tmp_path: Path) -> None:
    make(tmp_path / "app", "a/b.txt", "c.txt")
    result = walk(tmp_path / "app" / "a", tmp_path / "app", tmp_path / "app" / "c.txt")
    assert [Path(file.full_path).name for file in result.files] == ["b.txt", "c.txt"]


def test_a_path_that_does_not_exist_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"no such file or folder: .*gone; .*dowse remove"):
        walk(tmp_path / "gone")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(NotFoundError, match="loop"):
        walk(tmp_path / "loop")


# --- left out --------------------------------------------------------------------------------------


def test_an_empty_folder_gives_nothing(tmp_path: Path) -> None:
    result = walk(tmp_path)
    assert (result.files, dict(result.skipped), result.problems) == ((), {}, [])


def test_what_is_left_out_is_counted_by_reason(tmp_path: Path) -> None:
    make(tmp_path, "keep.py", ".hidden", ".cfg/x.txt", "node_modules/a.js", "lib/vendor/b.go", "env/pyvenv.cfg")
    make(tmp_path, "app.min.js", "poetry.lock", "photo.png", ".github/workflows/ci.yml", ".dowse/meta.txt", "out.log")
    make(tmp_path, "empty.txt", text="")
    make(tmp_path, "large.txt", text="x" * (LIMIT + 1))
    make(tmp_path, ".dowseignore", text="*.log\n")
    result = walk(tmp_path)
    assert [file.path for file in result.files] == [".github/workflows/ci.yml", "keep.py"]
    assert dict(result.skipped) == {
        Skip.HIDDEN: len((".hidden", ".cfg", ".dowse", ".dowseignore")),
        Skip.VENDORED: len(("node_modules", "vendor", "env")),
        Skip.GENERATED: len(("app.min.js", "poetry.lock")),
        Skip.BINARY: 1,
        Skip.IGNORED: 1,
        Skip.EMPTY: 1,
        Skip.TOO_LARGE: 1,
    }


def test_symlinks_to_folders_and_out_of_the_source_are_not_followed(tmp_path: Path) -> None:
    app = make(tmp_path / "app", "real.txt", "sub/deep.txt")
    make(tmp_path, "secret.txt")
    (app / "inside.txt").symlink_to("real.txt")
    (app / "outside.txt").symlink_to(tmp_path / "secret.txt")
    (app / "sub" / "round").symlink_to(app)
    (app / "self").symlink_to("self")
    (app / "dangling.txt").symlink_to("nowhere.txt")
    result = walk(app)
    assert [file.path for file in result.files] == ["inside.txt", "real.txt", "sub/deep.txt"]
    assert dict(result.skipped) == {Skip.SYMLINK: len(("outside", "round", "self", "dangling"))}


def test_fifos_and_sockets_are_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    monkeypatch.chdir(tmp_path)  # a socket's address must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.sock")
        assert dict(walk(tmp_path).skipped) == {Skip.SPECIAL: 2}
    assert [each.reason for each in walk(tmp_path / "pipe.txt").problems] == ["not a regular file"]
    assert read_content(str(tmp_path / "pipe.txt"), LIMIT, sniff=False) == Unread("not a regular file")


def test_odd_names_are_found_and_undecodable_ones_are_a_problem(tmp_path: Path) -> None:
    make(tmp_path, "new\nline 🚀.txt", "plain.txt")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.txt")).write_text("x")
    result = walk(tmp_path)
    assert [file.path for file in result.files] == ["new\nline 🚀.txt", "plain.txt"]
    assert [each.reason for each in result.problems] == ["file name is not valid UTF-8; rename it"]
    assert result.problems[0].path.endswith("bad\\xff.txt")


def test_a_folder_that_cannot_be_listed_is_a_problem_and_keeps_its_documents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "app", "a/x.txt", "b/y.txt")
    listing = os.scandir

    def refusing(folder: str) -> object:
        if folder.endswith("/a"):
            raise PermissionError(13, "Permission denied", folder)
        return listing(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)  # chmod would not stop root
        result = walk(tmp_path / "app")
    assert [file.path for file in result.files] == ["b/y.txt"]
    assert [(scope.source, scope.path) for scope in result.unlisted] == [("app", "a")]
    assert [each.reason for each in result.problems] == ["this folder cannot be listed: Permission denied"]


def test_a_file_given_by_name_passes_the_rules_but_not_if_huge_or_binary(tmp_path: Path) -> None:
    make(tmp_path, ".env", "photo.png", "yarn.lock")
    make(tmp_path, "large.txt", text="x" * (LIMIT + 1))
    make(tmp_path, ".gitignore", text="*\n")
    result = walk(*(tmp_path / name for name in (".env", "photo.png", "yarn.lock", "large.txt")))
    assert [(file.path, file.explicit) for file in result.files] == [(".env", True), ("yarn.lock", True)]
    assert [each.reason.split(";")[0] for each in result.problems] == [
        "binary file",
        f"too large: {LIMIT + 1:,} bytes, the limit is {LIMIT:,}",
    ]


def test_an_ignored_folder_given_by_name_is_walked(tmp_path: Path) -> None:
    make(tmp_path, "build/a.txt", "build/b.log", ".git/HEAD")
    make(tmp_path, ".gitignore", text="build/\n")
    make(tmp_path, "build/.gitignore", text="*.log\n")
    assert [file.path for file in walk(tmp_path / "build").files] == ["build/a.txt"]
    assert walk(tmp_path).files == ()


def test_rules_above_a_given_folder_hold_in_it(tmp_path: Path) -> None:
    make(tmp_path, "docs/a.log", "docs/a.md", "docs/tmp.md", ".git/HEAD")
    make(tmp_path, ".gitignore", text="*.log\n")
    make(tmp_path, ".git/info/exclude", text="/docs/tmp.md\n")
    assert [file.path for file in walk(tmp_path / "docs").files] == ["docs/a.md"]


def test_the_index_itself_is_never_indexed(tmp_path: Path) -> None:
    make(tmp_path, ".dowse/words.txt")
    result = walk(tmp_path / ".dowse")
    assert result.files == ()
    assert "never indexed" in result.problems[0].reason


# --- as git has it ---------------------------------------------------------------------------------

TREE = (
    "a.py", "a.txt", "keep.log", "x.log", "build/out.txt", "src/a.py", "src/a.txt", "src/build/b.txt", "src/deep/c.py",
    "src/deep/d.log", "docs/a b.md", "docs/#x.md", "docs/!y.md", "docs/z ", "top/src/a.py", "n/1.txt", "n/2.txt",
    "n/a.txt", "src/deep/er/e.txt", "ab/c", "a/b/c/d.txt", "a/b.txt", "weird[1].txt", "weird1.txt", "back\\slash.txt",
)  # fmt: skip


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle, and is not installed")
@pytest.mark.parametrize(
    "lines",
    [
        ["*.log", "!keep.log", "build/"],
        ["*", "!*/", "!*.py"],
        ["/*", "!/src", "/src/*", "!/src/deep/"],
        ["*", "!src"],
        ["src/**/a.py", "**/deep", "docs/**"],
        ["a/**/d.txt", "/a/*.txt", "**/c"],
        ["\\#x.md", "\\!y.md", "a\\ b.md", "z\\ ", "x.log   "],
        ["[0-9].txt", "[!a]?log", "weird\\[1\\].txt", "back\\\\slash.txt"],
        ["[[:digit:]].txt", "weird[[:digit:]]*", "[z-a].txt", "[ab", "keep.log\\"],
        ["# comment", "", "!", "/", "src/", "!src/a.py"],
        ["?.py", "n/[^1].txt", "doc*", "***.log", "a**b", "a[!x]b.txt"],
        ["deep/", "!deep/er/", "src/deep/*", "*/b.txt"],
    ],
)
def test_ignore_files_mean_what_git_says(tmp_path: Path, lines: list[str]) -> None:
    make(tmp_path, *TREE)
    make(tmp_path, ".gitignore", text="\n".join(lines))
    make(tmp_path, "src/.gitignore", text="!d.log\n/deep/er\n")
    environment = {"HOME": str(tmp_path / "home"), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, env=environment, check=True)
    listing = ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    told = subprocess.run(listing, cwd=tmp_path, env=environment, check=True, capture_output=True).stdout.decode()
    kept = {path for path in told.split("\0") if path and Path(path).name != ".gitignore"}
    assert {path for path in TREE if not ignored(tmp_path, path)} == kept


def ignored(root: Path, path: str) -> bool:
    """As the walk asks: folder by folder, and no further once one is ignored."""
    rules = Rules()
    folder = root
    for name in path.split("/"):
        rules = read_rules(rules, str(folder))
        folder /= name
        if rules.ignore(str(folder), is_folder=folder.is_dir()):
            return True
    return False


# --- reading ---------------------------------------------------------------------------------------


def test_a_file_is_read_whole_with_its_time(tmp_path: Path) -> None:
    path = make(tmp_path, "a.txt", text="x" * 9000) / "a.txt"
    assert read_content(str(path), LIMIT, sniff=True) == FileContent(b"x" * 9000, path.stat().st_mtime_ns)


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    assert read_content(str(tmp_path / "gone"), LIMIT, sniff=False) == Unread(
        "cannot be read: No such file or directory"
    )


# --- globs -----------------------------------------------------------------------------------------


def test_a_glob_takes_what_matches_and_the_rules_hold(tmp_path: Path) -> None:
    make(tmp_path / "app", "src/a.py", "src/deep/b.py", "src/c.txt", "src/node_modules/d.py", "e.py")
    assert found(walk(tmp_path / "app" / "src" / "**" / "*.py")) == ["src/a.py", "src/deep/b.py"]
    assert found(walk(tmp_path / "app" / "*.py")) == ["app/e.py"]
    assert found(walk(tmp_path / "app" / "{src,lib}" / "*.txt")) == ["app/src/c.txt"]


def test_a_glob_that_matches_a_folder_takes_all_of_it(tmp_path: Path) -> None:
    make(tmp_path / "app", "svc/one/a.py", "svc/two/deep/b.py", "other/c.py", ".git/HEAD")
    assert found(walk(tmp_path / "app" / "svc" / "t*")) == ["app/svc/two/deep/b.py"]


def test_a_glob_looks_at_no_more_than_it_matches(tmp_path: Path) -> None:
    make(tmp_path / "app", "a.py", "b.txt")
    (scope,) = walk(tmp_path / "app" / "*.py").scopes
    assert [scope.covers(path) for path in ("a.py", "gone.py", "b.txt", "deep/c.py")] == [True, True, False, False]


def test_a_file_that_is_called_like_a_glob_is_that_file(tmp_path: Path) -> None:
    make(tmp_path / "app", "a[1].txt", "a1.txt")
    assert found(walk(tmp_path / "app" / "a[1].txt")) == ["app/a[1].txt"]


# --- why something was left out --------------------------------------------------------------------


def test_everything_that_was_left_out_can_be_named(tmp_path: Path) -> None:
    make(tmp_path, "keep.py", ".hidden", "node_modules/a.js", "photo.png", "box.zip")
    make(tmp_path, "empty.txt", text="")
    result = discover([IndexRequest(tmp_path)], (), WalkOptions(LIMIT, listing=True))
    assert {(Path(each.path).name, each.reason) for each in result.left_out} == {
        (".hidden", "hidden"), ("node_modules", "vendored"), ("photo.png", "binary"), ("box.zip", "archive"),
        ("empty.txt", "empty"),
    }  # fmt: skip
    assert len(result.left_out) == result.skipped.total()
    assert walk(tmp_path).left_out == []


@pytest.mark.parametrize(
    "line", ["*a*" * 25 + "q", "**/*a" * 25 + "q", "[a-z]*" * 40 + "q", "*?" * 60 + "/q", "a" * 10**5]
)
def test_no_line_of_an_ignore_file_takes_long(line: str) -> None:
    rules = Rules().below("/r", [line, "!" + line, line + "/**"])
    started = time.perf_counter()
    for path in ("/r/" + "a" * 250, "/r/" + "a/" * 200 + "a" * 250):
        rules.ignore(path, is_folder=False)
    assert time.perf_counter() - started < 1
