"""Git settings for commands, without credentials and helper programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tui_agent.files.git_folder import MOST_CONFIG, Entries, format_config, parse_config, read_regular
from tui_agent.files.masking import hits, hits_masked

#: Relative to the home.
OF_PERSON = (".gitconfig", ".config/git/config")
#: Copied whole: no address, key, or credential program.
_HARMLESS = frozenset(
    {"advice", "alias", "apply", "blame", "branch", "checkout", "clean", "color", "column", "commit", "diff"}
    | {"extensions", "feature", "fetch", "format", "gc", "grep", "i18n", "index", "init", "log", "merge"}
    | {"pack", "pull", "push", "rebase", "rerere", "safe", "stash", "status", "tag", "filter", "mergetool"}
)
#: Copied from other sections, by name.
_KEPT = {
    "core": frozenset(
        {
            "repositoryformatversion",
            "bare",
            "worktree",
            "filemode",
            "symlinks",
            "ignorecase",
            "precomposeunicode",
        }
        | {
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "abbrev",
            "excludesfile",
            "attributesfile",
            "hookspath",
        }
        | {
            "sparsecheckout",
            "sparsecheckoutcone",
            "logallrefupdates",
            "whitespace",
            "editor",
            "untrackedcache",
        }
    ),
    "user": frozenset({"name", "email"}),
    "remote": frozenset(
        {"url", "pushurl", "fetch", "push", "tagopt", "mirror", "promisor", "partialclonefilter"}
    ),
    "submodule": frozenset({"url", "path", "active", "branch", "update", "ignore"}),
    "lfs": frozenset({"repositoryformatversion"}),
}
#: User and password. A password may contain `@` and `/`; a host is followed only by a port.
_USER = re.compile(r"(?<=://)(?:[^/\s:]*:(?!\d+/)\S*@|[^/?#\s]*@)")
#: May hold a token.
_QUERY = re.compile(r"(://[^\s?#]*)[?#]\S*")
#: Signing needs a key.
_SIGNS = ("commit.gpgsign", "tag.gpgsign", "push.gpgsign", "tag.forcesignannotated")


def visible_settings(path: str) -> bytes:
    """Returns the visible text; empty if it cannot be parsed."""
    try:
        entries = parse_config(read_regular(path, MOST_CONFIG).decode(errors="surrogateescape"))
    except (OSError, ValueError):
        return b""
    text = format_config(_harmless(entries)).decode(errors="surrogateescape")
    return hits_masked(text, hits(text)).encode(errors="surrogateescape")


def files_of(git_folder: str) -> list[str]:
    """Settings in a git folder, its work trees and submodules, and their copies."""
    found = [entry.path for entry in os.scandir(git_folder) if entry.name.startswith("config")]
    for inner in ("worktrees", "modules"):
        for folder, folders, names in os.walk(f"{git_folder}/{inner}"):
            found += [f"{folder}/{name}" for name in names if name.startswith("config")]
            folders[:] = [name for name in folders if name not in ("objects", "refs", "logs", "hooks")]
    return [path for path in found if os.path.isfile(path)]


def _harmless(entries: Entries) -> Iterator[tuple[str, str]]:
    for key, value in entries:
        section, name = key.partition(".")[0], key.rpartition(".")[2]
        if key not in _SIGNS and (section in _HARMLESS or name in _KEPT.get(section, ())):
            yield key, _QUERY.sub(r"\1", _USER.sub("", value))
