"""Token estimates and tokenizer vocabularies."""

from __future__ import annotations

from typing import Literal

Vocabulary = Literal["o200k_base", "cl100k_base"]
#: Typical of English and code in common vocabularies; other scripts need fewer bytes per token.
BYTES_PER_TOKEN = 4

_O200K = ("gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-oss", "o1", "o3", "o4", "chatgpt-", "codex-")
_CL100K = ("gpt-4", "gpt-3.5", "text-embedding-3")


def estimate(text: str) -> int:
    """UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode(errors="replace")) // BYTES_PER_TOKEN)


def reply_room(window: int) -> int:
    return min(4096, window // 4)


def vocabulary(model: str) -> tuple[Vocabulary, bool]:
    """Returns the vocabulary, and whether it is exact or only the nearest available."""
    name = model.rpartition("/")[2]
    if name.startswith(_O200K):
        return "o200k_base", True
    if name.startswith(_CL100K):
        return "cl100k_base", True
    return "o200k_base", False
