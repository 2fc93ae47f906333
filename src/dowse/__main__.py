"""`python -m dowse` is the command line."""

from dowse.serve.cli import main

if __name__ == "__main__":
    main()
