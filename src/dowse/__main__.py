"""The `dowse` command and `python -m dowse`: help is printed here, everything else is the command line's."""

from __future__ import annotations

import sys


def main() -> None:
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        from dowse.serve.help import page

        print(page())
        return
    from dowse.serve.cli import main as run

    run()


if __name__ == "__main__":
    main()
