"""The `dowse` command and `python -m dowse`: help is printed here, everything else is the command line's."""

from __future__ import annotations

import os
import sys


def main() -> None:
    # numpy's BLAS would start a thread for every core and let each spin for some 2^26 cycles before it sleeps: 30 ms of
    # CPU at every start, for products that are too small to be shared out.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        from dowse.cli.help import page

        try:
            print(page(), flush=True)
        except BrokenPipeError:  # `dowse | head`, as in cli/main.py
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + 13)  # SIGPIPE
        return
    from dowse.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
