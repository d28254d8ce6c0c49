"""The texts that changes are made of, as they lie in the blob store."""

from __future__ import annotations

from tui_agent.files.blobs import Blobs
from tui_agent.files.text import decode


def text_under(blobs: Blobs, key: str) -> str | None:
    """The text that is kept under a hash; None for the empty hash, which means that there is no file."""
    return decode(blobs.get(key)).text if key else None
