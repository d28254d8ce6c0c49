"""Settings of git as commands see them: what git works by, without what would hand out a credential or run a helper."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tui_agent.files.git_folder import MOST_CONFIG, Entries, format_config, parse_config, read_regular
from tui_agent.files.key_formats import hits, hits_masked

#: The person's own settings, below the home.
OF_PERSON = (".gitconfig", ".config/git/config")
#: Sections of which all is kept: none of them holds an address, a key, or a program that asks for one.
_HARMLESS = frozenset(
    {"advice", "alias", "apply", "blame", "branch", "checkout", "clean", "color", "column", "commit", "diff"}
    | {"extensions", "feature", "fetch", "format", "gc", "grep", "i18n", "index", "init", "log", "merge"}
    | {"pack", "pull", "push", "rebase", "rerere", "safe", "stash", "status", "tag", "filter", "mergetool"}
)
#: Of the others what is kept, by section and name.
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
#: A user, with or without a password, in an address: a password may hold an `@` and a `/`, a host has only a port.
_USER = re.compile(r"(?<=://)(?:[^/\s:]*:(?!\d+/)\S*@|[^/?#\s]*@)")
#: What follows the path in an address: a token, if anything.
_QUERY = re.compile(r"(://[^\s?#]*)[?#]\S*")
#: What signs needs a key, which is not there.
_SIGNS = ("commit.gpgsign", "tag.gpgsign", "push.gpgsign", "tag.forcesignannotated")


def shown(path: str) -> bytes:
    """What commands read at the place of a file of settings; nothing of one that cannot be read as such."""
    try:
        entries = parse_config(read_regular(path, MOST_CONFIG).decode(errors="surrogateescape"))
    except (OSError, ValueError):
        return b""
    text = format_config(_kept(entries)).decode(errors="surrogateescape")
    return hits_masked(text, hits(text)).encode(errors="surrogateescape")


def files_of(git_folder: str) -> list[str]:
    """The files of settings in a git folder: its own, of work trees and of submodules, copies of them too."""
    found = [entry.path for entry in os.scandir(git_folder) if entry.name.startswith("config")]
    for inner in ("worktrees", "modules"):
        for folder, folders, names in os.walk(f"{git_folder}/{inner}"):
            found += [f"{folder}/{name}" for name in names if name.startswith("config")]
            folders[:] = [name for name in folders if name not in ("objects", "refs", "logs", "hooks")]
    return [path for path in found if os.path.isfile(path)]


def _kept(entries: Entries) -> Iterator[tuple[str, str]]:
    for key, value in entries:
        section, name = key.partition(".")[0], key.rpartition(".")[2]
        if key not in _SIGNS and (section in _HARMLESS or name in _KEPT.get(section, ())):
            yield key, _QUERY.sub(r"\1", _USER.sub("", value))
