"""What a single name in a request asks for: a file with a chain of patterns, a folder, or nothing."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from tui_agent.answers.plans import DirectoryAction, FallbackKind, FileAction
from tui_agent.planning import resolving
from tui_agent.planning.references import Masked, Reference, find_references
from tui_agent.planning.spelling import ORDINARY, PRODUCTS, looks_like_identifier
from tui_agent.workspace.index import Index
from tui_agent.workspace.languages import is_source_extension

#: A name that more files than this share is not a name.
MOST_NAMESAKES: Final = 3
SHORTEST_WORD: Final = 3
_MADE: Final = re.compile(
    r"\b(?:create|creates|add|adds|write|make|generate|new|introduce)\s+(?:\S+\s+){0,4}\Z", re.I
)


class Wish(Struct, frozen=True):
    """One file or folder that the words ask for; `sure` where the index holds just what was named."""

    at: int
    action: FileAction | DirectoryAction
    sure: bool


def wish_for(reference: Reference, request: str, index: Index, namesakes: list[str]) -> Wish | None:
    text = reference.text
    match reference.kind:
        case "traceback":
            path = resolving.by_suffix(text, index)
            return _file(reference, path, (path,), "the traceback names it", True) if path else None
        case "glob":
            return _glob(reference)
        case "alias":
            parts = [part for part in text.split("/") if part]
            return _file(reference, text, _alias(parts, index), "the import names it", False)
        case "mention":
            return _mention(reference, request, index, namesakes)
        case "path":
            return _path(reference, request, index)
        case "name":
            return _file_name(reference, request, index)
        case "module":
            return _module(reference, index)
        case "quoted":
            return _quoted(reference, request, index, namesakes)
        case "word":
            return _word(reference, namesakes)


def _file(
    reference: Reference,
    name: str,
    patterns: tuple[str, ...],
    reason: str,
    sure: bool,
    fallback: FallbackKind = "ask_user",
) -> Wish:
    action = FileAction(name, patterns, reason, fallback == "ask_user", fallback)
    return Wish(reference.at, action, sure)


def _glob(reference: Reference) -> Wish:
    text = re.sub(r"^(?:\./)+", "", reference.text)
    patterns = (
        (text,) if text.startswith("**/") else (f"**/{text}",) if "/" not in text else (text, f"**/{text}")
    )
    return Wish(reference.at, FileAction(text, patterns, "the pattern is written so", all=True), True)


def _alias(parts: list[str], index: Index) -> tuple[str, ...]:
    """`@/x/y` stands for a folder of sources, most often `src`."""
    source = "src" if index.has_folder("src") else ""
    if "." in parts[-1]:
        return resolving.chain_for_path("/".join([source, *parts] if source else parts), index)
    return resolving.chain_for_module(parts, source)


def _mention(reference: Reference, request: str, index: Index, namesakes: list[str]) -> Wish | None:
    """`@path`: what it names is wanted whatever else is said. A decorator or a person's name is none."""
    text = reference.text.rstrip("/")
    if index.has_folder(text):
        return Wish(reference.at, DirectoryAction(text), True)
    if index.contains(text):
        return _file(reference, text, (text,), "mentioned", True)
    if "." in text.rpartition("/")[2] or ("/" in text and not _is_package(text)):
        return _file(
            reference,
            text,
            resolving.chain_for_path(text, index),
            "mentioned",
            False,
            _fallback(reference, request),
        )
    if 0 < len(namesakes) <= MOST_NAMESAKES:
        return _file(reference, text, tuple(namesakes), "mentioned", len(namesakes) == 1)
    return None


def _is_package(text: str) -> bool:
    """`scope/name`, as npm writes packages after the `@`."""
    return bool(re.fullmatch(r"[a-z0-9-]+/[a-z0-9._-]+", text))


def _path(reference: Reference, request: str, index: Index) -> Wish | None:
    """`a/b`: a file or folder that exists, or something that can only be a path."""
    text = re.sub(r"^(?:\.{1,2}/)+", "", reference.text.replace("\\", "/"))
    if text.startswith(("/", "~")):
        found = resolving.by_suffix(text, index)
        return _file(reference, found, (found,), "the request names it", True) if found else None
    bare = re.sub(r"/+", "/", text).rstrip("/")
    if index.contains(bare):
        return _file(reference, bare, (bare,), "the request names it", True)
    if index.has_folder(bare):
        return Wish(reference.at, DirectoryAction(bare), True)
    if re.search(r"[^/.]\.[A-Za-z]\w{0,7}$", bare):
        patterns = resolving.chain_for_path(bare, index)
        return _file(reference, bare, patterns, "the request names it", False, _fallback(reference, request))
    if text.endswith("/") and resolving.folder_called(bare, index):
        return Wish(reference.at, DirectoryAction(resolving.folder_called(bare, index)), False)
    first = bare.partition("/")[0]
    if index.has_folder(first) or reference.text.startswith("."):
        patterns = resolving.chain_for_module(bare.split("/"))
        if resolving.fits_something(patterns, index, MOST_NAMESAKES):
            return _file(reference, bare, patterns, "the request names it", False)
    return None


def _fallback(reference: Reference, request: str) -> FallbackKind:
    """A file that is to be made need not be there."""
    return "create_new" if _MADE.search(request[: reference.at][-80:]) else "ask_user"


def _file_name(reference: Reference, request: str, index: Index) -> Wish | None:
    """`name.ext`: a name that files end so, or that the index holds; not a product's, and not a method's."""
    text = reference.text
    if resolving.fits_something([f"**/{text}"], index, MOST_NAMESAKES):
        patterns = resolving.chain_for_path(text, index)
        return _file(reference, text, patterns, "the request names it", _is_only(text, index))
    if not is_source_extension(text.rpartition(".")[2]) or text.lower() in PRODUCTS:
        return _module(reference, index)
    patterns = resolving.chain_for_path(text, index)
    return _file(reference, text, patterns, "the request names it", False, _fallback(reference, request))


def _is_only(name: str, index: Index) -> bool:
    return len(index.named([name])[name]) == 1


def _module(reference: Reference, index: Index) -> Wish | None:
    """`a.b.c`, where the index has such a module."""
    parts = re.split(r"\.|::", reference.text)
    patterns = resolving.chain_for_module(parts)
    if not resolving.fits_something(patterns, index, MOST_NAMESAKES):
        return None
    return _file(reference, reference.text, patterns, "the module is named", False)


def _quoted(reference: Reference, request: str, index: Index, namesakes: list[str]) -> Wish | None:
    """A quoted name; a quoted sentence is none."""
    text = reference.text.strip()
    inner = Masked(text)
    found = [Reference(other.kind, other.text, reference.at) for other in find_references(inner)]
    if len(found) == 1 and found[0].kind not in ("word", "quoted") and " " not in text:
        return wish_for(found[0], request, index, namesakes)
    if index.contains(text):
        return _file(reference, text, (text,), "the request names it", True)
    if re.fullmatch(r"[^/\n]{1,100}\.\w{1,8}", text) and is_source_extension(text.rpartition(".")[2]):
        return _file(reference, text, resolving.chain_for_path(text, index), "the request names it", False)
    return _word(reference, namesakes, quoted=True)


def _word(reference: Reference, namesakes: list[str], *, quoted: bool = False) -> Wish | None:
    """A word that is the name of a few files just as it is, with or without their extension."""
    text = reference.text
    if text in ORDINARY and not quoted:
        return None
    same = [path for path in namesakes if _is_called(path, text)]
    if not 0 < len(same) <= MOST_NAMESAKES:
        return None
    return _file(reference, text, tuple(same), "a file is called so", False, "skip")


def _is_called(path: str, name: str) -> bool:
    own = path.rpartition("/")[2]
    return name in (own, own.rpartition(".")[0])


def may_be_namesake(reference: Reference) -> bool:
    """Whether files could be called just so, which the index is asked for all at once."""
    if reference.kind == "word":
        return len(reference.text) >= SHORTEST_WORD and reference.text not in ORDINARY
    return reference.kind in ("quoted", "mention")


def is_identifier(reference: Reference) -> bool:
    """Whether it is written as programs write names."""
    if reference.kind not in ("word", "quoted"):
        return False
    text = _called(reference)
    return bool(re.fullmatch(r"[\w-]+", text)) and looks_like_identifier(text)


def wish_for_identifier(reference: Reference, index: Index) -> Wish | None:
    """A name of the program's, where files are called after it."""
    text = _called(reference)
    patterns = resolving.chain_for_identifier(text)
    if not resolving.fits_something(patterns, index, MOST_NAMESAKES):
        return None
    return _file(reference, text, patterns, "a file may be called after it", False, "skip")


def _called(reference: Reference) -> str:
    return reference.text.strip().removesuffix("()")
