"""What of a workspace needs care in a view: secrets, which it does not show, and files of other owners."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase

from tui_agent.files.judge import SecretFile, SecretFiles
from tui_agent.files.key_formats import hits, hits_masked
from tui_agent.files.key_search import in_letters, read_text
from tui_agent.trial.plan import MEGABYTE, Seed

#: Of how many files and bytes of somebody else a view has copies.
MOST_OWNED, MOST_OWNED_BYTES = 2_000, 64 * MEGABYTE

Shown = Callable[[SecretFile], bool]


class HiddenFiles:
    """What of a folder a view hides: all that its judge finds but what the person reveals."""

    def __init__(self, secrets: SecretFiles | str) -> None:
        """Of a folder, or of one that has a judge already."""
        self.secrets = SecretFiles(secrets) if isinstance(secrets, str) else secrets
        self._masked: dict[tuple[str, str], bytes] = {}

    def found(self, revealed: Collection[str] = (), sent: Shown = lambda secret: False) -> list[SecretFile]:
        """The secrets without those that a glob of `revealed` fits, or of which the person has said that they are
        `sent`. Blocking."""
        return [one for one in self.secrets.found() if not (is_revealed(one, revealed) or sent(one))]

    def paths(self, revealed: Collection[str] = ()) -> list[str]:
        """Their relative paths. Blocking."""
        return [one.path for one in self.found(revealed)]

    def seeds(self, found: Collection[SecretFile], overlay: str = "") -> list[Seed]:
        """What a view has in their place: nothing, or the text without its keys. Blocking."""
        masked = {(one.path, one.digest): self._text_of(one) for one in found if one.why == "content"}
        self._masked = masked
        return [
            Seed(one.path, "hidden", masked.get((one.path, one.digest), b""), None, overlay) for one in found
        ]

    def _text_of(self, secret: SecretFile) -> bytes:
        known = self._masked.get((secret.path, secret.digest))
        if known is not None:
            return known
        data = read_text(os.path.join(self.secrets.root, secret.path))
        text = in_letters(data or b"")
        return hits_masked(text, hits(text)).encode(errors="replace")

    def owned(self) -> tuple[list[Seed], str]:
        """Files and folders of somebody else, as `found` has seen them, which a layer holds only as one's own.

        Where there are too many: none, and a sentence. For root everybody's files are its own.
        """
        others = self.secrets.others()
        if len(others) > MOST_OWNED or sum(size for _, size in others) > MOST_OWNED_BYTES:
            return [], (
                f"Commands cannot write the {len(others):,} files here that belong to somebody else: "
                "they are too many to copy for each run"
            )
        return [Seed(path, "owned") for path, _ in sorted(others)], ""


def is_revealed(secret: SecretFile, globs: Collection[str]) -> bool:
    """Whether a glob fits it, or the name that makes it a secret."""
    return any(fnmatchcase(secret.path, glob) or fnmatchcase(secret.by, glob) for glob in globs)


def sent_by_person(root: str, decisions: Mapping[str, str]) -> Shown:
    """Which secrets the person has said may be sent as they are, by the SHA-256 of their bytes. Blocking."""
    sent = {digest for digest, choice in decisions.items() if choice == "send"}

    def is_sent(secret: SecretFile) -> bool:
        if not sent:
            return False
        digest = secret.digest or _digest(os.path.join(root, secret.path))
        return digest in sent

    return is_sent


def _digest(path: str) -> str:
    import hashlib

    data = read_text(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()
