"""Links: edges from stored documents to the symbols, files, services and threads they mention."""
