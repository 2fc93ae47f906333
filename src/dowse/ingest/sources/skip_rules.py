"""The name of a file or folder goes in; the reason to leave it out comes out, if there is one."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum

from dowse.ingest.sources.kinds import extension_of

INDEX_FOLDER = ".dowse"
KEPT_HIDDEN = frozenset((".github", ".circleci", ".gitlab-ci.yml"))  # written by hand, and asked about


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BINARY_EXTENSIONS = _words(
    "7z a avi avif bin bmp bz2 class db dll doc docx dylib eot exe flac gif gz ico iso jar jpeg jpg lib lz4 m4a mkv "
    "mov mp3 mp4 npy npz o obj odt ogg onnx otf parquet pb pdf pickle pkl png ppt pptx psd pt pyc pyd pyo rar rpm "
    "safetensors so sqlite sqlite3 tar tgz tif tiff ttf war wasm wav webm webp whl woff woff2 xls xlsx xz zip zst"
)
VENDORED_FOLDERS = _words(
    "node_modules bower_components jspm_packages vendor venv virtualenv site-packages __pycache__ __pypackages__"
)
GENERATED_NAMES = re.compile(
    r".*\.min\.(?:js|css|mjs)|.*\.(?:js|css)\.map|.*\.bundle\.js|.*_pb2(?:_grpc)?\.pyi?|.*\.pb\.go"
    r"|package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock|uv\.lock|pdm\.lock"
    r"|pipfile\.lock|cargo\.lock|go\.sum|composer\.lock|gemfile\.lock|mix\.lock|flake\.lock|gradle\.lockfile"
    r"|packages\.lock\.json|podfile\.lock|pubspec\.lock",
    re.DOTALL,
)


class Skip(StrEnum):
    """Why a file or folder was left out by a rule; a folder counts once."""

    IGNORED = "ignored"
    HIDDEN = "hidden"
    BINARY = "binary"
    TOO_LARGE = "too large"
    VENDORED = "vendored"
    GENERATED = "lock or generated"
    MINIFIED = "minified"
    ARCHIVE = "archive"
    SYMLINK = "symlink"
    SPECIAL = "not a regular file"
    EMPTY = "empty"


def skip_folder(name: str) -> Skip | None:
    if name.startswith(".") and name not in KEPT_HIDDEN:
        return Skip.HIDDEN
    return Skip.VENDORED if name.lower() in VENDORED_FOLDERS else None


def skip_file(name: str, readers: Collection[str]) -> Skip | None:
    """`readers`: one that is named like an extension makes its files readable."""
    if name.startswith(".") and name not in KEPT_HIDDEN:
        return Skip.HIDDEN
    if is_binary_name(name, readers):
        return Skip.BINARY
    return Skip.GENERATED if GENERATED_NAMES.fullmatch(name.lower()) else None


def is_binary_name(name: str, readers: Collection[str]) -> bool:
    extension = extension_of(name)
    return extension in BINARY_EXTENSIONS and extension not in readers
