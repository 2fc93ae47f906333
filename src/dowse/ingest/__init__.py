"""A source becomes chunks: `pipeline` is the path, `discover` finds the files, `read_*` cut them up."""
