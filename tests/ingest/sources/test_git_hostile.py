"""Hostile repositories: nothing in them starts a program, reaches a network, blocks or ends a run."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dowse
from dowse.ingest.pipeline import IndexOptions, index
from dowse.ingest.sources import git, git_process
from dowse.ingest.sources.requests import IndexRequest
from dowse.store.memory import MemoryStore

# Every key of `git help config` whose value is a program, or switches one on.
PROGRAM_KEYS = [
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.gitProxy", "core.askPass",
    "core.alternateRefsCommand", "diff.external", "diff.evil.command", "diff.evil.textconv",
    "difftool.evil.cmd", "difftool.evil.path", "mergetool.evil.cmd", "merge.evil.driver", "filter.evil.clean",
    "filter.evil.smudge", "filter.evil.process", "gpg.program", "gpg.openpgp.program", "gpg.x509.program",
    "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "credential.helper",
    "credential.https://example.org.helper", "pager.log", "pager.ls-tree", "pager.diff-tree",
    "pager.cat-file", "interactive.diffFilter", "sequence.editor", "uploadpack.packObjectsHook",
    "remote.origin.uploadpack", "remote.origin.receivepack", "trailer.evil.cmd", "trailer.evil.command",
    "browser.evil.cmd", "browser.evil.path", "man.evil.cmd", "guitool.evil.cmd", "tar.evil.command",
    "sendemail.sendmailcmd", "sendemail.tocmd", "imap.tunnel", "instaweb.browser", "mailmap.file",
    "receive.procReceiveRefs", "notes.rewriteRef", "blame.ignoreRevsFile", "merge.tool", "web.browser",
]  # fmt: skip
BANG_KEYS = [
    "alias.log", "alias.ls-tree", "alias.cat-file", "alias.rev-parse", "alias.diff-tree",
    "submodule.evil.update",
]  # fmt: skip
SWITCHES = {
    "log.showSignature": "true", "protocol.allow": "always", "protocol.ext.allow": "always", "diff.tool": "evil",
    "extensions.partialClone": "origin", "remote.origin.promisor": "true", "core.repositoryformatversion": "1",
    "log.follow": "true", "log.diffMerges": "on", "core.fsmonitorHookVersion": "2", "submodule.recurse": "true",
    "diff.ignoreSubmodules": "none", "fetch.recurseSubmodules": "true", "remote.origin.vcs": "ext",
}  # fmt: skip
HOOKS = ("post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc", "update")
FORGED = b"-----BEGIN PGP SIGNATURE-----\n \n iQEzBAABCAAdFiEE\n =abcd\n -----END PGP SIGNATURE-----"


def run_git(root: Path, *arguments: str, data: bytes | None = None) -> str:
    names = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", **names}
    done = subprocess.run(["git", *arguments], cwd=root, env=environment, input=data, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().strip()


def new_repository(root: Path, *options: str) -> Path:
    root.mkdir(parents=True)
    run_git(root, "init", "-q", "-b", "main", *options)
    (root / "a.txt").write_text("alpha")
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "first")
    return root


class Traps:
    """Scripts that leave a file with the name of the setting that ran them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.traces = folder / "scripts", folder / "traces"
        self.folder.mkdir()
        self.traces.mkdir()

    def script(self, key: str) -> str:
        name = key.replace("/", "-")
        path = self.folder / name
        path.write_text(f"#!/bin/sh\ntouch {self.traces / name}\n")
        path.chmod(0o755)
        return str(path)

    def sprung(self) -> list[str]:
        return sorted(path.name for path in self.traces.iterdir())


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    return Traps(tmp_path)


def plant(root: Path, traps: Traps) -> None:
    """Sign the head with a forged signature, remove a blob, and set everything that could start a program."""
    (root / ".gitattributes").write_text("* diff=evil filter=evil merge=evil export-subst\n")
    (root / "gone.txt").write_text("gone")
    (root / ".gitmodules").write_text(f'[submodule "x"]\npath=x\nurl=ext::{traps.script("submodule.url")}\n')
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "second")
    blob = run_git(root, "rev-parse", "HEAD:gone.txt")
    head, _, message = run_git(root, "cat-file", "commit", "HEAD").encode().partition(b"\n\n")
    forged = head + b"\ngpgsig " + FORGED + b"\n\n" + message + b"\n"
    run_git(root, "reset", "-q", "--soft", run_git(root, "hash-object", "-t", "commit", "-w", "--stdin", data=forged))
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    file = root / ".git" / "config"
    for key in PROGRAM_KEYS:
        run_git(root, "config", "--file", str(file), key, traps.script(key))
    for key in BANG_KEYS:
        run_git(root, "config", "--file", str(file), key, "!" + traps.script(key))
    for key, value in SWITCHES.items():
        run_git(root, "config", "--file", str(file), key, value)
    run_git(root, "config", "--file", str(file), "remote.origin.url", f"ext::{traps.script('remote.url')} x")
    included = root / ".git" / "more"
    included.write_text(f"[core]\n\tfsmonitor = {traps.script('include')}\n\thooksPath = {root}/.git/hooks\n")
    run_git(root, "config", "--file", str(file), "include.path", str(included))
    run_git(root, "config", "--file", str(file), "includeIf.gitdir:/.path", str(included))
    (root / ".git" / "info" / "attributes").write_text("* diff=evil filter=evil\n")
    for hook in HOOKS:
        os.symlink(traps.script(f"hook {hook}"), root / ".git" / "hooks" / hook)


def run(*requests: IndexRequest) -> MemoryStore:
    store = MemoryStore()
    index(store, requests, IndexOptions())
    return store


def test_no_setting_of_a_repository_starts_a_program(tmp_path: Path, traps: Traps) -> None:
    outer, nested = new_repository(tmp_path / "outer"), new_repository(tmp_path / "folder" / "nested")
    for root in (outer, nested):
        plant(root, traps)
    store = run(IndexRequest(outer), IndexRequest(tmp_path / "folder"), IndexRequest(outer, "main"))
    git.authors(str(outer))
    git.changed_between(str(outer), "HEAD~1", "HEAD")
    assert traps.sprung() == []
    authors = {
        (info.source, info.path): store.reader().document_chunks(info.id)[0].author for info in store.documents()
    }
    assert ("outer@main", "a.txt") in authors
    assert authors[("outer", "a.txt")] == authors[("folder", "nested/a.txt")] == "ada@example.org"


def test_the_traps_work(tmp_path: Path, traps: Traps) -> None:
    """A plain `git log` runs the forged signature's program: the test above would notice."""
    root = new_repository(tmp_path / "outer")
    plant(root, traps)
    subprocess.run(["git", "-c", "core.fsmonitor=false", "log", "-1"], cwd=root, capture_output=True, check=False)
    assert {"gpg.program", "gpg.openpgp.program"} & set(traps.sprung())


def test_settings_and_variables_of_the_user_do_not_matter(
    tmp_path: Path, traps: Traps, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = new_repository(tmp_path / "outer")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.pager")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", traps.script("variable"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", traps.script("diff"))
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    run(IndexRequest(root))
    assert traps.sprung() == []
    assert git.head(str(root)) == run_git(root, "rev-parse", "HEAD")


def test_work_trees_shallow_and_shared_clones_and_sha256_have_their_history(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "outer")
    run_git(root, "commit", "-q", "--allow-empty", "-m", "second")
    run_git(root, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side")
    run_git(root, "clone", "-q", "--depth", "1", f"file://{root}", str(tmp_path / "shallow"))
    run_git(root, "clone", "-q", "--shared", str(root), str(tmp_path / "shared"))
    new_repository(tmp_path / "long", "--object-format=sha256")
    for name in ("tree", "shallow", "shared", "long"):
        found, complete = git.last_commits(str(tmp_path / name), {"a.txt"})
        assert (found["a.txt"].author, complete) == ("ada@example.org", True), name


@pytest.mark.parametrize("name", ["HEAD", "config", "commondir", "refs/heads/main", "packed-refs"])
def test_a_pipe_in_place_of_a_file_blocks_nothing(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_process, "PROCESS_S", 0.5)
    monkeypatch.setattr(git, "PROCESS_S", 0.5)
    root = new_repository(tmp_path / "outer")
    (root / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(root / ".git" / name)
    assert [info.path for info in run(IndexRequest(root)).documents()] == ["a.txt"]


def test_bytes_of_the_log_format_in_names_and_paths_end_no_run(tmp_path: Path) -> None:
    root = new_repository(tmp_path / "outer")
    (root / "\x01odd\x02.txt").write_text("odd")
    run_git(root, "add", "-A")
    tree = run_git(root, "write-tree")
    by = b"A\x01d\x02a <a@example.org> 1700000000 +0000"
    body = b"tree %s\nauthor %s\ncommitter %s\n\nodd\n" % (tree.encode(), by, by)
    run_git(root, "reset", "-q", "--soft", run_git(root, "hash-object", "-t", "commit", "-w", "--stdin", data=body))
    store = run(IndexRequest(root), IndexRequest(root, "main"))
    assert len(store.documents()) == 4


def test_a_tree_of_endless_paths_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = new_repository(tmp_path / "outer")
    tree = run_git(root, "write-tree")
    for _ in range(9):
        rows = "".join(f"040000 tree {tree}\td{number}\n" for number in range(10))
        tree = run_git(root, "mktree", data=rows.encode())
    commit = run_git(root, "commit-tree", "-m", "bomb", tree)
    run_git(root, "reset", "-q", "--soft", commit)
    monkeypatch.setattr(git_process, "OUTPUT_BYTES", 1 << 20)
    assert [info.path for info in run(IndexRequest(root)).documents()] == ["a.txt"]


# --- programs other than git -----------------------------------------------------------------------


def test_child_processes_import_nothing_from_the_working_folder(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    (tmp_path / "work").mkdir()
    for name in ("json", "msgspec", "dowse", "pip", "encodings_extra", "sitecustomize", "resource"):
        (tmp_path / "work" / f"{name}.py").write_text(f"open({str(trace)!r}, 'a').write({name!r})\n")
    for number in range(3):
        (tmp_path / "work" / f"{number}.md").write_text(f"# Page {number}\n\nText.\n")
    command = [sys.executable, "-P", "-m", "dowse", "index", ".", "--workers", "1", "--embedder", "none"]
    paths = os.pathsep.join([str(Path(dowse.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, cwd=tmp_path / "work", env={**os.environ, "PYTHONPATH": paths}, capture_output=True)
    assert (done.returncode, trace.exists()) == (0, False), done.stderr


def test_every_python_that_is_started_leaves_out_the_working_folder() -> None:
    """`python -m` and `-c` put the working folder, which may be anyone's, before the installed packages."""
    started = 0
    for path in Path(dowse.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable":
                assert ast.unparse(node.elts[1]) == "'-P'", f"{path.name}:{node.lineno}"
                started += 1
    assert started >= 3
