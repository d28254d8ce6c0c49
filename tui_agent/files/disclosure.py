"""Detection of secrets in files, by name and content, and the text that may be sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from tui_agent.errors import LooksSecret
from tui_agent.files.gate import Gate, read_judged
from tui_agent.files.key_formats import Hit, hits, hits_masked, values
from tui_agent.files.names import display_path
from tui_agent.files.text import TextFile, decode, encode

SecretChoice = Literal["mask", "send", "leave"]
#: The user's choices, by the SHA-256 of the file's bytes.
Decisions = Mapping[str, SecretChoice]


class UndecidedSecret(LooksSecret):
    """The user has not decided about a file with a secret. `digest` is the SHA-256 of its bytes; `named`
    means that its names make it a secret."""

    def __init__(self, path: str, digest: str, what: str, *, named: bool) -> None:
        super().__init__(f"{display_path(path)} {what}", "it is not sent without asking")
        self.path = path
        self.digest = digest
        self.named = named


class SecretFinding(Struct, frozen=True):
    """A file with its secrets and the reason (the end of a sentence), or "" without secrets."""

    path: str
    data: bytes
    text: TextFile
    digest: str = ""
    hits: tuple[Hit, ...] = ()
    what: str = ""
    named: bool = False

    def choice(self, decisions: Decisions) -> SecretChoice | None:
        """The choice for this file, or None if the user must decide."""
        return decisions.get(self.digest) if self.what else "send"

    def shown(self, decisions: Decisions) -> tuple[str, tuple[Hit, ...]]:
        """The text that may be sent, and its masked places. Raises `UndecidedSecret`, or `LooksSecret` if the user
        refused."""
        match self.choice(decisions):
            case "send":
                return self.text.text, ()
            case "mask":
                return hits_masked(self.text.text, self.hits), self.hits
            case "leave":
                raise LooksSecret(f"{display_path(self.path)} {self.what}", "it was left out, as you said")
        raise UndecidedSecret(self.path, self.digest, self.what, named=self.named)


def find_secrets(path: str, data: bytes, text: TextFile, named: bool) -> SecretFinding:
    """Find secrets in a file's content; `named` means that its names make it a secret. Blocking.

    A file that is secret by name is masked except for the names of its values.
    """
    found = tuple(values(text.text) if named else hits(text.text))
    if named:
        what = "looks like a secret"
    elif found:
        line = text.text.count("\n", 0, found[0].start) + 1
        what = f"holds what looks like {found[0].what} (line {line})"
    else:
        return SecretFinding(path, data, text)
    return SecretFinding(path, data, text, hashlib.sha256(data).hexdigest(), found, what, named)


def find_secrets_in_file(gate: Gate, path: str, limit: int, newer: str | None = None) -> SecretFinding:
    """As `find_secrets`, for a workspace file or the `newer` text of its buffer. Blocking. Raises PathRefused,
    TooLarge, Undecodable or FileError."""
    data, named = read_judged(gate, path, limit)
    text = decode(data, path)
    if newer is not None:
        data = encode(text, newer)
        text = decode(data)
    return find_secrets(path, data, text, named)
