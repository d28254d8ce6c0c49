"""Counts tokens with tiktoken and the vocabularies shipped with litellm. Runs in the model child only."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.model.client import TokenCount
from tui_agent.model.tokens import Vocabulary, estimate, vocabulary

if TYPE_CHECKING:
    import tiktoken

#: tiktoken's addresses of the vocabularies; it names cached files by their SHA-1.
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_THREADS = 2


def count(model: str, texts: Sequence[str]) -> TokenCount:
    """Does not use the network."""
    name, own = vocabulary(model)
    encoding = load(name)
    if encoding is None:
        return TokenCount(tuple(estimate(text) for text in texts), exact=False)
    encoded = encoding.encode_ordinary_batch(list(texts), num_threads=_THREADS)
    return TokenCount(tuple(len(tokens) for tokens in encoded), exact=own)


@cache
def load(name: Vocabulary) -> tiktoken.Encoding | None:
    """None if its file is missing, because tiktoken would download it."""
    folder = vocabulary_folder()
    if folder is None or not (folder / hashlib.sha1(_ADDRESS.format(name).encode()).hexdigest()).is_file():
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding(name)


def vocabulary_folder() -> Path | None:
    """Located without importing litellm."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
