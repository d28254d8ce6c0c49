"""Workspace files with special treatment in a view: hidden secrets, and files of other owners."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase

from tui_agent.files.folder_scan import in_letters, read_text
from tui_agent.files.masking import hits, hits_masked
from tui_agent.files.secret_files import SecretFile, SecretFiles
from tui_agent.files.sensitive_paths import is_sample, is_secret
from tui_agent.sandbox.view_plan import MEGABYTE, Seed

MOST_OWNED, MOST_OWNED_BYTES = 2_000, 64 * MEGABYTE

SecretFilter = Callable[[SecretFile], bool]


class HiddenFiles:
    """All secrets of a folder except those the user reveals."""

    def __init__(self, secrets: SecretFiles | str) -> None:
        """Accepts a folder or an existing judge."""
        self.secrets = SecretFiles(secrets) if isinstance(secrets, str) else secrets
        self._masked: dict[tuple[str, str], bytes] = {}

    def found(
        self, revealed: Collection[str] = (), sent: SecretFilter = lambda secret: False
    ) -> list[SecretFile]:
        """Returns secrets that neither match a glob in `revealed` nor are `sent` (permitted by the user).
        Blocking.
        """
        self.secrets.found()
        return self.last(revealed, sent)

    def last(
        self, revealed: Collection[str] = (), sent: SecretFilter = lambda secret: False
    ) -> list[SecretFile]:
        """Returns the previous `found`, filtered again."""
        return [one for one in self.secrets.last if not (is_revealed(one, revealed) or sent(one))]

    @property
    def masked(self) -> list[str]:
        return [path for path, _ in self._masked]

    def paths(self, revealed: Collection[str] = ()) -> list[str]:
        """Blocking."""
        return [one.path for one in self.found(revealed)]

    def seeds(self, found: Collection[SecretFile], overlay: str = "") -> list[Seed]:
        """Replaces files by nothing, or by their text without keys. Blocking."""
        masked: dict[tuple[str, str], bytes] = {}
        for one in found:
            if one.why != "content":
                continue
            clean = self._masked.get((one.path, one.digest))
            if clean is None:
                text = in_letters(read_text(os.path.join(self.secrets.root, one.path)) or b"")
                clean = hits_masked(text, hits(text)).encode(errors="replace")
            masked[one.path, one.digest] = clean
        self._masked = masked
        return [
            Seed(one.path, "hidden", masked.get((one.path, one.digest), b""), None, overlay) for one in found
        ]

    def pending(
        self,
        contents: Mapping[str, bytes | None],
        renamed: Mapping[str, str],
        revealed: Collection[str] = (),
        sent: SecretFilter = lambda secret: False,
        masked: Callable[[str], str] = str,
    ) -> list[Seed]:
        """Returns all seeds of a view in which files become `contents`. Blocking. `renamed`: old paths by
        new path; `masked` removes secret values from text that may have been moved.
        """
        every = self.secrets.found()
        known = {one.path: one for one in every}
        hidden = {one.path: one for one in every if not (is_revealed(one, revealed) or sent(one))}
        seeds: list[Seed] = []
        for path, content in contents.items():
            before = hidden.get(path)
            if content is None:
                hidden.pop(path, None)
                seeds.append(Seed(path, "gone"))
            elif before is not None and before.why != "content":
                continue
            elif path in known and before is None:
                seeds.append(Seed(path, "file", content))
            elif (of := self._comes_from(path, content, renamed, known)) and not _fits((path, of), revealed):
                hidden.pop(path, None)
                seeds.append(Seed(path, "hidden"))
            else:
                hidden.pop(path, None)
                text = clean = in_letters(content)
                if not _fits((path,), revealed):
                    found = hits_masked(text, hits(text))
                    clean = masked(found)
                    if clean != found:
                        there = in_letters(read_text(os.path.join(self.secrets.root, path)) or b"")
                        clean = found if masked(there) != there else clean
                seeds.append(
                    Seed(path, "file", content)
                    if clean == text
                    else Seed(path, "hidden", clean.encode(errors="replace"))
                )
        return [*self.seeds([*hidden.values()]), *seeds]

    def _comes_from(
        self, path: str, content: bytes, renamed: Mapping[str, str], known: Mapping[str, SecretFile]
    ) -> str:
        """Returns the secret of which a pending file is a version, by its name, previous name, or bytes; or
        "".
        """
        old = path
        for _ in range(len(renamed) + 1):
            if is_secret(old) or (old in known and known[old].why != "content"):
                return old
            if old not in renamed:
                break
            old = renamed[old]
        return self.secrets.told_by_bytes(content) if not is_sample(path) else ""

    def owned(self) -> tuple[list[Seed], str]:
        """Other users' files and folders from the last `found`; a layer can only hold them as our own. Too
        many result in none and a sentence. Root needs none.
        """
        others = self.secrets.others()
        if len(others) > MOST_OWNED or sum(size for _, size in others) > MOST_OWNED_BYTES:
            return [], (
                f"Commands cannot write the {len(others):,} files here that belong to other users: "
                "they are too many to copy for each run"
            )
        return [Seed(path, "owned") for path, _ in sorted(others)], ""


def is_revealed(secret: SecretFile, globs: Collection[str]) -> bool:
    return _fits((secret.path, secret.by), globs)


def _fits(paths: Collection[str], globs: Collection[str]) -> bool:
    return any(fnmatchcase(path, glob) for glob in globs for path in paths)


def sent_by_person(root: str, decisions: Mapping[str, str]) -> SecretFilter:
    """Accepts secrets that the user permitted to send, by the SHA-256 of their bytes. Blocking."""
    sent = {digest for digest, choice in decisions.items() if choice == "send"}

    def is_sent(secret: SecretFile) -> bool:
        if not sent:
            return False
        digest = secret.digest
        if not digest and (data := read_text(os.path.join(root, secret.path))) is not None:
            digest = hashlib.sha256(data).hexdigest()
        return digest in sent

    return is_sent
