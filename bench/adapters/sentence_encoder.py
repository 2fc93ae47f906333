"""sentence-transformers: the same weights of all-MiniLM-L6-v2 in fp32 through PyTorch, one thread."""

from __future__ import annotations

import time
from typing import Any

from json_server import serve, versions


class Sentence:
    def embed(self, folder: str, texts: list[str], batch: int) -> dict[str, Any]:
        import torch
        from sentence_transformers import SentenceTransformer, models

        torch.set_num_threads(1)
        words = models.Transformer(folder, max_seq_length=256)
        model = SentenceTransformer(modules=[words, models.Pooling(384, "mean"), models.Normalize()], device="cpu")
        model.encode(texts[:2])
        started = time.process_time()
        model.encode(texts, batch_size=batch)
        return {"docs_per_s": len(texts) / (time.process_time() - started)}

    def facts(self) -> dict[str, Any]:
        return {"versions": versions("sentence-transformers", "torch", "transformers")}


if __name__ == "__main__":
    serve(Sentence())
