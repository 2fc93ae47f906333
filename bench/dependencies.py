"""Sizes and licences of the installed distributions, byte code included, for docs/dependencies.md.

    python -m bench.dependencies             # the core install: dowse-search and everything it requires
    python -m bench.dependencies server dev  # the core and these extras

Sizes are those of the files that each distribution records. Run it in an environment made by pip, which compiles byte
code while it installs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

NAME = "dowse-search"


def main(extras: list[str]) -> None:
    found = sorted(closure(NAME, set(extras)), key=size_bytes, reverse=True)
    for each in found:
        print(f"{size_bytes(each) / 1e6:8.2f} MB  {each.name} {each.version}  {licence(each)}")
    print(f"{sum(map(size_bytes, found)) / 1e6:8.2f} MB  in total")


def closure(name: str, extras: set[str]) -> list[Distribution]:
    """The distribution and all that it requires here, each once."""
    found: dict[str, Distribution] = {}
    waiting = [(name, extra) for extra in ("", *sorted(extras))]
    seen: set[tuple[str, str]] = set()
    while waiting:
        current, extra = waiting.pop()
        if (current, extra) in seen:
            continue
        seen.add((current, extra))
        try:
            own = found.setdefault(current, distribution(current))
        except PackageNotFoundError:
            print(f"not installed: {current}", file=sys.stderr)
            continue
        waiting += _required(own, extra)
    return list(found.values())


def _required(own: Distribution, extra: str) -> Iterator[tuple[str, str]]:
    for line in own.requires or ():
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            name = needed.name.lower().replace("_", "-")
            yield from ((name, each) for each in ("", *needed.extras))


def size_bytes(own: Distribution) -> int:
    """Of its files. pip records byte code as files, too."""
    paths = (own.locate_file(file) for file in own.files or ())
    return sum(path.stat().st_size for path in paths if path.is_file())  # type: ignore[attr-defined]


def licence(own: Distribution) -> str:
    """The expression of its metadata, or the first line of the older field, or its classifiers."""
    given = [value for key in ("License-Expression", "License") for value in own.metadata.get_all(key) or []]
    classified = [each.rpartition(" :: ")[2] for each in own.metadata.get_all("Classifier") or [] if "License" in each]
    named = next(iter(given), "") or ", ".join(classified)
    return named.strip().partition("\n")[0][:60] or "see its files"


if __name__ == "__main__":
    main(sys.argv[1:])
