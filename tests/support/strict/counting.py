"""Token counts that are the same for the same text, and prompt caches as providers keep them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any


def canonical(value: Any) -> str:
    """JSON without spaces; the order of keys stays, because a cache sees it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def tokens_of(value: Any) -> int:
    """Tokens of text or of JSON: a quarter of its length, rounded up."""
    text = value if isinstance(value, str) else canonical(value)
    return -(-len(text) // 4)


def digest(*values: Any) -> str:
    """A short hash of values as JSON."""
    return hashlib.sha256("\0".join(canonical(value) for value in values).encode()).hexdigest()[:32]


@dataclass(slots=True)
class Counted:
    """Tokens of one request. `input` includes `cached` and `cache_write`; `output` includes `thinking`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    thinking: int = 0
    cost: float = 0.0
    #: The part of `cache_write` that is kept for an hour.
    long_write: int = 0

    def as_dict(self) -> dict[str, Any]:
        counted = asdict(self)
        del counted["long_write"]
        return counted

    def negative(self) -> Counted:
        """The same with nonsense in place of every count."""
        return Counted(-self.input - 1, -self.output - 1, -self.cached - 1, -self.cache_write - 1, -1)


@dataclass(slots=True)
class PrefixCache:
    """Automatic caching: the longest prefix of an earlier prompt under the same key, in steps, from `least` on."""

    step: int = 128
    least: int = 1024
    seen: dict[str, list[str]] = field(default_factory=dict)

    def read(self, key: str, prompt: str) -> int:
        """Cached tokens of the prompt, which is remembered."""
        earlier = self.seen.setdefault(key, [])
        shared = max((_shared(prompt, other) for other in earlier), default=0) // 4
        earlier.append(prompt)
        return shared // self.step * self.step if shared >= self.least else 0


def _shared(one: str, other: str) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class Block:
    """A block of an Anthropic prompt in cache order, without its mark; `ttl` is "" if it has none."""

    text: str
    ttl: str = ""


@dataclass(slots=True)
class MarkCache:
    """Caching by marks: a mark writes the prefix up to it and reads the longest prefix within the lookback."""

    lookback: int = 20
    written: set[str] = field(default_factory=set)

    def count(self, blocks: list[Block], key: str, least: int) -> Counted:
        """Input, cached and written tokens of a prompt."""
        sizes, hashes = [0], [hashlib.sha256(key.encode())]
        for block in blocks:
            running = hashes[-1].copy()
            running.update(block.text.encode() + b"\0")
            hashes.append(running)
            sizes.append(sizes[-1] + tokens_of(block.text))
        names = [running.hexdigest() for running in hashes]
        marks = [index for index, block in enumerate(blocks, 1) if block.ttl]
        read = max((self._found(names, mark) for mark in marks), default=0)
        end = max((mark for mark in marks if sizes[mark] >= least), default=0)
        hour = max(
            (mark for mark in marks if blocks[mark - 1].ttl == "1h" and sizes[mark] >= least), default=0
        )
        self.written.update(names[mark] for mark in marks if sizes[mark] >= least)
        return Counted(
            input=sizes[-1],
            cached=sizes[read],
            cache_write=max(0, sizes[end] - sizes[read]),
            long_write=max(0, sizes[hour] - sizes[read]),
        )

    def _found(self, names: list[str], mark: int) -> int:
        for index in range(mark, max(0, mark - self.lookback), -1):
            if names[index] in self.written:
                return index
        return 0
