"""Paths that need the user's permission, by name only (`secret_names.toml`): secrets, and files that control
programs.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from functools import cache, cached_property
from pathlib import Path

from tui_agent.files.lazy_regex import late

PATH = Path(__file__).with_name("secret_names.toml")


@cache
def _table() -> dict[str, str]:
    return tomllib.loads(PATH.read_text("utf-8"))


class _Names:
    """Names of one entry of the table, read at first use; `match` compiles their globs, which takes 10 ms."""

    def __init__(self, key: str) -> None:
        self._key = key

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(_table()[self._key].split())

    @cached_property
    def all(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def match(self) -> Callable[[str], re.Match[str] | None]:
        parts = (name[1:] + r"\Z" if name.startswith("^") else translate(name) for name in self.words)
        return re.compile("|".join(f"(?:{part})" for part in parts)).match


_SECRET, _SECRET_PLACES, _HIDDEN_FOLDERS = _Names("secret"), _Names("secret_places"), _Names("hidden_folders")
_STORES, _STORE_PLACES, _STORE_ENDINGS = _Names("stores"), _Names("store_places"), _Names("store_endings")
_SAMPLES, _CODE = _Names("samples"), _Names("code")
_SECRET_CODE, _LANGUAGES, _DESIGNS = _Names("secret_code"), _Names("languages"), _Names("designs")
_GOVERNING, _GOVERNING_FOLDERS = _Names("governing"), _Names("governing_folders")
_DATA = (
    r"(?:\.(?:txt|text|jsonl?|ya?ml|csv|tsv|ini|cfg|conf|config|toml|xml|plist|properties"
    r"|dat|data|db|kdb|lst|list|enc|log|xlsx?|ods))?"
)
_WHOSE = r"(?:[a-z0-9]+[._-])*"
_KIND = r"(?:api|access|auth|refresh|bearer|id|bot|deploy|session|github|gitlab|gh|slack|npm|pypi|hf)"
_NOTED = late(
    rf"\.?(?:tokens?|passwords?|passwds?|passphrases?)(?:[._-][a-z0-9._-]+?)?{_DATA}"
    rf"|\.?{_WHOSE}{_KIND}[._-]?(?:tokens?|keys?){_DATA}"
    rf"|\.?{_WHOSE}(?:tokens?|passwords?|passwd|passphrase)"
)
_STORE_FOLDERS = late(
    r"/\.(?:m2|cargo|composer|bundle|gem|gradle|sbt|ivy2|hex|conda|pip|huggingface|git|npm|ssh|gnupg|aws|azure|kube|docker"
    r"|password-store|gcloud|oci|terraform\.d|kaggle|snowflake|chef|secrets|config)(?:/|$)"
    r"|/(?:uv/credentials|composer|containers|pypoetry|pnpm|gh|glab-cli|binstar|anaconda-client|go|huggingface)(?:/|$)"
)
#: Vocabularies, designs, password pages.
_OTHER_SENSE = late(
    r"(?:design|css|style|theme|color|special|added|stop)[._-]?tokens?\b.*|tokeni[sz].*"
    r"|.*[._-](?:reset|forgot|rules|policy)\b.*"
)
_WORDS_OF_PAGES = late(
    r"(?:auth|token|tokens|password|passwords|secret|secrets|credentials)\.(?:json|ya?ml|properties)"
)
_WORDS_OF_DESIGN = late(r"tokens?\.(?:json|ya?ml)")
_COPY = late(
    r"(?P<before>.+?)(?:~|\.(?:bak|backup|back|bkp|bk|old|orig|original|save|saved|swp|swo|swn|tmp|temp|copy|prev"
    r"|rej|disabled|off|rpmsave|rpmnew|dpkg-old|dpkg-dist|ucf-old|\d{1,14}|\d{4}-\d\d-\d\d)"
    r"|[ _-](?:bak|backup|old|orig|copy|kopie)\d{0,3}|[ _-]?\(\d{1,3}\)|(?: - copy| copy)(?: \d{1,3})?"
    r"|[ _-]\d{1,14}|[ _-]\d{4}-\d\d-\d\d)"
)
_COPY_INSIDE = late(
    r"(?P<before>.+?)(?:[ ._-](?:bak|backup|old|orig|copy)\d{0,3}|[ _-]?\(\d{1,3}\)| - copy| copy(?: \d{1,3})?)"
    r"(?P<after>\.[a-z0-9]{1,12})"
)
_COPIES_OF_COPIES = 4


def is_secret(path: str) -> bool:
    """Whether it looks like a file with keys or passwords, unlike `.env.example`, `token.py` and similar.

    Ignores case, trailing dots, backup and copy suffixes: `.ENV~` and `id_rsa (1)` are secrets.
    """
    *folders, name = _components(path)
    if any(folder in _HIDDEN_FOLDERS.all for folder in folders):
        return not name.endswith(".pub")
    if _WORDS_OF_PAGES.fullmatch(name) and any(folder in _LANGUAGES.all for folder in folders):
        return False
    if _WORDS_OF_DESIGN.fullmatch(name) and any(folder in _DESIGNS.all for folder in folders):
        return False
    return any(_holds_secrets(folders, each) for each in _without_copying(name))


def is_store(path: str) -> bool:
    """Like `is_secret` for third-party files, whose certificates and test keys do not count."""
    *folders, name = _components(path)
    if _SAMPLES.match(name):
        return False
    if any(folder in _HIDDEN_FOLDERS.all for folder in folders):
        return True
    return any(
        each in _STORES.all or each.startswith(".env.") or _STORE_PLACES.match("/".join(("", *folders, each)))
        for each in _without_copying(name)
    )


def stores_in(folder: str, names: Iterable[str]) -> list[str]:
    """Returns names for which `is_store` is true; fast if almost none match."""
    telling = bool(_STORE_FOLDERS.search(folder.casefold()))
    return [
        name
        for name in names
        if (telling or (low := name.casefold().rstrip(". ")) in _STORES.all or low.startswith(".env")
            or low.endswith(_STORE_ENDINGS.words) or not name.isascii()) and is_store(f"{folder}/{name}")
    ]  # fmt: skip


def is_sample(path: str) -> bool:
    return bool(_SAMPLES.match(_components(path)[-1]))


def governs(path: str) -> bool:
    """Whether it controls an agent, an editor, git, a build server or a shell, so that writes need
    permission.
    """
    *folders, name = _components(path)
    return any(folder in _GOVERNING_FOLDERS.all for folder in (*folders, name)) or bool(
        _GOVERNING.match(name)
    )


def _holds_secrets(folders: list[str], name: str) -> bool:
    if _SAMPLES.match(name):
        return False
    if not name.startswith(".") and _CODE.match(name):
        return bool(_SECRET_CODE.match(name))
    if _SECRET.match(name) or "secrets" in folders:
        return True
    if _NOTED.fullmatch(name) and not _OTHER_SENSE.match(name):
        return True
    return bool(_SECRET_PLACES.match("/".join(("", *folders, name))))


def _without_copying(name: str) -> Iterator[str]:
    yield name
    for _ in range(_COPIES_OF_COPIES):
        if copy := _COPY.fullmatch(name) or _COPY_INSIDE.fullmatch(name):
            name = copy["before"] + copy.groupdict().get("after", "")
        elif name.startswith("#") and name.endswith("#"):
            name = name.strip("#")
        elif beginning := next((one for one in (".#", "copy of ", "backup of ") if name.startswith(one)), ""):
            name = name.removeprefix(beginning)
        else:
            return
        yield name
        if name.startswith(".") and not name.startswith(".env"):
            yield name[1:]  # swap files: `.id_rsa.swp`


def _components(path: str) -> tuple[str, ...]:
    if not path.isascii():
        path = "".join(c for c in unicodedata.normalize("NFKC", path) if unicodedata.category(c) != "Cf")
    parts = [part for part in path.casefold().replace("\n", ".").split("/") if part not in ("", ".")]
    return (*parts[:-1], parts[-1].rstrip(". ")) if parts else ("",)
