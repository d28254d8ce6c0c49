"""Long texts made short: whole lines from both ends; and quoted as code."""

from __future__ import annotations

import re


def fenced(text: str, language: str = "") -> str:
    """The text as a block of code in Markdown; its fence is longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def head_and_tail(text: str, letters: int) -> tuple[str, int]:
    """The text in at most about so many letters, whole lines from both ends, and how many lines were left out."""
    if len(text) <= letters:
        return text, 0
    lines = text.splitlines()
    head, tail, used = 0, 0, 0
    # three quarters for the end, where the failure is
    while head < len(lines) and used + len(lines[head]) + 1 <= letters // 4:
        used += len(lines[head]) + 1
        head += 1
    while tail < len(lines) - head and used + len(lines[-1 - tail]) + 1 <= letters:
        used += len(lines[-1 - tail]) + 1
        tail += 1
    left = len(lines) - head - tail
    if not head and not tail:
        half = letters // 2
        return f"{text[:half]}\n[{len(text) - 2 * half:,} characters left out]\n{text[-half:]}", left
    middle = f"[{left:,} lines left out]" if left > 1 else "[1 line left out]"
    return "\n".join([*lines[:head], middle, *lines[len(lines) - tail :]]), left
