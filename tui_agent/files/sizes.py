"""Sizes of files as a person reads them."""

from __future__ import annotations


def size_in_words(count: int) -> str:
    """Bytes for the eye: `812 B`, `12.3 kB`, `4.0 MB`."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
