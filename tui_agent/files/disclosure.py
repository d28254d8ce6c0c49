"""What in a file is secret, by its names and by its content, and what may be shown of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tui_agent.errors import LooksSecret
from tui_agent.files.gate import Gate, read_judged
from tui_agent.files.key_formats import Hit, hits, hits_masked, values
from tui_agent.files.names import shown
from tui_agent.files.text import TextFile, decode, encode

SecretChoice = Literal["mask", "send", "leave"]
#: What the person said, by the SHA-256 of the bytes that it was said about.
Decisions = Mapping[str, SecretChoice]


class Undecided(LooksSecret):
    """Nobody has said yet what becomes of a file with a secret: `digest` is the SHA-256 of its bytes; `named` says that
    its names make it one."""

    def __init__(self, path: str, digest: str, what: str, *, named: bool) -> None:
        super().__init__(f"{shown(path)} {what}", "it is not sent without asking")
        self.path = path
        self.digest = digest
        self.named = named


class Judged(Struct, frozen=True):
    """A file as it is, what in it is secret, and why: the end of a sentence, empty where nothing is."""

    path: str
    data: bytes
    text: TextFile
    digest: str = ""
    hits: tuple[Hit, ...] = ()
    what: str = ""
    named: bool = False

    def choice(self, decisions: Decisions) -> SecretChoice | None:
        """What becomes of it; None where the person has to say so."""
        return decisions.get(self.digest) if self.what else "send"

    def shown(self, decisions: Decisions) -> tuple[str, tuple[Hit, ...]]:
        """The text that may be sent, and the places that are masked in it.

        Raises `Undecided`, or `LooksSecret` where the person said that it stays here.
        """
        match self.choice(decisions):
            case "send":
                return self.text.text, ()
            case "mask":
                return hits_masked(self.text.text, self.hits), self.hits
            case "leave":
                raise LooksSecret(f"{shown(self.path)} {self.what}", "it was left out, as you said")
        raise Undecided(self.path, self.digest, self.what, named=self.named)


def judge(path: str, data: bytes, text: TextFile, named: bool) -> Judged:
    """Look for secrets in a file's content; `named` says that its names make it one. Blocking.

    A file that is a secret by its names is one as a whole: masked, it shows only the names of its values.
    """
    found = tuple(values(text.text) if named else hits(text.text))
    if named:
        what = "looks like a secret"
    elif found:
        line = text.text.count("\n", 0, found[0].start) + 1
        what = f"holds what looks like {found[0].what} (line {line})"
    else:
        return Judged(path, data, text)
    return Judged(path, data, text, hashlib.sha256(data).hexdigest(), found, what, named)


def judge_file(gate: Gate, path: str, limit: int, newer: str | None = None) -> Judged:
    """The same for a file of the workspace, or for the `newer` text that its buffer has. Blocking.

    Raises PathRefused, TooLarge, Undecodable or FileError.
    """
    data, named = read_judged(gate, path, limit)
    text = decode(data, path)
    if newer is not None:
        data = encode(text, newer)
        text = decode(data)
    return judge(path, data, text, named)
